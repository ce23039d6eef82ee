"""Runs case files on several torch, and drafts the bounds where they differ."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from conformance.cli.attempt import add_python, torch_of
from conformance.cli.input import case_files_at
from conformance.cli.output import CommandError, complain, json_text, put
from conformance.cli.progress import doing, following
from conformance.language.errors import CaseFileError
from conformance.language.files import load_cases
from conformance.language.versions import version_of
from conformance.model.case import Case
from conformance.model.outcome import Outcome
from conformance.model.status import BROKEN, TABLE
from conformance.releases.catalogue import Release, load_releases
from conformance.releases.environment import NotInstalled, borrowed
from conformance.render.bounds import drafts
from conformance.render.text import outcome_line

DESCRIPTION = """\
Runs the cases of a file on each torch that there is: those of the interpreters that are named, those that nox has left
in .nox, and releases that it installs, each into an environment of its own. Prints a table of cases and releases, what
went otherwise first, and where the releases differ a draft of the bounds to write. Numbers are drafted as `?`: they are
to be worked out.

  autograd-conformance try mine.yaml --python ../venv-1.13/bin/python --python ../venv-2.13/bin/python
  autograd-conformance try mine.yaml::my-case --install 2.0.1 --install 2.6.0
  autograd-conformance try mine.yaml --install all --environments ~/.cache/torch-releases

exit statuses: 0 all pass, where they can be run; 1 some don't; 2 a file doesn't load, an interpreter has no torch, or a
release can't be installed, which is told when it was tried on the others
"""
OF_NOX = ".nox/*/bin/python"

Column = tuple[str, list[Outcome]]  # a release, and the outcome of each case


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a case file, a directory of them, or one case as FILE::ID")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")
    parser.add_argument(
        "--install", metavar="RELEASE", action="append", default=[],
        help="install a release such as 2.6.0, or `all` of the suite's matrix; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--environments", metavar="DIRECTORY", type=Path,
        help="keep what is installed there, for the next time (default: each goes when it was used)",
    )  # fmt: skip
    add_python(parser, is_list=True)


def run(options: argparse.Namespace) -> int:
    cases = cases_at(options.file)
    releases = releases_named(options.install)
    columns = [column_of(python, cases, options) for python in interpreters(options.python, is_alone=not releases)]
    missing: list[str] = []
    for release in releases:
        try:
            with ExitStack() as stack:
                with doing(f"installing torch {release.torch}"):
                    python = stack.enter_context(borrowed(release, load_releases().python, options.environments))
                columns.append(column_of(str(python), cases, options))
        except NotInstalled as error:
            missing.append(f"torch {release.torch} can't be installed: {error}")
    columns.sort(key=lambda column: version_of(column[0]))
    rows = [(case, [(name, found[number]) for name, found in columns]) for number, case in enumerate(cases)]
    if options.format == "json":
        put(json_text({"cases": [facts_of(case, row) for case, row in rows]}), "utf-8")
    else:
        put(
            "\n".join(["", *table(rows), "", *(line for case, row in rows for line in lines_of(case, row)), ""]),
            "utf-8",
        )
    for line in missing:
        complain(line)
    if missing:
        return 2
    return 1 if any(each.status in BROKEN for _, found in columns for each in found) else 0


def releases_named(named: list[str]) -> list[Release]:
    """Return the releases that are to be installed, each once, the oldest first."""
    known = load_releases()
    if "all" in named:
        return list(known.releases)
    try:
        found = {release.torch: release for each in named for release in known.between(each, each)}
    except ValueError as error:
        raise CommandError(str(error), "releases are such as 2.6.0, or all") from None
    return sorted(found.values(), key=lambda release: version_of(release.torch))


def column_of(python: str, cases: list[Case], options: argparse.Namespace) -> Column:
    """Run the cases with the torch of an interpreter."""
    with torch_of(python, [options.file], trusts=options.trust) as torch:
        found = [torch.outcome(case) for case in running(cases)]
        if options.format == "text":
            put(f"torch {torch.build.torch}: {python}\n")
        return torch.build.torch.partition("+")[0], found


def running(cases: list[Case]) -> Iterator[Case]:
    return following(cases, "running cases", lambda case: case.id)


def interpreters(named: list[str] | None, *, is_alone: bool) -> list[str]:
    """Return the interpreters that are named, and those of nox's environments; without any, this one if alone."""
    of_nox = [str(path) for path in sorted(Path.cwd().glob(OF_NOX))]
    return list(dict.fromkeys([*(named or ()), *of_nox])) or [sys.executable] * is_alone


def cases_at(named: str) -> list[Case]:
    """Return the cases of a file, or the one of FILE::ID."""
    file, _, name = named.partition("::")
    try:
        cases = load_cases(following(case_files_at([Path(file)]), "loading cases"))
    except CaseFileError as error:
        raise CommandError(str(error.problems[0]), f"`check {file}` says all that is wrong with it") from None
    except OSError as error:
        raise CommandError(f"{file}: can't be read: {error.strerror}", "name a case file") from None
    found = [case for case in cases if name in ("", case.id)]
    if not found:
        raise CommandError(f"there is no case {name!r} in {file}", f"it has {', '.join(case.id for case in cases)}")
    return found


def table(rows: list[tuple[Case, list[tuple[str, Outcome]]]]) -> Iterator[str]:
    """Yield a line for each case, with the sign of its status on each release."""
    names = [name for name, _ in rows[0][1]]
    widest = max(len(case.id) for case, _ in rows)
    yield f"{'':{widest}}  {'  '.join(names)}"
    for case, row in rows:
        signs = "  ".join(f"{TABLE[outcome.status].sign:^{len(name)}}" for name, outcome in row)
        yield f"{case.id:{widest}}  {signs}".rstrip()


def lines_of(case: Case, row: list[tuple[str, Outcome]]) -> Iterator[str]:
    """Yield what went otherwise on which release, and what could be written instead."""
    said = [(name, outcome) for name, outcome in row if outcome.status != "pass"]
    if said:
        yield case.id
        yield from (
            f"  torch {name}: {outcome.status}: {place_of(outcome)}{outcome_line(outcome)}" for name, outcome in said
        )
        yield from (f"  draft: {draft}" for draft in drafts(case, row))


def place_of(outcome: Outcome) -> str:
    return f"line {outcome.line}: " if outcome.line is not None else ""


def facts_of(case: Case, row: list[tuple[str, Outcome]]) -> dict[str, object]:
    outcomes = [{"torch": name, **outcome.record()} for name, outcome in row]
    return {
        "id": case.id,
        "file": case.file,
        "line": case.line,
        "outcomes": outcomes,
        "drafts": list(drafts(case, row)),
    }
