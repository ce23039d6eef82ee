"""Finds case files: those that come with the suite, and those in places that somebody names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from conformance.language.reader import parse_cases
from conformance.language.renames import RENAMES_FILE
from conformance.language.rules import RULES_FILE, find_rules, load_rules
from conformance.language.yaml import read_text
from conformance.model.case import Case
from conformance.model.rule import Rule

SUFFIXES = (".yaml", ".yml")
ISSUES_FILE = "known-issues.yaml"
NOT_CASES = (RULES_FILE, ISSUES_FILE, RENAMES_FILE)
PACKAGE = Path(__file__).parent.parent
SHIPPED = (PACKAGE / "cases", PACKAGE.parent / "cases")  # in a wheel; in a checkout


def shipped_cases() -> Path:
    """Return the directory of the cases that come with the suite."""
    return next(path for path in SHIPPED if (path / RULES_FILE).is_file())


def is_case_file(path: Path) -> bool:
    return path.suffix in SUFFIXES and path.name not in NOT_CASES


def holds_case_files(path: Path) -> bool:
    """Whether a path is that of a case file, there or not, or of a directory with some."""
    return path.suffix in SUFFIXES or (path.is_dir() and any(map(is_case_file, path.iterdir())))


def case_files(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that are named, and the case files in directories that are."""
    for place in places:
        yield from sorted(filter(is_case_file, place.iterdir())) if place.is_dir() else [place]


def load_cases(files: Iterable[Path], root: Path | None = None) -> list[Case]:
    """Return the cases of `files`, which are named as seen from `root`, or by their last part.

    Raise CaseFileError for a file with problems, OSError for one that isn't there.
    """
    read: dict[Path, dict[str, Rule]] = {}

    def rules_in(path: Path) -> dict[str, Rule]:
        if path not in read:
            read[path] = load_rules(path, str(path))
        return read[path]

    shipped = rules_in(shipped_cases() / RULES_FILE)
    cases: list[Case] = []
    for file in files:
        own = find_rules(file.absolute().parent)
        rules = shipped if own is None else {**shipped, **rules_in(own)}
        name = file.name if root is None else str(file.relative_to(root))
        cases += parse_cases(read_text(file.read_bytes(), name), name, rules)
    return cases
