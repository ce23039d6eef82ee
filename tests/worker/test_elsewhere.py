"""A device other than the CPU is asked less, in its own dtype, and each kind of fault that shows there is found.

The device of these tests is the CPU under another name.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from faulty import product, wrong_ways
from running import running_engine

from conformance.worker.derivatives import derivatives
from conformance.worker.values import Unobservable

DEVICE = "cpu:0"
EXPECTED = {
    "sign": "backward", "factor": "backward", "one lane": "backward", "at zero": "backward", "at ties": "backward",
    "not summed": "backward", "size one": "backward", "second": "backward twice", "tangent": "forward mode",
    "layout": "memory", "incoming": "incoming gradients", "alone": "some inputs", "unsaved": "writes",
    "gaps": "incoming gradients", "second in float32": "backward twice", "tangent in float32": "forward mode",
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")  # torch's own, when it is asked for tangents


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_what_is_right_is_not_accused(dtype: torch.dtype) -> None:
    assert wrong_ways(product(), device=DEVICE, dtype=dtype) == set()
    assert wrong_ways(torch.sigmoid, {"x": "any"}, complex_too=True, device=DEVICE, dtype=dtype) == set()


@pytest.mark.parametrize("fault", EXPECTED)
def test_each_kind_of_fault_that_shows_in_few_digits_is_found(fault: str) -> None:
    assert EXPECTED[fault] in wrong_ways(product(fault), device=DEVICE)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_in_dtypes_of_few_digits_the_gradient_is_asked_for(dtype: torch.dtype) -> None:
    assert wrong_ways(product("sign"), device=DEVICE, dtype=dtype) == {"native dtype"}


def test_a_wrong_result_is_found_where_the_gradient_is_right() -> None:
    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x.exp() + (1 if x.dtype == torch.float32 else 0)

    (line, *_) = derivatives(shifted, {"x": ["n"]}, device=DEVICE)["backward"]
    assert line.startswith("the result[0] is ")
    (line, *_) = derivatives(lambda x: x[: 2 if x.dtype == torch.float32 else 3], {"x": ["n"]}, device=DEVICE)[
        "backward"
    ]
    assert line.startswith("the results have the shapes [[2]], expected [[3]]")


def test_spellings_share_derivatives_and_not_results() -> None:
    assert wrong_ways([torch.exp, lambda x: x.exp() + 1], {"x": ["n"]}, device=DEVICE) == set()


def missing_in_single_precision(x: torch.Tensor) -> torch.Tensor:
    if x.dtype in (torch.float32, torch.complex64):
        raise RuntimeError("error 17")
    return x * 2


def test_what_a_device_lacks_is_found_by_trying_again_and_left_out() -> None:
    asked = []

    def lacking(error: Exception, again: Any) -> str:
        with pytest.raises(RuntimeError, match="error 17"):
            again()
        asked.append(str(error))
        return "the operation does not work there"

    found = derivatives(missing_in_single_precision, {"x": ["n"]}, device=DEVICE, lacking=lacking)
    with pytest.raises(Unobservable, match="does not work there"):
        found["backward"]
    assert asked == ["error 17"]
    assert any(
        "error 17" in line for line in derivatives(missing_in_single_precision, {"x": ["n"]}, device=DEVICE)["backward"]
    )


def test_complex_numbers_may_be_missing_alone() -> None:
    def real_alone(x: torch.Tensor) -> torch.Tensor:
        return missing_in_single_precision(x) if x.is_complex() else x * 2

    found = derivatives(real_alone, {"x": ["n"]}, complex_too=True, device=DEVICE, lacking=lambda *_: "no complex ones")
    assert found["backward"] == []


def test_ways_that_are_not_asked_for_elsewhere_need_not_be_told() -> None:
    assert derivatives(torch.exp, {"x": ["n"]}, device=DEVICE)["on meta"] == []


def test_operations_of_a_device_with_a_class_of_tensors_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.worker.derivatives.has_own_tensors", lambda _: True)
    steps = [{"number": 0, "line": 1, "do": "wrong = derivatives(lambda x: x.exp(), {'x': 'any'}, device=device)"}]
    with running_engine() as engine:
        outcome = engine.run({"n": 0, "device": "meta", "dtype": "float32", "file": "a.yaml", "steps": steps})
    assert outcome["status"] == "unsupported"
    assert outcome["reason"].startswith("tensors of meta are of a class of its own")
