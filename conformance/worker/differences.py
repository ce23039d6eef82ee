"""Derivatives by differences: what the values of a function say of its derivatives, and how sure that is.

A derivative comes from central differences with steps that are halved, extrapolated to a step of 0 (Richardson's
method); the disagreement of the extrapolations is the error. Where the derivatives from the left and from the right
differ, any number between them is a subgradient. Where the differences do not converge, nothing is known.
"""

from __future__ import annotations

import itertools
import math
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

# Step sizes in units of a probe, each half of the one before.
STEPS = tuple(2.0**-level for level in range(5, 8))
MORE_STEPS = tuple(2.0**-level for level in range(2, 8))
EPS = torch.finfo(torch.float64).eps
INACCURATE = (
    1e-6  # relative error of a derivative that is taken for right: some functions are not better in double precision
)
SINGLE = 1e-8  # how far bounds of a derivative near 0 may be apart where there is no kink
ALIKE = 32.0  # ratio of sizes up to which numbers are moved by the same
WORST = 1e-5  # a derivative with a larger error, relative to its size, counts as unknown

Values = List[torch.Tensor]  # on the CPU, in double precision


Direction = List[Optional[torch.Tensor]]  # how far each input is moved; None is not at all

# Directions, what the derivatives along each are divided by (a row for each), and the steps.
Probes = NamedTuple("Probes", [("directions", List[Direction]), ("units", torch.Tensor), ("steps", Tuple[float, ...])])


class Slopes(NamedTuple("Slopes", [("low", torch.Tensor), ("high", torch.Tensor)])):
    """Bounds of derivatives, each of shape (probes, outputs): infinite where nothing is known."""

    def times(self, weights: torch.Tensor) -> Slopes:
        """Return the slopes multiplied by weights of a shape that fits; what is unknown becomes nan or infinite."""
        low, high = self.low * weights, self.high * weights
        return Slopes(torch.minimum(low, high), torch.maximum(low, high))

    def sum(self, dim: int) -> Slopes:
        low, high = self.low.sum(dim), self.high.sum(dim)
        return Slopes(low, high).kept(low.isfinite() & high.isfinite())  # inf - inf is nan

    def kept(self, chosen: torch.Tensor) -> Slopes:
        """Return the slopes where `chosen` is true; of others nothing is known."""
        everything = torch.full_like(self.low, math.inf)
        return Slopes(torch.where(chosen, self.low, -everything), torch.where(chosen, self.high, everything))

    @property
    def is_known(self) -> torch.Tensor:
        return self.low.isfinite() & self.high.isfinite()

    @property
    def is_single(self) -> torch.Tensor:
        """Where one number is known, and not bounds of several: there is no kink."""
        sizes = torch.maximum(self.low.abs(), self.high.abs())
        return self.is_known & (self.high - self.low <= 0.01 * sizes + SINGLE)


