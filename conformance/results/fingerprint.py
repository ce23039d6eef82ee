"""Fingerprints: what two failures must share to be the same failure."""

from __future__ import annotations

import re

import msgspec

from conformance.model.outcome import Outcome
from conformance.model.status import Status

ERROR = re.compile(r"[A-Za-z_][\w.]*(?=:)")
END = re.compile(r"SIG[A-Z0-9]+|(?:signal|status) \d+")
RAISED = ("", "raises", "warns")  # the paths at which an error or a warning was observed
STEP = "the step"  # the path of a failure of a step as a whole


class Fingerprint(msgspec.Struct, frozen=True, order=True):
    """Which status at which step, counted from 0, and what kind of failure.

    `kind` names the places that failed, each with the error that was raised there if one was (`y.grad`,
    `the step: RuntimeError`), and what ended a worker (`SIGSEGV`). Values, texts and lines, which move, are no part of
    it.
    """

    status: Status
    step: int | None = None
    kind: tuple[str, ...] = ()

    def __str__(self) -> str:
        step = f" at step {self.step}" if self.step is not None else ""
        return f"{self.status}{step}" + (f" ({', '.join(self.kind)})" if self.kind else "")


def fingerprint(outcome: Outcome) -> Fingerprint:
    """Return the fingerprint of a failure: of a known issue, as it would have if nobody knew of it."""
    kind: list[str] = []
    for failure in outcome.failures:
        place = failure.path or STEP
        error = None
        if failure.path in RAISED or failure.expected in ("no error", "a value"):
            error = ERROR.match(failure.observed)
        kind.append(f"{place}: {error[0]}" if error else place)
    status = outcome.issue.status if outcome.issue is not None else outcome.status
    ended = END.search(outcome.reason) if status == "crash" else None
    return Fingerprint(status, outcome.step, (*kind, *([ended[0]] if ended else [])))
