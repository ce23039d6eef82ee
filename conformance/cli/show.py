"""Prints a case as plain torch, with its rules."""

import argparse
from pathlib import Path

from conformance.cli.output import CommandError, put
from conformance.cli.progress import following
from conformance.language.errors import CaseFileError, did_you_mean
from conformance.language.files import ids_by_shipped_file, load_cases, rules_for, shipped_cases, shipped_files_with
from conformance.language.rules import RULES_FILE, load_rules
from conformance.language.versions import version_of
from conformance.model.case import Case
from conformance.releases.catalogue import load_releases
from conformance.render.expected import lacking
from conformance.render.script.plain import plain_text

DESCRIPTION = """\
Prints a case of the suite, or of a file of your own: what it is there for, the rules that it checks, and what it does
and expects, as plain torch.

  autograd-conformance show detached-alias-zeroed-after-sigmoid
  autograd-conformance show order-of-hooks-at-a-leaf --torch 2.0.1

exit statuses: 0 printed; 2 there is no such case, or that release can't run it
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", help="the id of a case; of a case of your own, FILE::ID")
    parser.add_argument("--torch", metavar="RELEASE", help="what it expects of this release (default: the newest)")


def run(options: argparse.Namespace) -> int:
    release = options.torch or load_releases().releases[-1].torch
    try:
        version_of(release)
    except ValueError as error:
        raise CommandError(f"--torch: {error}", "expected a release such as 2.6.0") from None
    case = case_of(options.case)
    why = lacking(case, release)
    if why:
        raise CommandError(f"torch {release} can't run {case.id}: {why}", "--torch names another release")
    file = options.case.rpartition("::")[0]
    rules = rules_for(Path(file)) if file else load_rules(shipped_cases() / RULES_FILE, RULES_FILE)
    lines = [f"{case.title}", f"{case.file}:{case.line}", "", case.why, ""]
    for name in case.rules:
        lines += [f"rule {name} ({rules[name].level}): {rules[name].text}", f"  {rules[name].link}"]
    put("\n".join([*lines, "", plain_text(case, release)]), "utf-8")
    return 0


def case_of(named: str) -> Case:
    """Return the case of the suite with an id, or that of FILE::ID; only files that can have it are loaded."""
    file, _, name = named.rpartition("::")
    if file:
        return case_in(Path(file), name)
    cases = {case.id: case for case in loaded(shipped_files_with([name]), shipped_cases())}
    if name not in cases:
        known = {*cases, *(each for own in ids_by_shipped_file().values() for each in own)}
        hint = did_you_mean(name, known) or "the page and `rules WORDS` name cases"
        raise CommandError(f"there is no case {name!r}", hint)
    return cases[name]


def case_in(file: Path, name: str) -> Case:
    """Return the case of a file of one's own with an id."""
    try:
        cases = {case.id: case for case in load_cases([file])}
    except CaseFileError as error:
        raise CommandError(str(error.problems[0]), f"`check {file}` says all that is wrong with it") from None
    except OSError as error:
        raise CommandError(f"{file}: can't be read: {error.strerror}", "name a case file, and ::ID") from None
    if name not in cases:
        raise CommandError(
            f"there is no case {name!r} in {file}", did_you_mean(name, cases) or f"it has {', '.join(cases)}"
        )
    return cases[name]


def loaded(files: list[Path], place: Path) -> list[Case]:
    try:
        return load_cases(following(files, "loading cases"), place.parent)
    except CaseFileError as error:
        raise CommandError(str(error.problems[0]), "the suite's own cases were changed") from None
