"""What a case expects otherwise on one release of torch than on another, in words, and what kind of change that is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from conformance.execution.program import choose, chosen
from conformance.language import versions, vocabulary
from conformance.model.case import Case
from conformance.model.report import CaseRecord
from conformance.results.diff import EXPECTED, Expectation, ExpectedKind, Words, by_conditions

NOTHING = "nothing"
HOLDS = "holds"
Step = dict[str, Any]
Differing = tuple[int, ExpectedKind, Words]  # where in the case file, of what kind, and what


def expected_differences(case: Case, older: str, newer: str) -> Iterator[Differing]:
    """Yield where a case expects different things of two releases."""
    before, after = lacking(case, older), lacking(case, newer)
    if before or after:
        if bool(before) != bool(after):
            yield case.line, "newly-asked", ("", before or HOLDS, after or HOLDS)
        return
    gone: list[Step] = []
    for step in case.steps:
        there = [applies(step, release) for release in (older, newer)]
        if all(there):
            yield from step_differences(step, older, newer)
        elif there[0]:
            gone.append(step)
        elif there[1]:
            old = gone.pop(0) if gone else None
            kind: ExpectedKind = "behaviour-changed" if old else "newly-asked"
            yield step["line"], kind, ("step", step_text(old, older) if old else NOTHING, step_text(step, newer))
    for step in gone:
        yield step["line"], "newly-asked", ("step", step_text(step, older), NOTHING)


def lacking(case: Case, release: str) -> str:
    """Return why a case can't be run on a release, or an empty string."""
    if case.torch is not None and not versions.holds(case.torch, release):
        return "not expected"
    names = {
        name
        for step in case.steps
        if applies(step, release)
        for name in step.get("needs", ())
        if not versions.holds(f">={vocabulary.since(name)}", release)
    }
    return f"no {', '.join(sorted(names))}" if names else ""


def applies(step: Step, release: str) -> bool:
    return "torch" not in step or versions.holds(step["torch"], release)


def step_differences(step: Step, older: str, newer: str) -> Iterator[Differing]:
    for key in ("raises", "warns"):
        if key in step:
            before, after = (chosen(step, release)[key] for release in (older, newer))
            if (before["type"], before["match"]) != (after["type"], after["match"]):
                yield step["line"], raised_kind(before, after), (key, raised_text(before), raised_text(after))
    for entry in step.get("expect", ()):
        for name, value, line in entry["checks"]:
            sides = [choose(value, release) for release in (older, newer)]
            if sides[0] != sides[1]:
                yield line, "behaviour-changed", (place_of(entry, name), value_text(sides[0]), value_text(sides[1]))


def raised_kind(before: Mapping[str, Any], after: Mapping[str, Any]) -> ExpectedKind:
    """Return the kind of a change of what is raised or warned of: that it is at all, its type, or its message alone."""
    types = before["type"], after["type"]
    if None in types:
        return "behaviour-changed"
    return "message-changed" if types[0] == types[1] else "error-type-changed"


def place_of(entry: Mapping[str, Any], name: str) -> str:
    return entry["subject"] if name in ("value", "log") else f"{entry['subject']}.{name}"


def step_text(step: Step, release: str) -> str:
    """Return what a step does or expects, in one line."""
    if "expect" in step:
        return "; ".join(
            f"{place_of(entry, name)}: {value_text(choose(value, release))}"
            for entry in step["expect"]
            for name, value, _ in entry["checks"]
        )
    picked = chosen(step, release)
    ends = [f"{key} {raised_text(picked[key])}" for key in ("raises", "warns") if key in picked]
    return ", ".join([" ".join(step["do"].split()), *ends])


def raised_text(expected: Mapping[str, Any]) -> str:
    if expected["type"] is None:
        return NOTHING
    return f"{expected['type']}: " + " … ".join(map(part_text, expected["match"]))


def part_text(part: str | Mapping[str, str]) -> str:
    """Return a part of an expected message: text, a kernel's text, or a regular expression."""
    if isinstance(part, str):
        return part
    return part["kernel"] if "kernel" in part else f"/{part['regex']}/"


def value_text(value: Any) -> str:
    """Return what a check expects, as a case file has it."""
    if isinstance(value, dict):
        if "checks" in value:
            return ", ".join(f"{name} {value_text(inner)}" for name, inner, _ in value["checks"])
        return str(value["expr"])
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


def expectation(case: Case, older: str, newer: str) -> Expectation | None:
    """Return what changed in what a case expects from one release to another, the weightiest first, or None."""
    found = sorted(expected_differences(case, older, newer), key=lambda each: EXPECTED.index(each[1]))
    return (found[0][1], tuple(words for _, _, words in found)) if found else None


def expectation_by(cases: Callable[[], Sequence[Case]]) -> Callable[[CaseRecord, str, str], Expectation | None]:
    """Return a function that looks up the case of a record among `cases`, which are asked for when first needed."""
    known: dict[tuple[str, str], Case] = {}

    def found(record: CaseRecord, older: str, newer: str) -> Expectation | None:
        without = by_conditions(record, older, newer)
        if without is None:
            return None
        if not known:
            known.update(((case.id, case.digest), case) for case in cases())
        case = known.get((record.id, record.digest))
        return expectation(case, older, newer) if case is not None else without

    return found
