"""Finds what an interrupted run of the same cases on the same build has found, for the run that resumes it.

Runs are the same if build, suite and arguments are. The outcomes of a case count if it has not been edited since.
"""

import fcntl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from conformance.model.build import Build
from conformance.model.outcome import Outcome
from conformance.model.report import Pair, Report, Run, SuiteVersion
from conformance.results.journal import found_in
from conformance.results.merge import PLACES, another_build, without
from conformance.results.store import ReportError

INTERRUPTED = 2  # exit status of pytest


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """A run of before, and its outcomes with the digests of their cases; an `exit_status` of None: it was killed."""

    build: Build
    suite: SuiteVersion
    run: Run
    exit_status: int | None
    outcomes: tuple[Outcome, ...]
    digests: dict[str, str]

    @property
    def is_interrupted(self) -> bool:
        return self.exit_status in (None, INTERRUPTED)


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes that need not be found again, and a line that says whose they are or why there are none."""

    line: str
    outcomes: Mapping[Pair, Outcome] = {}


def past_runs(directory: Path) -> list[Past]:
    """Return the runs in the reports below a directory, the latest first; without those that go on."""
    found: list[Past] = []
    for path in sorted(directory.glob("*.json")) if directory.is_dir() else ():
        with suppress(ReportError, OSError):
            if not goes_on(path):
                found.extend(runs_in(found_in(path)))
    return sorted(found, key=lambda past: past.run.started, reverse=True)


def goes_on(path: Path) -> bool:
    """Whether a run holds the lock of its partial report."""
    if not path.name.endswith(".partial.json"):
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # where files can't be locked
            return False
    return False


def runs_in(report: Report) -> Iterable[Past]:
    digests = {case.id: case.digest for case in report.cases}
    for number, each in enumerate(report.runs):
        own = tuple(outcome for outcome in report.outcomes if outcome.run == number and outcome.status != "not-run")
        yield Past(
            build=report.build, suite=each.suite, run=each.run, exit_status=each.exit_status,
            outcomes=tuple(msgspec.structs.replace(outcome, run=0) for outcome in own),
            digests={outcome.case: digests[outcome.case] for outcome in own},
        )  # fmt: skip


def resumed(past: Iterable[Past], build: Build, suite: SuiteVersion, run: Run, digests: Mapping[str, str]) -> Resumed:
    """Return what the last runs have found, as far as they were interrupted and are the same as this one.

    `digests` are those of the cases of today.
    """
    outcomes: dict[Pair, Outcome] = {}
    edited: set[str] = set()
    why = "there is no report of an earlier run of this build"
    started: list[str] = []
    for each in past:
        if another_build(each.build, build) is not None:
            continue
        why = why_another(each, build, suite, run)
        if why:
            break
        started.append(each.run.started)
        for outcome in each.outcomes:
            if digests.get(outcome.case) == each.digests[outcome.case]:
                outcomes.setdefault(outcome.pair, outcome)
            elif outcome.case in digests:
                edited.add(outcome.case)
    if not started:
        return Resumed(line=f"resumed: nothing, all cases are run: {why}")
    again = f"; {len(edited)} cases have been edited since, and are run again" if edited else ""
    return Resumed(line=f"resumed: the run of {started[0]}, {len(outcomes)} outcomes{again}", outcomes=outcomes)


def why_another(past: Past, build: Build, suite: SuiteVersion, run: Run) -> str:
    """Return why a run is not the one that is to be resumed, "" if it is."""
    if not past.is_interrupted:
        return f"the run of {past.run.started} was not interrupted"
    facts: tuple[tuple[str, Any, Any], ...] = (
        ("the suite", (past.suite.version, past.suite.commit), (suite.version, suite.commit)),
        ("the interpreter", past.build.executable, build.executable),
        ("the devices", past.build.present, build.present),
        ("the arguments", without(past.run.arguments, *PLACES), without(run.arguments, *PLACES)),
        ("the shard", past.run.shard, run.shard),
    )
    for what, before, now in facts:
        if before != now:
            return f"the run of {past.run.started} was another one: {what}: {before!r}, and now {now!r}"
    return ""
