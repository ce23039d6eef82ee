"""Starts the torch of an interpreter for the commands that run cases with it."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.cli.output import CommandError
from conformance.cli.progress import doing
from conformance.execution.attempt import Torch
from conformance.execution.fork_server import Refused
from conformance.execution.observing import Observer
from conformance.language.errors import CaseFileError
from conformance.language.files import is_shipped, rules_for, shipped_cases
from conformance.language.rules import RULES_FILE


def add_python(parser: argparse.ArgumentParser, *, is_list: bool = False) -> None:
    text = "an interpreter that has torch"
    if is_list:
        parser.add_argument("--python", metavar="PATH", action="append", help=f"{text}; may be given several times")
    else:
        parser.add_argument("--python", metavar="PATH", default=sys.executable, help=f"{text} (default: this one)")
    parser.add_argument("--trust", action="store_true", help="run cases of others also without a sandbox")


@contextmanager
def torch_of(python: str, named: list[str], *, trusts: bool, modules: tuple[str, ...] = ()) -> Iterator[Torch]:
    """Give the torch of an interpreter, for the cases that files or ids name; raise CommandError if it has none."""
    files = [Path(each.rpartition("::")[0] or each) for each in named if "::" in each or Path(each).exists()]
    with started(python, trusts=trusts or all(map(is_shipped, files)), modules=modules) as torch:
        yield torch


@contextmanager
def started(python: str, *, trusts: bool, modules: tuple[str, ...] = ()) -> Iterator[Torch]:
    """Give the torch of an interpreter; raise CommandError if it has none."""
    try:
        with doing(f"starting torch: {python}"):
            torch = Torch.start(python, trusts=trusts, modules=modules)
        with torch:
            yield torch
    except Refused as error:
        hint = "--python names the interpreter" + ("" if trusts else ", and --trust runs cases without a sandbox")
        raise CommandError(str(error), hint) from None


@contextmanager
def observer_of(python: str, *, trusts: bool, near: Path | None = None) -> Iterator[Observer]:
    """Give what observes values with the torch of an interpreter, with the rules that hold for a file."""
    try:
        rules = rules_for(near or shipped_cases() / RULES_FILE)
    except CaseFileError as error:
        raise CommandError(str(error.problems[0]), "expected rules, as in the suite's rules.yaml") from None
    with started(python, trusts=trusts) as torch:
        yield Observer(torch=torch, rules=rules)
