"""Writes the book: for each chapter a page with its rules, the cases that state them, and how these did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.language.files import case_files, shipped_cases
from conformance.language.outline import entries
from conformance.language.rules import RULES_FILE, load_rules
from conformance.model.rule import Rule
from conformance.releases.catalogue import load_releases
from generator.cases import Told, graphs_of, load_single, told_cases
from generator.chapters import CHAPTERS_FILE, Chapter, Order, checked_order
from generator.published import Column, Stretch, columns_of, heaviest, in_words, load_reports, stretches_of
from generator.rendering import anchor, rendered
from generator.sections import addresses_of

MOST_BESIDE = 12  # cases that are told elsewhere, and are named under a rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """All that the book is made of; `homes` has for each rule the name of the chapter that it stands in."""

    order: Order
    rules: Mapping[str, Rule]
    columns: Sequence[Column]
    cases: Sequence[Told]
    homes: Mapping[str, str]
    repository: str

    def rules_of(self, chapter: Chapter) -> list[tuple[str, list[Rule]]]:
        """Return the topics of a chapter, each with its rules."""
        return [(topic, chapter.rules_of(topic, self.rules.values())) for topic in chapter.topics]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A rule with the cases that are told under it, those that are told elsewhere, and how it stood."""

    rule: Rule
    own: Sequence[Told]
    others: Sequence[Told]
    operations: int
    stretches: Sequence[Stretch]

    @property
    def status(self) -> str:
        return in_words(self.stretches)


def load_book(root: Path, chapters_file: Path = CHAPTERS_FILE) -> Book:
    """Return the book of the suite's cases, with what the reports below `root` say of them."""
    place = shipped_cases()
    rules = load_rules(place / RULES_FILE, RULES_FILE)
    order = checked_order(chapters_file, list(rules.values()))
    published = load_reports(root / "reports" / "published")
    listed = list(entries(case_files([place]), place.parent))
    single = load_single(listed, rules)
    columns = columns_of(published)
    graphs = graphs_of([*published, *load_reports(root / "reports")], single)
    releases = [release.torch for release in load_releases().releases]
    chapters = {topic: chapter.name for chapter in order.chapters for topic in chapter.topics}
    return Book(
        order=order, rules=rules, columns=columns,
        cases=list(told_cases(listed, single, columns, graphs, releases)),
        homes={name: chapters[rule.topic] for name, rule in rules.items()}, repository=addresses_of(root).repository,
    )  # fmt: skip


def book_pages(book: Book) -> dict[str, str]:
    """Return the pages by their names: one for each chapter, and the list of chapters."""
    sections = {name: section_of(rule, own, book.columns) for name, (rule, own) in cited(book).items()}
    pages = {f"book/{chapter.name}": chapter_page(book, chapter, sections) for chapter in book.order.chapters}
    counts = {chapter.name: sum(len(rules) for _, rules in book.rules_of(chapter)) for chapter in book.order.chapters}
    return {
        "book/index": rendered("book.md.j2", {
            "order": book.order, "counts": counts, "rules": len(book.rules), "columns": book.columns,
            "cases": sum(not case.entry.is_operation for case in book.cases),
            "drawn": sum(case.drawing is not None for case in book.cases),
        }),
        **pages,
    }  # fmt: skip


def cited(book: Book) -> dict[str, tuple[Rule, list[Told]]]:
    """Return for each rule the cases that cite it."""
    found: dict[str, tuple[Rule, list[Told]]] = {name: (rule, []) for name, rule in book.rules.items()}
    for case in book.cases:
        for name in case.rules:
            found[name][1].append(case)
    return found


def section_of(rule: Rule, cases: Sequence[Told], columns: Sequence[Column]) -> Section:
    words = [heaviest(case.words[at] for case in cases) for at in range(len(columns))]
    shown = sorted((case for case in cases if not case.entry.is_operation), key=lambda case: case.is_broken)
    return Section(
        rule=rule, own=[case for case in shown if case.home == rule.id],
        others=[case for case in shown if case.home != rule.id],
        operations=len(cases) - len(shown), stretches=stretches_of(columns, words),
    )  # fmt: skip


def chapter_page(book: Book, chapter: Chapter, sections: Mapping[str, Section]) -> str:
    topics = [(topic, [sections[rule.id] for rule in rules]) for topic, rules in book.rules_of(chapter)]
    return rendered("chapter.md.j2", {
        "chapter": chapter, "topics": topics, "depth": "##" if len(topics) == 1 else "###", "most": MOST_BESIDE,
        "link_of": lambda case: link_of(book, chapter, case), "in_words": in_words, "columns": book.columns,
        "rule_link": lambda name: f"{book.homes[name]}.html#{anchor(name)}", "repository": book.repository,
    })  # fmt: skip


def link_of(book: Book, chapter: Chapter, case: Told) -> str:
    """Return the link from a chapter to the place where a case is told."""
    home = book.homes[case.home]
    return f"{'' if home == chapter.name else f'{home}.html'}#case-{case.entry.id}"
