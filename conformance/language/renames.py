"""Reads `renames.yaml`: which cases say now what a case of an earlier id said."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from conformance.language.errors import CaseFileError, Problem, did_you_mean
from conformance.language.schema import load_schema, problems_of
from conformance.language.yaml import read_document, read_text

RENAMES_FILE = "renames.yaml"

Renames = dict[str, tuple[str, ...]]


def load_renames(path: Path, name: str, ids: Collection[str]) -> Renames:
    """Return the ids of today by the earlier one; `ids` are those of the cases that there are."""
    root = read_document(read_text(path.read_bytes(), name), name)
    problems = problems_of(root, load_schema("renames.schema.json"), name)
    if not problems:
        listed = root.value["renames"]
        for earlier, now in listed.value.items():
            line, column = listed.keys[earlier]
            if earlier in ids:
                message = f"a case has the id {earlier!r} still, or again"
                problems.append(
                    Problem(file=name, line=line, column=column, path=f"renames.{earlier}", message=message)
                )
            problems += [
                Problem(
                    file=name, line=node.line, column=node.column, path=f"renames.{earlier}",
                    message=f"no case has the id {node.value!r}", hint=did_you_mean(node.value, ids),
                )
                for node in now.value
                if node.value not in ids
            ]  # fmt: skip
    if problems:
        raise CaseFileError(problems)
    return {earlier: tuple(node.value for node in now.value) for earlier, now in root.value["renames"].value.items()}


def ids_now(case: str, renames: Renames) -> tuple[str, ...]:
    """Return the cases that say now what the case of an earlier report said: itself, where nothing else is known."""
    return renames.get(case, (case,))
