"""Differentiates an operation at its hard points in all ways that must agree, and compares with differences.

The derivatives of the first order are held to differences of the operation's values in double precision on the CPU, those
of the second order to differences of the gradients. A way that this torch or device has not implemented is left out and
said so; a point where the differences do not settle is not judged.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch

from conformance.worker.differences import (
    Probe,
    Slopes,
    combined,
    consistent,
    Values,
    elementwise_probes,
    real_vector,
    single_probes,
    slopes,
)
from conformance.worker.lacking import message_of
from conformance.worker.points import Point, elementwise_point, ordinary, points, weights
from conformance.worker.values import Unobservable, display_value, on_cpu, one_line, plain

CANCELLED = 1e-4  # relative error of a second derivative that is taken for right: their formulas cancel
SLACK = 1e-7  # absolute error of a derivative that is taken for right, since formulas may cancel
MOST_TOLD = 4  # disagreements of one way
NATIVE = 64  # rounding errors, by which a result in a narrow dtype may differ
FAR = 1000.0  # absolute value of an element beyond which second derivatives may cancel
ORDINARY = (0.05, 10.0)  # absolute values of elements at which formulas do not cancel or overflow in few digits
NARROW_COMPLEX = {torch.float32: torch.complex64, torch.float16: torch.complex32}
MISSING = re.compile(r"(?:has|have) not been implemented|is not implemented|not implemented for|not currently support")
Others = Mapping[str, Any]


class Operation:
    """A function of tensors with its other arguments, on a device."""

    def __init__(self, function: Callable[..., Any], others: Others, device: str) -> None:
        self.function = function
        self.others = others
        self.device = device

    def __call__(self, values: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        """Return the results that can have derivatives."""
        wide = values[0].dtype
        others = {name: placed(value, self.device, wide) for name, value in self.others.items()}
        found = self.function(*values, **others)
        results = list(found) if isinstance(found, (list, tuple)) else [found]
        tensors = [each for each in results if isinstance(each, torch.Tensor)]
        return [each for each in tensors if each.is_floating_point() or each.is_complex()]

    def values(self, values: Values) -> torch.Tensor:
        """Return the numbers of the results as a vector."""
        with torch.no_grad():
            return real_vector(self(values))

    def gradients(
        self, leaves: Sequence[torch.Tensor], given: Sequence[torch.Tensor], create_graph: bool = False
    ) -> List[torch.Tensor]:
        """Return the gradient of each leaf, zeros where it has none, for given gradients of the results."""
        results = self(leaves)
        pairs = [(result, own) for result, own in zip(results, given) if result.requires_grad]  # noqa: B905 - Python 3.8
        if not pairs:
            return [torch.zeros_like(leaf) for leaf in leaves]
        ends, own = zip(*pairs)  # noqa: B905 - Python 3.8
        found = torch.autograd.grad(ends, leaves, own, create_graph=create_graph, allow_unused=True)
        return [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, found)]  # noqa: B905


def placed(value: Any, device: str, dtype: torch.dtype) -> Any:
    """Return an argument on a device, numbers of tensors in the precision of `dtype`."""
    if isinstance(value, (list, tuple)):
        return type(value)(placed(each, device, dtype) for each in value)
    if not isinstance(value, torch.Tensor):
        return value
    is_real = value.is_floating_point()
    return value.to(device, (torch.empty(0, dtype=dtype).real.dtype if dtype.is_complex else dtype) if is_real else None)


class Jacobian:
    """Derivatives of numbers by numbers, of each by each or, if `blocks` says so, of elements by the same elements."""

    def __init__(self, found: Slopes, blocks: int = 0) -> None:
        count = found.low.shape[1] // blocks if blocks else 0
        self.found = Slopes(*(side.reshape(-1, blocks, count) for side in found)) if blocks else found
        self.blocks = blocks

    def pulled(self, given: torch.Tensor) -> Slopes:
        """Return the derivatives of the results' sum, weighed with `given`, by each number of the inputs."""
        if not self.blocks:
            return self.found.times(given[None, :]).sum(1)
        return flat(self.found.times(given.reshape(1, self.blocks, -1)).sum(1))

    def pushed(self, tangent: torch.Tensor) -> Slopes:
        """Return the derivative of each number of the results in the direction `tangent`."""
        if not self.blocks:
            return self.found.times(tangent[:, None]).sum(0)
        return flat(self.found.times(tangent.reshape(len(self.found.low), 1, -1)).sum(0))


