"""An error is told in one line of bounded length, even if its text is endless or raises an error."""

from __future__ import annotations

import pytest

from conformance.worker.messages import LONGEST, message_line


class Hostile(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a\n  b"), "ValueError: a b"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
        (Hostile(), "Hostile: its text can't be had, for that raises SystemExit"),
    ],
)
def test_an_error_is_told_in_a_line(error: BaseException, line: str) -> None:
    assert message_line(error) == line


def test_a_long_message_is_cut() -> None:
    assert message_line(ImportError("y" * 10**6)) == f"ImportError: {'y' * LONGEST} …"