def real_vector(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return all numbers of tensors in one vector of float64 on the CPU: of complex ones first all real parts."""
    if len(tensors) == 1 and tensors[0].dtype is torch.float64 and tensors[0].is_cpu:
        return tensors[0].detach().reshape(-1)
    flat = [
        (part if part.dtype is torch.float64 and part.device.type == "cpu" else part.to("cpu", torch.float64)).reshape(
            -1
        )
        for each in tensors
        for part in ((each.detach().real, each.detach().imag) if each.is_complex() else (each.detach(),))
    ]
    return flat[0] if len(flat) == 1 else torch.cat(flat) if flat else torch.zeros(0, dtype=torch.float64)


def magnitude(values: torch.Tensor) -> torch.Tensor:
    """Return a power of two near the absolute value of each element, and 1 for 0."""
    size = values.abs().double()
    return torch.exp2(torch.where(size == 0, torch.ones_like(size), size).log2().round())


def along(directions: Values) -> Probes:
    """Return the probe that moves all inputs at once."""
    return Probes([list(directions)], torch.ones(1, 1), STEPS)


def by_size(values: Values, directions: Values) -> Probes:
    """Return probes that move all numbers near 1 at once, all that are far bigger, and in small steps the far smaller.

    The derivatives are those by the parts of `directions`, which is their sum.
    """
    sizes = [magnitude(value) for value in values]
    found: List[Direction] = []
    units = []
    for least, beyond, unit in ((1 / ALIKE, ALIKE, 1.0), (ALIKE, math.inf, 1.0), (0.0, 1 / ALIKE, 1 / ALIKE**2)):
        chosen = [(size >= least) & (size < beyond) for size in sizes]
        if any(map(torch.any, chosen)) or not (least or found):
            found.append([move * unit * own for move, own in zip(directions, chosen)])
            units.append(unit)
    return Probes(found, torch.tensor(units, dtype=torch.float64)[:, None], STEPS)


def single_probes(values: Values) -> Probes:
    """Return a probe for each number of the inputs, in the order of `real_vector`, in steps smaller than the number."""
    directions: List[Direction] = []
    units = []
    for index, value in enumerate(values):
        sizes = magnitude(value).clamp(max=1).reshape(-1)
        for unit, place in itertools.product([1.0, 1j] if value.is_complex() else [1.0], range(value.numel())):
            moved = torch.zeros(value.numel(), dtype=value.dtype)
            moved[place] = unit * sizes[place].item()
            directions.append([moved.reshape(value.shape) if other == index else None for other in range(len(values))])
            units.append(sizes[place])
    return Probes(directions, torch.stack(units)[:, None] if units else torch.ones(0, 1), STEPS)


def elementwise_probes(values: Values, relative: bool) -> Probes:
    """Return a probe for each input that moves all of its elements, by as much as they are or by 1."""
    sizes = [magnitude(each) if relative else torch.ones(each.shape, dtype=torch.float64) for each in values]
    directions: List[Direction] = [
        [size.to(value.dtype) if other == index else None for other in range(len(values))]
        for index, (value, size) in enumerate(zip(values, sizes))
    ]
    return Probes(directions, torch.stack([size.reshape(-1) for size in sizes]), MORE_STEPS)


def moved_by(values: Values, direction: Direction, steps: Sequence[float]) -> Iterator[Values]:
    """Yield values that are moved along a direction by each step, first forth and then back."""
    signed = torch.tensor([*steps, *(-step for step in steps)], dtype=torch.float64)
    sides = [
        [value] * len(signed) if move is None else (value + signed.reshape(-1, *[1] * value.dim()) * move).unbind(0)
        for value, move in zip(values, direction)
    ]
    return map(list, zip(*sides))


def slopes(function: Callable[[Values], torch.Tensor], values: Values, probes: Probes) -> Slopes:
    """Return the derivatives of `function`, which returns a vector of float64, in the direction of each probe."""
    middle = function(values)
    steps, count = probes.steps, len(probes.directions)
    if not count or not middle.numel():
        none = torch.zeros(count, middle.numel(), dtype=torch.float64)
        return Slopes(none, none)
    found = [function(each) for direction in probes.directions for each in moved_by(values, direction, steps)]
    sides = torch.stack(found).reshape(count, 2, len(steps), -1)
    plus, minus = sides.unbind(1)
    step = torch.tensor(steps, dtype=torch.float64)[:, None]
    size = torch.maximum(middle.abs(), sides.abs().amax((1, 2)))
    best, error = extrapolated((plus - minus) / (2 * step), step, size)
    doubt = 20 * error + INACCURATE * best.abs()
    low, high = best - doubt, best + doubt
    known = error <= WORST * torch.maximum(best.abs(), WORST * size)
    before, bend = ((plus - 2 * middle + minus).abs() / step)[:, -2:].unbind(1)
    is_bent = (bend > 0.6 * before) & (bend > 32 * EPS * size / steps[-1])
    if bool(is_bent.any()):
        right_before, right = ((plus - middle) / step)[:, -2:].unbind(1)
        left_before, left = ((middle - minus) / step)[:, -2:].unbind(1)
        steepest = torch.maximum(right.abs(), left.abs())
        is_bent &= bend > 1e-5 * steepest
        unsettled = torch.maximum((right - right_before).abs(), (left - left_before).abs())
        is_broken = is_bent & ((bend > 1.3 * before) | (unsettled > 0.1 * steepest))
        slack = 0.02 * steepest
        low = torch.where(is_bent, torch.minimum(right, left) - slack, low)
        high = torch.where(is_bent, torch.maximum(right, left) + slack, high)
        known = (known | is_bent) & ~is_broken
    unit = probes.units.repeat(1, middle.numel() // probes.units.shape[1])
    return Slopes(low / unit, high / unit).kept(known & low.isfinite() & high.isfinite() & size.isfinite())


def extrapolated(central: torch.Tensor, step: torch.Tensor, size: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """Return the limit of central differences whose steps are halved, and an estimate of its error.

    `central` is of shape (probes, steps, outputs), `step` of (steps, 1), `size` and what is returned (probes, outputs).
    """
    noise = 4 * EPS * size[:, None] / step
    noise[:, :-3] = math.inf  # steps that skip over what is between them could converge early
    found, errors = [], []
    row = central
    for order in range(1, len(step)):
        finer, coarser = row[:, 1:], row[:, :-1]
        row = finer + (finer - coarser) / (4**order - 1)
        found.append(row)
        errors.append(torch.maximum((row - finer).abs(), (row - coarser).abs()) + noise[:, order:])
    error = torch.cat(errors, 1)
    error, places = torch.where(error.isnan(), math.inf, error).min(1, keepdim=True)
    return torch.cat(found, 1).gather(1, places).squeeze(1), error.squeeze(1)


def combined(finer: Slopes, coarser: Slopes) -> Slopes:
    """Return the narrower bounds of two ways to find them; where they contradict each other nothing is known."""
    known = finer.is_known
    contradict = known & coarser.is_known & ((coarser.low > finer.high) | (coarser.high < finer.low))
    narrower = known & ~contradict & coarser.is_known & ((coarser.high - coarser.low) < (finer.high - finer.low))
    everything = torch.full_like(finer.low, math.inf)
    low = torch.where(narrower, coarser.low, torch.where(contradict, -everything, finer.low))
    return Slopes(low, torch.where(narrower, coarser.high, torch.where(contradict, everything, finer.high)))


def consistent(partial: Slopes, whole: Slopes, total: Slopes) -> Slopes:
    """Return the partial derivatives of those results whose derivative along a direction is the sum of theirs.

    Of others nothing is known: there the function is not differentiable, although it has partial derivatives. `partial`
    has the inputs in its first dimension, `whole` is the derivative in that direction and `total` the sum.
    """
    slack = 1e-4 * (total.high.abs() + total.low.abs()) + 1e-9
    fits = whole.is_known & (whole.low >= total.low - slack) & (whole.high <= total.high + slack)
    return partial.kept(fits)
