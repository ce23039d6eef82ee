"""Starts the torch that a command observes values with."""

import argparse
import sys
from functools import cache
from pathlib import Path

from conformance.cli.output import CommandError
from conformance.cli.progress import doing
from conformance.execution.fork_server import Refused
from conformance.execution.observing import Observer
from conformance.language.errors import CaseFileError
from conformance.language.files import nearest, shipped_cases
from conformance.language.rules import RULES_FILE, load_rules
from conformance.model.rule import Rule


def add_interpreter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--python", metavar="PATH", default=sys.executable, help="the interpreter that has torch")
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trust", action="store_true", help="run it also where there is no sandbox")


@cache
def shipped_rules() -> dict[str, Rule]:
    """Return the rules that come with the suite."""
    return load_rules(shipped_cases() / RULES_FILE, RULES_FILE)


def observer_of(options: argparse.Namespace, python: str | None = None, near: Path | None = None) -> Observer:
    """Return the observer that options name, with the rules that hold for a file."""
    own = nearest(near.absolute().parent, RULES_FILE) if near is not None else None
    try:
        rules = shipped_rules() if own is None else {**shipped_rules(), **load_rules(own, str(own))}
        with doing(f"starting torch: {options.python if python is None else python}"):
            return Observer(options.python if python is None else python, rules, trusts=options.trust)
    except CaseFileError as error:
        raise CommandError(str(error.problems[0]), "expected rules, as in the suite's rules.yaml") from None
    except Refused as error:
        raise CommandError(str(error), "--python names the interpreter that has torch") from None
