"""Reads the facts of reports of format 1, which said them in sentences alone."""

import re

from msgspec.structs import replace

from conformance.model.outcome import Failure, Outcome
from conformance.model.report import Report
from conformance.model.shard import Shard

ERROR = re.compile(r"[A-Za-z_][\w.]*(?=:)")
END = re.compile(r"(SIG[A-Z0-9]+|signal \d+)|status (\d{1,9})")
ELSEWHERE = re.compile(r"not in shard ([1-9]\d{0,8}) of ([1-9]\d{0,8})")
RAISED = ("", "raises", "warns")  # the paths at which an error or a warning was observed


def with_facts(report: Report) -> Report:
    """Return a report of format 1 as one of today: its shard, exceptions, signals and exit statuses as fields."""
    header = replace(report.header, run=replace(report.header.run, shard=shard_in(report)))
    return replace(report, header=header, outcomes=tuple(map(outcome_with_facts, report.outcomes)))


def shard_in(report: Report) -> Shard | None:
    reasons = (outcome.reason for outcome in report.outcomes if outcome.status == "not-run")
    found = next(filter(None, map(ELSEWHERE.fullmatch, reasons)), None)
    return Shard(int(found[1]), int(found[2])) if found else None


def outcome_with_facts(outcome: Outcome) -> Outcome:
    status = outcome.issue.status if outcome.issue is not None else outcome.status
    ended = END.search(outcome.reason) if status == "crash" else None
    if not (outcome.failures or ended):
        return outcome
    return replace(
        outcome,
        failures=tuple(map(failure_with_exception, outcome.failures)),
        signal=(ended and ended[1]) or "",
        exit_status=int(ended[2]) if ended and ended[2] else None,
    )


def failure_with_exception(failure: Failure) -> Failure:
    if failure.path not in RAISED and failure.expected not in ("no error", "a value"):
        return failure
    error = ERROR.match(failure.observed)
    return replace(failure, exception=error[0]) if error else failure
