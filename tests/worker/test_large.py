"""Operations on many numbers: faults of the last lane, one dtype or one layout show; good ones aren't accused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.worker.derivatives import derivatives
from conformance.worker.large import Large, large_values
from conformance.worker.operation import Operation

ENTRY = {"x": ["n", "m"]}


def sine(fault: str = "") -> Any:
    """Return sin(x), whose gradient has a fault of that name if there are many numbers."""

    class Sine(torch.autograd.Function):  # type: ignore[misc]  # torch has no types for it
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            found = g * x.cos()
            is_faulty = {
                "tail": True, "tail in float32": x.dtype == torch.float32,
                "with gaps": x.dtype == torch.float32 and x.stride(-1) == 2,
                "with other strides": x.dtype == torch.float32 and x.stride(0) == 1,
            }  # fmt: skip
            if x.numel() > 64 and is_faulty.get(fault, False):
                found[-1, -1] *= 1.5
            return found

    return Sine.apply


def told(function: Any, inputs: Any = ENTRY, dtype: torch.dtype = torch.float32, **more: Any) -> dict[str, list[str]]:
    values = large_values(inputs, {})
    assert values is not None
    large = Large(Operation(function, more, "cpu"), values)
    return {"backward": large.backward()[1], "native dtype": large.natively(dtype)[1]}


def test_right_gradients_of_many_numbers_are_judged_and_agree() -> None:
    large = Large(Operation(sine(), {}, "cpu"), large_values(ENTRY, {}) or [])
    assert large.backward() == (1, [])
    assert large.natively(torch.float32) == (3 * 37 * 19, [])


@pytest.mark.parametrize("function", [torch.relu, torch.floor, lambda x: x.sort(0).values, lambda x: x.amax(1)])
def test_kinks_and_jumps_between_many_numbers_accuse_nobody(function: Any) -> None:
    assert not any(told(function).values())


def test_a_fault_of_the_last_lane_in_double_precision() -> None:
    (line,) = told(sine("tail"))["backward"]
    assert line.startswith("the gradient along a direction is ")
    assert line.endswith("; large: f(37x19)")


@pytest.mark.parametrize("fault", ["tail in float32", "with gaps", "with other strides"])
def test_a_fault_of_the_last_lane_in_one_dtype_or_layout(fault: str) -> None:
    found = told(sine(fault))
    assert found["backward"] == []
    assert any(f"[{37 * 19 - 1}] is " in line for line in found["native dtype"])
    assert all(fault in line for line in found["native dtype"] if fault.startswith("with"))


@pytest.mark.parametrize(("fault", "way"), [("tail", "backward"), ("tail in float32", "native dtype")])
def test_such_a_fault_is_one_of_its_way(fault: str, way: str) -> None:
    found = derivatives(sine(fault), ENTRY)
    assert [name for name in ("backward", "native dtype") if found[name]] == [way]


def test_a_function_that_refuses_many_numbers_is_not_accused() -> None:
    def small(x: Any) -> Any:
        if x.numel() > 64:
            raise RuntimeError("too many")
        return x * 2

    found = derivatives(small, ENTRY)
    assert not found["backward"]


def test_results_in_another_order_in_few_digits_are_not_judged() -> None:
    def sorted_or_not(x: Any) -> Any:
        return x * torch.arange(1.0, 20.0, dtype=x.dtype) if x.dtype == torch.float64 else x.flip(0)

    large = Large(Operation(sorted_or_not, {}, "cpu"), large_values(ENTRY, {}) or [])
    assert large.natively(torch.float32) == (0, [])


def test_complex_results_are_given_complex_gradients() -> None:
    assert not any(told(torch.fft.rfft).values())


@pytest.mark.parametrize(
    ("inputs", "is_large"), [({"x": [3, 2]}, False), ({"x": ["n"]}, True), ({"x": [999, "n", 9]}, False)]
)
def test_only_shapes_with_sizes_that_may_be_many_become_large(inputs: Any, is_large: bool) -> None:
    assert (large_values(inputs, {}) is not None) == is_large


def test_an_error_at_many_numbers_is_told() -> None:
    class Refused(torch.autograd.Function):  # type: ignore[misc]  # see above
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:  # noqa: ARG004 - its signature is given
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:  # noqa: ARG004 - see above
            if g.numel() > 64:
                raise RuntimeError("out of registers")
            return g * 2

    found = derivatives(Refused.apply, ENTRY)
    assert found["backward"] == ["RuntimeError: out of registers; large: f(37x19)"]
