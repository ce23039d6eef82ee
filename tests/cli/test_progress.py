"""What commands tell on a terminal while they work, and that they tell nothing anywhere else."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from loops import each

from conformance.cli import main as cli
from conformance.cli.progress import CLEAR, DIM, doing, following
from conformance.language.files import shipped_cases

GRAPH = str(shipped_cases() / "graph.yaml")


class Terminal(io.StringIO):
    encoding = "ascii"

    def isatty(self) -> bool:
        return True


def terminal(patch: pytest.MonkeyPatch, variables: str) -> Terminal:
    """Return a terminal that standard error is; called in a test, since pytest has its own while it sets one up."""
    for name in ("NO_COLOR", "FORCE_COLOR", "PY_COLORS", "COLUMNS"):
        patch.delenv(name, raising=False)
    for each_one in ["TERM=xterm", *variables.split()]:
        patch.setenv(*each_one.split("="))
    found = Terminal()
    patch.setattr(sys, "stderr", found)
    return found


def test_each_item_is_told_in_one_line_that_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    found = terminal(monkeypatch, "NO_COLOR=1")
    assert list(following(["a", "b\x1b[31m"], "reading")) == ["a", "b\x1b[31m"]
    with pytest.raises(KeyError), doing("writing é"):
        raise KeyError
    parts = found.getvalue().split(CLEAR)
    assert parts == ["", "reading 1 of 2: a", "reading 2 of 2: b?U+001B?[31m", "", "writing ?", ""]


def test_what_is_left_before_its_end_is_taken_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = terminal(monkeypatch, "")
    items = following(range(3), "counting")
    assert next(iter(items)) == 0
    items.close()  # type: ignore[attr-defined]
    assert found.getvalue().endswith(CLEAR)


@each(
    "variables, coloured",
    [
        ("", True),
        ("NO_COLOR=1", False),
        ("NO_COLOR=", True),
        ("NO_COLOR=1 FORCE_COLOR=1", True),
        ("PY_COLORS=0 FORCE_COLOR=1", False),
        ("PY_COLORS=1 NO_COLOR=1", True),
    ],
)
def test_colours_follow_the_variables_that_pytest_heeds(
    variables: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = terminal(monkeypatch, variables)
    with doing("something"):
        assert (DIM in found.getvalue()) is coloured


@each("columns, shown", [("12", "a long wor"), ("nonsense", "a long word " * 6), ("", "a long word " * 6)])
def test_a_line_is_as_wide_as_the_terminal(columns: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = terminal(monkeypatch, f"NO_COLOR=1 COLUMNS={columns}")
    with doing("a long word " * 40):
        last = found.getvalue().split(CLEAR)[-1]
    assert last.startswith(shown)
    assert len(last) == (11 if columns == "12" else 79)


def test_a_dumb_terminal_and_a_pipe_are_told_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = terminal(monkeypatch, "TERM=dumb")
    with doing("something"):
        assert found.getvalue() == ""
    monkeypatch.undo()
    assert cli.main(["check", GRAPH]) == 0
    assert capsys.readouterr().err == ""


def test_a_command_tells_a_real_terminal_and_not_its_output(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "FORCE_COLOR": "1", "COLUMNS": "60"}
    command = [sys.executable, "-m", "conformance", "check", GRAPH]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=slave, env=environment, cwd=tmp_path, check=True)
    os.close(slave)
    told = os.read(master, 4096).decode()
    os.close(master)
    assert told.startswith(f"{CLEAR}{DIM}checking files 1 of 1: ")
    assert told.endswith(CLEAR)
    assert done.stdout.endswith(b"0 problems\n")
    assert b"\x1b" not in done.stdout
