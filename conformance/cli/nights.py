"""Adds tonight's reports to the records of their build lines."""

import argparse
from pathlib import Path

from conformance.cli.input import add_reports, json_files_in, read
from conformance.cli.output import CommandError, put, save
from conformance.results.nights import MOST_NIGHTS, Nights, load_nights, nights_text, with_night
from conformance.results.store import ReportError

DESCRIPTION = f"""\
Adds reports to the records of which case had which status in which of the last {MOST_NIGHTS} nights, one for each name
of a file. `report --nights` shows them on the page.

  autograd-conformance nights -o nights/ tonight/
  autograd-conformance report --nights nights/ tonight/

exit statuses: 0 the records were written; 2 a report or a record can't be read, or a record can't be written
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="DIRECTORY", type=Path, required=True, help="where the records are, or are to be"
    )
    add_reports(parser, "REPORT")


def run(options: argparse.Namespace) -> int:
    for name, report in read(options.reports):
        path = options.output / f"{Path(name).stem}.json"
        save(path, nights_text(with_night(record_at(path) if path.exists() else None, report)))
        put(f"{path}\n")
    return 0


def record_at(path: Path) -> Nights:
    try:
        return load_nights(path)
    except ReportError as error:
        raise CommandError(str(error), "expected a record that `nights` wrote; remove it to begin anew") from None


def records_in(directory: Path) -> list[Nights]:
    """Return the records in a directory."""
    if not directory.is_dir():
        raise CommandError(f"{directory}: there is no such directory", "`nights -o DIRECTORY` makes it")
    return [record_at(path) for path in json_files_in(directory)]
