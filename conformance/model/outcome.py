"""Outcomes: the record of one case on one target."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from conformance.model.status import Status

NO_TIME = 0.0  # by being this very number, and not one like it, it is left out of reports

Line = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An expectation that did not hold: where, and what was expected and observed there."""

    line: int
    path: Annotated[str, Meta(description="What was looked at, such as a.grad; empty for a step as a whole.")]
    expected: Annotated[str, Meta(description="In words.")]
    observed: Annotated[str, Meta(description="In words.")]
    exception: Annotated[str, Meta(description="The type of the error or warning that was observed.")] = ""


class Issue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The known issue that a known or fixed outcome is put down to."""

    status: Annotated[Status, Meta(description="What the status would be if nobody knew of it.")]
    reason: Annotated[str, Meta(description="What is wrong upstream, in a sentence.")]
    link: Annotated[str, Meta(description="Where upstream keeps track of it.")] = ""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What happened to one case on one target; `case` and `target` are empty where it is clear whose it is.

    `step` counts from 0 and `line` from 1; both belong to the step that did not go as expected.
    """

    case: Annotated[str, Meta(description="A case's id.")] = ""
    target: Annotated[str, Meta(description="A device and a dtype.")] = ""
    status: Status
    seconds: Annotated[float, Meta(ge=0)] = NO_TIME
    step: Annotated[Count | None, Meta(description="Which of the case's steps did not go as expected.")] = None
    line: Annotated[Line | None, Meta(description="Its line in the case file.")] = None
    traceback: Annotated[
        tuple[tuple[int, str], ...],
        Meta(description="Lines of the case file and the functions that they are in, outermost first."),
    ] = ()
    reason: Annotated[str, Meta(description="Why it was not run, can't be, or how its worker ended.")] = ""
    signal: Annotated[str, Meta(description="What ended its worker, such as SIGSEGV or signal 64.")] = ""
    exit_status: Annotated[int | None, Meta(description="The status with which its worker exited.")] = None
    stderr: Annotated[str, Meta(description="The last that its worker wrote.")] = ""
    failures: tuple[Failure, ...] = ()
    issue: Issue | None = None
    run: Annotated[
        Count, Meta(description="The run that it is of: 0 for the header's, n for the nth of partial_runs.")
    ] = 0

    @property
    def pair(self) -> tuple[str, str]:
        return self.case, self.target

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

    def moved(self, lines: int) -> Outcome:
        """Return the outcome with its lines moved by `lines`, as of a case that stands elsewhere in its file."""
        return msgspec.structs.replace(
            self,
            line=None if self.line is None else self.line + lines,
            failures=tuple(msgspec.structs.replace(each, line=each.line + lines) for each in self.failures),
            traceback=tuple((line + lines, name) for line, name in self.traceback),
        )

    def record(self) -> dict[str, Any]:
        """Return the outcome as the report holds it: fields at their default are left out."""
        record: dict[str, Any] = msgspec.to_builtins(self)
        return record


def outcome_of(record: dict[str, Any]) -> Outcome:
    """Return the outcome that a worker's answer or a report's record describes."""
    return msgspec.convert(record, Outcome)
