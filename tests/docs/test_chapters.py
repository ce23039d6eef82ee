"""The order of the book: each topic of the rules stands in one chapter, and chapters begin with rules of theirs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from generator.book import load_book
from generator.chapters import CHAPTERS_FILE, ChaptersError, load_order, misplaced
from places import ROOT
from samples import rule
from shipped import rules

ORDER = """
parts:
  - title: One
    chapters:
      - {name: a, title: A, says: Of a., topics: [A, B], first: [a.two]}
      - {name: c, title: C, says: Of c., topics: [C]}
"""
RULES = [
    rule("a.one", topic="A", level="observed"),
    rule("a.two", topic="A", level="observed"),
    rule("a.three", topic="A"),
    rule("b.one", topic="B"),
    rule("c.one", topic="C"),
]


@pytest.fixture
def order_file(tmp_path: Path) -> Path:
    path = tmp_path / "chapters.yaml"
    path.write_text(ORDER, encoding="utf-8")
    return path


def test_each_topic_of_the_rules_stands_in_exactly_one_chapter() -> None:
    assert misplaced(load_order(), list(rules().values())) == []


def test_chapters_have_names_for_files_of_their_own() -> None:
    names = [chapter.name for chapter in load_order().chapters]
    assert len(set(names)) == len(names) > 30
    assert [name for name in names if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name) or name == "index"] == []


def test_what_is_named_comes_first_and_then_what_is_documented(order_file: Path) -> None:
    order = load_order(order_file)
    assert misplaced(order, RULES) == []
    assert [each.id for each in order.chapters[0].rules_of("A", RULES)] == ["a.two", "a.three", "a.one"]


def test_what_is_misplaced_is_told(order_file: Path) -> None:
    text = ORDER.replace("[C]", "[A, D]").replace("[a.two]", "[a.two, c.one]")
    order_file.write_text(text, encoding="utf-8")
    assert misplaced(load_order(order_file), RULES) == [
        "topic 'C' stands in no chapter",
        "topic 'A' stands in several chapters",
        "no rule has the topic 'D'",
        "chapter 'a' has no rule 'c.one'",
    ]


def test_a_key_that_is_misspelled_is_refused(order_file: Path) -> None:
    order_file.write_text(CHAPTERS_FILE.read_text(encoding="utf-8").replace("says:", "say:", 1), encoding="utf-8")
    with pytest.raises(ChaptersError, match=r"chapters\.yaml: .*`say`.*; expected parts with chapters"):
        load_order(order_file)


def test_no_book_is_made_of_an_order_that_does_not_fit(order_file: Path) -> None:
    with pytest.raises(ChaptersError, match=r"chapters\.yaml: topic 'detach\(\)' stands in no chapter\n"):
        load_book(ROOT, order_file)
