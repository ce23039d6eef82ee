"""What the names of a case hold: tensors and nodes in lists, mappings and modules, by what one would write for them."""

from __future__ import annotations

from typing import Any

import torch
from loops import each

from conformance.worker.holdings import DEPTH, MOST_ITEMS, held

T = torch.ones(1)


def names(**values: Any) -> list[str]:
    return [name for name, _ in held(values)]


@each(
    "value, found",
    [
        (T, ["x"]), ([T, 1, (T,)], ["x[0]", "x[2][0]"]), ({"a": T, 3: [T]}, ["x['a']", "x[3][0]"]), (3, []), ("T", []),
        (torch.nn.Sequential(torch.nn.Linear(1, 1)), ["x[0].weight", "x[0].bias"]), (len, []), (object(), []),
        ([T] * (MOST_ITEMS + 5), [f"x[{index}]" for index in range(MOST_ITEMS)]),
    ],
)  # fmt: skip
def test_a_tensor_has_the_name_that_one_would_write(value: Any, found: list[str]) -> None:
    assert names(x=value) == found


def test_a_node_is_held_too() -> None:
    node = torch.ones(1, requires_grad=True).exp().grad_fn
    assert names(x=[node]) == ["x[0]"]


def test_what_holds_itself_and_what_lies_deep_comes_to_an_end() -> None:
    loop: list[Any] = [T]
    loop.append(loop)
    assert names(x=loop) == ["x[0]"]
    deep: Any = T
    for _ in range(DEPTH + 1):
        deep = [deep]
    assert names(x=deep) == []
    assert names(x=deep[0]) == ["x" + "[0]" * DEPTH]


def test_what_can_not_be_looked_into_hides_nothing_else() -> None:
    class Hostile(torch.nn.Module):  # type: ignore[misc]
        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            raise RuntimeError("no")

    assert names(a=T, x=Hostile.__new__(Hostile), z=T) == ["a", "z"]
