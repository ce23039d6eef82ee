"""An operation at a point, with its derivatives as differences have them, and what disagrees with those."""

from __future__ import annotations

import copy
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import torch

from conformance.worker.differences import (
    STEPS,
    WORST,
    Probes,
    Slopes,
    Values,
    along,
    by_size,
    combined,
    consistent,
    elementwise_probes,
    real_vector,
    single_probes,
    slopes,
)
from conformance.worker.operation import Operation
from conformance.worker.points import Point, weights
from conformance.worker.values import display_value, on_cpu, one_line, plain

CANCELLED = 1e-4  # relative error of a second derivative that is taken for right: their formulas cancel
ROUNDED = 1e-6  # error of a third derivative that is taken for right, relative to the largest second one
SLACK = 1e-7  # absolute error of a derivative that is taken for right, since formulas may cancel
ROUGH = 2e-3  # error of a derivative in few digits that is taken for right, relative to the largest of all
LOST = 1e-12  # absolute value of an element below which 1 + x may be 1
FAR = 1000.0  # absolute value of an element beyond which second derivatives may cancel
NARROW_COMPLEX = {torch.float64: torch.complex128, torch.float32: torch.complex64, torch.float16: torch.complex32}

Judgement = Tuple[int, List[str]]  # how many numbers were judged, and a line for what was wrong


class Jacobian:
    """Derivatives of numbers by numbers, of each by each or, if `blocks` says so, of elements by the same elements."""

    def __init__(self, found: Slopes, defined: torch.Tensor, blocks: int = 0) -> None:
        """Take the derivatives; those of a result that is not `defined`, as the mean of nothing, are not known."""
        count = found.low.shape[1] // blocks if blocks else 0
        self.found = Slopes(*(side.reshape(-1, blocks, count) for side in found)) if blocks else found
        self.defined = defined
        self.blocks = blocks

    @property
    def is_smooth(self) -> torch.Tensor:
        """For each number of the inputs whether each result that is there has one derivative by it."""
        return self.found.is_single.all(1).reshape(-1)

    def pulled(self, given: torch.Tensor) -> Slopes:
        """Return the derivatives of the results' sum, weighed with `given`, by each number of the inputs."""
        if not self.blocks:
            return self.found.times(given[None, :]).sum(1)
        return flat(self.found.times(given.reshape(1, self.blocks, -1)).sum(1))

    def pushed(self, tangent: torch.Tensor) -> Slopes:
        """Return the derivative of each number of the results in the direction `tangent`."""
        if not self.blocks:
            return self.found.times(tangent[:, None]).sum(0).kept(self.defined)
        return flat(self.found.times(tangent.reshape(len(self.found.low), 1, -1)).sum(0))


def flat(found: Slopes) -> Slopes:
    return Slopes(found.low.reshape(-1), found.high.reshape(-1))


def jacobian(
    function: Callable[[Values], torch.Tensor], point: Point, tangents: Values, is_elementwise: bool
) -> Jacobian:
    """Return the derivatives at a point; those along `tangents` tell whether the function is differentiable there."""
    whole = slopes(function, point.values, along(tangents))
    vector, defined = real_vector(tangents), function(point.values).isfinite()
    if not is_elementwise:
        found = slopes(function, point.values, single_probes(point.values))
        return Jacobian(consistent(found, whole, Jacobian(found, defined).pushed(vector)), defined)
    near, far = (
        slopes(function, point.values, elementwise_probes(point.values, relative)) for relative in (True, False)
    )
    blocks = near.low.shape[1] // point.values[0].numel()
    is_lost = torch.stack([(each.abs() < LOST) & (each != 0) for each in point.values]).repeat(1, blocks)
    near = near.kept(~(is_lost & (near.low == 0) & (near.high == 0)))  # so small that it may have been rounded away
    is_small = torch.stack([each.abs() < 1 for each in point.values]).repeat(1, blocks)
    finer = Slopes(*(torch.where(is_small, *sides) for sides in zip(near, far)))
    coarser = Slopes(*(torch.where(is_small, *sides) for sides in zip(far, near)))
    is_finite = torch.stack([each.isfinite() for each in point.values]).all(0)
    found = combined(finer, coarser).kept(is_finite.repeat(blocks))
    if len(point.values) == 1:
        return Jacobian(found, defined, blocks)
    return Jacobian(consistent(found, whole, Jacobian(found, defined, blocks).pushed(vector)), defined, blocks)


