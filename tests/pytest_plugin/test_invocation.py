"""The command by which a failing case is run alone: it is pasted, and runs that case in the same way."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import forks
import pytest
from sessions import Session

WRONG = "- a = tensor([2.0])\n- expect: {a: 3.0}\n"
BROKEN = """\
import torch
def begin():
    torch.Tensor.sinh = lambda self: self
"""
PROFILE = "device: cpu\nimport: [broken]\nsetup: broken:begin\n"
ON_SINH = "- a = tensor([2.0]).sinh()\n- expect: {a: 3.6268604}\n"


def pasted(output: str) -> list[str]:
    (command,) = re.findall(r"run it alone: (.*)", output)
    return shlex.split(command)


def ran(session: Session, words: list[str], directory: Path) -> str:
    python = {"pytest": [session.python, "-m", "pytest"], "python": [session.python]}[words[0]]
    done = subprocess.run(
        [*python, *words[1:]], cwd=directory, env=session.environment(), check=False, text=True, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def session(tmp_path: Path) -> Session:
    session = Session(tmp_path / "checkout")
    session.write("broken.py", BROKEN)
    session.write("profile.yaml", PROFILE)
    session.cases(right=WRONG.replace("3.0", "2.0"), sinh=ON_SINH)
    return session


@pytest.mark.parametrize("place", [".", "inner"])
def test_in_the_flow_of_pytest(session: Session, place: str) -> None:
    directory = session.directory / place
    directory.mkdir(exist_ok=True)
    up = "" if place == "." else "../"
    given = ["pytest", "--profile", f"{up}profile.yaml", "--python", forks.python(), f"{up}first.yaml"]
    words = pasted(ran(session, given, directory))
    assert words == [*given[:-1], f"{up}first.yaml::sinh[cpu-float32]"]
    again = ran(session, words, directory)
    assert "1 failed in" in again
    assert pasted(again) == words


def test_with_processes_of_pytest_xdist(session: Session) -> None:
    words = pasted(session.run("-n", "1", "--profile", "profile.yaml").output)
    assert words == ["pytest", "--profile", "profile.yaml", "first.yaml::sinh[cpu-float32]"]


def test_the_summary_of_a_service_repeats_no_text_of_a_failure(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_service = {**session.environment(), "CI": "true"}
    monkeypatch.setattr(session, "environment", lambda: on_service)
    for more in ([], ["-n", "1"]):
        output = session.run("--profile", "profile.yaml", *more).output
        assert output.count("run it alone") == 1
        summary = output.partition("short test summary")[2]
        assert "first.yaml::sinh[cpu-float32] - fail: a: " in summary
        assert summary.count("\n") == 3, summary


@pytest.mark.parametrize("more", ["", "-n 1"])
def test_in_the_flow_of_the_command_on_cases_of_ones_own(session: Session, more: str) -> None:
    given = shlex.split(f"python -m conformance run first.yaml --device-module broken --dtype float64 -q {more}")
    session.write("broken.py", BROKEN + "begin()\n")
    words = pasted(ran(session, given, session.directory))
    run = (session.report() or {})["header"]["run"]
    assert run["command"] == "python -m conformance run"
    assert run["arguments"][0] == "first.yaml"
    assert shlex.join(words) == (
        "python -m conformance run --device-module broken --dtype float64 'first.yaml::sinh[cpu-float64]'"
    )
    again = ran(session, words, session.directory)
    assert "1 failed in" in again
    assert pasted(again) == words


def test_in_the_flow_of_the_command_on_shipped_cases(session: Session, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = "python -m conformance run --profile ../checkout/profile.yaml"
    words = shlex.split(f"{command} 'cases/graph.yaml::node-of-an-exponential[cpu-float32]'")
    assert ran(session, words, elsewhere).count("1 passed") == 1
    (report,) = (elsewhere / "reports").glob("*.json")
    assert '"file":"cases/graph.yaml"' in report.read_text(encoding="utf-8")
    joined = [*words[:4], f"--profile={words[-2]}", words[-1]]
    assert "1 passed" in ran(session, joined, elsewhere)
    assert "not found" in ran(session, [*words[:-1], "cases/graph.yaml::no-such-case"], elsewhere)


def test_the_setup_runs_in_every_isolation(session: Session) -> None:
    for isolation in ("process", "none"):
        result = session.run("--profile", "profile.yaml", "--isolation", isolation)
        assert result.statuses == {"right": "pass", "sinh": "fail"}, isolation
        assert "back-end: broken" in result.output
    assert session.run("--isolation", "none").statuses == {"right": "pass", "sinh": "pass"}


def test_explicit_options_count_more_than_the_profile(session: Session) -> None:
    session.write("profile.yaml", PROFILE.replace("device: cpu", "device: npu") + "seconds: 5\n")
    session.write("other.py", "def begin(): pass\n")
    result = session.run("--profile", "profile.yaml")
    assert result.status != 0
    assert "no device 'npu'" in result.output
    assert session.run("--profile", "profile.yaml", "--device", "cpu").statuses["sinh"] == "fail"
    session.write("profile.yaml", "device: cpu\nimport: [nobody_has_this]\n")
    assert session.run("--profile", "profile.yaml", "--device-module", "other").statuses["sinh"] == "pass"


def test_one_run_tests_one_interpreter(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    result = session.run("--python", forks.python(), f"--python={forks.python()}")
    assert result.status == pytest.ExitCode.USAGE_ERROR
    assert "--python stands there several times, and a run tests one interpreter" in result.output
    given = {**session.environment(), "PYTEST_ADDOPTS": "--python absent"}
    monkeypatch.setattr(session, "environment", lambda: given)
    assert session.run("--python", forks.python()).statuses["right"] == "pass"  # what a command says counts more


def test_a_profile_that_is_wrong_ends_the_run_before_it_begins(session: Session) -> None:
    session.write("profile.yaml", "device: cpu\nsetup: broken:absent\n")
    assert "has no attribute 'absent'" in session.run("--profile", "profile.yaml").output
    session.write("profile.yaml", "device: cpu\nset-up: broken:begin\n")
    result = session.run("--profile", "profile.yaml")
    assert result.status == 4
    assert "--profile: profile.yaml:2:1: set-up: unknown key 'set-up' (did you mean 'setup'?)" in result.output


def test_the_known_issues_of_a_profile_hold_besides_those_of_the_cases(session: Session) -> None:
    session.cases(name="second.yaml", other=WRONG)
    entry = """\
        - case: {case}
          targets: [cpu]
          torch: ">=1.13"
          fails: {{status: fail, step: 1, kind: [a]}}
          reason: {reason}
          link: null
          review: "2099-01-01"
    """
    mine = "issues:\n" + entry.format(case="other", reason="It is so.")
    session.write("known-issues.yaml", mine)
    own = entry.format(case="sinh", reason="Nobody has mended it.").replace("        - case", "- case")
    listed = "\n".join(f"  {line.removeprefix('        ')}" for line in own.splitlines())
    session.write("profile.yaml", f"{PROFILE}known_issues:\n{listed}\n")
    result = session.run("--profile", "profile.yaml")
    assert result.statuses == {"right": "pass", "sinh": "known", "other": "known"}, result.output
    session.write("mine.yaml", "issues:\n" + entry.format(case="sinh", reason="Nobody has mended it."))
    session.write("profile.yaml", f"{PROFILE}known_issues: mine.yaml\n")
    assert session.run("--profile", "profile.yaml").statuses == result.statuses
    alone = session.run("--profile", "profile.yaml", "--known-issues", "none").statuses
    assert alone == {"right": "pass", "sinh": "fail", "other": "fail"}
    session.write("profile.yaml", f"{PROFILE}known_issues:\n  - {{case: sinh}}\n")
    assert "profile.yaml:5:5: known_issues[0]: the key 'targets' is missing" in session.run(
        "--profile", "profile.yaml"
    ).output  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="the time limit is seen in what is told of it")
def test_a_profile_says_how_long_a_case_may_take(session: Session) -> None:
    session.write("profile.yaml", PROFILE + "seconds: 1\n")
    session.write("broken.py", "import time, torch\ndef begin():\n    torch.Tensor.sinh = lambda _: time.sleep(60)\n")
    found = session.run("--profile", "profile.yaml").outcomes["sinh"]
    assert found["status"] == "timeout"
    assert found["reason"].startswith("no answer within 1 s; the worker was killed in line ")


def test_settings_of_the_compiler_are_named_where_a_worker_is_not_given_them(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.cases(right="- a = ones(1)\n- expect: {a: 1}")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)  # torch sets it where it compiles, as in other tests
    monkeypatch.setenv("TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS", "1")
    told = "\nnot handed to torch, which is asked by its defaults: TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS\n"
    assert told in session.run().output
    assert told not in session.run("--isolation", "none").output