def flat(found: Slopes) -> Slopes:
    return Slopes(found.low.reshape(-1), found.high.reshape(-1))


def jacobian(
    function: Callable[[Values], torch.Tensor], point: Point, tangents: Values, is_elementwise: bool
) -> Jacobian:
    """Return the derivatives at a point; those along `tangents` tell whether the function is differentiable there."""
    along = slopes(function, point.values, [Probe(tangents, torch.ones(1))])
    vector = real_vector(tangents)
    if not is_elementwise:
        found = slopes(function, point.values, single_probes(point.values))
        return Jacobian(consistent(found, along, Jacobian(found).pushed(vector)))
    near, far = (slopes(function, point.values, elementwise_probes(point.values, relative)) for relative in (True, False))
    blocks = near.low.shape[1] // point.values[0].numel()
    is_small = torch.stack([each.abs() < 1 for each in point.values]).repeat(1, blocks)
    finer = Slopes(*(torch.where(is_small, *sides) for sides in zip(near, far)))  # noqa: B905 - Python 3.8
    coarser = Slopes(*(torch.where(is_small, *sides) for sides in zip(far, near)))  # noqa: B905 - Python 3.8
    found = combined(finer, coarser)
    if len(point.values) == 1:
        return Jacobian(found, blocks)
    return Jacobian(consistent(found, along, Jacobian(found, blocks).pushed(vector)), blocks)


class Found:
    """What derivatives() found: for each way the disagreements, each in a line."""

    def __init__(self) -> None:
        self.told: Dict[str, List[str]] = {way: [] for way in WAYS}
        self.missing: Dict[str, str] = {}
        self.judged: Dict[str, int] = dict.fromkeys(WAYS, 0)

    def __getitem__(self, way: str) -> List[str]:
        """Raises Unobservable if nothing can be said of that way."""
        told = self.told[way]
        if not told and not self.judged[way]:
            raise Unobservable(self.missing.get(way, "no point could be judged"))
        return told[:MOST_TOLD] + [f"and {len(told) - MOST_TOLD} more"] * (len(told) > MOST_TOLD)


