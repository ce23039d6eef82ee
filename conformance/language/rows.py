"""Checks the rows of a case with `parametrize` as they are written in its file.

Every row sets the variables of the first row, before the first step. The cases that they expand to are checked too.
"""

import ast
import keyword
import re
from collections.abc import Iterator

from conformance.language import vocabulary
from conformance.language.errors import did_you_mean
from conformance.language.expansion import OF_ROW
from conformance.language.parsing import parse_code
from conformance.language.steps import CaseReader
from conformance.language.yaml import Node

ROW_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def check_rows(reader: CaseReader, node: Node) -> None:
    """Report what is wrong with the rows of a case, if it has any, and bind the names that they set."""
    rows = node.find("parametrize")
    if rows is node or not isinstance(rows.value, dict):
        return
    if "spellings" in node.value:
        reader.report(node.value["parametrize"], "parametrize", "can't stand beside 'spellings'")
    given = [row for row in rows.value.values() if isinstance(row.value, dict)]
    variables = set(given[0].value) - OF_ROW if given else set()
    if given and not variables:
        reader.report(given[0], f"parametrize.{next(iter(rows.value))}", "sets no variable")
    for name, row in rows.value.items():
        if not ROW_NAME.fullmatch(name):
            message = f"expected lower-case words joined by -, got {name!r}"
            reader.report(rows.keys[name], f"parametrize.{name}", message, "it becomes the end of an id")
        if isinstance(row.value, dict):
            check_row(reader, f"parametrize.{name}", row, variables)
    for name in sorted(variables - set(names_in_steps(node))) if reader.broken.isdisjoint(node.lines()) else ():
        place = given[0].keys[name]
        reader.report(place, f"parametrize.{next(iter(rows.value))}.{name}", "no step uses this")
    reader.names.bound |= variables
    reader.names.anywhere |= variables


def check_row(reader: CaseReader, path: str, row: Node, variables: set[str]) -> None:
    if "torch" in row.value:
        reader.condition(row.value["torch"], f"{path}.torch")
    for name in sorted(variables - row.value.keys()):
        reader.report(row, path, f"the key {name!r} is missing", "every row sets the same names")
    for name, value in row.value.items():
        below = f"{path}.{name}"
        if name in OF_ROW:
            continue
        if name not in variables:
            reader.report(row.keys[name], below, "the first row doesn't set this", did_you_mean(name, variables))
        elif not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            reader.report(row.keys[name], below, f"{name!r} can't be the name of a variable", "choose another name")
        elif vocabulary.OF_COMPILER.search(name):
            reader.report(row.keys[name], below, f"{name!r} is like a name that a compiler sets", "choose another name")
        elif name in vocabulary.RESERVED:
            reader.report(row.keys[name], below, f"{name!r} belongs to the vocabulary", "choose another name")
        for text in expressions_in(value):
            reader.expression(text, below)


def expressions_in(value: Node) -> Iterator[Node]:
    if isinstance(value.value, str):
        yield value
    elif isinstance(value.value, list):
        for inner in value.value:
            yield from expressions_in(inner)


def names_in_steps(node: Node) -> Iterator[str]:
    """Yield the names in all texts of a case's steps."""
    waiting = [node.find("steps")]
    while waiting:
        part = waiting.pop()
        for text in part.value if isinstance(part.value, dict) else [part.value]:
            tree = parse_code(text).tree if isinstance(text, str) else None
            yield from (name.id for name in ast.walk(tree) if isinstance(name, ast.Name)) if tree else ()
        waiting += part.inner
