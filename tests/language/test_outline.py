"""An outline says of each entry what loading it says, and says something of files that don't load."""

from __future__ import annotations

from shipped import CASES, rules

from conformance.language.outline import entries, entries_in
from conformance.language.reader import parse_cases

DRAFT = """\
topic: "Drafts: some"
programs:
  - id: no-case
    title: A program
cases:
  - id: first
    title: >-
      A title of
      two lines
    rules: [a.b,
      c.d]
    steps: [
  - id: second
    parametrize: {}
"""


def test_it_agrees_with_the_cases_that_are_loaded() -> None:
    for name in ("detach.yaml", "ops/activations.yaml"):
        path = CASES / name
        loaded = parse_cases(path.read_text(encoding="utf-8"), path.name, rules())
        outlined = list(entries([path], CASES))
        assert len(outlined) > 5
        for entry, case in zip(outlined, loaded, strict=True):
            assert (entry.id, entry.line, entry.topic) == (case.id, case.line, case.topic)
            assert entry.is_operation or (entry.title, entry.rules) == (case.title, case.rules)
            assert not entry.is_operation or entry.title == case.title


def test_every_entry_is_named_once_and_cites_rules_or_is_an_operation() -> None:
    found = list(entries(sorted(CASES.rglob("*.yaml"))))
    ids = [entry.id for entry in found if entry.rules or entry.is_operation]
    assert len(ids) == len(set(ids)) > 2500


def test_a_draft_that_does_not_load_has_an_outline() -> None:
    first, second = entries_in(DRAFT, "draft.yaml")
    assert (first.id, first.line, first.title) == ("first", 6, "A title of two lines")
    assert (first.topic, first.rules, first.is_several) == ("Drafts: some", ("a.b", "c.d"), False)
    assert (second.id, second.title, second.rules, second.is_several) == ("second", "", (), True)
