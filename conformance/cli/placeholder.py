"""Writes the report of a release that could not be installed."""

import argparse
from pathlib import Path

from conformance.cli.input import shipped
from conformance.cli.output import CommandError, put, save_named
from conformance.releases.catalogue import reason_in
from conformance.results.placeholder import placeholder_report

DESCRIPTION = """\
Writes the report of a release that could not be installed, so that it has a column that says why.

  pip install torch==2.99.0 > pip.log 2>&1 ||
  autograd-conformance placeholder 2.99.0 --log pip.log -o reports/

exit statuses: 0 written; 2 the log can't be read, or the report can't be written
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("torch", metavar="RELEASE", help="such as 2.99.0")
    parser.add_argument("--why", metavar="TEXT", default="it could not be installed", help="(default: %(default)s)")
    parser.add_argument("--log", metavar="FILE", type=Path, help="the output of an installer, whose error is added")
    parser.add_argument("-o", "--output", metavar="DIRECTORY", type=Path, required=True, help="where it goes")


def run(options: argparse.Namespace) -> int:
    why, log = options.why, options.log
    if log is not None:
        try:
            why = f"{why}: {reason_in(log.read_text(encoding='utf-8', errors='replace'))}"
        except OSError as error:
            raise CommandError(f"{log}: can't be read: {error.strerror}", "expected an installer's output") from None
    report = placeholder_report(*shipped(), options.torch, why)
    put(f"{save_named(options.output, report, report)}\n")
    return 0
