"""Options and places on pytest's command line: known before any conftest, wherever their paths lead."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import forks
import pytest
from places import ROOT
from sessions import RULES, Session

from conformance.pytest_plugin.arguments import PLUGIN, configuration_above, is_of_cases

GOOD = "- a = tensor([2.0], requires_grad=True)\n- expect: {a: {is_leaf: true}}\n"
WRONG = GOOD.replace("is_leaf: true", "is_leaf: false")


class Checkout(Session):
    """A directory that is laid out and configured as the checkout is; its tests can't be collected."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.python = directory, forks.python()
        for part in ("cases", "tests"):
            (directory / part).mkdir(parents=True)
        for name in ("pyproject.toml", "conftest.py"):
            if (ROOT / name).exists():
                shutil.copy(ROOT / name, directory)
        self.write("cases/rules.yaml", RULES)
        self.write("tests/conftest.py", "import what_nobody_has_installed\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "checkout")
    made.cases(name="cases/first.yaml", first=GOOD)
    return made


@pytest.fixture
def elsewhere(tmp_path: Path) -> Session:
    made = Session(tmp_path / "elsewhere")
    made.cases(name="mine.yaml", own=GOOD, wrong=WRONG)
    (made.directory / "pytest.ini").unlink()
    return made


def test_no_value_of_an_option_is_taken_for_a_path(checkout: Checkout) -> None:
    options = "--device cpu --dtype float64 --level documented --shard 1/1 --isolation none --require-device cpu"
    result = checkout.run(*options.split(), "--case-timeout", "30", "--known-issues", "none")
    assert result.status == 0, result.output
    assert result.statuses == {"first": "pass"}


def test_paths_outside_of_the_checkout_can_follow_a_blank(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "list.yaml").write_text("issues: []\n")
    checkout.cases(name="cases/second.yaml", wrong=WRONG)
    result = checkout.run("--python", checkout.python, "--report", "../out", "--known-issues", "../list.yaml")
    assert result.status == 1, result.output
    assert result.output.count("test session starts") == 1
    assert "1 failed, 1 passed" in result.output
    assert "first.yaml::" not in result.output
    assert list((tmp_path / "out").glob("torch-*.json"))
    assert result.report is None


def test_a_report_that_goes_to_another_checkout_makes_that_no_root(checkout: Checkout, tmp_path: Path) -> None:
    other = Checkout(tmp_path / "another")
    (other.directory / "reports").mkdir()
    result = checkout.run("--report", str(other.directory / "reports"), "cases/first.yaml")
    assert result.status == 0, result.output
    assert f"rootdir: {checkout.directory}" in result.output
    report = other.report()
    assert report is not None
    assert [case["file"] for case in report["cases"]] == ["cases/first.yaml"]
    other.cases(name="cases/second.yaml", second=GOOD)
    result = checkout.run("--report", "reports", str(other.directory / "cases" / "second.yaml"))
    assert f"rootdir: {other.directory}" in result.output


def test_paths_after_a_blank_may_come_from_the_environment_and_go_to_other_processes(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Session, "environment", lambda _: {**os.environ, "PYTEST_ADDOPTS": f"-v --python {checkout.python}"}
    )
    result = checkout.run("-n", "1")
    assert result.status == 0, result.output
    assert "cases/first.yaml::first[cpu-float32]" in result.output
    assert result.report is not None
    assert result.report["header"]["run"]["arguments"] == ["-n", "1"]


@pytest.mark.parametrize(
    "place", ["mine.yaml::own[cpu-float32]", "", pytest.param("mine.yaml", marks=pytest.mark.slow)]
)
def test_cases_from_elsewhere_run_from_the_checkout_with_options(
    checkout: Checkout, elsewhere: Session, place: str
) -> None:
    result = checkout.run(f"{elsewhere.directory}/{place}", "--device", "cpu", "-v")
    assert "elsewhere/mine.yaml::own[cpu-float32] PASSED" in result.output
    assert result.statuses == ({"own": "pass"} if "::" in place else {"own": "pass", "wrong": "fail"})
    assert result.status == int("::" not in place)
    assert ("run it alone: pytest --device cpu '../elsewhere/mine.yaml::wrong[cpu-float32]'" in result.output) == (
        "::" not in place
    )


def test_where_nothing_loads_the_plugin_a_case_file_is_answered_by_the_command_to_run_it(elsewhere: Session) -> None:
    result = elsewhere.run("mine.yaml", "--device", "cpu")
    assert result.status == 4
    assert "mine.yaml holds cases" in result.output
    command = "python -m conformance run mine.yaml --device cpu"
    assert f"run `{command}`" in result.output
    done = subprocess.run(
        [sys.executable, *command.split()[1:]], cwd=elsewhere.directory, env=elsewhere.environment(), check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout


def test_the_pytest_of_others_is_left_alone(elsewhere: Session) -> None:
    elsewhere.write(
        "conftest.py",
        """\
        def pytest_addoption(parser):
            for name in ("--report", "--device", "--python", "--shard"):
                parser.addoption(name)
        """,
    )
    elsewhere.write("test_own.py", "def test_own(pytestconfig): assert pytestconfig.getoption('report') == '..'\n")
    result = elsewhere.run("--report", "..", "--device", "cpu", "test_own.py")
    assert result.status == 0, result.output
    assert "--require-device" not in elsewhere.run("--help").output


def test_a_plugin_that_is_switched_off_stays_off(checkout: Checkout) -> None:
    result = checkout.run("-p", f"no:{PLUGIN}", "--python", sys.executable)
    assert result.status == 4
    assert "unrecognized arguments: --python" in result.output


def test_only_the_nearest_configuration_counts(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    assert configuration_above(ROOT / "cases") == ROOT / "pyproject.toml"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = -p {PLUGIN}\n")
    (inner / "pyproject.toml").write_text("[project]\n")
    assert configuration_above(inner) == tmp_path / "pytest.ini"
    (inner / "setup.cfg").write_text("[tool:pytest]\n")
    assert configuration_above(inner) is None


def test_case_files_are_known_by_their_text(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    assert not is_of_cases(tmp_path)
    (tmp_path / "mine.yml").write_text("# mine\ntopic: T\ncases: []\n")
    assert is_of_cases(tmp_path)
    assert not is_of_cases(tmp_path / "absent.yaml")
