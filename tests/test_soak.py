"""That running cases again and again tells where something grows, or ends in another way."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

from places import ROOT
from samples import build
from soak import is_as_before

from conformance.results.known_issues import KnownIssue, KnownIssues

BUILD = """\
import os, threading, torch
real, kept = torch.tensor, []
def tensor(*args, **kwargs):
    {action}
    return real(*args, **kwargs)
torch.tensor = tensor
"""
GROWS = """\
kept.append((os.open("/dev/null", os.O_RDONLY), b"1" * 2**22))
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
CHANGES = "kept.append(1); kwargs['requires_grad'] = len(kept) > 40"


def soaked(directory: Path, action: str) -> tuple[int, str]:
    """Return with which status and words a few cases end that are run again and again on a build."""
    (directory / "build.py").write_text(BUILD.format(action=action))
    options = ["cases/leaves.yaml", "--rounds", "3", "--workers", "1", "--device-module", "build"]
    command = [sys.executable, str(ROOT / "tests" / "soak.py"), *options]
    environment = {**os.environ, "PYTHONPATH": str(directory)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def test_on_a_good_build_nothing_grows(tmp_path: Path) -> None:
    status, said = soaked(tmp_path, "pass")
    assert status == 0, said
    assert "round  3" in said


def test_what_grows_is_told(tmp_path: Path) -> None:
    status, said = soaked(tmp_path, GROWS)
    assert status == 1, said
    for what in ("memory", "descriptors", "threads"):
        assert f"the workers used more {what} at the end" in said
    assert "the parent used" not in said


def test_an_outcome_that_changes_is_told(tmp_path: Path) -> None:
    status, said = soaked(tmp_path, CHANGES)
    assert status == 1, said
    assert " ends in another way" in said


def raised(name: str) -> dict[str, Any]:
    failure = {"line": 9, "path": "", "expected": "no error", "observed": f"{name}: it did", "exception": name}
    return {"status": "error", "step": 0, "failures": [failure]}


def test_what_is_known_to_fail_in_some_processes_alone_may_change() -> None:
    entry = KnownIssue(
        file="f", line=1, case="c", targets=(), may_fail_on=("*",), torch=">=1.13", status="error", step=0,
        kind=("the step: ValueError",), reason="It depends.", review=date(2030, 1, 1),
    )  # fmt: skip
    passed, failed, other = {"status": "pass"}, raised("ValueError"), raised("TypeError")
    for entries, before, after, wanted in (
        ([entry], passed, failed, True), ([entry], failed, passed, True), ([entry], passed, other, False),
        ([], passed, failed, False), ([], failed, failed, True),
    ):  # fmt: skip
        assert is_as_before("c", after, before, KnownIssues(entries), build()) is wanted
