"""Says all that can be said of case files without torch."""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from conformance.cli.input import case_files_at
from conformance.cli.output import CommandError, json_text, put
from conformance.cli.progress import following
from conformance.language.errors import CaseFileError, Problem
from conformance.language.files import case_files, is_shipped, rules_for, shipped_cases
from conformance.language.outline import Entry, entries
from conformance.language.reader import parse_cases
from conformance.language.remarks import remarks_on
from conformance.language.rules import RULES_FILE, rules_in
from conformance.language.yaml import content_of, read_text
from conformance.model.rule import Rule

DESCRIPTION = """\
Says all that can be said of case files without torch, of all of them at once: why one doesn't load, conditions that no
release fulfils or every one does, names that some release doesn't set, expectations that can't fail, text that was
meant as a pattern, ids that stand twice, rules that don't exist.

  autograd-conformance check mine.yaml
  autograd-conformance check cases --format json

exit statuses: 0 there is nothing to say; 1 there is; 2 a file can't be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a case file, or a directory of them")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")


def run(options: argparse.Namespace) -> int:
    problems: list[Problem] = []
    number = 0
    try:
        for file in following(case_files_at(options.files), "checking files"):
            found, own = checked(file)
            number += found
            problems += own
        problems += repeated(options.files)
    except OSError as error:
        raise CommandError(f"{error.filename}: can't be read: {error.strerror}", "name files of cases") from None
    problems = sorted(set(problems))
    if options.format == "json":
        put(json_text({"cases": number, "problems": [asdict(each) for each in problems]}), "utf-8")
    else:
        put("\n".join([*map(str, problems), summary(number, len(problems)), ""]), "utf-8")
    return 1 if problems else 0


def summary(cases: int, problems: int) -> str:
    return f"{cases:,} case{'s' * (cases != 1)} load{'s' * (cases == 1)}, {problems:,} problem{'s' * (problems != 1)}"


def checked(file: Path) -> tuple[int, list[Problem]]:
    """Return how many cases a file has that load, and what is to be said of it."""
    content = content_of(file)
    try:
        return checked_text(file, read_text(content, str(file)), rules_for)
    except CaseFileError as error:
        return 0, list(error.problems)


def checked_text(file: Path, text: str, rules_of: Callable[[Path], dict[str, Rule]]) -> tuple[int, list[Problem]]:
    """Return the same of what is, or is to become, the text of a file."""
    name = str(file)
    try:
        if file.name == RULES_FILE:
            rules_in(text.encode("utf-8", "surrogatepass"), name)
            return 0, []
        cases = parse_cases(text, name, rules_of(file))
    except CaseFileError as error:
        return 0, list(error.problems)
    return len(cases), [problem for case in cases for problem in remarks_on(case)]


def repeated(places: list[Path]) -> list[Problem]:
    """Return the ids that another of these files has, too, or one that comes with the suite."""
    files = list(case_files(places))
    others = [] if any(map(is_shipped, files)) else shipped_entries()
    return standing_twice([*others, *entries(files)])


def shipped_entries() -> list[Entry]:
    shipped = shipped_cases()
    return list(entries(case_files([shipped]), shipped.parent))


def standing_twice(listed: Iterable[Entry]) -> list[Problem]:
    """Return the ids that two files have."""
    first: dict[str, str] = {}
    problems = []
    for entry in listed:
        place = first.setdefault(entry.id, f"{entry.file}:{entry.line}")
        if not place.startswith(f"{entry.file}:"):  # those within a file are told when it is read
            message = f"{entry.id!r} stands twice"
            problems.append(
                Problem(
                    file=entry.file, line=entry.line, column=1, path="id", message=message, hint=f"first in {place}"
                )
            )
    return problems
