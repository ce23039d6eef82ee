"""The tables of statuses and of kinds of change in the form that the page uses, ready for JSON."""

from typing import Any

from conformance.model.status import STATUSES, TABLE
from conformance.render.page.matrix import MARKS
from conformance.results.diff import DECISIONS, DEGREES, EXPECTED, GATES, KINDS, MEANINGS, Decision, Kind

# The kind of what holds in both reports by other alternatives of the case, until it is looked up what these expect.
EXPECTATION: Kind = "expectation-changed"
FACTS = "sign role severity explanation verdict is_red is_wrong is_run tells_of_torch".split()  # of a status


def tables() -> dict[str, Any]:
    """Return the tables; a decision depends on both verdicts and on the degree in which the outcomes differ."""
    return {
        "statuses": [
            {"name": status, "mark": MARKS[status], **{fact: getattr(TABLE[status], fact) for fact in FACTS}}
            for status in STATUSES
        ],
        "kinds": [(kind, MEANINGS[kind]) for kind in KINDS], "expectation": EXPECTATION,
        "first": [*GATES, *EXPECTED[:2]],
        "degrees": [*DEGREES[:-1], "expectation", DEGREES[-1]],
        "decisions": {
            was: {now: with_expectation(was == now == "held", each) for now, each in row.items()}
            for was, row in DECISIONS.items()
        },
    }  # fmt: skip


def with_expectation(is_held: bool, decision: Decision) -> dict[str, str | None]:
    """Return a decision with the kind of change for outcomes that differ in the expectation alone."""
    by_degree = dict[str, str | None](decision.items())
    return {**by_degree, "expectation": EXPECTATION if is_held else decision["nothing"]}
