"""Reads `rules.yaml`."""

import re
from pathlib import Path

from conformance.language.errors import CaseFileError
from conformance.language.schema import load_schema, problems_of, reporter
from conformance.language.yaml import content_of, read_document, read_text
from conformance.model.rule import Rule

RULES_FILE = "rules.yaml"
PLACE = re.compile(r"^ *- \{? *id: *[\"']?([\w.-]+)", re.MULTILINE)


def load_rules(path: Path, name: str) -> dict[str, Rule]:
    """Return the rules of the file at `path` by id; `name` is what error messages call it."""
    return rules_in(content_of(path), name)


def rules_in(content: bytes, name: str) -> dict[str, Rule]:
    """Return the rules in the content of a file by id."""
    root = read_document(read_text(content, name), name)
    problems = problems_of(root, load_schema("rules.schema.json"), name)
    report = reporter(name, problems)
    rules: dict[str, Rule] = {}
    for node in root.value["rules"].value if not problems else ():
        rule = Rule(**node.plain)
        if rule.id in rules:
            report(node.value["id"], "id", f"{rule.id!r} stands twice")
        rules[rule.id] = rule
    if problems:
        raise CaseFileError(problems)
    return rules


def lines_of_rules(text: str) -> dict[str, int]:
    """Return the line, from 1, of each rule in the text of a file, by id."""
    return {found[1]: text.count("\n", 0, found.start()) + 1 for found in PLACE.finditer(text)}
