"""Rules: what autograd promises or is seen to do, as `rules.yaml` lists it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from conformance.document import read_document, read_text
from conformance.problem import CaseFileError, Problem
from conformance.schema import load_schema, problems_of

FILE = "rules.yaml"


Level = Literal["documented", "observed"]


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One behaviour: `level` is `documented` or `observed`, `since` the first release on which it holds.

    `untested` says why no case looks at it; of any other rule the suite has a case.
    """

    id: str
    text: str
    topic: str
    level: Level
    link: str
    since: str
    untested: str = ""


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
        if (candidate / FILE).is_file():
            return candidate / FILE
    return None


def level_of(rules: Mapping[str, Rule], cited: tuple[str, ...]) -> Level:
    """Return the level of a case: documented if each rule that it cites is."""
    return "documented" if all(rules[rule].level == "documented" for rule in cited) else "observed"
