"""Prints what changed from release to release, as the cases hold it."""

import argparse
from pathlib import Path

from conformance.cli.input import case_files_at
from conformance.cli.output import CommandError, complain, json_text, put
from conformance.cli.progress import following
from conformance.language.errors import CaseFileError
from conformance.language.files import load_cases, shipped_cases
from conformance.render.history import behaviour_changes_of, history_markdown, history_text

DESCRIPTION = """\
Prints what changed from one release of torch to the next, as the cases hold it: for each bound what was before it, and
what has been since.

  autograd-conformance history
  autograd-conformance history my-cases/hooks.yaml --format markdown

exit statuses: 0 printed; 2 a case file can't be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cases", metavar="CASES", nargs="*", type=Path,
        help="a case file, or a directory: every case file in it (default: the cases that come with the suite)",
    )  # fmt: skip
    parser.add_argument("--format", choices=("text", "markdown", "json"), default="text", help="(default: text)")


def run(options: argparse.Namespace) -> int:
    hint = "expected case files, as in the directory that `cases` prints"
    try:
        files = following(case_files_at(options.cases or [shipped_cases()]), "loading cases")
        changes = behaviour_changes_of(load_cases(files))
    except CaseFileError as error:
        *others, last = map(str, error.problems)
        for problem in others:
            complain(f"error: {problem}")
        raise CommandError(last, hint) from None
    except OSError as error:
        raise CommandError(f"{error.filename}: can't be read: {error.strerror}", hint) from None
    if options.format == "json":
        put(json_text({"changes": [change.record() for change in changes]}), "utf-8")
    else:
        put(history_markdown(changes) if options.format == "markdown" else history_text(changes), "utf-8")
    return 0
