"""The tables of statuses and of kinds of change as the page takes them. Plain data."""

from __future__ import annotations

from typing import Any

from conformance.model.status import STATUSES, TABLE
from conformance.render.page.matrix import MARKS
from conformance.results.diff import DECISIONS, DEGREES, MEANINGS, Decision

# A kind that only the page tells, since it knows what holds for which release: `diff` compares outcomes.
EXPECTATION = "expectation-changed"
HELD_TO_ELSE = "holds in both, but the releases are held to different things"


def tables() -> dict[str, Any]:
    """Return the tables; decisions are by what was said before, what is said now, and in what outcomes differ."""
    return {
        "statuses": [
            {
                "name": status, "mark": MARKS[status], "sign": row.sign, "role": row.role, "severity": row.severity,
                "explanation": row.explanation, "verdict": row.verdict, "is_red": row.is_red,
                "is_wrong": row.is_wrong, "is_run": row.is_run, "tells_of_torch": row.tells_of_torch,
            }
            for status, row in ((status, TABLE[status]) for status in STATUSES)
        ],
        "kinds": [*MEANINGS.items(), (EXPECTATION, HELD_TO_ELSE)],
        "degrees": [*DEGREES[:-1], "expectation", DEGREES[-1]],
        "decisions": {
            was: {now: with_expectation(was == now == "held", each) for now, each in row.items()}
            for was, row in DECISIONS.items()
        },
    }  # fmt: skip


def with_expectation(is_held: bool, decision: Decision) -> dict[str, str | None]:
    """Return a decision that also says what a difference in the expectation alone comes to."""
    by_degree = dict[str, str | None](decision.items())
    return {**by_degree, "expectation": EXPECTATION if is_held else decision["nothing"]}
