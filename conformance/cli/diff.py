"""Compares two reports, or two directories of them, and gates on what got worse."""

import argparse
from pathlib import Path

from conformance.cli.input import add_renames, json_files_in, load, renames_of, shipped, worded
from conformance.cli.output import CommandError, json_text, put
from conformance.cli.progress import doing, following
from conformance.language.renames import Renames
from conformance.render import diff as words
from conformance.render.expected import expectation_by
from conformance.results.diff import GATES, MEANINGS, Difference, Differences, compare, record_of, why_incomparable
from conformance.results.renamed import earlier_ids, joined

KINDS = "\n".join(
    f"{'*' if kind in GATES else ' '} {kind.replace('-', ' '):19} {text}" for kind, text in MEANINGS.items()
)
DESCRIPTION = f"""\
Compares two reports, each case on each target, and says whether something got worse: a gate for CI.

  autograd-conformance diff reports/published/torch-2.12.0.json reports/torch-2.13.0.json
  autograd-conformance diff old.json new.json --format markdown >> "$GITHUB_STEP_SUMMARY"
  autograd-conformance diff last-good/ tonight/

{KINDS}

Of two directories, those files are compared that are named alike. One that only the old directory has is of a build
that isn't tested any more: that gates, too.

An edited case gates too where it turned red: the edit may be the reason, or torch. A red case that was not run before
counts as regressed: while a device is missing, the gate keeps what it holds to.
A case that has another id now, or was split, is compared with what it was, where that passed; else it counts as edited.
An unfinished new report has no outcome for some of what it planned: that is newly not run.

exit statuses: 0 nothing got worse; 1 something did (kinds marked with *); 2 the reports can't be read or compared
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", type=Path, help="the report to compare with, or a directory of them")
    parser.add_argument("new", metavar="NEW", type=Path, help="the report that may be worse, or a directory of them")
    add_renames(parser)
    parser.add_argument("--format", choices=("text", "markdown", "json"), default="text", help="(default: text)")


def run(options: argparse.Namespace) -> int:
    encoding = None if options.format == "text" else "utf-8"
    renames = renames_of(options.renames)
    if options.old.is_dir() and options.new.is_dir():
        several = differences(options.old, options.new, renames)
        told = {"text": words.differences_text, "markdown": words.differences_markdown}.get(options.format)
        put(told(several) if told else json_text(words.differences_record(several)), encoding)
        return 1 if several.worse else 0
    one = difference(options.old, options.new, renames)
    said = {"text": words.difference_text, "markdown": words.difference_markdown}.get(options.format)
    put(said(one) if said else json_text(record_of(one)), encoding)
    return 1 if one.gates else 0


def difference(old: Path, new: Path, renames: Renames) -> Difference:
    reports = [load(path) for path in following([old, new], "reading reports")]
    earlier = earlier_ids(reports[0], renames)
    before, after = worded(joined(reports, renames))
    why = why_incomparable(before, after)
    if why:
        raise CommandError(f"{old} and {new} can't be compared: {why}", "are these the right files?")
    with doing(f"comparing {old} and {new}"):
        return compare(before, after, earlier, expectation_by(lambda: shipped()[0]))


def differences(old: Path, new: Path, renames: Renames) -> Differences:
    """Return the differences between the files of two directories that are named alike."""
    before, after = ({path.name: path for path in json_files_in(place)} for place in (old, new))
    if not after:
        raise CommandError(f"{new}: there is no *.json in this directory", "name a report, or where reports are")
    found = {
        name: difference(before[name], after[name], renames) if name in before else None
        for name in following(after, "comparing reports")
    }
    return Differences(found=found, gone=tuple(name for name in before if name not in after))
