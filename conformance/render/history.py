"""Lists the behaviour changes between releases of torch that the conditions in cases describe.

For each release that a condition of a case, or a name that it needs, refers to, what the case expects on that release
is compared with what it expects on the one before.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from conformance.language import versions, vocabulary
from conformance.model.case import Case
from conformance.model.report import conditions_in
from conformance.render.expected import expected_differences
from conformance.render.markdown import render
from conformance.render.text import LONG, shortened
from conformance.render.visible import line_of


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
        for line, _, (place, before, after) in expected_differences(case, older, newer):
            release = newer.removesuffix(".0")
            yield BehaviourChange(release=release, case=case, line=line, place=place, before=before, after=after)


def conditions_of(case: Case) -> list[str]:
    """Return every condition on torch in a case, and one for each name that it needs."""
    needed = [f">={vocabulary.since(name)}" for step in case.steps for name in step.get("needs", ())]
    return [*([case.torch] if case.torch else []), *conditions_in(case.steps), *needed]


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
