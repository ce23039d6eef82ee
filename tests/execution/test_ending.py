"""How a worker ended is told with the step that it had come to, as far as its notes are whole."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import pytest

from conformance.execution.ending import End, describe_end, outcome_of_end
from conformance.worker.notes import Notes


def notes_of(*steps: tuple[int, int], number: int = 3, answer: dict[str, Any] | None = None) -> bytes:
    with tempfile.TemporaryFile() as file:
        notes = Notes(file.fileno())
        notes.begin(1)
        for step in range(9):  # of a longer case before
            notes.step(step, 100 + step)
        notes.begin(number)
        for step, line in steps:
            notes.step(step, line)
        if answer is not None:
            notes.answer(answer)
        return os.pread(file.fileno(), 2**16, 0)


def test_ends_are_put_into_words() -> None:
    assert describe_end(0) == "exited with status 0"
    assert describe_end(-11) == "was ended by SIGSEGV"
    assert describe_end(-250) == "was ended by signal 250"


def test_a_crash_has_the_step_that_had_begun() -> None:
    found = outcome_of_end(End(-11, "stack", notes_of((0, 7), (2, 9))), 3, 0.5)
    assert found == {
        "status": "crash", "seconds": 0.5, "stderr": "stack", "step": 2, "line": 9, "signal": "SIGSEGV",
        "reason": "the worker was ended by SIGSEGV",
    }  # fmt: skip


@pytest.mark.parametrize("notes", [b"", notes_of(), notes_of((1, 8), number=2), b"3 1", b"\0\0"])
def test_notes_that_are_missing_cut_off_or_of_another_request_name_no_step(notes: bytes) -> None:
    found = outcome_of_end(End(7, "", notes), 3, 0.5)
    assert found == {
        "status": "crash", "seconds": 0.5, "stderr": "", "exit_status": 7, "reason": "the worker exited with status 7",
    }  # fmt: skip


@pytest.mark.parametrize("junk", [b"this is not JSON", b"{", b"{}", b"3 1", b"\xff\x00", b"3 1 8 nan", b"9" * 5000])
def test_what_a_case_has_written_between_its_notes_says_nothing(junk: bytes) -> None:
    found = outcome_of_end(End(-9, "", b"3 0 7 0.000100\n" + junk + b"\n3 1 8 0.000200\n\0"), 3, 0.5)
    assert found["status"] == "crash"
    assert found.get("line") in (None, 7, 8)


def test_a_timeout_tells_where_the_time_went() -> None:
    notes = b"3 0 7 0.000100\n3 1 8 0.000200\n3 2 9 4.000200\n\0"
    found = outcome_of_end(End(-9, "", notes), 3, 10.0, limit=10)
    assert found["status"] == "timeout"
    assert (found["step"], found["line"]) == (2, 9)
    assert found["reason"] == (
        "no answer within 10 s; the worker was killed in line 9 after 6.0 s there; before it line 8 4.0 s"
    )


def test_an_answer_that_was_still_looked_at_counts() -> None:
    failure = {"line": 7, "path": "", "expected": "no error", "observed": "RuntimeError: no"}
    answer = {"n": 3, "status": "error", "step": 0, "failures": [failure]}
    found = outcome_of_end(End(-11, "", notes_of((0, 7), answer=answer)), 3, 0.5)
    assert found == {"status": "error", "step": 0, "failures": [failure]}
    assert outcome_of_end(End(-11, "", notes_of((0, 7), answer=answer)), 4, 0.5)["status"] == "crash"
