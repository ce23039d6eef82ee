"""Drafts entries of known issues for what is red in reports."""

import argparse
from datetime import date
from pathlib import Path

from conformance.cli.input import add_reports, read, renames_of
from conformance.cli.output import CommandError, put
from conformance.language.errors import CaseFileError
from conformance.language.files import ISSUES_FILE, shipped_cases
from conformance.language.versions import version_of
from conformance.results.drafts import drafts_text
from conformance.results.known_issues import SHIPPED, KnownIssues, load_known_issues

NO_LIST = "none"
DESCRIPTION = """\
Prints entries for a list of known issues, one for each cause of what is red in the reports, with the cases, the targets
and the releases that were seen to fail so. Say in each what is wrong and where it is kept track of, and put them into
a list of your own. What is known already, to the reports or to the list that comes with the suite, is left out; name
your own list to leave out what it describes, or none to leave out nothing.

  autograd-conformance known-issues reports/*.json > known-issues.yaml
  autograd-conformance known-issues --known-issues known-issues.yaml reports/*.json

exit statuses: 0 printed, whatever the reports say; 2 a report or the list can't be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "leave out what this list describes, or none for nothing (default: the list that comes with the suite)"
    parser.add_argument("--known-issues", metavar="FILE", help=text)
    add_reports(parser, "REPORT")


def run(options: argparse.Namespace) -> int:
    given: str | None = options.known_issues
    known = None if given == NO_LIST else issues_in(given)
    reports = read(options.reports)
    for name, report in reports:
        try:
            version_of(report.build.torch)
        except ValueError as error:
            raise CommandError(f"{name}: header.build.torch: {error}", "known issues are of releases") from None
    put(drafts_text([report for _, report in reports], date.today(), known, SHIPPED if given is None else ""), "utf-8")
    return 0


def issues_in(given: str | None) -> KnownIssues:
    """Return the entries of a list, or of that which comes with the suite."""
    shipped = shipped_cases() / ISSUES_FILE
    path = shipped if given is None else Path(given)
    try:
        return load_known_issues(path, str(path), shipped, renames_of(None))
    except CaseFileError as error:
        raise CommandError(str(error.problems[0]), "expected a list as --known-issues of pytest takes it") from None
    except OSError as error:
        raise CommandError(f"{path}: can't be read: {error.strerror}", "expected a list of known issues") from None
