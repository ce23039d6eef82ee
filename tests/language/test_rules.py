"""Tests of the rules that cases cite."""

from __future__ import annotations

from pathlib import Path

import pytest
from loops import each
from places import ROOT

from conformance.language.errors import CaseFileError
from conformance.language.files import nearest
from conformance.language.rules import RULES_FILE, load_rules
from conformance.model.rule import Rule, level_of

TEXT = """\
rules:
  - id: leaf.made-by-user
    text: A tensor that no operation made is a leaf.
    topic: Leaves
    level: documented
    link: https://example.org/leaf
    since: "1.13"
  - id: leaf.version
    text: Its version counter begins at zero.
    topic: Leaves
    level: observed
    link: https://example.org/version
    since: "2.10"
"""


def written(directory: Path, text: str) -> Path:
    path = directory / RULES_FILE
    path.write_text(text, encoding="utf-8")
    return path


def problems_in(directory: Path, text: str) -> str:
    with pytest.raises(CaseFileError) as caught:
        load_rules(written(directory, text), RULES_FILE)
    return str(caught.value)


def test_rules_are_known_by_id_in_the_order_of_the_file(tmp_path: Path) -> None:
    rules = load_rules(written(tmp_path, TEXT), RULES_FILE)
    assert list(rules) == ["leaf.made-by-user", "leaf.version"]
    assert rules["leaf.version"] == Rule(
        id="leaf.version", text="Its version counter begins at zero.", topic="Leaves", level="observed",
        link="https://example.org/version", since="2.10",
    )  # fmt: skip


def test_a_rule_cannot_be_changed(tmp_path: Path) -> None:
    rule = load_rules(written(tmp_path, TEXT), RULES_FILE)["leaf.version"]
    with pytest.raises(AttributeError):
        rule.level = "documented"  # type: ignore[misc]


def test_the_rules_of_the_suite_load() -> None:
    rules = load_rules(ROOT / "cases" / RULES_FILE, RULES_FILE)
    assert rules
    assert {rule.level for rule in rules.values()} == {"documented", "observed"}


@each(
    "old, new, problem",
    [
        ("id: leaf.version", "id: leaf.made-by-user", "8:9: id: 'leaf.made-by-user' stands twice"),
        (
            "level: observed",
            "level: seen",
            "11:12: rules[1].level: expected one of documented, observed; got 'seen'",
        ),
        (
            "id: leaf.version",
            "id: Leaf",
            "8:9: rules[1].id: expected a rule's id such as detach.shares-version-counter, got 'Leaf'",
        ),
        (
            'since: "2.10"',
            "since: 2.10",
            '13:12: rules[1].since: expected a release such as "2.1", got 2.1 (quote it)',
        ),
        (
            "https://example.org/version",
            "example.org",
            "12:11: rules[1].link: expected a link that begins with https://, got 'example.org'",
        ),
        (
            "    topic: Leaves\n    level: observed",
            "    level: observed",
            "8:5: rules[1]: the key 'topic' is missing (what it is about)",
        ),
        (
            "rules:\n",
            "rules: []\nother:\n",
            "1:8: rules: expected a list of at least 1, got an empty list\n"
            "rules.yaml:2:1: other: unknown key 'other' (it takes rules)",
        ),
    ],
)
def test_a_mistake_in_a_rule_is_told_with_its_place(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert problems_in(tmp_path, TEXT.replace(old, new)) == f"rules.yaml:{problem}"


def test_a_file_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    assert problems_in(tmp_path, "rules: [}").startswith("rules.yaml:1:9: can't be read as YAML")


def test_the_nearest_rules_on_the_way_up_govern(tmp_path: Path) -> None:
    inner = tmp_path / "pack" / "inner"
    inner.mkdir(parents=True)
    outer = written(tmp_path, TEXT)
    assert nearest(inner, RULES_FILE) == outer
    nearer = written(tmp_path / "pack", TEXT)
    assert nearest(inner, RULES_FILE) == nearer
    assert nearest(tmp_path, RULES_FILE) == outer


def test_a_directory_of_that_name_is_no_rules_file(tmp_path: Path) -> None:
    (tmp_path / "pack" / RULES_FILE).mkdir(parents=True)
    outer = written(tmp_path, TEXT)
    assert nearest(tmp_path / "pack", RULES_FILE) == outer


def test_a_case_is_documented_when_each_of_its_rules_is(tmp_path: Path) -> None:
    rules = load_rules(written(tmp_path, TEXT), RULES_FILE)
    assert level_of(rules, ("leaf.made-by-user",)) == "documented"
    assert level_of(rules, ("leaf.version",)) == "observed"
    assert level_of(rules, ("leaf.made-by-user", "leaf.version")) == "observed"
