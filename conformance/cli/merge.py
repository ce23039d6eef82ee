"""Puts the reports of shards together."""

import argparse
import os
from pathlib import Path

from conformance.cli.input import add_reports, read
from conformance.cli.output import CommandError, complain, put, save, save_named
from conformance.results.merge import MergeError, merge_shards
from conformance.results.store import text_of

DESCRIPTION = """\
Puts the reports of the shards of one run together, as if it had not been divided. Shards that don't belong together
are refused, with the file and the fact. The result is incomplete, and a note says so, when a shard did not finish or
is missing. Hosts may differ in paths, processor and number of devices; a device that some host has is the build's.

  pytest --shard 1/2 --report one     (here)
  pytest --shard 2/2 --report two     (there)
  autograd-conformance merge -o reports/ one/ two/

exit statuses: 0 merged, also into an incomplete report; 2 the shards can't be read, or don't belong together
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="PLACE",
        help="a file; or a directory, one that is there or with / at its end, for a file named after the build "
        "(default: standard output)",
    )  # fmt: skip
    add_reports(parser, "SHARD")


def run(options: argparse.Namespace) -> int:
    try:
        result = merge_shards(read(options.reports))
    except MergeError as error:
        raise CommandError(str(error), "shards are of the same build, suite and cases") from None
    for note in result.notes:
        complain(f"note: {note}")
    if options.output is None:
        put(text_of(result.report), "utf-8")
    elif Path(options.output).is_dir() or options.output.endswith(("/", os.sep)):
        save_named(options.output, result.report, result.report)
    else:
        save(Path(options.output), text_of(result.report))
    return 0
