"""Starts the torch that a command observes values with."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from conformance.cli.attempt import started
from conformance.cli.output import CommandError
from conformance.execution.observing import Observer
from conformance.language.errors import CaseFileError
from conformance.language.files import nearest, shipped_cases
from conformance.language.rules import RULES_FILE, load_rules
from conformance.model.rule import Rule


@cache
def shipped_rules() -> dict[str, Rule]:
    """Return the rules that come with the suite."""
    return load_rules(shipped_cases() / RULES_FILE, RULES_FILE)


@contextmanager
def observer_of(options: argparse.Namespace, python: str | None = None, near: Path | None = None) -> Iterator[Observer]:
    """Give the observer that options name, with the rules that hold for a file."""
    own = nearest(near.absolute().parent, RULES_FILE) if near is not None else None
    try:
        rules = shipped_rules() if own is None else {**shipped_rules(), **load_rules(own, str(own))}
    except CaseFileError as error:
        raise CommandError(str(error.problems[0]), "expected rules, as in the suite's rules.yaml") from None
    with started(options.python if python is None else python, trusts=options.trust) as torch:
        yield Observer(torch=torch, rules=rules)
