"""The shipped cases, loaded once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from conformance.language.files import case_files, shipped_cases
from conformance.language.operations import is_of_operation
from conformance.language.rules import load_rules
from conformance.model.case import Case
from conformance.model.rule import Rule
from conformance.pytest_plugin.case_set import CaseSet

CASES = shipped_cases()
Item = TypeVar("Item")
EVERY = 90  # of how many operations one is looked at, where it matters only that they all have one form


@cache
def rules() -> dict[str, Rule]:
    return load_rules(CASES / "rules.yaml", "rules.yaml")


@cache
def loaded() -> CaseSet:
    """Return the cases as a run of the checkout has them, which also keeps them for the next test process."""
    case_set = CaseSet(CASES.parent, CASES.parent / ".pytest_cache" / "d" / "conformance")
    case_set.known += case_files([CASES])
    case_set.cases(case_set.known[0])
    return case_set


@cache
def all_cases() -> list[Case]:
    """Return the cases but those that are covered, which do nothing that others don't do, too."""
    return [loaded().whole_case(case) for cases in loaded().loaded().values() for case in cases]


def all_ids() -> set[str]:
    """Return the ids of all cases, also of those that are covered."""
    return {*loaded().ids, *loaded().covered_in}


@cache
def telling() -> list[Case]:
    """Return one case of each equivalence, and some of operations: the others differ in their program alone."""
    once = {(case.file, case.line): case for case in all_cases()}.values()
    operations = [case for case in once if is_of_operation(case)]
    return [*(case for case in once if not is_of_operation(case)), *operations[::EVERY]]


def spread(count: int, items: Sequence[Item]) -> Sequence[Item]:
    """Return about so many of what the suite itself is tried on, or with EVERY_CASE in the environment all."""
    return items if os.environ.get("EVERY_CASE") else items[:: max(1, len(items) // count)]
