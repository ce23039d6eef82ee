"""Outcomes: the record of one case on one target."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec

Status = Literal[
    "pass", "fail", "error", "crash", "timeout", "known", "fixed", "unsupported", "not-run", "internal-error"
]
STATUSES: tuple[Status, ...] = get_args(Status)
RED = frozenset({"fail", "error", "crash", "timeout", "fixed"})

NO_TIME = 0.0  # by being this very number, and not one like it, it is left out of reports

Line = Annotated[int, msgspec.Meta(ge=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An expectation that did not hold: where, and what was expected and observed there."""

    line: int
    path: str
    expected: str
    observed: str


class Issue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The known issue that an outcome is put down to; `status` is what the outcome would be if nobody knew of it."""

    status: Status
    reason: str
    link: str = ""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What happened to one case on one target; `case` and `target` are empty where it is clear whose it is.

    `step` counts from 0 and `line` from 1; both belong to the step that did not go as expected. `reason`
    says in words why a case was not run, can't be, or ended its worker; `stderr` holds the last of what
    that worker wrote. `issue` is there where a known issue had a say: where the status is known or fixed.
    """

    case: str = ""
    target: str = ""
    status: Status
    seconds: Annotated[float, msgspec.Meta(ge=0)] = NO_TIME
    step: Count | None = None
    line: Line | None = None
    traceback: tuple[tuple[int, str], ...] = ()
    reason: str = ""
    stderr: str = ""
    failures: tuple[Failure, ...] = ()
    issue: Issue | None = None

    @property
    def summary(self) -> str:
        """One line that says what was wrong, or why there is nothing to say."""
        known = f"{self.issue.reason} " if self.issue is not None else ""
        if not self.failures:
            return f"{known}{self.reason}".rstrip()
        first = self.failures[0]
        more = f" (and {len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
        path = f"{first.path}: " if first.path else ""
        return f"{known}{path}expected {first.expected}, observed {first.observed}{more}"

    def record(self) -> dict[str, Any]:
        """Return the outcome as the report holds it: fields at their default are left out."""
        record: dict[str, Any] = msgspec.to_builtins(self)
        return record


def outcome_of(record: dict[str, Any]) -> Outcome:
    """Return the outcome that a worker's answer or a report's record describes."""
    return msgspec.convert(record, Outcome)
