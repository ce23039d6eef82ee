"""Writes reports in a form that is small enough to keep."""

import argparse
from pathlib import Path

from conformance.cli.input import add_reports, files_at, load
from conformance.cli.output import CommandError, put, save_named
from conformance.results.compact import CompactError, compact_of

DESCRIPTION = """\
Writes reports in a compact form, small enough to keep one for each release beside the code: what each case did, without
its words, its graph and times. Wherever a report can be read, a compact one can; what its cases say is then taken from
the other reports, or from the cases that come with the suite.

  autograd-conformance compact -o reports/published/ reports/matrix/

exit statuses: 0 written; 2 a report can't be read, or has no compact form
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="DIRECTORY", type=Path, required=True, help="where they go")
    add_reports(parser, "REPORT")


def run(options: argparse.Namespace) -> int:
    for file in files_at(options.reports):
        report = load(file)
        try:
            content = compact_of(report)
        except CompactError as error:
            raise CommandError(f"{file}: {error}", "shards are merged first") from None
        put(f"{save_named(options.output, report, content)}\n")
    return 0
