"""Reads `renames.yaml`: which of today's cases replace a case with an earlier id."""

from collections.abc import Collection
from pathlib import Path

from conformance.language.errors import CaseFileError, did_you_mean
from conformance.language.schema import load_schema, problems_of, reporter
from conformance.language.yaml import content_of, read_document, read_text

RENAMES_FILE = "renames.yaml"

Renames = dict[str, tuple[str, ...]]


def load_renames(path: Path, name: str, ids: Collection[str] | None = None) -> Renames:
    """Return today's ids by the earlier id that they replace; `ids` are the ids of all cases, if they are known."""
    root = read_document(read_text(content_of(path), name), name)
    problems = problems_of(root, load_schema("renames.schema.json"), name)
    report = reporter(name, problems)
    renames, known = root.find("renames"), ids or ()
    for earlier, now in renames.value.items() if ids is not None and not problems else ():
        place = f"renames.{earlier}"
        if earlier in known:
            report(renames.keys[earlier], place, f"a case has the id {earlier!r} still, or again")
        for node in now.value:
            if node.value not in known:
                report(node, place, f"no case has the id {node.value!r}", did_you_mean(node.value, known))
    if problems:
        raise CaseFileError(problems)
    return {earlier: tuple(node.value for node in now.value) for earlier, now in renames.value.items()}
