"""Finds the first release on which a case fails."""

import argparse
from pathlib import Path

from conformance.cli.output import CommandError, put
from conformance.cli.progress import doing
from conformance.language.errors import CaseFileError
from conformance.releases.catalogue import load_releases
from conformance.releases.trial import Trial, Unanswerable, UnknownCase
from conformance.render.text import phrase

DESCRIPTION = """\
Finds the first release on which a case fails, among those between two: one on which it holds, and a later one on which
it fails. Named the other way round, it finds the first release on which the case holds again. Each release that is
tried is installed into an environment of its own, and taken away at the end. A release that can't be installed, or
that can't run the case, is passed over.

  autograd-conformance bisect hardswish-at-its-bounds --good 2.13.0 --bad 2.6.0
  autograd-conformance bisect mine.yaml::my-case --good 2.3.1 --bad 2.6.0 --environments ~/.cache/bisect

Known issues count as failures. At the end the script is printed that shows the case in plain torch.

exit statuses: 0 found; 2 the two don't differ in this, or the case or a release doesn't exist
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", help="the id of a case; of a case of your own, its file and ::id")
    parser.add_argument("--good", metavar="RELEASE", required=True, help="a release on which it holds")
    parser.add_argument("--bad", metavar="RELEASE", required=True, help="one on which it fails")
    parser.add_argument("--target", metavar="TARGET", default="cpu-float32", help="(default: %(default)s)")
    parser.add_argument("--trust", action="store_true", help="run a case of others also without a sandbox")
    parser.add_argument(
        "--environments", metavar="DIRECTORY", type=Path,
        help="keep the environments there, for the next time (default: they go at the end)",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    try:
        releases = load_releases().between(options.good, options.bad)
        if len(releases) < 2:  # before the cases are read, which takes long
            raise CommandError(f"{options.good} and {options.bad} are one release", "name one on which the case fails")
        trial = Trial(options.case, options.target, lambda line: put(f"{line}\n"), doing, trusts=options.trust)
    except ValueError as error:
        raise CommandError(str(error), "releases are such as 2.6.0, and targets such as cpu-float32") from None
    except (UnknownCase, CaseFileError) as error:
        raise CommandError(str(error), "`cases` prints where the cases are") from None
    is_old_good = releases[0].torch == options.good
    try:
        found = trial.search(releases, is_old_good=is_old_good, kept=options.environments)
    except Unanswerable as error:
        raise CommandError(str(error), "an end must hold, and the other fail") from None
    what = "bad" if is_old_good else "good"
    first = phrase((*found.skipped, found.first), "or")
    put(f"\nthe first {what} release is {first}; {found.last} is the last before it\n\n{trial.script}\n", "utf-8")
    return 0
