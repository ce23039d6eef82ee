"""Lets one allocation of memory after the other fail while a report is written; prints each report that is not right.

    python tests/allocation_faults.py [STRIDE]

Each run is a process of its own, which may end as it likes as long as the files are right. What went wrong is a line of
JSON, and so is the number of runs by how they ended, at the end.
"""

# ruff: noqa: T201

from __future__ import annotations

import _testcapi  # type: ignore[import-not-found]  # of CPython's own tests
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

from samples import CPU, CUDA, outcome
from samples import report as report_of

from conformance.model.report import Pair
from conformance.results.journal import Journal, found_in
from conformance.results.store import ReportError

PLAN: list[Pair] = [("a", CPU), ("b", CPU), ("c", CUDA)]
BEGIN = report_of(dict.fromkeys(PLAN), finished=False)
FAILED, PASSED = ([outcome(status, case=case, target=target) for case, target in PLAN] for status in ("fail", "pass"))
KILLED = outcome("crash", case="a", target=CPU)
LENGTHS = (1, 200)  # allocations that fail one after the other
LIMIT = 20  # seconds of a run
FAR_ENOUGH = 500  # allocations, none of which was missing: some that are missing can be done without
REPORTED, TOLD = 0, 1  # exit statuses of a run with a report, and of one that says that there is none


def prepare(directory: Path) -> None:
    """Leave a whole report of an earlier run, and what a killed one has left."""
    before = Journal(directory, BEGIN)
    before.begin()
    for each in PASSED:
        before.add(each)
    before.finish({}, 0, {})
    killed = Journal(directory, BEGIN)
    killed.begin()
    killed.add(KILLED)
    killed.file.close()


def run(directory: Path) -> tuple[int, int]:
    """Write a report as the recorder does; return the exit status, and how often memory was missing."""
    missing = 0
    journal = Journal(directory, BEGIN)
    try:
        journal.begin()
    except MemoryError:
        missing += 1
    for each in FAILED:
        try:
            journal.add(each)
        except MemoryError:
            missing += 1
    try:
        journal.finish({}, 1, {})
    except MemoryError:
        return TOLD, missing + 1
    return REPORTED, missing


def status_of(directory: Path, failing: int, length: int) -> tuple[int | None, bool]:
    """Run in a process of its own; return its exit status, None if it has none, and whether memory was missing."""
    process = os.fork()
    if not process:
        try:
            signal.alarm(LIMIT)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            _testcapi.set_nomemory(failing, failing + length)
            status, missing = run(directory)
            _testcapi.remove_mem_hooks()
            os._exit(status + 2 * bool(missing))
        finally:
            os._exit(99)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return (None, True) if status not in range(4) else (status % 2, status >= 2)


def wrong(directory: Path, status: int | None) -> str:
    """Return what is wrong with the reports of a directory after a run that ended with a status."""
    try:
        found = {path.name: found_in(path) for path in sorted(directory.glob("*.json"))}
    except ReportError as error:
        return str(error)
    whole = found.get(f"{BEGIN.build.slug}.json")
    if whole is None or whole.footer is None:
        return "no whole report"
    statuses = [each.status for each in whole.outcomes]
    if statuses == ["fail"] * 3:
        return ""
    if status == REPORTED:
        return f"a report that has {statuses}"
    if statuses[1:] != ["pass"] * 2:
        return f"the earlier report has {statuses}"
    if any(found[name].footer is not None for name in found if found[name] is not whole):
        return "a part has a footer"
    left = {each.status for report in found.values() for each in report.outcomes}
    return "" if "crash" in left else "what the killed run had left is lost"


def main(stride: int) -> None:
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        for length in LENGTHS:
            failing = undisturbed = 0
            while undisturbed < FAR_ENOUGH:
                directory = Path(place) / f"{length}-{failing}"
                directory.mkdir()
                prepare(directory)
                status, is_missing = status_of(directory, failing, length)
                told = wrong(directory, status)
                if told:
                    print(json.dumps({"failing": failing, "length": length, "status": status, "wrong": told}))
                ends["ended" if status is None else ("reported", "told")[status]] += 1
                undisturbed = 0 if is_missing or told else undisturbed + stride
                failing += stride
    print(json.dumps(ends))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1)
