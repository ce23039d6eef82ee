"""Makes an HTML page of reports."""

import argparse
from operator import itemgetter
from pathlib import Path

from conformance.cli.input import add_renames, add_reports, read, renames_of, shipped_of
from conformance.cli.nights import records_in
from conformance.cli.output import CommandError, put, save
from conformance.cli.progress import doing, following
from conformance.model.report import without_machine
from conformance.render.page.page import Suite, page_of
from conformance.render.script.script import script_for

DESCRIPTION = """\
Writes an HTML page, one file without anything outside of it, on which one can see, search and compare the reports.

  autograd-conformance report reports/ published/
  autograd-conformance report -o matrix.html nightly/*.json --skip-unreadable

exit statuses: 0 the page was written; 2 a report can't be read, or the page can't be written
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("reports/index.html"),
        help="the page (default: reports/index.html)",
    )  # fmt: skip
    parser.add_argument(
        "--skip-unreadable", action="store_true", help="leave out what can't be read, and say so on the page"
    )
    parser.add_argument(
        "--without-machines", action="store_true", help="leave out paths, arguments and processors, for others to see"
    )
    parser.add_argument(
        "--nights", metavar="DIRECTORY", type=Path, help="the records of the last nights, as `nights` keeps them"
    )
    add_renames(parser)
    add_reports(parser, "REPORT")


def run(options: argparse.Namespace) -> int:
    skipped: list[str] = []
    renames = renames_of(options.renames)
    found = [report for _, report in read(options.reports, skipped if options.skip_unreadable else None, renames)]
    if not found:
        raise CommandError("none of the reports can be read", "; ".join(skipped))
    if options.without_machines:
        found = [without_machine(report) for report in found]
    nights = records_in(options.nights) if options.nights is not None else []
    cases = shipped_of(found)
    scripts = {revision: script_for(cases[revision]) for revision in following(cases, "writing scripts", itemgetter(0))}
    suite = Suite(script_of=scripts.get, case_of=cases.get)
    with doing(f"writing {options.output}"):
        save(options.output, page_of(found, skipped, suite, nights=nights))
    put(f"{options.output}\n")
    return 0
