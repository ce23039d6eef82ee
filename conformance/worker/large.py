"""Differentiates an operation on inputs that are longer than the registers of its kernels, with tails that fill none.

There are too many numbers to find the derivative by each. In double precision the gradient is held to differences
along one direction, in the target's dtype to the gradient in double precision, number by number.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import torch

from conformance.worker.differences import Probes, Values, real_vector, slopes
from conformance.worker.operation import Operation
from conformance.worker.points import Point, ordinary, weights
from conformance.worker.trial import SLACK, Judgement, in_dtype, tangents_at
from conformance.worker.values import display_value, on_cpu, one_line, plain
from conformance.worker.ways import NATIVE, with_gaps, with_other_strides

LARGE = "large"  # the name of the point
LARGE_SIZES = {"n": 37, "m": 19, "k": 23}  # of the names in shapes
OTHER_SIZE = 5
FEWEST = 32  # numbers of the largest input
MOST_NUMBERS = 100_000
SMALL_STEPS = (2.0**-13, 2.0**-14, 2.0**-15)  # less than from one of so many ordinary numbers to the next
INEXACT = 0.01  # error of a gradient in few digits that is taken for right, relative to its largest number

Changed = Callable[[torch.Tensor], torch.Tensor]


def large_values(inputs: Mapping[str, Sequence[Any]], kinds: Mapping[str, str]) -> Optional[Values]:
    """Return distinct ordinary numbers of float32, or None if the shapes don't become large by the sizes in them."""
    shapes = [
        [LARGE_SIZES.get(size, OTHER_SIZE) if isinstance(size, str) else size for size in shape]
        for shape in inputs.values()
    ]
    largest = max(torch.Size(shape).numel() for shape in shapes)
    if not FEWEST <= largest <= MOST_NUMBERS:
        return None
    pairs = enumerate(zip(inputs, shapes))
    return [ordinary(shape, kinds.get(name, ""), place, digits=torch.float32) for place, (name, shape) in pairs]


class Large:
    """An operation on many numbers, with the derivative of its weighed results along one direction."""

    def __init__(self, operation: Operation, values: Values) -> None:
        self.operation = operation
        self.point = Point(LARGE, values)
        self.values = values
        self.reference = Operation(operation.function, operation.others, "cpu")
        with torch.no_grad():
            self.results = self.reference(values)
        self.given = [weights(each) for each in self.results]
        self.tangents = tangents_at(self.point)
        found = slopes(self.reference.values, values, Probes([list(self.tangents)], torch.ones(1, 1), SMALL_STEPS))
        self.along = found.kept(found.is_single).times(real_vector(self.given)[None]).sum(1)

    @property
    def is_smooth(self) -> torch.Tensor:
        """Whether each result has one derivative along the direction."""
        return self.along.is_known.reshape(1)

    def placed(self, values: Values, dtype: torch.dtype, changed: Changed) -> List[torch.Tensor]:
        return [changed(in_dtype(each, dtype).to(self.operation.device)).detach() for each in values]

    def gradients(self, dtype: torch.dtype, changed: Changed = torch.clone) -> List[torch.Tensor]:
        """Return the gradients in a dtype, on the operation's device, of inputs and given gradients in other memory."""
        leaves = [each.requires_grad_() for each in self.placed(self.values, dtype, changed)]
        return self.operation.gradients(leaves, self.placed(self.given, dtype, changed))

    def has_results(self, dtype: torch.dtype, changed: Changed) -> bool:
        """Whether the results in a dtype are those in double precision: not so eigenvalues in another order."""
        try:
            with torch.no_grad():
                found = self.operation(self.placed(self.values, dtype, changed))
        except Exception:  # such as a view that these strides don't allow
            return False
        return not beyond(found, real_vector(self.results), NATIVE * torch.finfo(dtype).eps)

    def is_right(self, found: Sequence[torch.Tensor]) -> bool:
        total = real_vector(found) @ real_vector(self.tangents)
        return bool((total >= self.along.low - SLACK) & (total <= self.along.high + SLACK))

    def backward(self) -> Judgement:
        """Go backward in double precision."""
        if not bool(self.along.is_known):
            return 0, []
        found = self.gradients(torch.float64)
        if self.is_right(found):
            return 1, []
        total = real_vector(found) @ real_vector(self.tangents)
        low, high = (display_value(side.item()) for side in self.along)
        return 1, [
            self.line(f"the gradient along a direction is {display_value(total.item())}, expected {low} to {high}")
        ]

    def natively(self, dtype: torch.dtype) -> Judgement:
        """Go backward in the target's dtype, also with gaps in memory, and with the strides of the transposed."""
        leaves = [each.clone().requires_grad_() for each in self.values]
        wide = self.reference.gradients(leaves, self.given)
        if not (bool(self.along.is_known) and self.is_right(wide)):
            return 0, []
        expected, told, count = real_vector(wide), [], 0
        for name, changed in MEMORY.items():
            if not self.has_results(dtype, changed):
                continue
            found = self.gradients(dtype, changed)
            wrong = beyond(found, expected, INEXACT)
            if wrong:
                own, wanted = (display_value(each[wrong[0]].item()) for each in (real_vector(found), expected))
                also = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
                told.append(self.line(f"the gradient{name}[{wrong[0]}] is {own}, expected {wanted}{also}"))
            count += len(expected)
        return count, told

    def line(self, text: str) -> str:
        shapes = ["x".join(map(str, each.shape)) or "a number" for each in self.values]
        others = [f"{name}={display_value(plain(value))}" for name, value in self.operation.others.items()]
        return one_line(f"{text}; {LARGE}: f({', '.join([*shapes, *others])})")


def beyond(found: Sequence[torch.Tensor], expected: torch.Tensor, error: float) -> List[int]:
    """Return the places of numbers with a larger error, relative to the largest of all; 0 if they aren't as many."""
    numbers = real_vector([on_cpu(each) for each in found])
    if numbers.shape != expected.shape:
        return [0]
    slack = error * max([1.0, *expected.abs().tolist()])
    is_right = (numbers - expected).abs() <= slack
    return [place for place, fits in enumerate(is_right.tolist()) if not fits]


MEMORY: Dict[str, Changed] = {
    "": torch.clone, " of numbers with gaps": with_gaps, " of numbers with other strides": with_other_strides,
}  # fmt: skip
