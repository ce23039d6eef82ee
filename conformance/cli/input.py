"""Reads what a command line names: reports, files of cases, numbers."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from conformance.cli.output import CommandError
from conformance.cli.progress import following
from conformance.language.errors import CaseFileError
from conformance.language.files import case_files, cases_in, shipped_cases, shipped_files_with
from conformance.language.garbage import without_collections
from conformance.language.renames import RENAMES_FILE, Renames, load_renames
from conformance.language.rules import RULES_FILE, load_rules
from conformance.model.case import Case
from conformance.model.report import Report, Revision, case_record
from conformance.model.rule import Rule
from conformance.results.compact import filled, has_bare
from conformance.results.renamed import joined
from conformance.results.store import ReportError, load_report

Named = tuple[str, Report]  # a report and the file that it is from


def count(text: str) -> int:
    """Return a number of at least 1, as argparse wants it read."""
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def add_reports(parser: argparse.ArgumentParser, name: str) -> None:
    text = "a JSON report, or a directory: every *.json in it"
    parser.add_argument("reports", metavar=name, nargs="+", type=Path, help=text)


def add_renames(parser: argparse.ArgumentParser) -> None:
    text = "the renames.yaml of cases of your own (default: the suite's alone)"
    parser.add_argument("--renames", metavar="FILE", type=Path, help=text)


def renames_of(own: Path | None) -> Renames:
    """Return the renames that come with the suite, and those of a list of one's own."""
    renames: Renames = {}
    for path in (shipped_cases() / RENAMES_FILE, *([own] if own is not None else [])):
        try:
            renames |= load_renames(path, str(path))
        except CaseFileError as error:
            raise CommandError(str(error.problems[0]), "expected renames, as in the suite's renames.yaml") from None
        except OSError as error:
            raise CommandError(f"{path}: can't be read: {error.strerror}", "expected a renames.yaml") from None
    return renames


def files_at(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of reports among paths, and those in directories among them."""
    for path in paths:
        files = json_files_in(path) if path.is_dir() else [path]
        if not files:
            raise CommandError(f"{path}: there is no *.json in this directory", "name a report, or where reports are")
        yield from files


def json_files_in(directory: Path) -> list[Path]:
    """Return the *.json of a directory; one that can't be read is an error, where glob() takes it for an empty one."""
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == ".json")
    except OSError as error:
        raise CommandError(f"{directory}: can't be read: {error.strerror}", "expected a directory of reports") from None


def case_files_at(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the case files among places, and those in directories among them."""
    for place in places:
        files = list(case_files([place]))
        if not files:
            raise CommandError(f"{place}: there is no case file in this directory", "expected *.yaml with cases")
        yield from files


def read(paths: Iterable[Path], skipped: list[str] | None = None, renames: Renames | None = None) -> list[Named]:
    """Return the reports at `paths`; what can't be read is an error, or told to `skipped` where that is given."""
    found: list[Named] = []
    for file in following(files_at(paths), "reading reports"):
        try:
            found.append((str(file), load(file)))
        except CommandError as error:
            if skipped is None:
                raise
            skipped.append(str(error))
    reports = worded(joined([report for _, report in found], renames or {}))
    return [(name, report) for (name, _), report in zip(found, reports, strict=True)]


def worded(reports: list[Report]) -> list[Report]:
    """Return reports with the words of their cases, which compact ones lack: those of the others, or of the suite."""
    if not has_bare(reports):
        return reports
    reports = filled(reports)
    if not has_bare(reports):
        return reports
    cases, rules = shipped()
    return filled(reports, [case_record(case, rules) for case in cases], rules.values())


def shipped_of(reports: Iterable[Report]) -> dict[Revision, Case]:
    """Return the suite's cases of which reports tell, as far as they are still the same; others are not looked for."""
    wanted = {(case.id, case.digest) for report in reports for case in report.cases}
    files = following(shipped_files_with({name for name, _ in wanted}), "loading cases")
    found = {(case.id, case.digest): case for file in files for case in shipped_in(file)}
    return {revision: found[revision] for revision in wanted & found.keys()}


def shipped() -> tuple[list[Case], Mapping[str, Rule]]:
    """Return the cases that come with the suite, and their rules."""
    files = following(case_files([shipped_cases()]), "loading cases")
    return [case for file in files for case in shipped_in(file)], shipped_rules()


@cache
def shipped_in(file: Path) -> list[Case]:
    """Return the cases of a file that comes with the suite."""
    with without_collections():
        return cases_in(file, str(file.relative_to(shipped_cases().parent)), shipped_rules())


@cache
def shipped_rules() -> Mapping[str, Rule]:
    return load_rules(shipped_cases() / RULES_FILE, RULES_FILE)


def load(file: Path) -> Report:
    try:
        return load_report(file)
    except ReportError as error:
        raise CommandError(str(error), "expected the report of a run, as in reports/*.json") from None