class Trial:
    """An operation at a point, with its derivatives as differences have them."""

    def __init__(self, operation: Operation, point: Point, is_elementwise: bool) -> None:
        self.operation = operation
        self.point = point
        self.is_elementwise = is_elementwise
        self.reference = Operation(operation.function, operation.others, "cpu")
        with torch.no_grad():
            self.given = [weights(each) for each in self.reference(point.values)]
        self.first = jacobian(self.reference.values, point, self.tangents(), is_elementwise)
        self.numbers = real_vector(point.values).numel()
        self.second_cached: Optional[Slopes] = None

    def second(self) -> Slopes:
        """Return the derivative of the gradients in the direction of the tangents.

        That is also the gradient of the gradients, weighed with the tangents: their Jacobian is symmetric.
        """
        if self.second_cached is None:
            tangents = self.tangents()
            if self.is_elementwise:
                found = jacobian(self.cpu_gradients, self.point, tangents, True)
                second = found.pushed(real_vector(tangents)).where(self.is_near())
            else:
                along = slopes(self.cpu_gradients, self.point.values, [Probe(tangents, torch.ones(1))])
                second = Slopes(along.low[0], along.high[0])
            doubt = CANCELLED * bigger(second)
            self.second_cached = Slopes(second.low - doubt, second.high + doubt)
        return self.second_cached

    def is_near(self) -> torch.Tensor:
        """Where an element of each input is so small that second derivatives do not cancel."""
        near = torch.stack([each.abs() <= FAR for each in self.point.values]).all(0)
        return near.repeat(len(self.point.values))

    def cpu_gradients(self, values: Values) -> torch.Tensor:
        leaves = [each.clone().requires_grad_() for each in values]
        return real_vector(self.reference.gradients(leaves, self.given))

    def leaves(self) -> List[torch.Tensor]:
        return [each.to(self.operation.device, copy=True).requires_grad_() for each in self.point.values]

    def on_device(self, values: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        return [each.to(self.operation.device) for each in values]

    def tangents(self, seed: int = 2) -> Values:
        return [weights(each, seed + place) for place, each in enumerate(self.point.values)]

    def wrong(self, what: str, found: Sequence[torch.Tensor], expected: Slopes) -> Tuple[int, List[str]]:
        """Return how many numbers of tensors could be judged, and a line for the first that is not as expected."""
        vector = real_vector([on_cpu(each) for each in found])
        if vector.shape != expected.low.shape:
            return 1, [self.line(f"{what} has {vector.numel()} numbers, expected {expected.low.numel()}")]
        known = expected.is_known
        fits = (vector >= expected.low - SLACK) & (vector <= expected.high + SLACK)
        places = (known & ~fits).nonzero().reshape(-1).tolist()
        if not places:
            return int(known.sum()), []
        first = places[0]
        low, high = expected.low[first].item(), expected.high[first].item()
        wanted = display_value(low) if low == high or abs(high - low) < 1e-5 * abs(high) else f"{low:.7g} to {high:.7g}"  # noqa: PLR2004
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


USUAL = "ordinary"
Judgement = Tuple[int, List[str]]
Way = Callable[[Trial], Judgement]


def joined(judgements: Iterator[Judgement]) -> Judgement:
    counts, lines = 0, []
    for count, told in judgements:
        counts += count
        lines += told
    return counts, lines


def backward(trial: Trial) -> Judgement:
    leaves = trial.leaves()
    found = trial.operation.gradients(leaves, trial.on_device(trial.given))
    count, told = trial.wrong("the gradient", found, trial.first.pulled(real_vector(trial.given)))
    for leaf, each in zip(leaves, found):  # noqa: B905 - Python 3.8
        facts = [(each.shape, leaf.shape), (each.dtype, leaf.dtype), (each.device, leaf.device), (each.layout, leaf.layout)]
        told += [trial.line(f"the gradient has {own}, expected {wanted}") for own, wanted in facts if own != wanted]
    return count, told


def some_inputs(trial: Trial) -> Judgement:
    """Each set of the inputs alone requires grad: the gradients are the same, the others get none."""
    expected = trial.first.pulled(real_vector(trial.given))
    sizes = [real_vector([each]).numel() for each in trial.point.values]
    lows, highs = expected.low.split(sizes), expected.high.split(sizes)

    def of(chosen: Sequence[int]) -> Judgement:
        values = trial.on_device(trial.point.values)
        leaves = [each.clone().requires_grad_(place in chosen) for place, each in enumerate(values)]
        results = trial.operation(leaves)
        pairs = [(end, own) for end, own in zip(results, trial.on_device(trial.given)) if end.requires_grad]  # noqa: B905
        if pairs:
            torch.autograd.backward([end for end, _ in pairs], [own for _, own in pairs])
        told = [
            trial.line(f"input {place} does not require grad and has a gradient")
            for place, leaf in enumerate(leaves) if place not in chosen and leaf.grad is not None
        ]  # fmt: skip
        found = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
        kept = [found[place] for place in chosen]
        bounds = Slopes(torch.cat([lows[place] for place in chosen]), torch.cat([highs[place] for place in chosen]))
        count, wrong = trial.wrong(f"the gradient of inputs {list(chosen)} alone", kept, bounds)
        return count, told + wrong

    places = range(len(sizes))
    return joined(of(chosen) for size in places[1:] for chosen in itertools.combinations(places, size))


def forward_mode(trial: Trial) -> Judgement:
    tangents = trial.tangents()
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        duals = [forward.make_dual(*pair) for pair in zip(trial.on_device(trial.point.values), trial.on_device(tangents))]  # noqa: B905
        parts = [forward.unpack_dual(each) for each in trial.operation(duals)]
        found = [torch.zeros_like(part.primal) if part.tangent is None else part.tangent for part in parts]
        return trial.wrong("the tangent", found, trial.first.pushed(real_vector(tangents)))


def backward_twice(trial: Trial) -> Judgement:
    leaves = trial.leaves()
    given = [each.clone().requires_grad_() for each in trial.on_device(trial.given)]
    found = trial.operation.gradients(leaves, given, create_graph=True)
    tangents = trial.tangents()
    pairs = [(each, own) for each, own in zip(found, trial.on_device(tangents)) if each.requires_grad]  # noqa: B905
    inputs = [*leaves, *given]
    second: Sequence[Optional[torch.Tensor]] = [None] * len(inputs)
    if pairs:
        ends, own = zip(*pairs)  # noqa: B905 - Python 3.8
        second = torch.autograd.grad(ends, inputs, own, allow_unused=True)
    filled = [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(inputs, second)]  # noqa: B905
    vector = real_vector(tangents)
    return joined(iter([
        trial.wrong("the gradient of the gradient", filled[: len(leaves)], trial.second()),
        trial.wrong("the gradient by the given gradient", filled[len(leaves) :], trial.first.pushed(vector)),
    ]))  # fmt: skip


def forward_over_backward(trial: Trial) -> Judgement:
    tangents = trial.tangents()
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        duals = [forward.make_dual(*pair) for pair in zip(trial.leaves(), trial.on_device(tangents))]  # noqa: B905
        found = trial.operation.gradients(duals, trial.on_device(trial.given), create_graph=True)
        parts = [forward.unpack_dual(each) for each in found]
        second = [torch.zeros_like(part.primal) if part.tangent is None else part.tangent for part in parts]
        return trial.wrong("the tangent of the gradient", second, trial.second())


def backward_over_forward(trial: Trial) -> Judgement:
    tangents = trial.tangents()
    leaves = trial.leaves()
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        duals = [forward.make_dual(*pair) for pair in zip(leaves, trial.on_device(tangents))]  # noqa: B905
        parts = [forward.unpack_dual(each) for each in trial.operation(duals)]
        pairs = [
            (part.tangent, own) for part, own in zip(parts, trial.on_device(trial.given))  # noqa: B905 - Python 3.8
            if part.tangent is not None and part.tangent.requires_grad
        ]  # fmt: skip
        found: Sequence[Optional[torch.Tensor]] = [None] * len(leaves)
        if pairs:
            ends, own = zip(*pairs)  # noqa: B905 - Python 3.8
            found = torch.autograd.grad(ends, leaves, own, allow_unused=True)
    filled = [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, found)]  # noqa: B905
    return trial.wrong("the gradient of the tangent", filled, trial.second())


