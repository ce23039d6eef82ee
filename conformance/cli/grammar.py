"""The grammar of the command line: commands, their options, and what `--help` says of them."""

from __future__ import annotations

import argparse
from pathlib import Path

from conformance import __version__
from conformance.results.diff import GATES, MEANINGS

Layout = argparse.RawDescriptionHelpFormatter
LIMIT = 1_000_000  # bytes of a summary; the page of a job on GitHub takes 1 MiB

DESCRIPTION = """\
Tells whether autograd on a PyTorch build behaves as it should, and what changed between two builds.

A run writes a JSON report; the other commands read such reports. `COMMAND --help` explains each.
"""
EPILOG = """\
from a run to a page and a gate:
  autograd-conformance run --python ../venv-2.13/bin/python
  autograd-conformance report reports/
  autograd-conformance diff last-night.json reports/torch-2.13.0*.json

exit statuses: those of pytest for `run`; 0 for done, 1 for `diff` when something got worse, 2 for an error
"""
RUN = """\
Runs the cases that come with the suite, or files or directories of your own cases, in pytest, from any directory.
Every option of pytest and of the suite can follow; `run --help` is pytest's own, with the suite's options under
"autograd conformance". Reports go to ./reports.

  autograd-conformance run --python ../venv-2.6/bin/python
  autograd-conformance run --device cuda -k retain -x

exit statuses: those of pytest (0 all passed, 1 something failed, 5 nothing was selected)
"""
CASES = """\
Prints the directory of the cases that come with the suite, to read or to copy them.

exit status: 0
"""
REPORT = """\
Writes an HTML page, one file without anything outside of it, on which one can see, search and compare the reports.

  autograd-conformance report reports/ published/
  autograd-conformance report -o matrix.html nightly/*.json --skip-unreadable

exit statuses: 0 the page was written; 2 a report can't be read, or the page can't be written
"""
COMPACT = """\
Writes reports in a compact form, small enough to keep one for each release beside the code: what each case did, without
its words, its graph and times. Wherever a report can be read, a compact one can; what its cases say is then taken from
the other reports, or from the cases that come with the suite.

  autograd-conformance compact -o reports/published/ reports/matrix/

exit statuses: 0 written; 2 a report can't be read, or has no compact form
"""
MERGE = """\
Puts the reports of the shards of one run together, as if it had not been divided. Shards that don't belong together
are refused, with the file and the fact. The result is incomplete, and a note says so, when a shard did not finish or
is missing. Hosts may differ in paths, processor and number of devices; a device that some host has is the build's.

  pytest --shard 1/2 --report one     (here)
  pytest --shard 2/2 --report two     (there)
  autograd-conformance merge -o reports/ one/ two/

exit statuses: 0 merged, also into an incomplete report; 2 the shards can't be read, or don't belong together
"""
DIFF = """\
Compares two reports, each case on each target, and says whether something got worse: a gate for CI.

  autograd-conformance diff reports/published/torch-2.12.0.json reports/torch-2.13.0.json
  autograd-conformance diff old.json new.json --format markdown >> "$GITHUB_STEP_SUMMARY"
  autograd-conformance diff last-good/ tonight/

{kinds}

Of two directories, those files are compared that are named alike. One that only the old directory has is of a build
that isn't tested any more: that gates, too.

An edited case gates too where it turned red: the edit may be the reason, or torch. A red case that was not run before
counts as regressed: while a device is missing, the gate keeps what it holds to.
An unfinished new report has no outcome for some of what it planned: that is newly not run.

exit statuses: 0 nothing got worse; 1 something did (kinds marked with *); 2 the reports can't be read or compared
"""
SUMMARY = """\
Prints Markdown for the page of a CI job: counts by build and target, then what is red, then what was not run and why.
It is cut to the size that such a page takes.

  autograd-conformance summary reports/ >> "$GITHUB_STEP_SUMMARY"

exit statuses: 0 printed, whatever the reports say; 2 a report can't be read
"""
HISTORY = """\
Prints what changed from one release of torch to the next, as the cases hold it: for each bound what was before it, and
what has been since.

  autograd-conformance history
  autograd-conformance history my-cases/hooks.yaml --format markdown

exit statuses: 0 printed; 2 a case file can't be read
"""
KNOWN = """\
Prints entries for a list of known issues, one for each way in which a case is red in the reports, with the targets and
the releases that were seen to fail so. Say in each what is wrong and where it is kept track of, and put them into
the known-issues.yaml beside the cases, or into a list of your own.

  pytest --known-issues none
  autograd-conformance known-issues reports/*.json

exit statuses: 0 printed, whatever the reports say; 2 a report can't be read
"""
BISECT = """\
Finds the first release on which a case fails, among those between two: one on which it holds, and a later one on which
it fails. Named the other way round, it finds the first release on which the case holds again. Each release that is
tried is installed into an environment of its own, and taken away at the end. A release that can't be installed, or
that can't run the case, is passed over.

  autograd-conformance bisect hardswish-at-its-bounds --good 2.13.0 --bad 2.6.0
  autograd-conformance bisect mine.yaml::my-case --good 2.3.1 --bad 2.6.0 --environments ~/.cache/bisect

Known issues count as failures. At the end the script is printed that shows the case in plain torch.

exit statuses: 0 found; 2 the two don't differ in this, or the case or a release doesn't exist
"""
ABSENT = """\
Writes the report of a release that could not be installed, so that it has a column that says why.

  pip install torch==2.99.0 > pip.log 2>&1 || autograd-conformance absent 2.99.0 --log pip.log -o reports/

exit statuses: 0 written; 2 the log can't be read, or the report can't be written
"""
BADGE = """\
Prints the JSON that https://shields.io/badges/endpoint-badge reads from a place of yours: counts by status for each
device, red when something is, grey for a report that is incomplete.

  autograd-conformance badge reports/torch-2.13.0.json --label "autograd, nightly" > badge.json

exit statuses: 0 printed, whatever the report says; 2 the report can't be read
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser; `command` is the name of the command that was given."""
    result = argparse.ArgumentParser(
        prog="autograd-conformance", description=DESCRIPTION, epilog=EPILOG, formatter_class=Layout
    )
    result.add_argument("--version", action="version", version=f"autograd-conformance {__version__}")
    commands = result.add_subparsers(metavar="COMMAND", dest="command", required=True, title="commands")

    def command(name: str, summary: str, description: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=summary, description=description, formatter_class=Layout)

    command("run", "run the cases in pytest; everything that follows goes to pytest", RUN)
    command("cases", "print the directory of the cases", CASES)

    made = command("report", "make an HTML page of reports", REPORT)
    made.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("reports/index.html"),
        help="the page (default: reports/index.html)",
    )  # fmt: skip
    made.add_argument(
        "--skip-unreadable", action="store_true", help="leave out what can't be read, and say so on the page"
    )
    made.add_argument(
        "--without-machines", action="store_true", help="leave out paths, arguments and processors, for others to see"
    )
    several(made, "REPORT")

    made = command("compact", "write reports in a form that is small enough to keep", COMPACT)
    made.add_argument("-o", "--output", metavar="DIRECTORY", type=Path, required=True, help="where they go")
    several(made, "REPORT")

    made = command("merge", "put the reports of shards together", MERGE)
    made.add_argument(
        "-o", "--output", metavar="PLACE",
        help="a file; or a directory, one that is there or with / at its end, for a file named after the build "
        "(default: standard output)",
    )  # fmt: skip
    several(made, "SHARD")

    made = command("diff", "compare two reports; exit 1 when something got worse", DIFF.format(kinds=kinds()))
    made.add_argument("old", metavar="OLD", type=Path, help="the report to compare with, or a directory of them")
    made.add_argument("new", metavar="NEW", type=Path, help="the report that may be worse, or a directory of them")
    made.add_argument("--format", choices=("text", "markdown", "json"), default="text", help="(default: text)")

    made = command("summary", "print Markdown for the page of a CI job", SUMMARY)
    made.add_argument(
        "--limit", metavar="BYTES", type=count, default=LIMIT, help=f"print no more than this (default: {LIMIT})"
    )
    several(made, "REPORT")

    made = command("history", "print what changed from release to release, as the cases hold it", HISTORY)
    made.add_argument(
        "cases", metavar="CASES", nargs="*", type=Path,
        help="a case file, or a directory: every case file in it (default: the cases that come with the suite)",
    )  # fmt: skip
    made.add_argument("--format", choices=("text", "markdown", "json"), default="text", help="(default: text)")

    made = command("known-issues", "draft entries of known issues for what is red in reports", KNOWN)
    several(made, "REPORT")

    made = command("bisect", "find the first release on which a case fails", BISECT)
    made.add_argument("case", metavar="CASE", help="the id of a case; of a case of your own, its file and ::id")
    made.add_argument("--good", metavar="RELEASE", required=True, help="a release on which it holds")
    made.add_argument("--bad", metavar="RELEASE", required=True, help="one on which it fails")
    made.add_argument("--target", metavar="TARGET", default="cpu-float32", help="(default: %(default)s)")
    made.add_argument(
        "--environments", metavar="DIRECTORY", type=Path,
        help="keep the environments there, for the next time (default: they go at the end)",
    )  # fmt: skip

    made = command("absent", "write the report of a release that could not be installed", ABSENT)
    made.add_argument("torch", metavar="RELEASE", help="such as 2.99.0")
    made.add_argument("--why", metavar="TEXT", default="it could not be installed", help="(default: %(default)s)")
    made.add_argument("--log", metavar="FILE", type=Path, help="the output of an installer, whose error is added")
    made.add_argument("-o", "--output", metavar="DIRECTORY", type=Path, required=True, help="where it goes")

    made = command("badge", "print the JSON of a shields.io badge", BADGE)
    made.add_argument("report", metavar="REPORT", type=Path, help="a JSON report")
    made.add_argument("--label", help="the left half of the badge (default: autograd on torch and its version)")
    return result


def kinds() -> str:
    """Return the kinds of change and what they mean, those that gate marked."""
    return "\n".join(
        f"{'*' if kind in GATES else ' '} {kind.replace('-', ' '):16} {text}" for kind, text in MEANINGS.items()
    )


def several(made: argparse.ArgumentParser, name: str) -> None:
    made.add_argument(
        "reports", metavar=name, nargs="+", type=Path, help="a JSON report, or a directory: every *.json in it"
    )


def count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value
