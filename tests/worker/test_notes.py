"""Notes say how far a case has come, and nothing of the cases before."""

from __future__ import annotations

import os
import tempfile

from conformance.worker.notes import Notes


def test_each_case_begins_anew_and_a_zero_byte_ends_what_is_true() -> None:
    with tempfile.TemporaryFile() as file:
        notes = Notes(file.fileno())
        notes.begin(1)
        for step in range(5):
            notes.step(step, step + 10)
        notes.begin(2)
        notes.step(0, 4)
        notes.answer({"n": 2, "status": "pass"})
        told = os.pread(file.fileno(), 2**16, 0).partition(b"\0")[0].decode().splitlines()
    assert [line.split()[:3] for line in told[:-1]] == [["2", "0", "4"]]
    assert told[-1] == '{"n": 2, "status": "pass"}'


def test_without_a_file_nothing_is_written() -> None:
    notes = Notes()
    notes.begin(1)
    notes.step(0, 1)
    notes.answer({})
    assert notes.size == 0
