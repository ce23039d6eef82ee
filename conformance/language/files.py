"""Finds case files: those of the suite, and those at the paths that a user names."""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NoReturn

from conformance.language.garbage import without_collections
from conformance.language.modes import MODES_FILE, Exemption, load_exemptions
from conformance.language.reader import parse_cases
from conformance.language.renames import RENAMES_FILE
from conformance.language.rules import RULES_FILE, load_rules
from conformance.language.yaml import content_of, read_text
from conformance.model.case import Case
from conformance.model.rule import Rule

SUFFIXES = (".yaml", ".yml")
ISSUES_FILE = "known-issues.yaml"
LEFT_OUT_FILE = "left-out.txt"  # the ids of the cases that `--quick` leaves out
NOT_CASES = (RULES_FILE, ISSUES_FILE, RENAMES_FILE, MODES_FILE)
ID = re.compile(r"(?:^|[\s{,])id: *([^\s,}]+)")  # wherever in an entry it stands
PACKAGE = Path(__file__).parent.parent
SHIPPED_CASES = (PACKAGE / "cases", PACKAGE.parent / "cases")  # in a wheel; in a checkout


def shipped_cases() -> Path:
    """Return the directory of the suite's own cases."""
    return next(path for path in SHIPPED_CASES if (path / RULES_FILE).is_file())


@cache
def ids_by_shipped_file() -> dict[Path, frozenset[str]]:
    """Return the ids in each of the suite's files as they are written there: of entries for several cases, a part."""
    return {path: frozenset(ID.findall(path.read_text(encoding="utf-8"))) for path in case_files([shipped_cases()])}


def shipped_files_with(names: Iterable[str]) -> list[Path]:
    """Return those of the suite's files that can have cases with these ids."""
    likely = {part for name in names for part in parts_of(name)}
    return [path for path, ids in ids_by_shipped_file().items() if not likely.isdisjoint(ids)]


def parts_of(name: str) -> Iterator[str]:
    """Yield the ids of entries that can be written out to the case `name` and others: what begins or ends its words."""
    words = name.split("-")
    for count in range(1, len(words) + 1):
        yield "-".join(words[:count])
        yield "-".join(words[-count:])


@cache
def shipped_exemptions() -> tuple[Exemption, ...]:
    """Return what comes with the suite about modes."""
    return load_exemptions(shipped_cases() / MODES_FILE, MODES_FILE)


def is_shipped(path: Path) -> bool:
    """Whether a file is one of the suite's own cases: it lies in their directory, or is a copy of one."""
    shipped = shipped_cases().resolve()
    if path.resolve().is_relative_to(shipped):
        return True
    return any(own.read_bytes() == content_of(path) for own in shipped.rglob(glob.escape(path.name)))


def nearest(directory: Path, name: str) -> Path | None:
    """Return the file of that name that holds for the case files in `directory`: the nearest one on the way up."""
    places = (place / name for place in (directory, *directory.parents))
    return next(filter(Path.is_file, places), None)


def is_case_file(path: Path) -> bool:
    return path.suffix in SUFFIXES and path.name not in NOT_CASES


def holds_case_files(path: Path) -> bool:
    """Whether a path is that of a case file, existing or not, or of a directory with case files."""
    return path.suffix in SUFFIXES or (path.is_dir() and any(map(is_case_file, path.iterdir())))


def case_files(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the files among `places`, and the case files in directories among them.

    Raise OSError for a directory that can't be read, which pathlib's own search takes for an empty one.
    """
    for place in places:
        yield from sorted(filter(is_case_file, files_below(place))) if place.is_dir() else [place]


def files_below(directory: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> NoReturn:
        raise error

    for place, _, names in os.walk(directory, onerror=refuse):
        yield from (Path(place, name) for name in names)


def rules_for(file: Path) -> dict[str, Rule]:
    """Return the rules that the cases of a file can cite: those of the suite, and those beside or above it."""
    shipped = shipped_cases() / RULES_FILE
    own = nearest(file.absolute().parent, RULES_FILE)
    return {**load_rules(shipped, str(shipped)), **({} if own in (None, shipped) else load_rules(own, str(own)))}


def load_cases(files: Iterable[Path], root: Path | None = None) -> list[Case]:
    """Return the cases of `files`, with file names relative to `root`, or without directories if that is None.

    Raise CaseFileError for a file with problems, OSError for a missing one.
    """

    @cache
    def rules_in(path: Path) -> dict[str, Rule]:
        return load_rules(path, str(path))

    shipped = rules_in(shipped_cases() / RULES_FILE)
    cases: list[Case] = []
    with without_collections():  # hardly anything that cases are read into is garbage
        for file in files:
            own = nearest(file.absolute().parent, RULES_FILE)
            rules = shipped if own is None else {**shipped, **rules_in(own)}
            name = file.name if root is None else str(file.relative_to(root))
            cases += cases_in(file, name, rules)
    return cases


def cases_in(file: Path, name: str, rules: Mapping[str, Rule]) -> list[Case]:
    """Return the cases of one file, whose name in messages is `name` and whose cases can cite `rules`."""
    return parse_cases(read_text(content_of(file), name), name, rules)


def read_left_out(path: Path, name: str) -> frozenset[str]:
    """Return the ids in the file of those cases that `--quick` leaves out: one in each line, `#` begins a comment."""
    lines = (line.partition("#")[0].strip() for line in read_text(content_of(path), name).splitlines())
    return frozenset(filter(None, lines))
