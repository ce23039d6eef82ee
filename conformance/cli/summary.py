"""Prints Markdown for the page of a CI job."""

import argparse

from conformance.cli.input import add_reports, count, read
from conformance.cli.output import put
from conformance.render.summary import summary_of

LIMIT = 1_000_000  # bytes; the page of a job on GitHub takes 1 MiB
DESCRIPTION = """\
Prints Markdown for the page of a CI job: counts by build and target, then what is red, then what was not run and why.
It is cut to the size that such a page takes.

  autograd-conformance summary reports/ >> "$GITHUB_STEP_SUMMARY"

exit statuses: 0 printed, whatever the reports say; 2 a report can't be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit", metavar="BYTES", type=count, default=LIMIT, help=f"print no more than this (default: {LIMIT})"
    )
    add_reports(parser, "REPORT")


def run(options: argparse.Namespace) -> int:
    put(summary_of([report for _, report in read(options.reports)], options.limit), "utf-8")
    return 0
