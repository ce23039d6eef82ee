"""Drafts entries of known issues for what is red in reports."""

import argparse
from datetime import date

from conformance.cli.input import add_reports, read
from conformance.cli.output import CommandError, put
from conformance.results.drafts import drafts_text

DESCRIPTION = """\
Prints entries for a list of known issues, one for each way in which a case is red in the reports, with the targets and
the releases that were seen to fail so. Say in each what is wrong and where it is kept track of, and put them into
the known-issues.yaml beside the cases, or into a list of your own.

  pytest --known-issues none
  autograd-conformance known-issues reports/*.json

exit statuses: 0 printed, whatever the reports say; 2 a report can't be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_reports(parser, "REPORT")


def run(options: argparse.Namespace) -> int:
    try:
        text = drafts_text([report for _, report in read(options.reports)], date.today())
    except ValueError as error:
        raise CommandError(str(error), "known issues are of releases") from None
    put(text, "utf-8")
    return 0
