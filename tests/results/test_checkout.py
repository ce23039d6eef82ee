"""Which state of the suite runs: its commit where there is a checkout, and the files of its package."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from conformance.results import checkout
from conformance.results.checkout import package_state, suite_commit


def git(place: Path, *arguments: str) -> str:
    command = ["git", "-C", str(place), "-c", "user.name=n", "-c", "user.email=e", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_has_a_plus_where_files_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "PACKAGE", tmp_path / "conformance")
    assert suite_commit() is None
    git(tmp_path, "init", "--quiet")
    assert suite_commit() is None  # there is no commit yet
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--quiet", "--message=first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert suite_commit() == commit
    (tmp_path / "file").write_text("two")
    assert suite_commit() == f"{commit}+"


def test_without_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(checkout, "PACKAGE", tmp_path / "conformance")
    monkeypatch.setenv("PATH", "")
    assert suite_commit() is None


def test_the_state_of_a_package_is_that_of_its_files(tmp_path: Path) -> None:
    state = package_state.__wrapped__
    path = tmp_path / "inner" / "module.py"
    path.parent.mkdir()
    path.write_text("a = 1")
    before = state(tmp_path)
    assert state(tmp_path) == before
    (tmp_path / "notes.md").write_text("no part of it")
    assert state(tmp_path) == before
    os.utime(path, ns=(1, 1))
    touched = state(tmp_path)
    path.write_text("a = 12")
    assert len({before, touched, state(tmp_path)}) == 3
