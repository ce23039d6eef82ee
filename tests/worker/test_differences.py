"""Derivatives by differences: right where they converge, bounds at kinks, and nothing elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from conformance.worker.differences import (
    Slopes,
    along,
    combined,
    consistent,
    elementwise_probes,
    extrapolated,
    real_vector,
    single_probes,
    slopes,
)

Function = Callable[[torch.Tensor], torch.Tensor]


def double(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def at(function: Function, *numbers: float) -> Slopes:
    """Return the derivative of an elementwise function at each number."""
    found = slopes(lambda values: function(values[0]), [double(*numbers)], single_probes([double(*numbers)]))
    return Slopes(found.low.diagonal(), found.high.diagonal())


@pytest.mark.parametrize(
    ("function", "derivative"),
    [(torch.exp, torch.exp), (torch.sin, torch.cos), (torch.log, torch.reciprocal), (torch.square, lambda x: 2 * x)],
)
def test_smooth_functions(function: Function, derivative: Function) -> None:
    numbers = double(0.002, 0.3, 1.0, 2.5, 7.0)
    found = at(function, *numbers.tolist())
    exact = derivative(numbers)
    assert bool(((found.low <= exact) & (exact <= found.high)).all())
    assert float(((found.high - found.low) / exact.abs().clamp(1e-3)).max()) < 1e-5


def test_a_kink_has_the_derivatives_between_left_and_right() -> None:
    found = at(torch.abs, 0.0, 1.0, -1.0)
    assert (found.low[0], found.high[0]) == (pytest.approx(-1, abs=0.05), pytest.approx(1, abs=0.05))
    assert found.low[1:].tolist() == pytest.approx([1, -1], abs=1e-4)
    assert found.high[1:].tolist() == pytest.approx([1, -1], abs=1e-4)


@pytest.mark.parametrize(
    ("function", "number"),
    [(torch.floor, 2.0), (torch.sqrt, 0.0), (torch.reciprocal, 0.0), (torch.asin, 1.0), (torch.log, -1.0)],
)
def test_nothing_is_known_at_a_jump_a_pole_or_outside(function: Function, number: float) -> None:
    assert not bool(at(function, number).is_known)


def test_steps_that_skip_over_stairs_do_not_converge_on_their_slope() -> None:
    values = [double(3.7, 1000.5)]
    for relative in (True, False):
        found = slopes(lambda values: values[0].floor(), values, elementwise_probes(values, relative))
        near = found.low[0, 0], found.high[0, 0]
        assert near == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9)) or not bool(found.is_known[0, 0])
    fine, coarse = (
        slopes(lambda values: values[0].floor(), values, elementwise_probes(values, relative))
        for relative in (False, True)
    )
    both = combined(fine, coarse)
    assert not bool((both.is_known & (both.low > 0)).any())


def test_a_complex_number_has_a_derivative_by_each_part() -> None:
    value = torch.tensor([1 + 2j], dtype=torch.complex128)
    found = slopes(lambda values: real_vector([values[0] ** 2]), [value], single_probes([value]))
    assert found.low.tolist() == [pytest.approx([2, 4], abs=1e-4), pytest.approx([-4, 2], abs=1e-4)]


def test_partial_derivatives_without_a_derivative_say_nothing() -> None:
    def function(values: list[torch.Tensor]) -> torch.Tensor:
        x, y = values
        return torch.where((x == 0) & (y == 0), torch.zeros_like(x), x * y / (x**2 + y**2))

    values = [double(0.0), double(0.0)]
    partial = slopes(function, values, single_probes(values))
    assert partial.low.abs().max() < 1e-9  # along each axis it is constant
    whole = slopes(function, values, along([double(1.0), double(2.0)]))
    assert not bool(consistent(partial, whole, partial.sum(0)).is_known.any())
    smooth = slopes(lambda values: values[0] * values[1], values, single_probes(values))
    whole = slopes(lambda values: values[0] * values[1], values, along([double(1.0), double(2.0)]))
    assert bool(consistent(smooth, whole, smooth.sum(0)).is_known.all())


def test_the_error_is_honest() -> None:
    steps = double(*(2.0**-level for level in range(4, 8)))[:, None]
    noise = double(1e-6, -1e-6, 1e-6, -1e-6)
    _, error = extrapolated((1 + noise).reshape(1, 4, 1), steps, torch.ones(1, 1).double())
    assert float(error) >= 1e-6


def test_what_is_unknown_stays_unknown() -> None:
    unknown = Slopes(double(-math.inf, 1.0), double(math.inf, 1.0))
    assert unknown.times(double(0.0, 2.0)).sum(0).is_known.item() is False
    assert unknown.times(double(2.0, 2.0)).is_known.tolist() == [False, True]
