"""Chooses the faults in torch's formulas for derivatives that a case is to notice; `worker/formulas` plants them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.execution.faults import Fault
from conformance.language.operations import is_of_operation
from conformance.model.case import Case
from conformance.model.rule import Rule

TOPICS = {"Gradients of operations", "Subgradients", "Operations", "Losses", "Complex numbers"}  # of derivatives
KINDS = ("sign", "factor", "missing term")
FORWARD_KINDS = ("tangent: sign", "tangent: factor")
MOST_FORMULAS = 3  # that are broken for a case: each fault takes a process of its own
NODE = re.compile(r"(\w+?)Backward\d+\w*")
WORD_START = re.compile(r"(?<!^)(?=[A-Z])")
OPERATORS = {
    "*": "mul",
    "+": "add",
    "-": "sub",
    "/": "div",
    "**": "pow",
    "@": "mm bmm mv dot",
    "[": "slice select index",
}


def is_about_derivatives(case: Case, rules: Mapping[str, Rule]) -> bool:
    """Whether a case differentiates an operation in all ways, or checks a rule of derivatives."""
    return is_of_operation(case) or any(rules[name].topic in TOPICS for name in case.rules)


def formula_faults(case: Case, program: Mapping[str, Any], uses: Iterable[str]) -> dict[str, Fault]:
    """Return faults in the formulas of what a case names, or else in those that it goes through, by what they are."""
    formulas = formulas_of(program, uses)[:MOST_FORMULAS]
    kinds = KINDS + (FORWARD_KINDS if is_of_operation(case) else ())
    return {
        f"{formula}, {kind}": Fault(
            code=f"from conformance.worker.formulas import plant\nplant({formula!r}, {kind!r})\n",
            file="", rules=frozenset(), is_of_library=False,
        )
        for formula in formulas
        for kind in kinds
    }  # fmt: skip


def formulas_of(program: Mapping[str, Any], uses: Iterable[str]) -> list[str]:
    """Return the formulas of functions and operators that a program names, or all that it uses if it names none."""
    text = " ".join(str(step.get("do", "")) for step in program["steps"])
    words = set(re.findall(r"\w+", text))
    for sign, names in OPERATORS.items():
        words |= set(names.split()) if sign in text else set()
    found = [name for name in uses if NODE.fullmatch(name)]
    return [name for name in found if words & spelled(name)] or found


def spelled(node: str) -> set[str]:
    """Return how code may write the function of a node: of SinBackward0, sin or sin_."""
    found = NODE.fullmatch(node)
    name = WORD_START.sub("_", found[1]).lower() if found else node
    return {name, f"{name}_", name.removeprefix("linalg_"), name.removeprefix("special_"), name.removeprefix("fft_")}
