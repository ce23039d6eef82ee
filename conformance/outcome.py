"""Outcomes: the record of one case on one target."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

STATUSES = ("pass", "fail", "error", "crash", "timeout", "known", "fixed", "unsupported", "not-run")
RED = frozenset({"fail", "error", "crash", "timeout", "fixed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An expectation that did not hold: where, and what was expected and observed there."""

    line: int
    path: str
    expected: str
    observed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What happened to one case on one target.

    `step` counts from 0 and `line` from 1; both belong to the step that did not go as expected. `reason`
    says in words why a case was not run, can't be, or ended its worker; `stderr` holds the last of what
    that worker wrote.
    """

    status: str
    seconds: float = 0.0
    step: int | None = None
    line: int | None = None
    failures: tuple[Failure, ...] = ()
    traceback: tuple[tuple[int, str], ...] = ()
    reason: str = ""
    stderr: str = ""

    @property
    def summary(self) -> str:
        """One line that says what was wrong, or why there is nothing to say."""
        if not self.failures:
            return self.reason
        first = self.failures[0]
        more = f" (and {len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
        path = f"{first.path}: " if first.path else ""
        return f"{path}expected {first.expected}, observed {first.observed}{more}"

    def record(self) -> dict[str, Any]:
        """Return the outcome as the report holds it: fields at their default are left out."""
        record: dict[str, Any] = {"status": self.status}
        for name in ("seconds", "step", "line", "traceback", "reason", "stderr"):
            value = getattr(self, name)
            if value not in (None, (), "", 0.0) or (name == "step" and value == 0):
                record[name] = value
        if self.failures:
            record["failures"] = [asdict(failure) for failure in self.failures]
        return record


def outcome_of(record: dict[str, Any]) -> Outcome:
    """Return the outcome that a worker's answer or a report's record describes."""
    return Outcome(
        status=record["status"],
        seconds=record.get("seconds", 0.0),
        step=record.get("step"),
        line=record.get("line"),
        failures=tuple(Failure(**failure) for failure in record.get("failures", ())),
        traceback=tuple((line, name) for line, name in record.get("traceback", ())),
        reason=record.get("reason", ""),
        stderr=record.get("stderr", ""),
    )
