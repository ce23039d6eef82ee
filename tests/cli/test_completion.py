"""Completion in shells, as one asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from loops import each

from conformance.cli import main as cli

SEPARATOR = "\v"


def completed(line: str, place: Path) -> list[str]:
    """Return how a line goes on; a process of its own is asked, since argcomplete takes descriptors for its own."""
    told = place / "told"
    asking = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(told), "IFS": SEPARATOR}
    asking |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    command = [sys.executable, "-m", "conformance"]
    done = subprocess.run(command, env={**os.environ, **asking}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return sorted(told.read_text(encoding="utf-8").split(SEPARATOR))


@each(
    "typed, words",
    [
        ("m", "merge mutate"),
        ("mutate node-of-an-expo", "node-of-an-exponential"),
        ("list --rule detach.shares-", "detach.shares-storage detach.shares-version-counter"),
        ("check --form", "--format"),
        ("nonsense --v", "--version"),
    ],
)
def test_commands_options_and_ids_are_completed(typed: str, words: str, tmp_path: Path) -> None:
    found = completed(f"autograd-conformance {typed}", tmp_path)
    assert [each.rstrip() for each in found] == words.split()


def test_a_shell_is_told_what_to_evaluate(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "bash"]) == 0
    assert "complete -o nospace -o default -o bashdefault -F _python_argcomplete autograd-conformance" in (
        capsys.readouterr().out
    )


def test_without_argcomplete_the_command_says_how_to_have_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    assert cli.main(["completion", "bash"]) == 2
    assert capsys.readouterr().err == (
        "error: completion in shells needs argcomplete, which isn't installed\nhint: pip install argcomplete\n"
    )
