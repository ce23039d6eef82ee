"""The points at which operations are differentiated."""

from __future__ import annotations

import math

import torch

from conformance.worker.points import elementwise_point, hard_values, ordinary, points, weights


def test_ordinary_numbers_are_the_same_each_time_distinct_and_of_their_kind() -> None:
    bounds = {"": (-2.0, 2.0), "positive": (0.3, 2.3), "unit": (0.2, 0.8), "beyond": (1.3, 3.3)}
    for kind, (low, high) in bounds.items():
        made = ordinary([4, 5], kind, 1)
        assert made.dtype == torch.float64
        assert torch.equal(made, ordinary([4, 5], kind, 1))
        assert made.unique().numel() == 20
        assert low <= float(made.min())
        assert float(made.max()) <= high
    assert float(ordinary([30], "", 0).abs().min()) >= 0.05
    assert float(torch.linalg.cond(ordinary([3, 3], "invertible", 2))) < 10
    assert ordinary([2], "", 0, torch.complex128).dtype == torch.complex128


def test_each_size_is_also_1_and_0() -> None:
    found = points({"x": ["n", "m"], "y": ["m", 3]}, {}, torch.float64, has_hard_values=False)
    shapes = {point.name: [list(each.shape) for each in point.values] for point in found}
    assert shapes == {
        "ordinary": [[3, 2], [2, 3]], "other": [[2, 3], [3, 2]], "n = 1": [[1, 2], [2, 3]], "n = 0": [[0, 2], [2, 3]],
        "m = 1": [[3, 1], [1, 3]], "m = 0": [[3, 0], [0, 3]],
    }  # fmt: skip


def test_inputs_that_have_hard_values_keep_their_shapes() -> None:
    found = points({"x": ["n", "m"], "y": ["m"]}, {}, torch.float64, has_hard_values=True)
    assert {tuple(map(tuple, (each.shape for each in point.values))) for point in found if point.name == "other"} == {
        ((3, 2), (2,))
    }


def test_each_input_has_zeros_ties_and_magnitudes() -> None:
    names = [point.name for point in points({"x": ["n"], "y": ["n"]}, {}, torch.float64, has_hard_values=True)]
    assert {"x with a zero", "y with a zero", "x of zeros", "y with ties", "x of many magnitudes"} <= set(names)
    usual = ordinary([6], "", 0)
    found = hard_values(usual)
    assert int((found["with a zero"] == 0).sum()) == 1
    assert int((found["with zeros"] == 0).sum()) == 3
    assert found["with ties"].unique().numel() < 6
    assert hard_values(usual[:0]) == {}
    later = [point.name for point in points({"x": ["n"]}, {}, torch.float64, has_hard_values=True, row=2)]
    assert [name for name in later if name.startswith("x")] == ["x with zeros", "x of zeros", "x of equal numbers"]


def test_elements_are_all_combinations_of_hard_numbers_in_the_domain() -> None:
    (single,) = elementwise_point([""]).values
    assert {0.0, 1.0, -1.0, 89.0, 0.25} <= set(single.tolist())
    first, second = elementwise_point(["", "positive"]).values
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    assert (0.0, 0.0) in pairs
    assert (-1.0, 800.0) in pairs
    assert second[second.isfinite()].min() == 0
    assert bool(second.isnan().any())
    assert bool((second == math.inf).any())
    assert bool(second[-1].isfinite())


def test_no_two_weights_are_alike_and_none_is_zero() -> None:
    made = weights(torch.zeros(3, 4))
    assert made.unique().numel() == 12
    assert float(made.abs().min()) >= 0.5
    assert not torch.equal(made, weights(torch.zeros(3, 4), 1))