def batched_gradients(trial: Trial) -> Judgement:
    """Several gradients are given at once, and each result is that of its own."""
    rows = [[weights(each, seed) for each in trial.given] for seed in (0, 4)]
    leaves = trial.leaves()
    results = trial.operation(leaves)
    stacked = [torch.stack(each).to(trial.operation.device) for each in zip(*rows)]  # noqa: B905 - Python 3.8
    pairs = [(end, own) for end, own in zip(results, stacked) if end.requires_grad]  # noqa: B905 - Python 3.8
    if not pairs:
        return 0, []
    ends, own = zip(*pairs)  # noqa: B905 - Python 3.8
    found = torch.autograd.grad(ends, leaves, own, is_grads_batched=True, allow_unused=True)
    filled = [torch.zeros(2, *leaf.shape, dtype=leaf.dtype) if each is None else each for leaf, each in zip(leaves, found)]  # noqa: B905
    return joined(
        trial.wrong(f"row {place} of the gradients", [each[place] for each in filled], trial.first.pulled(real_vector(row)))
        for place, row in enumerate(rows)
    )


def incoming_gradients(trial: Trial) -> Judgement:
    """The given gradient is expanded, has strides of its own, or is zero."""

    def of(name: str, given: Values) -> Judgement:
        leaves = trial.leaves()
        found = trial.operation.gradients(leaves, trial.on_device(given) if name != "expanded" else expanded(given))
        return trial.wrong(f"the gradient for one that is {name}", found, trial.first.pulled(real_vector(given)))

    def expanded(given: Values) -> Values:
        return [torch.ones((), dtype=each.dtype, device=trial.operation.device).expand(each.shape) for each in given]

    return joined(iter([
        of("expanded", [torch.ones_like(each) for each in trial.given]),
        of("zero", [torch.zeros_like(each) for each in trial.given]),
        of("transposed", [with_other_strides(each) for each in trial.given]),
        of("every second of another", [with_gaps(each) for each in trial.given]),
    ]))  # fmt: skip