class Trial:
    """An operation at a point, with its derivatives as differences have them.

    Those along one direction come first: they tell smooth points, and whether a gradient is right, by its sum along it.
    Each derivative by each number, of which there are many, is found only where they leave it open.
    """

    def __init__(self, operation: Operation, point: Point, is_elementwise: bool) -> None:
        self.operation = operation
        self.point = point
        self.exactly = point  # in double precision, of which the derivatives are
        self.is_elementwise = is_elementwise
        self.reference = Operation(operation.function, operation.others, "cpu")
        with torch.no_grad():
            self.given = [weights(each) for each in self.reference(point.values)]
        self.numbers = real_vector(point.values).numel()
        self.slack = SLACK
        self.first_cached: Optional[Jacobian] = None
        self.second_cached: Optional[Slopes] = None
        self.along: Optional[Slopes] = None  # of the results, by the numbers of one size in each row
        self.alone_cached: Optional[Slopes] = None
        self.seconds_alone: Dict[int, Slopes] = {}
        if not is_elementwise:
            probes = by_size(point.values, self.tangents())
            found = slopes(self.reference.values, point.values, probes)
            self.along = found if bool(found.is_single.all()) else None
            self.moves = [real_vector(each) / unit for each, unit in zip(probes.directions, probes.units)]
        if self.along is None:
            self.first_cached = self.first  # now, as the function may refuse what is near the point

    @property
    def first(self) -> Jacobian:
        """The derivatives of each number of the results by each number of the inputs."""
        if self.first_cached is None:
            self.first_cached = jacobian(
                self.reference.values, self.exactly, tangents_at(self.exactly), self.is_elementwise
            )
        return self.first_cached

    @property
    def is_smooth(self) -> torch.Tensor:
        """For each number of the inputs whether each result that is there has one derivative by it."""
        return self.first.is_smooth if self.along is None else torch.ones(self.numbers, dtype=torch.bool)

    @property
    def alone(self) -> Slopes:
        """The derivatives of the results along the tangent of each input alone, in a row for each."""
        if self.alone_cached is None:
            tangents = tangents_at(self.exactly)
            moves = [
                [own if place == other else None for other in range(len(tangents))]
                for place, own in enumerate(tangents)
            ]
            self.alone_cached = slopes(
                self.reference.values, self.exactly.values, Probes(moves, torch.ones(len(moves), 1), STEPS)
            )
        return self.alone_cached

    def wrong_tangents(self, what: str, found: Sequence[torch.Tensor]) -> Judgement:
        """Return what wrong() does for the derivatives of the results in the direction of the tangents."""
        if self.along is not None:
            judgement = self.wrong(what, found, self.along.sum(0))
            if not judgement[1]:
                return judgement
            self.along = None  # one direction may not show a kink: the median of equal numbers is linear along each
        return self.wrong(what, found, self.first.pushed(real_vector(self.tangents())))

    def wrong_tangents_alone(self, what: str, found: Sequence[torch.Tensor], chosen: int) -> Judgement:
        """Return what wrong() does for the derivatives of the results in the direction of one input's tangent alone."""
        if self.along is not None:
            rows = self.alone
            judgement = self.wrong(what, found, Slopes(rows.low[chosen], rows.high[chosen]))
            if not judgement[1]:
                return judgement
            self.along = None
        alone = [own if place == chosen else torch.zeros_like(own) for place, own in enumerate(self.tangents())]
        return self.wrong(what, found, self.first.pushed(real_vector(alone)))

    def wrong_gradients(
        self, what: str, found: Sequence[torch.Tensor], given: Values, places: Optional[Sequence[int]] = None
    ) -> Judgement:
        """Return what wrong() does for gradients of the results' sum, weighed with `given`, by the inputs at places."""
        vector, chosen = real_vector(given), list(range(len(self.point.values)) if places is None else places)
        if self.along is not None:
            if self.fits(self.along, [on_cpu(each) for each in found], vector, chosen):
                return self.numbers, []
            self.along = None
        by_input = self.by_input(self.first.pulled(vector))
        return self.wrong(what, found, Slopes(*(torch.cat([side[place] for place in chosen]) for side in by_input)))

    def fits(self, along: Slopes, found: Values, vector: torch.Tensor, chosen: Sequence[int]) -> bool:
        """Whether gradients by chosen inputs have the sums along the tangents that the differences have."""
        tangents = self.tangents()
        if any(own.shape != tangents[place].shape for own, place in zip(found, chosen)):
            return False
        if len(chosen) == len(tangents):
            rows, whole = along, real_vector(found)
            sums = [whole @ move for move in self.moves]
        else:
            rows = Slopes(self.alone.low[chosen], self.alone.high[chosen])
            sums = [real_vector([own]) @ real_vector([tangents[place]]) for own, place in zip(found, chosen)]
        expected, total = rows.times(vector[None, :]).sum(1), torch.stack(sums)
        return bool(((total >= expected.low - self.slack) & (total <= expected.high + self.slack)).all())

    def exact_gradient(self) -> Slopes:
        """Return the derivative of the results' weighed sum by each number of the inputs, as near as can be."""
        if self.along is not None:
            leaves = [each.clone().requires_grad_() for each in self.point.values]
            found = self.reference.gradients(leaves, self.given)
            if self.fits(self.along, found, real_vector(self.given), range(len(found))):
                exact = real_vector(found)
                doubt = WORST * exact.abs().max() if len(exact) else 0.0
                return Slopes(exact - doubt, exact + doubt)
        return self.first.pulled(real_vector(self.given))

    def by_input(self, expected: Slopes) -> List[Sequence[torch.Tensor]]:
        sizes = [real_vector([each]).numel() for each in self.point.values]
        return [side.split(sizes) for side in expected]

    def pulled_together(self, chosen: int) -> Slopes:
        """Return the gradient of the results' sum by one number that all elements of an input are."""
        value, vector = self.point.values[chosen], real_vector(self.given)
        if self.along is None:  # at a kink, of all elements together there may be none where each alone has one
            parts = 2 if value.is_complex() else 1
            sides = [side[chosen] for side in self.by_input(self.first.pulled(vector))]
            return Slopes(*(side.reshape(parts, -1).sum(1) for side in sides))
        units = [torch.full_like(value, unit) for unit in ((1, 1j) if value.is_complex() else (1,))]
        moves = [[unit if place == chosen else None for place in range(len(self.point.values))] for unit in units]
        found = slopes(self.reference.values, self.point.values, Probes(moves, torch.ones(1, 1), STEPS))
        return found.times(vector[None, :]).sum(1)

    def spelled(self, operation: Operation) -> Trial:
        """Return the trial of another spelling of the operation, which has the same derivatives."""
        with torch.no_grad():
            shapes = [each.shape for each in Operation(operation.function, operation.others, "cpu")(self.point.values)]
        if shapes != [each.shape for each in self.given]:
            return Trial(operation, self.point, self.is_elementwise)
        other = copy.copy(self)
        other.operation = operation
        return other

    def narrowed(self, dtype: torch.dtype, *, from_values: bool = False) -> Trial:
        """Return the trial of the same numbers in another dtype, whose derivatives are roughly those of this one.

        How roughly is known by the second derivatives, too, unless it is to be known from the values alone.
        """
        exact = self.first.pulled(real_vector(self.given)) if from_values else self.exact_gradient()
        expected = [exact] if from_values else [self.second(), exact]
        known = torch.cat([bigger(each)[each.is_known] for each in expected])
        other = copy.copy(self)
        other.point = Point(self.point.name, [in_dtype(each, dtype) for each in self.point.values])
        other.given = [in_dtype(each, dtype) for each in self.given]
        other.slack = ROUGH * max([1.0, *known.tolist()])
        return other

    def second(self) -> Slopes:
        """Return the derivative of the gradients in the direction of the tangents, where there are gradients.

        That is also the gradient of the gradients, weighed with the tangents: their Jacobian is symmetric.
        """
        if self.second_cached is None:
            tangents = self.tangents()
            if self.is_elementwise:
                found = jacobian(self.cpu_gradients, self.point, tangents, True)
                second = found.pushed(real_vector(tangents)).kept(self.is_near())
            else:
                found_along = slopes(self.cpu_gradients, self.point.values, along(tangents))
                second = Slopes(found_along.low[0], found_along.high[0])
                second = second.kept(second.is_single)  # of several kinks one direction shows two sides of many
            second = second.kept(self.is_smooth)
            doubt = CANCELLED * bigger(second)
            self.second_cached = Slopes(second.low - doubt, second.high + doubt)
        return self.second_cached

    def second_alone(self, chosen: int) -> Slopes:
        """Return the derivative of the gradients in the direction of one input's tangent alone."""
        if chosen in self.seconds_alone:
            return self.seconds_alone[chosen]
        moves: List[Optional[torch.Tensor]] = [None] * len(self.point.values)
        moves[chosen] = self.tangents()[chosen]
        found = slopes(self.cpu_gradients, self.point.values, Probes([moves], torch.ones(1, 1), STEPS))
        second = Slopes(found.low[0], found.high[0])
        second = second.kept(second.is_single & self.is_smooth)
        doubt = CANCELLED * bigger(second)
        self.seconds_alone[chosen] = Slopes(second.low - doubt, second.high + doubt)
        return self.seconds_alone[chosen]

    def third(self, second: Sequence[torch.Tensor]) -> Slopes:
        """Return the derivative of the gradient of the gradient in the direction of the tangents, where that is right.

        Of what is wrong itself the derivatives say nothing.
        """
        known, vector = self.second(), real_vector([on_cpu(each) for each in second])
        is_right = known.is_known & (vector >= known.low - self.slack) & (vector <= known.high + self.slack)
        found = slopes(self.cpu_second_gradients, self.point.values, along(self.tangents()))
        third = Slopes(found.low[0], found.high[0])
        third = third.kept(third.is_single & bool(is_right.all()))
        doubt = CANCELLED * bigger(third) + ROUNDED * vector.abs().max() if len(vector) else 0.0
        return Slopes(third.low - doubt, third.high + doubt)

    def is_near(self) -> torch.Tensor:
        """Where an element of each input is so small that second derivatives do not cancel."""
        near = torch.stack([each.abs() <= FAR for each in self.point.values]).all(0)
        return near.repeat(len(self.point.values))

    def cpu_gradients(self, values: Values) -> torch.Tensor:
        leaves = [each.clone().requires_grad_() for each in values]
        return real_vector(self.reference.gradients(leaves, self.given))

    def cpu_second_gradients(self, values: Values) -> torch.Tensor:
        leaves = [each.clone().requires_grad_() for each in values]
        return real_vector(second_gradients(self.reference, leaves, self.given, self.tangents()))

    def leaves(self) -> List[torch.Tensor]:
        return [each.to(self.operation.device, copy=True).requires_grad_() for each in self.point.values]

    def on_device(self, values: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        return [each.to(self.operation.device, copy=True) for each in values]

    def tangents(self) -> Values:
        return tangents_at(self.point)

    def wrong(self, what: str, found: Sequence[torch.Tensor], expected: Slopes) -> Judgement:
        """Return how many numbers of tensors could be judged, and a line for the first that is not as expected."""
        vector = real_vector([on_cpu(each) for each in found])
        if vector.shape != expected.low.shape:
            return 1, [self.line(f"{what} has {vector.numel()} numbers, expected {expected.low.numel()}")]
        known = expected.is_known
        fits = (vector >= expected.low - self.slack) & (vector <= expected.high + self.slack)
        places = (known & ~fits).nonzero().reshape(-1).tolist()
        if not places:
            return int(known.sum()), []
        first = places[0]
        low, high = expected.low[first].item(), expected.high[first].item()
        wanted = display_value(low) if low == high or abs(high - low) < 1e-5 * abs(high) else f"{low:.7g} to {high:.7g}"
        also = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
        where, own = self.named(first, vector.numel())
        return 1, [self.line(f"{what}{where} is {display_value(vector[first].item())}, expected {wanted}{also}", own)]

    def named(self, place: int, count: int) -> Tuple[str, Optional[int]]:
        """Return the place of a number in words, and for an elementwise operation the element that it belongs to."""
        if not self.is_elementwise:
            return (f"[{place}]" if count > 1 else ""), None
        each = self.point.values[0].numel()
        return (f"[{place // each}]" if count > each else ""), place % each

    def line(self, text: str, element: Optional[int] = None) -> str:
        values = [each if element is None else each.reshape(-1)[element] for each in self.point.values]
        given = [each if element is None else each.reshape(-1)[element] for each in self.given]
        others = [f"{name}={display_value(plain(value))}" for name, value in self.operation.others.items()]
        shown = ", ".join([*(display_value(plain(value)) for value in values), *others])
        weighed = ", ".join(display_value(plain(value)) for value in given)
        name = f"{self.point.name}: " if self.point.name else ""
        return one_line(f"{text}; {name}f({shown}), g = {weighed}")


def second_gradients(
    operation: Operation, leaves: Sequence[torch.Tensor], given: Values, tangents: Values
) -> List[torch.Tensor]:
    """Return the gradient of the gradients, weighed with the tangents, recorded for the next one."""
    found = operation.gradients(leaves, given, create_graph=True)
    pairs = [(each, own) for each, own in zip(found, tangents) if each.requires_grad]
    if not pairs:
        return [torch.zeros_like(leaf) for leaf in leaves]
    ends, own = zip(*pairs)
    second = torch.autograd.grad(ends, leaves, own, create_graph=True, allow_unused=True)
    return [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, second)]


def tangents_at(point: Point) -> Values:
    return [weights(each, 2 + place) for place, each in enumerate(point.values)]


def in_dtype(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor in a real dtype, or a complex one in the dtype whose parts are of it."""
    return tensor.to(NARROW_COMPLEX[dtype] if tensor.is_complex() else dtype)


def bigger(found: Slopes) -> torch.Tensor:
    return torch.maximum(found.low.abs(), found.high.abs())
