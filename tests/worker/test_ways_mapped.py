"""Where a map is not a loop over samples, the way per sample says which values, gradients or tangents differ."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from faulty import wrong_ways

from conformance.worker.derivatives import derivatives

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")  # torch's own, when it is asked for tangents
INPUTS = {"a": ["n", "m"], "b": ["m"]}


def is_batched(tensor: torch.Tensor) -> bool:
    """Whether a tensor is one of many samples, in whatever else it is wrapped."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False


def transforms() -> list[str]:
    """Return the transforms that are at work, the innermost last."""
    return [each.key().name for each in torch._C._functorch.get_interpreter_stack() or ()]


def product(fault: str) -> Any:
    """Return a product that is another under a map."""

    def once(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        inside = transforms()
        if fault == "value" and inside == ["Vmap"]:
            return a.detach() + a * b
        if fault == "outside" and inside == ["Vmap"]:
            return a * b.detach()
        if fault == "inside" and inside == ["Vmap", "Grad"]:
            return a * b.detach()
        if fault == "tangent" and inside == ["Vmap", "Jvp"]:
            return a * b.detach()
        if fault == "one alone" and is_batched(b) and not is_batched(a):
            return a.detach() * b
        return a * b

    return once


@pytest.mark.parametrize("fault", ["value", "outside", "inside", "tangent", "one alone"])
def test_a_wrong_batching_rule_is_found(fault: str) -> None:
    assert wrong_ways(product(fault), INPUTS) == {"per sample"}


def test_a_right_one_is_not() -> None:
    assert wrong_ways(product(""), INPUTS) == set()


@pytest.mark.parametrize(("mapped", "said"), [(False, "over arguments alone"), (True, "over all inputs and arguments")])
def test_an_argument_that_is_mapped_is_found(mapped: bool, said: str) -> None:
    def chosen(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return x.index_select(0, index) * (2 if is_batched(index) and is_batched(x) is mapped else 1)

    found = derivatives(chosen, {"x": [3, "m"]}, [{"index": torch.tensor([2, 0])}])["per sample"]
    assert said in found[0]


def test_samples_in_the_last_dimension_are_looked_at() -> None:
    def in_front(x: torch.Tensor) -> torch.Tensor:
        is_behind = transforms() == ["Vmap"] and torch._C._functorch.maybe_get_bdim(x) == 1
        return x.exp() * (2 if is_behind else 1)

    lines = derivatives(in_front, {"x": ["n"]})["per sample"]
    assert lines
    assert all("by their last dimension" in line for line in lines)


def test_what_no_map_takes_is_not_judged() -> None:
    def refused(x: torch.Tensor) -> torch.Tensor:
        if is_batched(x):
            raise RuntimeError("not with vmap")
        return x.exp()

    found = derivatives(refused, {"x": ["n"]})
    assert (found.told["per sample"], found.missing["per sample"]) == ([], "NotImplementedError: not with vmap")
