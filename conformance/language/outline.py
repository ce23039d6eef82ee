"""Reads of case files only what tells their entries apart, without checking anything: a hundred times as fast.

An entry that is written out to several cases stands here once, as in its file.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from conformance.language.operations import PREFIX
from conformance.language.yaml import BREAK, Loader, content_of

TOPIC = re.compile(r"^topic: *(.+)", re.MULTILINE)
PART = re.compile(r"^(cases|ops|programs):|^ *- \{?id: *([^\s,}]+)", re.MULTILINE)
TITLE = re.compile(r"^ +title:(.*(?:\n {6,}.*)*)", re.MULTILINE)
RULES = re.compile(r"^ +rules: *\n? *\[([^\]]*)\]", re.MULTILINE)
SEVERAL = re.compile(r"^ +(parametrize|spellings):", re.MULTILINE)
OPERATION = re.compile(r"^ +op:(.*(?:\n {6,}.*)*)", re.MULTILINE)
IN_FLOW = re.compile(r" *- \{")
FOLDED = re.compile(r"^ *[>|]-?\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A case, or an entry that is written out to cases, as it stands in its file."""

    file: str = ""
    line: int = 0
    topic: str = ""
    id: str
    title: str
    rules: tuple[str, ...]
    text: str
    is_operation: bool
    is_several: bool


def entries(places: Iterable[Path], root: Path | None = None) -> Iterator[Entry]:
    """Yield the entries of files, whose names are relative to `root`, or as they are given."""
    for path in places:
        name = str(path) if root is None else str(path.relative_to(root))
        yield from entries_in(BREAK.sub("\n", content_of(path).decode("utf-8", "replace")), name)


def entries_in(text: str, file: str) -> Iterator[Entry]:
    """Yield the entries of a text that is, or is to become, a case file."""
    topic = TOPIC.search(text)
    kind, line, before = "cases", 1, 0
    parts = [*PART.finditer(text), None]
    for found, following in pairwise(parts):
        assert found is not None
        line += text.count("\n", before, found.start())
        before = found.start()
        kind = found[1] or kind
        own = text[found.start() : len(text) if following is None else following.start()]
        if found[2] and kind != "programs":
            entry = entry_of(own, found[2], is_operation=kind == "ops")
            yield replace(entry, file=file, line=line, topic=plain(topic[1]) if topic else "")


def entry_of(text: str, name: str, *, is_operation: bool) -> Entry:
    title, rules = TITLE.search(text), RULES.search(text)
    called = f"Derivatives of {operation_in(text)}" if is_operation else plain(title[1]) if title else ""
    return Entry(
        id=PREFIX * is_operation + name, is_operation=is_operation, title=called, text=text,
        rules=tuple(re.findall(r"[\w.-]+", rules[1])) if rules else (), is_several=bool(SEVERAL.search(text)),
    )  # fmt: skip


def operation_in(text: str) -> str:
    """Return the expression of an operation, the first of several."""
    found = OPERATION.search(text)
    value = read(found[1]) if found else None
    if IN_FLOW.match(text):
        whole = read(text)
        value = whole[0].get("op") if isinstance(whole, list) and isinstance(whole[0], dict) else None
    return str(value[0] if isinstance(value, list) and value else value or "")


def read(text: str) -> Any:
    """Return what text is as YAML, or None if it can't be read."""
    try:
        return yaml.load(text.lstrip(" "), Loader)  # noqa: S506 - it is PyYAML's safe one
    except yaml.YAMLError:
        return None


def plain(text: str) -> str:
    """Return text that YAML has in one or several lines, with or without quotation marks, in one line without."""
    line = " ".join(FOLDED.sub("", text).split())
    return line[1:-1] if len(line) > 1 and line[0] == line[-1] and line[0] in "'\"" else line
