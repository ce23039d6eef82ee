"""A run says what confines its cases; those of strangers run in a sandbox alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sessions import Session

from conformance.language.files import shipped_cases
from conformance.worker import landlock

# Lets the workers' Python believe that it runs on a machine for which there is no filter.
WITHOUT_FILTER = """\
import os, sys

directory = os.path.dirname(os.path.abspath(__file__))
os.environ["PYTHONPATH"] = directory
with open(os.path.join(directory, "sitecustomize.py"), "w") as file:
    file.write("import platform; platform.machine = lambda: 'unknown'")
"""
GOOD = "- a = tensor([1.0])\n- expect: {a: {value: [1.0]}}\n"


def is_whole() -> bool:
    try:
        return sys.platform == "linux" and landlock.version() > 0
    except OSError:
        return False


whole = pytest.mark.skipif(not is_whole(), reason="this kernel has no Landlock")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Give a session that trusts nobody, with a case."""
    made = Session(tmp_path)
    made.write("pytest.ini", "[pytest]\naddopts = -p conformance.pytest_plugin.plugin\n")
    made.write("vendor.py", "")
    made.cases(first=GOOD)
    return made


@whole
def test_a_case_of_a_stranger_runs_in_a_sandbox_and_the_run_says_so(session: Session) -> None:
    result = session.run()
    assert result.statuses == {"first": "pass"}
    assert f"\nsandbox: Landlock {landlock.version()}, seccomp\n" in result.output


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (["--sandbox", "off"], "no sandbox: --sandbox off"),
        (["--isolation", "none"], "no sandbox: cases run in pytest's own process"),
        (["--device-module", "vendor"], "no sandbox: no profile says what the devices other than the CPU need"),
    ],
)
def test_it_runs_without_one_where_that_was_asked_for(session: Session, option: list[str], why: str) -> None:
    result = session.run(*option)
    assert result.statuses == {"first": "pass"}
    assert why in result.output


def test_where_the_kernel_has_none_it_runs_for_those_who_trust_it(session: Session) -> None:
    session.write("conftest.py", WITHOUT_FILTER)
    refused = session.run()
    assert refused.status != 0
    assert refused.report is None
    assert "no filter of system calls" in refused.output
    assert "first.yaml doesn't come with the suite: read it, and use --trust" in refused.output
    trusted = session.run("--trust")
    assert trusted.statuses == {"first": "pass"}
    assert "no filter of system calls" in trusted.output


def test_a_copy_of_a_case_of_the_suite_is_trusted_while_it_is_one(session: Session) -> None:
    session.write("conftest.py", WITHOUT_FILTER)
    text = (shipped_cases() / "detach.yaml").read_text(encoding="utf-8")
    session.write("detach.yaml", text)
    assert session.run("detach.yaml", "-k", "detached-alias-zeroed").status == 0
    session.write("detach.yaml", f"{text}\n")
    assert session.run("detach.yaml", "-k", "detached-alias-zeroed").status != 0


@pytest.mark.parametrize("option", [["--isolation", "none"], ["--device-module", "vendor"]])
def test_nothing_runs_where_a_sandbox_is_required_and_can_not_be(session: Session, option: list[str]) -> None:
    result = session.run("--sandbox", "required", "--trust", *option)
    assert result.status != 0
    assert "sandbox required" in result.output
    assert result.report is None


@whole
def test_a_profile_says_what_its_device_needs(session: Session) -> None:
    session.write("vendor.yaml", "device: cpu\nimport: [vendor]\nsandbox: [sockets]\n")
    result = session.run("--profile", "vendor.yaml", "--sandbox", "required")
    assert result.statuses == {"first": "pass"}
    assert "seccomp; open: sockets\n" in result.output


def test_cases_of_the_suite_need_no_sandbox(session: Session) -> None:
    places = [str(shipped_cases() / "detach.yaml"), f"--report={session.directory / 'reports'}", "--page=never"]
    result = session.run(*places, "-k", "detached-alias-zeroed")
    assert set(result.statuses.values()) == {"pass", "not-run"}
    assert "\nno sandbox: the cases are the suite's own\n" in result.output


@whole
def test_cases_of_the_suite_run_in_a_sandbox_beside_those_of_a_stranger_and_where_it_is_required(
    session: Session,
) -> None:
    places = [str(shipped_cases() / "detach.yaml"), f"--report={session.directory / 'reports'}", "--page=never"]
    chosen = ("-k", "detached-alias-zeroed or first")
    for given in ([*places, "first.yaml"], [*places, "--sandbox", "required"]):
        result = session.run(*given, *chosen)
        assert "pass" in result.statuses.values()
        assert f"\nsandbox: Landlock {landlock.version()}, seccomp\n" in result.output


@whole
def test_with_pytest_xdist_the_controller_says_it_too(session: Session) -> None:
    result = session.run("-n", "1")
    assert result.statuses == {"first": "pass"}
    assert f"\nsandbox: Landlock {landlock.version()}, seccomp\n" in result.output
