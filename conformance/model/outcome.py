"""Outcomes: the record of one case on one target."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from conformance.model.status import Status

NO_TIME = 0.0  # compared by identity: this object, but no equal number, is left out of reports

Line = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An expectation that did not hold: where, and what was expected and observed there."""

    line: int
    path: Annotated[str, Meta(description="What was looked at, such as a.grad; empty for a step as a whole.")]
    expected: Annotated[str, Meta(description="In words.")]
    observed: Annotated[str, Meta(description="In words.")]
    exception: Annotated[str, Meta(description="The type of the error or warning that was observed.")] = ""


class Unobserved(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An expectation that was left out, because the device can't show what it is about."""

    line: Line
    path: Annotated[str, Meta(description="What was to be looked at, such as a.stride.")]
    reason: Annotated[str, Meta(description="Why it can't be seen.")]


class Issue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The known issue of a known or fixed outcome."""

    status: Annotated[Status, Meta(description="What the status would be without the known issue.")]
    reason: Annotated[str, Meta(description="What is wrong upstream, in a sentence.")]
    link: Annotated[str, Meta(description="The issue in upstream's tracker.")] = ""


class Retry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """That a red case was run once more, alone in a fresh worker."""

    status: Annotated[Status, Meta(description="What the status was before that.")]
    alone: Annotated[Outcome, Meta(description="What came of the case alone.")]

    @property
    def told(self) -> str:
        """Both outcomes in a few words."""
        return f"{self.status} among other cases; alone {self.alone.status}"


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What happened to one case on one target; `case` and `target` are empty where the context gives them.

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
    stderr: Annotated[str, Meta(description="The end of its worker's stderr.")] = ""
    failures: tuple[Failure, ...] = ()
    unobserved: Annotated[
        tuple[Unobserved, ...], Meta(description="Expectations that were left out; the others were judged.")
    ] = ()
    issue: Issue | None = None
    retry: Retry | None = None
    run: Annotated[
        Count, Meta(description="The run that it is of: 0 for the header's, n for the nth of partial_runs.")
    ] = 0

    @property
    def pair(self) -> tuple[str, str]:
        return self.case, self.target

    @property
    def at_first(self) -> Status:
        """The status that it had before its case was run once more, if it was."""
        return self.status if self.retry is None else self.retry.status

    @property
    def unobserved_text(self) -> str:
        """Which expectations were left out and why, in one line; empty if none were."""
        reasons: dict[str, list[str]] = {}
        for each in self.unobserved:
            reasons.setdefault(each.reason, []).append(each.path)
        listed = "; ".join(f"{', '.join(dict.fromkeys(paths))} ({reason})" for reason, paths in reasons.items())
        return listed and f"not observed: {listed}"

    @property
    def summary(self) -> str:
        """The first failure, the reason for the status, or what was left out, in one line."""
        known = f"{self.issue.reason} " if self.issue is not None else ""
        if self.status == "flaky" and self.retry is not None:
            known = f"{self.retry.told}: {known}"
        if not self.failures:
            return f"{known}{self.reason}".rstrip() or self.unobserved_text
        first = self.failures[0]
        more = f" (and {len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
        path = f"{first.path}: " if first.path else ""
        return f"{known}{path}expected {first.expected}, observed {first.observed}{more}"

    def moved(self, lines: int) -> Outcome:
        """Return the outcome with `lines` added to its line numbers, after the case has moved in its file."""
        return msgspec.structs.replace(
            self,
            line=None if self.line is None else self.line + lines,
            failures=tuple(msgspec.structs.replace(each, line=each.line + lines) for each in self.failures),
            unobserved=tuple(msgspec.structs.replace(each, line=each.line + lines) for each in self.unobserved),
            traceback=tuple((line + lines, name) for line, name in self.traceback),
            retry=self.retry and msgspec.structs.replace(self.retry, alone=self.retry.alone.moved(lines)),
        )

    def record(self) -> dict[str, Any]:
        """Return the outcome in the format of reports, without fields that have their default."""
        record: dict[str, Any] = msgspec.to_builtins(self)
        return record


def outcome_of(record: dict[str, Any]) -> Outcome:
    """Return the outcome in a worker's answer or a report; what a case has printed is no part of it."""
    if "printed" in record:
        record = {name: value for name, value in record.items() if name != "printed"}
    return msgspec.convert(record, Outcome)
