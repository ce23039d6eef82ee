"""Writes guides for those who upgrade torch, in Markdown."""

import argparse
from itertools import pairwise
from pathlib import Path

from conformance.cli.diff import difference
from conformance.cli.input import add_renames, json_files_in, load, renames_of
from conformance.cli.output import CommandError, put, save
from conformance.cli.progress import doing, following
from conformance.language.renames import Renames
from conformance.render.page.builds import release_key
from conformance.render.upgrade import guide_of

DESCRIPTION = """\
Prints what changes in autograd from one release to another, for those who upgrade: what behaves otherwise, with what
code may have to change, errors of another type, what got worse, what is right now. Of a directory of reports it writes
a guide for each release, from the one before it.

  autograd-conformance upgrade reports/published/torch-2.6.0*.json reports/published/torch-2.13.0*.json
  autograd-conformance upgrade -o upgrading/ reports/published

exit statuses: 0 printed or written, whatever changed; 2 the reports can't be read or compared
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", type=Path, help="the report to upgrade from, or a directory of reports")
    parser.add_argument("new", metavar="NEW", type=Path, nargs="?", help="the report to upgrade to")
    parser.add_argument("-o", "--output", metavar="DIRECTORY", type=Path, help="write the guides there")
    add_renames(parser)


def run(options: argparse.Namespace) -> int:
    renames = renames_of(options.renames)
    if options.new is not None:
        put(guide_of(difference(options.old, options.new, renames)), "utf-8")
        return 0
    if not options.old.is_dir() or options.output is None:
        raise CommandError("one report alone", "name two reports, or a directory of reports and -o DIRECTORY")
    write_guides(options.old, options.output, renames)
    return 0


def write_guides(reports: Path, output: Path, renames: Renames) -> None:
    """Write a guide for each release that reports in a directory are of, but the first, from the one before."""
    of_release = {}
    for path in following(json_files_in(reports), "reading reports"):
        build = load(path).build
        if not build.backends:
            of_release[release_key(build)[0]] = path
    if len(of_release) < 2:
        raise CommandError(f"{reports}: there are not two releases", "expected reports of several, each a *.json")
    for (_, old), (release, new) in pairwise(sorted(of_release.items())):
        path = output / f"torch-{release}.md"
        with doing(f"writing {path}"):
            save(path, guide_of(difference(old, new, renames)))
        put(f"{path}\n")
