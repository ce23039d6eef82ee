"""Writes the reference from what the code reads: schemas, vocabulary, commands, options, statuses, rules."""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import groupby
from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformance.cli.main import COMMANDS, module_of, parser
from conformance.language import vocabulary
from conformance.language.schema import load_schema
from conformance.model.status import TABLE
from conformance.pytest_plugin.options import add_markers, add_options
from generator.book import Book
from generator.published import HOLDS, in_words
from generator.rendering import rendered
from generator.schemas import described

WIDTH = "100"  # of what `--help` prints
# Pages of the files that people write or read: a title, a sentence, and the schema with the name of its whole.
FILES = {
    "case-language": (
        "The case language", "What a case file may say. The same schema checks files as they are loaded.",
        [("case.schema.json", "case file")],
    ),
    "rules-file": ("Rules of your own", "A `rules.yaml` beside your cases.", [("rules.schema.json", "rules.yaml")]),
    "known-issues-file": (
        "Lists of known issues", "A `known-issues.yaml` beside your cases, or one that `--known-issues` names.",
        [("known-issues.schema.json", "known-issues.yaml")],
    ),
    "profile-file": ("Profiles of devices", "What `--profile` reads.", [("profile.schema.json", "profile")]),
    "modes-file": ("Exemptions from modes", "The `modes.yaml` beside cases.", [("modes.schema.json", "modes.yaml")]),
    "renames-file": ("Renamed cases", "The `renames.yaml` beside cases.", [("renames.schema.json", "renames.yaml")]),
    "report-file": (
        "Reports", "What a run writes as JSON, and the compact form in which reports are kept.",
        [("report.schema.json", "report"), ("compact.schema.json", "compact report")],
    ),
}  # fmt: skip


def reference_pages(book: Book) -> dict[str, str]:
    """Return the pages of the reference by their names."""
    return {
        "reference/index": rendered("reference.md.j2", {"files": FILES}),
        **{f"reference/{name}": schema_page(*facts) for name, facts in FILES.items()},
        "reference/commands": rendered("commands.md.j2", {"commands": helps()}),
        "reference/pytest-options": rendered("options.md.j2", {"options": options(), "markers": markers()}),
        "reference/vocabulary": rendered("vocabulary.md.j2", {"groups": names()}),
        "reference/statuses": rendered("statuses.md.j2", {"table": TABLE}),
        "reference/rules": rendered("rules.md.j2", {"book": book}),
        "reference/operations": operations_page(book),
    }


def schema_page(title: str, says: str, schemas: Sequence[tuple[str, str]]) -> str:
    parts: dict[str, Any] = {}
    for file, whole in schemas:
        for part in described(load_schema(file), whole):
            parts.setdefault(part.name, part)  # two schemas have definitions in common
    return rendered(
        "schema.md.j2", {"title": title, "says": says, "files": [file for file, _ in schemas], "parts": parts}
    )


def helps() -> dict[str, tuple[str, str]]:
    """Return for each command its summary and what `--help` prints."""
    found = {}
    with width():
        for name, summary in COMMANDS.items():
            if name == "run":  # pytest reads its arguments, and prints its help
                found[name] = summary, ""
                continue
            whole = parser(name, import_module(f"conformance.cli.{module_of(name)}"))
            found[name] = summary, command_in(whole, name).format_help()
    return found


def command_in(whole: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    (commands,) = (action for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    return cast("argparse.ArgumentParser", commands.choices[name])


@contextmanager
def width() -> Iterator[None]:
    """Have argparse write lines of one length, whatever the terminal."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def options() -> list[tuple[str, str]]:
    """Return the options that the suite adds to pytest, as it would list them, with what they do."""
    collected = argparse.ArgumentParser(add_help=False)
    group = SimpleNamespace(addoption=collected.add_argument)
    add_options(cast("pytest.Parser", SimpleNamespace(getgroup=lambda *_: group)))
    found = []
    for action in collected._actions:
        values = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
        found.append((f"{action.option_strings[0]} {values}".strip(), action.help or ""))
    return found


def markers() -> list[tuple[str, str]]:
    """Return the markers that items have, with what they mean."""
    lines: list[str] = []
    config = SimpleNamespace(
        option=SimpleNamespace(device=[], require_device=[]), addinivalue_line=lambda _, line: lines.append(line)
    )
    add_markers(cast("pytest.Config", config))
    return [(name, text.strip()) for name, _, text in (line.partition(":") for line in lines)]


def names() -> dict[str, list[tuple[str, list[str]]]]:
    """Return the names of the vocabulary by where they are found, and there by the first release that has them."""
    groups: dict[str, Mapping[str, str]] = {
        "The suite's own": {name: vocabulary.NAMES[name] for name in vocabulary.SUITE},
        "Python's": dict.fromkeys([*vocabulary.PYTHON, *vocabulary.EXCEPTIONS], vocabulary.OLDEST),
        "Attributes and methods": vocabulary.ATTRIBUTES,
        **{path if path in vocabulary.PYTHON_MODULES else f"torch.{path}".replace("torch.torch", "torch"): own
           for path, own in vocabulary.NAMESPACES.items()},
    }  # fmt: skip
    return {title: by_release(own) for title, own in groups.items() if own}


def by_release(own: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    ordered = sorted(own, key=lambda name: (tuple(map(int, own[name].split("."))), name))
    return [(release, list(group)) for release, group in groupby(ordered, key=own.__getitem__)]


def operations_page(book: Book) -> str:
    """Return the page of the operations that are differentiated in every way, by the topic of their files."""
    own = [case for case in book.cases if case.entry.is_operation]
    topics = {topic: list(group) for topic, group in groupby(own, key=lambda case: case.entry.topic)}
    return rendered("operations.md.j2", {"topics": topics, "count": len(own), "holds": HOLDS, "in_words": in_words})
