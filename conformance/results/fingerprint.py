"""Fingerprints: what two failures must share to be the same failure."""

import msgspec

from conformance.model.outcome import Outcome
from conformance.model.status import TABLE, Status

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
    """Return the fingerprint of a failure as it was at first; of a known issue, as if nobody knew of it."""
    kind = [
        f"{failure.path or STEP}: {failure.exception}" if failure.exception else failure.path or STEP
        for failure in outcome.failures
    ]
    status = outcome.issue.status if outcome.issue is not None else outcome.at_first
    if outcome.signal or outcome.exit_status is not None:
        kind.append(outcome.signal or f"status {outcome.exit_status}")
    # Where a worker ended may depend on when a thread or the garbage collector came to it.
    step = None if TABLE[status].ends_worker else outcome.step
    return Fingerprint(status, step, tuple(kind))
