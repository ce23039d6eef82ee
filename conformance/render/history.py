"""Lists what changed from one release of torch to the next, as the cases hold it: each bound, with both of its sides.

A case is looked at just before and at each release that one of its conditions, or a name that it needs, speaks of;
what differs between the two is a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from conformance.execution.program import choose, chosen
from conformance.language import versions, vocabulary
from conformance.model.case import Case
from conformance.render.markdown import render
from conformance.render.text import LONG, cut
from conformance.render.visible import line_of

NOTHING = "nothing"
HOLDS = "holds"
Step = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing that is otherwise from `release` on; `place` is what it is about, empty for the case as a whole."""

    release: str
    case: Case
    line: int
    place: str
    before: str
    after: str

    def record(self) -> dict[str, Any]:
        """Return the turn as JSON has it."""
        return {
            "release": self.release, "case": self.case.id, "title": self.case.title, "rules": list(self.case.rules),
            "file": self.case.file, "line": self.line, "place": self.place, "before": self.before, "after": self.after,
        }  # fmt: skip


def turns_of(cases: Iterable[Case]) -> list[Turn]:
    """Return what the cases say of the releases, the oldest release first.

    What is written out from an equivalence needs what its spellings and programs need, of which other cases tell.
    """
    found = [turn for case in cases if not case.written_out for turn in turns_in(case)]
    return sorted(found, key=lambda turn: (versions.version_of(turn.release), turn.case.file, turn.line))


def turns_in(case: Case) -> Iterator[Turn]:
    releases = versions.telling_releases(conditions_of(case))
    for older, newer in pairwise(releases):
        for line, place, before, after in differences(case, older, newer):
            release = newer.removesuffix(".0")
            yield Turn(release=release, case=case, line=line, place=place, before=before, after=after)


def conditions_of(case: Case) -> list[str]:
    """Return every condition on torch in a case, also those that the names make which it needs."""
    found = [case.torch] if case.torch else []
    waiting: list[Any] = list(case.steps)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            torch = value.get("torch")
            found += [torch] if isinstance(torch, str) else list(torch or ())
            found += [f">={vocabulary.since(name)}" for name in value.get("needs", ())]
            waiting += [inner for key, inner in value.items() if key != "needs"]
            waiting += torch.values() if isinstance(torch, dict) else ()
        elif isinstance(value, list):
            waiting += value
    return found


def differences(case: Case, older: str, newer: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield where two releases are held to different things: line, place, and what each is held to."""
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
            yield step["line"], "step", told(old, older) if old else NOTHING, told(step, newer)
    for step in gone:
        yield step["line"], "step", told(step, older), NOTHING


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
                yield step["line"], key, message(before), message(after)
    for entry in step.get("expect", ()):
        for name, value, line in entry["checks"]:
            sides = [choose(value, release) for release in (older, newer)]
            if sides[0] != sides[1]:
                yield line, place_of(entry, name), shown(sides[0]), shown(sides[1])


def place_of(entry: Mapping[str, Any], name: str) -> str:
    return entry["subject"] if name in ("value", "log") else f"{entry['subject']}.{name}"


def told(step: Step, release: str) -> str:
    """Return what a step does or expects, in one line."""
    if "expect" in step:
        return "; ".join(
            f"{place_of(entry, name)}: {shown(choose(value, release))}"
            for entry in step["expect"]
            for name, value, _ in entry["checks"]
        )
    picked = chosen(step, release)
    ends = [f"{key} {message(picked[key])}" for key in ("raises", "warns") if key in picked]
    return ", ".join([" ".join(step["do"].split()), *ends])


def message(expected: Mapping[str, Any]) -> str:
    if expected["type"] is None:
        return NOTHING
    parts = [part if isinstance(part, str) else f"/{part['regex']}/" for part in expected["match"]]
    return f"{expected['type']}: " + " … ".join(parts)


def shown(value: Any) -> str:
    """Return what a check expects, as a case file has it."""
    if isinstance(value, dict):
        if "checks" in value:
            return ", ".join(f"{name} {shown(inner)}" for name, inner, _ in value["checks"])
        return str(value["expr"])
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


def text_of(turns: Iterable[Turn]) -> str:
    """Return the turns for a terminal, release by release."""
    lines: list[str] = []
    release = ""
    for turn in turns:
        if turn.release != release:
            release = turn.release
            lines += ["", f"torch {release}"] if lines else [f"torch {release}"]
        place = f", {turn.place}" if turn.place else ""
        lines += [
            f"  {turn.case.title}  ({turn.case.file}:{turn.line}{place})",
            f"      before: {turn.before}",
            f"      since:  {turn.after}",
        ]
    return "".join(f"{cut(line_of(line), 4 * LONG)}\n" for line in lines)


def markdown_of(turns: Iterable[Turn]) -> str:
    """Return the turns as a table in Markdown."""
    return render("history.md", {"turns": list(turns)})
