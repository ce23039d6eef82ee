"""Tests of the list of releases, of environments with one of them, and of the report of one that can't be had."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from packaging.version import Version
from samples import read_case, rule, valid_case

from conformance.cli import main as cli
from conformance.releases.catalogue import Release, load_releases, reason_in
from conformance.releases.environment import NotInstalled, create
from conformance.results.store import load_report

RELEASES = load_releases()
SHIPPED = [case for name in ("one", "two") if (case := read_case(valid_case(name)))]
FAKE = Release(torch="2.6.0", pythons=("3.9", "3.13"), beside=("numpy",))


def test_the_releases_are_one_of_each_minor_from_1_13_on_in_order() -> None:
    versions = [Version(release.torch) for release in RELEASES.releases]
    assert versions == sorted(versions)
    minors = [(version.major, version.minor) for version in versions]
    assert minors == [(1, 13), *((2, minor) for minor in range(minors[-1][1] + 1))]
    for release in RELEASES.releases:
        oldest, newest = (Version(python) for python in release.pythons)
        assert Version("3.8") <= oldest <= Version(RELEASES.python) <= newest


def test_those_between_two_are_found_in_either_order_and_with_ends_of_ones_own() -> None:
    names = [release.torch for release in RELEASES.between("2.6.0", "2.3.1")]
    assert names == ["2.3.1", "2.4.1", "2.5.1", "2.6.0"]
    patch = RELEASES.between("2.0.0", "2.1.2")
    assert [release.torch for release in patch] == ["2.0.0", "2.0.1", "2.1.2"]
    assert "numpy<2" in patch[0].requirements
    with pytest.raises(ValueError, match="Invalid version"):
        RELEASES.between("2.6", "newest")


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("Collecting torch\nERROR: No matching distribution found for torch==9.9\n", "No matching distribution"),
        ("  \u00d7 No solution found\n  ╰─▶ Because torch==9.9\n\x1b[31merror\x1b[0m: no such\n", "error: no such"),
        ("something\nelse\n", "else"),
        ("", "the installer said nothing"),
    ],
)
def test_the_reason_is_the_line_that_tells_most(log: str, reason: str) -> None:
    assert reason in reason_in(log)


def test_a_release_that_can_not_be_had_has_a_report_that_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.cli.placeholder.shipped", lambda: (SHIPPED, {"r.one": rule("r.one")}))
    log = tmp_path / "pip.log"
    log.write_text("ERROR: No matching distribution found for torch==9.9.0\n")
    assert cli.main(["placeholder", "9.9.0", "--log", str(log), "-o", str(tmp_path)]) == 0
    path = Path(capsys.readouterr().out.strip())
    report = load_report(path)
    assert path.name.startswith("torch-9.9.0-")
    reason = "it could not be installed: ERROR: No matching distribution found for torch==9.9.0"
    told = [(outcome.case, outcome.status, outcome.reason) for outcome in report.outcomes]
    assert told == [("one", "not-run", reason), ("two", "not-run", reason)]
    assert report.build.why_absent("cpu") == reason
    assert cli.main(["placeholder", "9.9.0", "--log", str(tmp_path / "no.log"), "-o", str(tmp_path)]) == 2


def tool(directory: Path, name: str, text: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{text}")
    (directory / name).chmod(0o755)


def test_an_environment_is_made_by_uv_where_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path / "tools", "uv", f'echo "$@" >> {tmp_path}/calls; mkdir -p {tmp_path}/envs/torch-2.6.0/bin\n')
    monkeypatch.setenv("PATH", str(tmp_path / "tools"), prepend=os.pathsep)
    interpreter = create(tmp_path / "envs", FAKE, "3.11")
    assert interpreter == tmp_path / "envs" / "torch-2.6.0" / "bin" / "python"
    made, installed = (tmp_path / "calls").read_text().splitlines()
    assert made == f"venv --python 3.11 {interpreter.parent.parent}"
    assert installed == f"pip install --python {interpreter} torch==2.6.0 numpy"
    create(tmp_path / "envs", FAKE, "3.11")
    assert len((tmp_path / "calls").read_text().splitlines()) == 2  # it is there already


def test_what_can_not_be_installed_is_said_and_tried_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path / "tools", "uv", "case $1 in pip) echo 'error: no wheel' >&2; exit 2;; esac\n")
    monkeypatch.setenv("PATH", str(tmp_path / "tools"), prepend=os.pathsep)
    for _ in range(2):
        with pytest.raises(NotInstalled, match="error: no wheel"):
            create(tmp_path / "envs", FAKE, "3.11")


@pytest.mark.slow
def test_without_uv_an_environment_needs_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalled, match=r"python3\.7 is not installed; uv would download it"):
        create(tmp_path, FAKE, "3.7")
    tool(tmp_path, "pip-less", "")
    here = ".".join(map(str, sys.version_info[:2]))
    nowhere = Release(torch="0.0.0.dev1", pythons=(here, here), beside=())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(NotInstalled, match="No matching distribution found"):
        create(tmp_path, nowhere, here)
