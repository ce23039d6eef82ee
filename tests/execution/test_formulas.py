"""Which faults in formulas are planted for a case."""

from __future__ import annotations

from typing import Any

from loops import each
from samples import read_case as read
from samples import rule, valid_case

from conformance.execution import formulas
from conformance.language.files import load_cases, shipped_cases
from conformance.model.case import Case

USES = ["AccumulateGrad", "CloneBackward0", "CumsumBackward0", "CumsumBackward0 recorded", "LinalgDetBackward0"]
USES += ["MulBackward0", "SumBackward1"]


def case_of(name: str) -> Case:
    found = read(valid_case(name))
    assert found is not None
    return found


def program(*lines: str) -> dict[str, Any]:
    return {"steps": [*({"do": line} for line in lines), {"expect": []}]}


@each(
    "code, named",
    [
        ("y = x.cumsum(0)", "CumsumBackward0"),
        ("y = linalg.det(x * 2)", "LinalgDetBackward0 MulBackward0"),
        ("y = x.sum()", "SumBackward1"),
        ("y = x.exp_()", "CloneBackward0 CumsumBackward0 LinalgDetBackward0 MulBackward0 SumBackward1"),
    ],
)
def test_formulas_are_those_of_what_a_case_names_or_else_all(code: str, named: str) -> None:
    assert formulas.formulas_of(program(code), USES) == named.split()


def test_few_formulas_of_a_case_get_each_kind_of_fault() -> None:
    found = formulas.formula_faults(case_of("own"), program("y = x.exp_()"), USES)
    assert len(found) == formulas.MOST_FORMULAS * len(formulas.KINDS)
    fault = found["CumsumBackward0, missing term"]
    assert fault.code.endswith("plant('CumsumBackward0', 'missing term')\n")
    assert not fault.is_of_library


def test_an_operation_is_about_derivatives_and_differentiated_forward_too() -> None:
    (operation, *_) = load_cases([shipped_cases() / "ops" / "fft.yaml"])
    assert formulas.is_about_derivatives(operation, {})
    found = formulas.formula_faults(operation, program("y = x.cumsum(0)"), USES)
    assert found.keys() == {f"CumsumBackward0, {kind}" for kind in (*formulas.KINDS, *formulas.FORWARD_KINDS)}


def test_another_case_is_about_derivatives_by_its_rules() -> None:
    own = case_of("own")
    assert not formulas.is_about_derivatives(own, {"r.one": rule("r.one")})
    about = rule("r.one", topic="Subgradients")
    assert formulas.is_about_derivatives(own, {"r.one": about})
