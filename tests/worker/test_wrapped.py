"""A tensor that holds another passes operations on below autograd, and says what it holds."""

from __future__ import annotations

from typing import Any

import torch

from conformance.worker.wrapped import Wrapped, unwrapped, wrapped


def test_what_is_computed_from_a_wrapper_is_one_and_holds_the_result() -> None:
    made = wrapped(torch.tensor([1.0, -2.0])) * torch.tensor([3.0, 4.0])
    assert type(made) is Wrapped
    assert type(unwrapped(made)) is torch.Tensor
    assert unwrapped(made).tolist() == [3.0, -8.0]
    assert unwrapped(torch.tensor([1.0])).tolist() == [1.0]
    assert "Wrapped(tensor([" in repr(made)


def test_a_wrapper_is_a_leaf_and_gets_its_gradient() -> None:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    leaf = wrapped(x).requires_grad_()
    assert (leaf.is_leaf, leaf.shape, leaf.dtype, leaf.device.type) == (True, (2,), torch.float32, "cpu")
    (leaf * leaf).sum().backward()
    assert type(leaf.grad) is Wrapped
    assert unwrapped(leaf.grad).tolist() == [2.0, -4.0]
    assert x.grad is None


def test_writing_changes_what_is_held_and_returns_the_wrapper_itself() -> None:
    held = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    outer = wrapped(held)
    row = outer[0]
    assert row.mul_(10) is row
    assert held.tolist() == [[10.0, 20.0], [3.0, 4.0]]
    total = wrapped(torch.empty(2))
    assert torch.sum(outer, 0, out=total) is total
    assert unwrapped(total).tolist() == [13.0, 24.0]
    largest, places = wrapped(torch.empty(2)), wrapped(torch.empty(2, dtype=torch.int64))
    returned: Any = torch.max(outer, 0, out=(largest, places))
    assert returned[0] is largest
    assert returned[1] is places
    assert unwrapped(places).tolist() == [0, 0]
    values, indices = torch.sort(row)
    assert (unwrapped(values).tolist(), unwrapped(indices).tolist()) == ([10.0, 20.0], [0, 1])
    torch._foreach_add_([row], 1.0)
    assert held.tolist() == [[11.0, 21.0], [3.0, 4.0]]
