"""Reads `rules.yaml`, and finds the one that governs a case file."""

from __future__ import annotations

from pathlib import Path

from conformance.language.errors import CaseFileError, Problem
from conformance.language.schema import load_schema, problems_of
from conformance.language.yaml import read_document, read_text
from conformance.model.rule import Rule

RULES_FILE = "rules.yaml"


def load_rules(path: Path, name: str) -> dict[str, Rule]:
    """Return the rules of the file at `path` by id; `name` is what error messages call it."""
    root = read_document(read_text(path.read_bytes(), name), name)
    problems = problems_of(root, load_schema("rules.schema.json"), name)
    rules: dict[str, Rule] = {}
    if not problems:
        for node in root.value["rules"].value:
            rule = Rule(**node.plain)
            if rule.id in rules:
                place = node.value["id"]
                problems.append(
                    Problem(
                        file=name, line=place.line, column=place.column, path="id", message=f"{rule.id!r} stands twice"
                    )
                )
            rules[rule.id] = rule
    if problems:
        raise CaseFileError(problems)
    return rules


def find_rules(directory: Path) -> Path | None:
    """Return the rules file that governs the case files in `directory`: the nearest one on the way up."""
    for candidate in (directory, *directory.parents):
        if (candidate / RULES_FILE).is_file():
            return candidate / RULES_FILE
    return None
