"""The shipped cases, loaded once, and changes that make each of their expectations wrong."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from conformance.language.files import case_files, shipped_cases
from conformance.language.operations import is_of_operation
from conformance.language.rules import load_rules
from conformance.model.case import Case
from conformance.model.rule import Rule
from conformance.pytest_plugin.case_set import CaseSet

CASES = shipped_cases()
Item = TypeVar("Item")
EVERY = 90  # of how many operations one is looked at, where it matters only that they all have one form
OPPOSITES = {"is": "is_not", "is_not": "is", "shares_storage": "not_shares_storage"}
OPPOSITES["not_shares_storage"] = "shares_storage"


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


def one_of(number: int, cases: Sequence[Item]) -> Sequence[Item]:
    """Return every so many-th of cases that the suite itself is tried on, or with EVERY_CASE in the environment all."""
    return cases if os.environ.get("EVERY_CASE") else cases[::number]


def changed(name: str, value: Any) -> Any:
    """Return an expectation that the same observation can't meet."""
    if name == "view_of":
        return {"expr": "3"}
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value + 0.5
    if value is None:
        return "Other" if name == "grad_fn" else [0.125]
    if isinstance(value, dict) and "expr" in value:
        return {"expr": f"({value['expr']}, 'something else')"}
    if isinstance(value, dict) and "checks" in value:
        return {"checks": [[inner, changed(inner, expected), line] for inner, expected, line in value["checks"]]}
    if isinstance(value, list):
        return [*value, value[-1]] if value else [1]
    return f"{value}Other"


def sabotaged(program: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the program with each of its expectations changed, one at a time."""
    for index, step in enumerate(program["steps"]):
        for key in ("raises", "warns"):
            if key in step:
                wrong = copy.deepcopy(program)
                expected = wrong["steps"][index][key]
                if expected["type"] is None:
                    expected.update(type="RuntimeError", match=["something else"])
                else:
                    expected["match"] = [*expected["match"], "and something else"]
                yield f"line {step['line']} {key}", wrong
        for number, entry in enumerate(step.get("expect", ())):
            for place, (name, value, _) in enumerate(entry["checks"]):
                if name in ("rtol", "atol"):
                    continue
                wrong = copy.deepcopy(program)
                check = wrong["steps"][index]["expect"][number]["checks"][place]
                if name in OPPOSITES:
                    check[0] = OPPOSITES[name]
                else:
                    check[1] = changed(name, value)
                yield f"line {step['line']} {entry['subject']}.{name}", wrong
