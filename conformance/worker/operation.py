"""An operation with its other arguments on a device: its results, their numbers and their gradients."""

from __future__ import annotations

import math
from typing import Any, Callable, List, Mapping, Optional, Sequence

import torch

from conformance.worker.differences import Values, real_vector
from conformance.worker.points import in_few_digits

NOT_A_NUMBER = complex(math.nan, math.nan)
Others = Mapping[str, Any]


class Operation:
    """A function of tensors with its other arguments, on a device."""

    def __init__(self, function: Callable[..., Any], others: Others, device: str) -> None:
        self.function = function
        self.others = others
        self.device = device
        self.has_tensors = any(map(is_placed, others.values()))

    def __call__(self, values: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        """Return the results that can have derivatives."""
        wide = values[0].dtype
        others = self.others
        if self.has_tensors:  # new ones for each call, which may write to them
            others = {name: placed(value, self.device, wide) for name, value in others.items()}
        found = self.function(*values, **others)
        results = list(found) if isinstance(found, (list, tuple)) else [found]
        tensors = [each for each in results if isinstance(each, torch.Tensor)]
        return [each for each in tensors if each.is_floating_point() or each.is_complex()]

    def values(self, values: Values) -> torch.Tensor:
        """Return the numbers of the results as a vector; both parts of an infinite complex number are unknown."""
        with torch.no_grad():
            results = self(values)
            found = real_vector(results)
            if not any(each.is_complex() for each in results) or math.isfinite(found.sum().item()):
                return found
            whole = [
                torch.where(each.isfinite(), each, NOT_A_NUMBER) if each.is_complex() else each for each in results
            ]
            return real_vector(whole)

    def gradients(
        self,
        leaves: Sequence[torch.Tensor],
        given: Sequence[Optional[torch.Tensor]],
        create_graph: bool = False,
        inputs: Optional[Sequence[torch.Tensor]] = None,
    ) -> List[torch.Tensor]:
        """Return the gradient of each leaf, zeros where it has none, for the given gradients of results (or None).

        The leaves are the inputs, unless there are `inputs` that were made of them.
        """
        return gradients_of(self(leaves if inputs is None else inputs), leaves, given, create_graph)


def gradients_of(
    results: Sequence[torch.Tensor],
    leaves: Sequence[torch.Tensor],
    given: Sequence[Optional[torch.Tensor]],
    create_graph: bool = False,
) -> List[torch.Tensor]:
    """Return the gradient of each leaf, zeros where it has none, for the given gradients of results (or None)."""
    pairs = [(result, own) for result, own in zip(results, given) if result.requires_grad and own is not None]
    if not pairs:
        return [torch.zeros_like(leaf) for leaf in leaves]
    ends, own = zip(*pairs)
    found = torch.autograd.grad(ends, leaves, own, create_graph=create_graph, allow_unused=True)
    return [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, found)]


def is_placed(value: Any) -> bool:
    """Whether an argument is a tensor, or one of those in it."""
    return any(map(is_placed, value)) if isinstance(value, (list, tuple)) else isinstance(value, torch.Tensor)


def placed(value: Any, device: str, dtype: torch.dtype) -> Any:
    """Return an argument on a device, numbers of tensors in the precision of `dtype`, and such as each dtype has."""
    if isinstance(value, (list, tuple)):
        return type(value)(placed(each, device, dtype) for each in value)
    if not isinstance(value, torch.Tensor):
        return value
    if not (value.is_floating_point() or value.is_complex()):
        return value.to(device)
    own = dtype if value.is_complex() or not dtype.is_complex else torch.empty(0, dtype=dtype).real.dtype
    return in_few_digits(value).to(device, own)
