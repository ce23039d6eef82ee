"""The command line and the installed package: the shipped cases run from anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conformance import cli
from conformance.arguments import joined, loads_the_plugin
from conformance.suite import shipped_cases

ROOT = Path(__file__).parent.parent


def run(*command: str, directory: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHONPATH", "COV"))}
    environment = own if path is None else {**own, "PYTHONPATH": str(path)}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def test_run_runs_the_shipped_cases_from_anywhere(tmp_path: Path) -> None:
    done = run(sys.executable, "-m", "conformance", "run", "-k", "hooks", directory=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases/hooks.yaml" in done.stdout
    assert len(list((tmp_path / "reports").glob("torch-*.json"))) == 1


def test_run_takes_a_case_file_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_bytes((shipped_cases() / "graph.yaml").read_bytes())
    done = run(sys.executable, "-m", "conformance", "run", "own.yaml", "-v", directory=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "own.yaml::node-of-an-exponential[cpu-float32] PASSED" in done.stdout
    assert "2 passed" in done.stdout


def test_a_wheel_holds_the_cases_and_runs_them(tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    built = run(*pip, "--wheel-dir", str(tmp_path), str(ROOT), directory=tmp_path)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    where = run(sys.executable, "-m", "conformance", "cases", directory=elsewhere, path=tmp_path / "site")
    assert where.stdout.strip() == str(tmp_path / "site" / "conformance" / "cases")
    done = run(sys.executable, "-m", "conformance", "run", "-q", directory=elsewhere, path=tmp_path / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_cases_prints_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cases"]) == 0
    assert capsys.readouterr().out == f"{shipped_cases()}\n"


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["rnu"])
    assert ended.value.code == 2
    assert "invalid choice: 'rnu'" in capsys.readouterr().err


def test_a_path_after_a_blank_is_joined_to_its_option() -> None:
    assert joined(["-x", "--python", "/p", "a.yaml"]) == ["-x", "--python=/p", "a.yaml"]
    assert joined(["--python=/p", "--report", "out"]) == ["--python=/p", "--report=out"]
    assert joined(["--python"]) == ["--python"]
    assert joined(["-k", "python"]) == ["-k", "python"]


def test_only_a_directory_whose_conftest_loads_the_plugin_is_ours(tmp_path: Path) -> None:
    assert loads_the_plugin(ROOT / "cases")
    (tmp_path / "conftest.py").write_text("")
    assert not loads_the_plugin(tmp_path)


def test_a_python_outside_of_the_checkout_can_be_given_with_a_blank() -> None:
    done = run(sys.executable, "-m", "pytest", "-q", "--python", sys.executable, "-k", "hooks", directory=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_installing_the_suite_brings_no_torch() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = text.partition("dependencies = [")[2].partition("]")[0]
    assert '"pytest>=' in needed
    assert "torch" not in needed
