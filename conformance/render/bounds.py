"""Drafts the alternatives by version of a case whose outcomes differ from release to release.

Where between two releases the bound lies is known as closely as they are near. Numbers are never drafted from what
torch gave: a `?` stands for those that are to be worked out.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from packaging.version import Version

from conformance.execution.program import choose
from conformance.language.versions import version_of
from conformance.language.writing import PLAIN_IN_FLOW, plain_or_quoted
from conformance.model.case import Case
from conformance.model.outcome import Failure, Outcome
from conformance.model.status import BROKEN
from conformance.render.expected import place_of as place_in_case
from conformance.render.expected import value_text

TO_WORK_OUT = "?"
NUMBERS = ("value", "grad")  # checks whose values are mathematics, and not what autograd chose
NOTHING = ("nothing was raised", "no warning")
LONGEST_MATCH = 100  # characters of a message that a draft repeats
Place = tuple[int, int, str]  # a step, a line and a path


class Span(NamedTuple):
    """Neighbouring releases with one outcome: their condition, and their first divergence, None where they pass."""

    condition: str
    failure: Failure | None
    releases: tuple[str, ...]


def spans_at(place: Place, outcomes: Sequence[tuple[str, Outcome]]) -> list[Span]:
    """Return the spans of releases that found the same at a place, in order, without those that did not get there."""
    found: list[tuple[str, Failure | None]] = []
    for name, outcome in outcomes:
        failure = divergence(outcome)
        if failure is not None and place_of(outcome) == place:
            found.append((name, failure))
        elif outcome.status == "pass" or (failure is not None and place_of(outcome) > place):
            found.append((name, None))
    found.sort(key=lambda each: version_of(each[0]))
    groups = [list(group) for _, group in groupby(found, lambda each: each[1] and each[1].observed)]
    bounds = [bound_between(old[-1][0], new[0][0]) for old, new in pairwise(groups)]
    return [
        Span(condition_of(bounds, number), group[0][1], tuple(name for name, _ in group))
        for number, group in enumerate(groups)
    ]


def place_of(outcome: Outcome) -> Place:
    """Return where an outcome diverged: its step, the line and the path."""
    failure = divergence(outcome)
    return (outcome.step or 0, failure.line, failure.path) if failure is not None else (0, 0, "")


def divergence(outcome: Outcome) -> Failure | None:
    """Return the first thing that an outcome says went otherwise, or None for one that says nothing of the kind."""
    if outcome.status not in BROKEN:
        return None
    if outcome.failures:
        return outcome.failures[0]
    return Failure(line=outcome.line or 1, path="", expected="an outcome", observed=outcome.reason or outcome.status)


def bound_between(older: str, newer: str) -> str:
    """Return the release from which on the outcome is another, as near as two of them tell."""
    before, after = version_of(older), version_of(newer)
    return f"{after.major}.{after.minor}" if before.release[:2] != after.release[:2] else after.base_version


def condition_of(bounds: Sequence[str], number: int) -> str:
    lower = f">={bounds[number - 1]}" if number else ""
    upper = f"<{bounds[number]}" if number < len(bounds) else ""
    return ",".join(filter(None, [lower, upper]))


def drafts(case: Case, outcomes: Sequence[tuple[str, Outcome]]) -> Iterator[str]:
    """Yield what could be written into a case so that it holds on all of these releases."""
    places = sorted({place_of(outcome) for _, outcome in outcomes if divergence(outcome) is not None})
    for place in places:
        spans = spans_at(place, outcomes)
        if len(spans) > 1:  # where all are alike, a bound says nothing
            _, line, path = place
            yield f"line {line}: {drafted(case, line, path, spans)}"
            yield from too_far_apart(spans)


def too_far_apart(spans: Sequence[Span]) -> Iterator[str]:
    for older, newer in pairwise(spans):
        if not are_neighbours(older.releases[-1], newer.releases[0]):
            between = f"after {older.releases[-1]} and up to {newer.releases[0]}"
            yield f"that bound is somewhere {between}; `bisect` finds where"


def are_neighbours(older: str, newer: str) -> bool:
    before, after = version_of(older), version_of(newer)
    return (after.major, after.minor - before.minor) == (before.major, 1) or is_patch(before, after)


def is_patch(before: Version, after: Version) -> bool:
    return before.release[:2] == after.release[:2] and after.micro - before.micro == 1


def drafted(case: Case, line: int, path: str, spans: Sequence[Span]) -> str:
    """Return the draft for one place at which some of the releases diverge."""
    if path in ("raises", "warns"):
        entries = [raised(span, case, line, path) for span in spans]
        return f"{path}: [{', '.join(entries)}]"
    found = check_at(case, line, path)
    if found is None:
        passing = " or ".join(repr(span.condition) for span in spans if span.failure is None)
        return f"the step is one of releases with torch: {passing}; put it under when, or say so of the case"
    values = ", ".join(f'"{span.condition}": {value_of(span, *found)}' for span in spans)
    return f"{path}: {{torch: {{{values}}}}}"


def check_at(case: Case, line: int, path: str) -> tuple[str, Any] | None:
    """Return the name of the check that a failure is of, and what the case expects; None for a step as a whole."""
    return next(
        (
            (name, value)
            for step in case.steps
            for entry in step.get("expect", ())
            for name, value, own in entry["checks"]
            if own == line and f"{path}.".startswith(f"{place_in_case(entry, name)}.")
        ),
        None,
    )


def value_of(span: Span, name: str, expected: Any) -> str:
    if span.failure is None:
        return value_text(choose(expected, span.releases[0]))
    return TO_WORK_OUT if name in NUMBERS else span.failure.observed


def raised(span: Span, case: Case, line: int, path: str) -> str:
    """Return the alternative of one span for what is raised or warned of."""
    condition = f'torch: "{span.condition}"'
    if span.failure is None:
        each = next(each for step in case.steps for each in step.get(path, ()) if each["line"] == line)
        match = f", match: [{', '.join(map(part_of, each['match']))}]" if each["match"] else ""
        return f"{{type: {each['type'] or 'none'}{match}, {condition}}}"
    observed = span.failure.observed
    if observed in NOTHING:
        return f"{{type: none, {condition}}}"
    kind, _, message = observed.partition(": ")
    return f"{{type: {kind}, match: {part_of(message[:LONGEST_MATCH])}, {condition}}}"


def part_of(part: str | dict[str, str]) -> str:
    """Return a part of `match` as YAML in flow style."""
    if isinstance(part, str):
        return plain_or_quoted(part, PLAIN_IN_FLOW)
    return ", ".join(f"{{{key}: {plain_or_quoted(text, PLAIN_IN_FLOW)}}}" for key, text in part.items())