def with_other_strides(tensor: torch.Tensor) -> torch.Tensor:
    order = list(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def with_gaps(tensor: torch.Tensor) -> torch.Tensor:
    wide = torch.zeros(*tensor.shape, 2, dtype=tensor.dtype, device=tensor.device)
    wide[..., 1] = tensor
    return wide[..., 1]


def negated_bit(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same numbers in a tensor that notes that its memory is negated."""
    return torch._neg_view(-tensor)


def memory(trial: Trial) -> Judgement:
    """The inputs have other strides, an offset, or numbers whose sign or conjugation is only noted."""
    ways: List[Callable[[torch.Tensor], torch.Tensor]] = [with_other_strides, with_gaps, negated_bit]
    if all(each.dim() == 4 for each in trial.point.values[:1]):  # noqa: PLR2004 - images
        ways.append(lambda each: each.contiguous(memory_format=torch.channels_last) if each.dim() == 4 else each)  # noqa: PLR2004
    if any(each.is_complex() for each in trial.point.values):
        ways.append(lambda each: each.conj().resolve_conj().conj() if each.is_complex() else each)

    def of(way: Callable[[torch.Tensor], torch.Tensor]) -> Judgement:
        leaves = [way(each).detach().requires_grad_() for each in trial.on_device(trial.point.values)]
        found = trial.operation.gradients(leaves, trial.on_device(trial.given))
        return trial.wrong(f"the gradient {named_way(way)}", found, trial.first.pulled(real_vector(trial.given)))

    return joined(map(of, ways))


def named_way(way: Any) -> str:
    return {"with_other_strides": "with other strides", "with_gaps": "with gaps", "negated_bit": "of negated memory"}.get(
        way.__name__, "in another memory format"
    )


def writes(trial: Trial) -> Judgement:
    """Inputs and results are written to before backward, which must notice it or need none of them."""
    expected = trial.first.pulled(real_vector(trial.given))

    def of(which: int) -> Judgement:
        leaves = trial.leaves()
        inner = [leaf * 1 for leaf in leaves]
        results = trial.operation(inner)
        written = [*inner, *results][which]
        if not all(each.requires_grad for each in results):
            return 0, []
        try:
            with torch.no_grad():
                written.mul_(0.5).add_(0.25)
        except RuntimeError:
            return 0, []  # such as an expanded result
        try:
            found = torch.autograd.grad(results, leaves, trial.on_device(trial.given), allow_unused=True)
        except RuntimeError:
            return 1, []
        filled = [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, found)]  # noqa: B905
        name = f"input {which}" if which < len(inner) else f"result {which - len(inner)}"
        return trial.wrong(f"{name} was written to, unnoticed, and the gradient", filled, expected)

    return joined(map(of, range(len(trial.point.values) + len(trial.given))))


def natively(trial: Trial, dtype: torch.dtype) -> Judgement:
    """In the target's dtype the gradient is that in double precision of the same numbers, but for rounding.

    The error may be a few roundings of the result, of the given gradient, and of the inputs: what those change is seen
    from the second derivatives.
    """

    def narrow(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(NARROW_COMPLEX[dtype] if tensor.is_complex() else dtype)

    rounded = Point(trial.point.name, [narrow(each).to(each.dtype) for each in trial.point.values])
    exact = Trial(trial.operation, rounded, trial.is_elementwise)
    given = [narrow(each) for each in exact.given]
    exact.given = [own.to(each.dtype) for own, each in zip(given, exact.given)]  # noqa: B905 - Python 3.8
    leaves = [narrow(each).to(trial.operation.device).requires_grad_() for each in rounded.values]
    found = exact.operation.gradients(leaves, [each.to(trial.operation.device) for each in given])
    bounds, curved = exact.first.pulled(real_vector(exact.given)), exact.second()
    spread = bigger(bounds) + bigger(curved) + real_vector(exact.given).abs().max()
    sane = spread.isfinite() & (spread < torch.finfo(dtype).max / 1e3)
    if exact.is_elementwise:
        size = real_vector(rounded.values).abs()
        sane &= (size == 0) | ((size > ORDINARY[0]) & (size < ORDINARY[1]))
    widened = torch.where(sane, NATIVE * torch.finfo(dtype).eps * spread, torch.full_like(spread, math.inf))
    name = str(dtype).rpartition(".")[2]
    return exact.wrong(f"the gradient in {name}", found, Slopes(bounds.low - widened, bounds.high + widened))


def bigger(found: Slopes) -> torch.Tensor:
    return torch.maximum(found.low.abs(), found.high.abs())


EVERYWHERE: Dict[str, Way] = {"backward": backward, "forward mode": forward_mode}
SECOND: Dict[str, Way] = {
    "backward twice": backward_twice, "forward over backward": forward_over_backward,
    "backward over forward": backward_over_forward,
}  # fmt: skip
ONCE: Dict[str, Way] = {
    "some inputs": some_inputs, "batched gradients": batched_gradients, "incoming gradients": incoming_gradients,
    "memory": memory, "writes": writes,
}  # fmt: skip
NATIVE_WAY = "native dtype"
WAYS = (*EVERYWHERE, *SECOND, *ONCE, NATIVE_WAY)


def derivatives(
    function: Any, inputs: Mapping[str, Sequence[Any]], rows: Sequence[Others] = ({},),
    kinds: Mapping[str, str] = {}, elementwise: bool = False, complex_too: bool = False, device: str = "cpu", dtype: torch.dtype = torch.float32,
) -> Found:  # fmt: skip
    """Return the disagreements of the derivatives of `function` in all ways, at all points, for all rows of arguments.

    `function` is one, or a list of several that have the same derivatives.

    `inputs` has the shape of each differentiable input; names in it stand for sizes. An `elementwise` function is also
    differentiated at hard numbers. What the function itself refuses at a hard point is not differentiated there.
    """
    found = Found()
    functions = function if isinstance(function, list) else [function]
    for each, others in itertools.product(functions, rows):
        operation = Operation(each, others, device)
        missing: Dict[str, str] = {}
        first = True
        for point, is_elementwise in all_points(inputs, kinds, elementwise, complex_too):
            if each is not functions[0] and not (is_elementwise or point.name == USUAL):
                continue
            try:
                trial = Trial(operation, point, is_elementwise)
            except Exception:
                if first:
                    raise
                continue
            look(found, trial, dtype, missing, is_first=each is functions[0])
            first = False
        found.missing.update(missing)
    return found


def all_points(
    inputs: Mapping[str, Sequence[Any]], kinds: Mapping[str, str], elementwise: bool, complex_too: bool
) -> Iterator[Tuple[Point, bool]]:
    for dtype in (torch.float64, torch.complex128)[: 1 + complex_too]:
        yield from ((point, False) for point in points(inputs, kinds, dtype, not elementwise))
    if elementwise:
        yield Point("0-dimensional", [ordinary((), kinds.get(name, ""), place) for place, name in enumerate(inputs)]), False
        yield elementwise_point([kinds.get(name, "") for name in inputs]), True


def why_missing(error: BaseException) -> Optional[str]:
    """Return the message of an error that says that a way is not implemented for an operation, or None."""
    return message_of(error) if isinstance(error, NotImplementedError) or MISSING.search(str(error)) else None


def look(found: Found, trial: Trial, dtype: torch.dtype, missing: Dict[str, str], is_first: bool) -> None:
    """Try the ways that are for such a point: not all for expressions that are other spellings of a first."""
    ways = dict(EVERYWHERE)
    is_usual = trial.point.name == USUAL
    if is_usual or trial.is_elementwise or "zero" in trial.point.name or "ties" in trial.point.name:
        ways.update(SECOND)
    if is_usual and is_first:
        ways.update(ONCE)
    is_narrow = dtype in NARROW_COMPLEX or not any(each.is_complex() for each in [*trial.point.values, *trial.given])
    if dtype != torch.float64 and is_narrow and is_first and (is_usual or trial.is_elementwise):
        ways[NATIVE_WAY] = lambda trial: natively(trial, dtype)
    for name, way in ways.items():
        if name in missing:
            continue
        try:
            count, told = way(trial)
        except Exception as error:
            why = why_missing(error)
            if why is None:
                found.told[name].append(trial.line(str(plain(error))))
            else:
                missing[name] = why
            continue
        found.judged[name] += count
        found.told[name] += told
