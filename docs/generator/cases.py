"""Gathers what the book tells of a case: what it does, how it stood on each release, and what is drawn of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import dedent
from typing import Any

from conformance.language.operations import RULES
from conformance.language.outline import Entry, read
from conformance.language.reader import parse_cases
from conformance.model.case import Case
from conformance.model.graph import Graph
from conformance.model.report import Report
from conformance.model.rule import Rule
from conformance.render.expected import lacking
from conformance.render.history import behaviour_changes_in
from conformance.render.page.layout import drawing_of
from conformance.render.script.plain import body_of
from generator.published import KNOWN, MIXED, Column, Stretch, heaviest, issues_of, stretches_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A case of the book, or an entry that stands for several; `text` is Python, or YAML where it is several."""

    entry: Entry
    why: str
    text: str
    language: str
    torch: str  # the release that `text` is for
    rules: tuple[str, ...]
    words: tuple[str, ...]  # how it stood on each release
    stretches: tuple[Stretch, ...]
    issues: tuple[tuple[str, str, str], ...]
    changes: tuple[tuple[str, str, str, str], ...]  # a release, a place, before and after
    drawing: dict[str, Any] | None

    @property
    def is_broken(self) -> bool:
        """Whether it is a known issue on a release: what holds everywhere is read first."""
        return not {KNOWN, MIXED}.isdisjoint(self.words)

    @property
    def home(self) -> str:
        """The rule under which it is told in full; other rules refer to it there."""
        return self.rules[0]


def load_single(listed: Sequence[Entry], rules: Mapping[str, Rule]) -> dict[str, Case]:
    """Return by id the cases among entries that stand in their files as they are.

    What is written out to several cases is left out: to write it out takes ten times as long as all else.
    """
    found: dict[str, Case] = {}
    for file, own in groupby(listed, key=lambda entry: entry.file):
        single = [entry for entry in own if not (entry.is_several or entry.is_operation)]
        texts = "".join(f"{entry.text.rstrip()}\n" for entry in single)
        if single:
            found |= {case.id: case for case in parse_cases(f"topic: any\ncases:\n{texts}", file, rules)}
    return found


def told_cases(
    listed: Sequence[Entry],
    single: Mapping[str, Case],
    columns: Sequence[Column],
    graphs: Mapping[str, Graph],
    releases: Sequence[str],
) -> Iterator[Told]:
    """Yield what the book tells of each of the entries of case files; `single` are those that are cases themselves."""
    written = written_out(listed, columns)
    for entry in listed:
        case = single.get(entry.id)
        ids = {entry.id: case.digest} if case is not None else dict.fromkeys(written.get(entry.id, ()))
        words = tuple(heaviest(column.word(name, digest) for name, digest in ids.items()) for column in columns)
        torch = newest_for(case, releases) if case is not None else ""
        graph = graphs.get(entry.id) if case is not None else None
        yield Told(
            entry=entry, why=why_of(entry, case), torch=torch, words=words,
            stretches=tuple(stretches_of(columns, words)),
            text=entry.text if case is None else body_of(case, torch), language="yaml" if case is None else "python",
            rules=RULES if entry.is_operation else entry.rules, issues=tuple(issues_of(columns, ids)),
            changes=() if case is None else tuple(changes_in(case)),
            drawing=None if graph is None else drawing_of(graph),
        )  # fmt: skip


def written_out(listed: Sequence[Entry], columns: Sequence[Column]) -> dict[str, list[str]]:
    """Return for each entry that stands for several cases the ids of those that the newest report has."""
    several = {entry.id for entry in listed if entry.is_several or entry.is_operation}
    found: dict[str, list[str]] = {}
    for case in columns[-1].digests if columns else ():
        owner = owner_of(case, several)
        if owner:
            found.setdefault(owner, []).append(case)
    return found


def owner_of(case: str, several: set[str]) -> str:
    """Return the entry whose id, with words behind or before it, is that of a case; the longest of those that fit."""
    words = case.split("-")
    heads = ["-".join(words[:count]) for count in range(len(words), 0, -1)]
    tails = ["-".join(words[count:]) for count in range(1, len(words))]
    return max((each for each in (*heads, *tails) if each in several), key=len, default="")


def newest_for(case: Case, releases: Sequence[str]) -> str:
    """Return the newest release that can run a case, or the newest of all."""
    return next((each for each in reversed(releases) if not lacking(case, each)), releases[-1])


def why_of(entry: Entry, case: Case | None) -> str:
    if case is not None:
        return case.why
    whole = read(dedent(entry.text))
    return str(whole[0].get("why", "")) if isinstance(whole, list) and isinstance(whole[0], dict) else ""


def changes_in(case: Case) -> Iterator[tuple[str, str, str, str]]:
    for change in behaviour_changes_in(case):
        yield change.release, change.place, change.before, change.after


def graphs_of(reports: Sequence[Report], cases: Mapping[str, Case]) -> dict[str, Graph]:
    """Return the graphs of cases as the newest report has them that is of the same revision."""
    found: dict[str, Graph] = {}
    for report in reports:
        digests = {case.id: case.digest for case in report.cases}
        found |= {
            name: graph
            for name, graph in report.graphs.items()
            if name in cases and digests.get(name) == cases[name].digest
        }
    return found
