"""Lists the behaviour changes between releases of torch that the conditions in cases describe.

For each release that a condition of a case, or a name that it needs, refers to, what the case expects on that release
is compared with what it expects on the one before.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from conformance.execution.program import choose, chosen
from conformance.language import versions, vocabulary
from conformance.model.case import Case
from conformance.model.report import conditions_in
from conformance.render.markdown import render
from conformance.render.text import LONG, shortened
from conformance.render.visible import line_of

NOTHING = "nothing"
HOLDS = "holds"
Step = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BehaviourChange:
    """What a case expects before `release` and since; `place` is the expression or step, empty for the whole case."""

    release: str
    case: Case
    line: int
    place: str
    before: str
    after: str

    def record(self) -> dict[str, Any]:
        """Return the change as it stands in JSON."""
        return {
            "release": self.release, "case": self.case.id, "title": self.case.title, "rules": list(self.case.rules),
            "file": self.case.file, "line": self.line, "place": self.place, "before": self.before, "after": self.after,
        }  # fmt: skip


def behaviour_changes_of(cases: Iterable[Case]) -> list[BehaviourChange]:
    """Return the behaviour changes of all cases, the oldest release first.

    Cases that are generated from equivalences are left out: the conditions of their spellings stand in other cases.
    """
    found = [change for case in cases if not case.written_out for change in behaviour_changes_in(case)]
    return sorted(found, key=lambda change: (versions.version_of(change.release), change.case.file, change.line))


def behaviour_changes_in(case: Case) -> Iterator[BehaviourChange]:
    releases = versions.releases_at_bounds(conditions_of(case))
    for older, newer in pairwise(releases):
        for line, place, before, after in expected_differences(case, older, newer):
            release = newer.removesuffix(".0")
            yield BehaviourChange(release=release, case=case, line=line, place=place, before=before, after=after)


def conditions_of(case: Case) -> list[str]:
    """Return every condition on torch in a case, and one for each name that it needs."""
    needed = [f">={vocabulary.since(name)}" for step in case.steps for name in step.get("needs", ())]
    return [*([case.torch] if case.torch else []), *conditions_in(case.steps), *needed]


def expected_differences(case: Case, older: str, newer: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield where a case expects different things of two releases: line, place, and both expectations."""
    before, after = lacking(case, older), lacking(case, newer)
    if before or after:
        if bool(before) != bool(after):
            yield case.line, "", before or HOLDS, after or HOLDS
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
            yield step["line"], "step", step_text(old, older) if old else NOTHING, step_text(step, newer)
    for step in gone:
        yield step["line"], "step", step_text(step, older), NOTHING


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


def step_differences(step: Step, older: str, newer: str) -> Iterator[tuple[int, str, str, str]]:
    for key in ("raises", "warns"):
        if key in step:
            before, after = (chosen(step, release)[key] for release in (older, newer))
            if (before["type"], before["match"]) != (after["type"], after["match"]):
                yield step["line"], key, raised_text(before), raised_text(after)
    for entry in step.get("expect", ()):
        for name, value, line in entry["checks"]:
            sides = [choose(value, release) for release in (older, newer)]
            if sides[0] != sides[1]:
                yield line, place_of(entry, name), value_text(sides[0]), value_text(sides[1])


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


def history_text(changes: Iterable[BehaviourChange]) -> str:
    """Return the changes for a terminal, release by release."""
    lines: list[str] = []
    release = ""
    for change in changes:
        if change.release != release:
            release = change.release
            lines += ["", f"torch {release}"] if lines else [f"torch {release}"]
        place = f", {change.place}" if change.place else ""
        lines += [
            f"  {change.case.title}  ({change.case.file}:{change.line}{place})",
            f"      before: {change.before}",
            f"      since:  {change.after}",
        ]
    return "".join(f"{shortened(line_of(line), 4 * LONG)}\n" for line in lines)


def history_markdown(changes: Iterable[BehaviourChange]) -> str:
    """Return the changes as a table in Markdown."""
    return render("history.md", {"changes": list(changes)})
