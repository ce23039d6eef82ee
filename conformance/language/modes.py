"""Reads `modes.yaml`: what is not to hold in a mode in which a whole case can run."""

import re
from collections.abc import Collection
from pathlib import Path

import msgspec

from conformance.language.errors import CaseFileError, did_you_mean
from conformance.language.schema import Reporter, load_schema, problems_of, reporter
from conformance.language.yaml import Node, content_of, read_document, read_text
from conformance.model.mode import MODES

MODES_FILE = "modes.yaml"


class Exemption(msgspec.Struct, frozen=True, kw_only=True):
    """Why some failures in some modes are none: those of `cases`, those that say what `says` looks for, or both."""

    modes: tuple[str, ...]
    why: str
    link: str
    says: str = ""
    cases: tuple[str, ...] = ()


def load_exemptions(path: Path, name: str, ids: Collection[str] | None = None) -> tuple[Exemption, ...]:
    """Return the exemptions in a file, which messages call `name`; `ids` are the ids of all cases, if they are known.

    Raise CaseFileError for a file that is wrong, OSError for one that can't be read.
    """
    root = read_document(read_text(content_of(path), name), name)
    problems = problems_of(root, load_schema("modes.schema.json"), name)
    report = reporter(name, problems)
    listed = root.find("exemptions").value if not problems else ()
    for number, node in enumerate(listed):
        check(node, f"exemptions[{number}]", ids, report)
    if problems:
        raise CaseFileError(problems)
    return tuple(msgspec.convert(node.plain, Exemption) for node in listed)


def check(node: Node, place: str, ids: Collection[str] | None, report: Reporter) -> None:
    """Report what is wrong with an exemption that a schema can't tell."""
    says, cases = node.value.get("says"), node.value.get("cases")
    if says is None and cases is None:
        report(node, place, "expected what failures say, or the cases that fail", "give `says`, `cases` or both")
    try:
        re.compile(says.value if says is not None else "")
    except re.error as error:
        report(says, f"{place}.says", f"expected a regular expression: {error}")
    for mode in node.value["modes"].value:
        if mode.value not in MODES:
            report(mode, f"{place}.modes", f"there is no mode {mode.value!r}", did_you_mean(mode.value, MODES))
    for case in cases.value if cases is not None else ():
        if ids is not None and case.value not in ids:
            report(case, f"{place}.cases", f"no case has the id {case.value!r}", did_you_mean(case.value, ids))
