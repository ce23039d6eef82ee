"""The ways to differentiate an operation that must agree: each says what is wrong with it at a point."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, Callable, Dict, Iterable, Iterator, List, Sequence

import torch

from conformance.worker.differences import Slopes, Values, real_vector
from conformance.worker.operation import Operation
from conformance.worker.points import weights
from conformance.worker.trial import Judgement, Trial, bigger, in_dtype
from conformance.worker.values import on_cpu, one_line

NATIVE = 64  # rounding errors, by which a result in a narrow dtype may differ
TAME = (0.05, 10.0)  # absolute values of elements at which formulas do not cancel or overflow in few digits

Differentiation = Callable[[Trial], Judgement]


def joined(judgements: Iterator[Judgement]) -> Judgement:
    counts, lines = 0, []
    for count, told in judgements:
        counts += count
        lines += told
    return counts, lines


def backward(trial: Trial) -> Judgement:
    leaves = trial.leaves()
    found = trial.operation.gradients(leaves, trial.on_device(trial.given))
    count, told = trial.wrong_gradients("the gradient", found, trial.given)
    for leaf, each in zip(leaves, found):
        facts = [
            (each.shape, leaf.shape),
            (each.dtype, leaf.dtype),
            (each.device, leaf.device),
            (each.layout, leaf.layout),
        ]
        told += [trial.line(f"the gradient has {own}, expected {wanted}") for own, wanted in facts if own != wanted]
    return count, told


def some_inputs(trial: Trial) -> Judgement:
    """Let each set of the inputs alone require grad: the gradients are the same, the others get none."""

    def of(chosen: Sequence[int]) -> Judgement:
        values = trial.on_device(trial.point.values)
        leaves = [each.clone().requires_grad_(place in chosen) for place, each in enumerate(values)]
        results = trial.operation(leaves)
        pairs = [(end, own) for end, own in zip(results, trial.on_device(trial.given)) if end.requires_grad]
        if pairs:
            torch.autograd.backward([end for end, _ in pairs], [own for _, own in pairs])
        told = [
            trial.line(f"input {place} does not require grad and has a gradient")
            for place, leaf in enumerate(leaves) if place not in chosen and leaf.grad is not None
        ]  # fmt: skip
        found = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
        kept = [found[place] for place in chosen]
        what = f"the gradient of inputs {list(chosen)} alone"
        count, wrong = trial.wrong_gradients(what, kept, trial.given, chosen)
        return count, told + wrong

    places = range(len(trial.point.values))
    return joined(of(chosen) for size in places[1:] for chosen in itertools.combinations(places, size))


def forward_mode(trial: Trial) -> Judgement:
    tangents = trial.tangents()
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        duals = [
            forward.make_dual(*pair) for pair in zip(trial.on_device(trial.point.values), trial.on_device(tangents))
        ]
        parts = [forward.unpack_dual(each) for each in trial.operation(duals)]
        found = [torch.zeros_like(part.primal) if part.tangent is None else part.tangent for part in parts]
        return with_facts(trial, "the tangent", parts, trial.wrong_tangents("the tangent", found))


def with_facts(trial: Trial, what: str, parts: Sequence[Any], judgement: Judgement) -> Judgement:
    """Add to a judgement what a tangent has not in common with what it is of: its shape and dtype."""
    facts = [
        (own, wanted)
        for primal, tangent in parts if tangent is not None
        for own, wanted in ((tangent.dtype, primal.dtype), (tangent.shape, primal.shape))
    ]  # fmt: skip
    told = [trial.line(f"{what} has {own}, expected {wanted}") for own, wanted in facts if own != wanted]
    return judgement[0], [*told, *judgement[1]]


def some_tangents(trial: Trial) -> Judgement:
    """Give each input alone a tangent: those of the results are the ones by it, or it is refused."""

    def of(chosen: int) -> Judgement:
        forward = torch.autograd.forward_ad
        values, tangents = trial.on_device(trial.point.values), trial.on_device(trial.tangents())
        with forward.dual_level():
            values[chosen] = forward.make_dual(values[chosen], tangents[chosen])
            parts = [forward.unpack_dual(each) for each in trial.operation(values)]
            found = [torch.zeros_like(part.primal) if part.tangent is None else part.tangent for part in parts]
            what = f"the tangent by input {chosen} alone"
            return with_facts(trial, what, parts, trial.wrong_tangents_alone(what, found, chosen))

    return joined_unless_missing(functools.partial(of, place) for place in range(len(trial.point.values)))


def joined_unless_missing(parts: Iterable[Callable[[], Judgement]]) -> Judgement:
    """Return the judgements of those parts that are implemented; if none is, raise what one of them raised."""
    judged, refused = [], None
    for part in parts:
        try:
            judged.append(part())
        except NotImplementedError as error:
            refused = error
    if refused is not None and not judged:
        raise refused
    return joined(iter(judged))


def batched_gradients(trial: Trial) -> Judgement:
    """Give several gradients at once: each result is that of its own."""
    rows = [[weights(each, seed) for each in trial.given] for seed in (0, 4)]
    leaves = trial.leaves()
    results = trial.operation(leaves)
    stacked = [torch.stack(each).to(trial.operation.device) for each in zip(*rows)]
    pairs = [(end, own) for end, own in zip(results, stacked) if end.requires_grad]
    if not pairs:
        return 0, []
    ends, own = zip(*pairs)
    found = torch.autograd.grad(ends, leaves, own, is_grads_batched=True, allow_unused=True)
    filled = [
        torch.zeros(2, *leaf.shape, dtype=leaf.dtype) if each is None else each for leaf, each in zip(leaves, found)
    ]
    return joined(
        trial.wrong_gradients(f"row {place} of the gradients", [each[place] for each in filled], row)
        for place, row in enumerate(rows)
    )


def incoming_gradients(trial: Trial) -> Judgement:
    """Give gradients that are expanded, have strides of their own, or are zero."""

    def of(
        name: str, given: Values, changed: Callable[[torch.Tensor], torch.Tensor], *, some: bool = False
    ) -> Judgement:
        own = [
            None if some and not bool(each.any()) else changed(there)
            for each, there in zip(given, trial.on_device(given))
        ]  # fmt: skip
        found = trial.operation.gradients(trial.leaves(), own)
        return trial.wrong_gradients(f"the gradient for one that is {name}", found, given)

    def expanded(given: torch.Tensor) -> torch.Tensor:
        return torch.ones((), dtype=given.dtype, device=given.device).expand(given.shape)

    alone = [
        [each if place == other else torch.zeros_like(each) for other, each in enumerate(trial.given)]
        for place in range(len(trial.given) if len(trial.given) > 1 else 0)
    ]  # fmt: skip
    return joined(iter([
        *(
            of(f"undefined but for result {place}", given, torch.clone, some=True)
            for place, given in enumerate(alone)
        ),
        of("expanded", [torch.ones_like(each) for each in trial.given], expanded),
        of("zero", [torch.zeros_like(each) for each in trial.given], torch.clone),
        of("transposed", trial.given, with_other_strides),
        of("every second of another", trial.given, with_gaps),
    ]))  # fmt: skip


def saved_elsewhere(trial: Trial) -> Judgement:
    """Keep copies of what is saved, made when it is saved: the gradient is the same."""
    leaves = trial.leaves()
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.detach().clone(), lambda kept: kept):
        found = trial.operation.gradients(leaves, trial.on_device(trial.given))
    return trial.wrong_gradients("the gradient from copies of what was saved", found, trial.given)


def accumulation(trial: Trial) -> Judgement:
    """Go backward twice: the gradients add up, and what was given stays as it was."""
    leaves, given = trial.leaves(), trial.on_device(trial.given)
    pairs = [(end, own) for end, own in zip(trial.operation(leaves), given) if end.requires_grad]
    for _ in range(2 if pairs else 0):
        torch.autograd.backward([end for end, _ in pairs], [own for _, own in pairs], retain_graph=True)
    found = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
    doubled = [2 * each for each in trial.given]
    count, told = trial.wrong_gradients("the gradient that was accumulated twice", found, doubled)
    is_kept = torch.equal(real_vector([on_cpu(each) for each in given]), real_vector(trial.given))
    return count, told if is_kept else [*told, trial.line("backward wrote to the given gradient")]


def on_meta(trial: Trial) -> Judgement:
    """Compute without data: the results have the shapes and dtypes that they have with data."""
    operation = Operation(trial.operation.function, trial.operation.others, "meta")
    try:
        with torch.no_grad():
            found = operation([each.to("meta") for each in trial.point.values])
    except Exception as error:
        raise NotImplementedError(one_line(str(error))) from error
    facts, wanted = ([(tuple(each.shape), each.dtype) for each in results] for results in (found, trial.given))
    return 1, [] if facts == wanted else [trial.line(f"the results on meta are {facts}, expected {wanted}")]


def expanded_inputs(trial: Trial) -> Judgement:
    """Give equal numbers as one in many places: its gradient is the sum of theirs, and the others' are the same."""

    def of(chosen: int) -> Iterator[Judgement]:
        leaves = trial.leaves()
        leaves[chosen] = leaves[chosen].detach().reshape(-1)[0].clone().requires_grad_()
        inputs = list(leaves)
        inputs[chosen] = leaves[chosen].expand(trial.point.values[chosen].shape)
        found = trial.operation.gradients(leaves, trial.on_device(trial.given), inputs=inputs)
        own = found.pop(chosen)
        others = [place for place in range(len(leaves)) if place != chosen]
        yield trial.wrong("the gradient of an expanded input", [own], trial.pulled_together(chosen))
        if others:
            yield trial.wrong_gradients(
                f"beside an expanded input the gradient of inputs {others}", found, trial.given, others
            )

    values = trial.point.values
    are_equal = [each.numel() > 1 and bool((each == each.reshape(-1)[0]).all()) for each in values]
    return joined(judged for place, is_equal in enumerate(are_equal) if is_equal for judged in of(place))


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
    """Give inputs with other strides, an offset, or numbers whose sign or conjugation is only noted.

    What is noted is the CPU's to try: before a kernel of a device sees it, PyTorch has it copied, the same for each.
    """
    takes_notes = trial.operation.device == "cpu"
    ways: List[Callable[[torch.Tensor], torch.Tensor]] = [with_other_strides, with_gaps]
    if takes_notes:
        ways.append(negated_bit)
    if all(each.dim() == 4 for each in trial.point.values[:1]):
        ways.append(lambda each: each.contiguous(memory_format=torch.channels_last) if each.dim() == 4 else each)
    if takes_notes and any(each.is_complex() for each in trial.point.values):
        ways.append(lambda each: each.conj().resolve_conj().conj() if each.is_complex() else each)

    def of(way: Callable[[torch.Tensor], torch.Tensor]) -> Judgement:
        leaves = [way(each).detach().requires_grad_() for each in trial.on_device(trial.point.values)]
        try:
            with torch.no_grad():
                trial.operation(leaves)
        except Exception:
            return 0, []  # such as a view that these strides don't allow
        found = trial.operation.gradients(leaves, trial.on_device(trial.given))
        return trial.wrong_gradients(f"the gradient {named_way(way)}", found, trial.given)

    return joined(map(of, ways))


def named_way(way: Any) -> str:
    return {
        "with_other_strides": "with other strides",
        "with_gaps": "with gaps",
        "negated_bit": "of negated memory",
    }.get(way.__name__, "in another memory format")


def writes(trial: Trial) -> Judgement:
    """Write to inputs and results before backward, which must notice it or need none of them."""

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
        filled = [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, found)]
        name = f"input {which}" if which < len(inner) else f"result {which - len(inner)}"
        return trial.wrong_gradients(f"{name} was written to, unnoticed, and the gradient", filled, trial.given)

    return joined(map(of, range(len(trial.point.values) + len(trial.given))))


def natively(trial: Trial, dtype: torch.dtype, rough: float = 0.0) -> Judgement:
    """Compute in the target's dtype: the gradient is that in double precision of the same numbers, but for rounding.

    The error may be a few roundings of the result, of the given gradient, and of the inputs, or `rough` if that is
    more: what those change is seen from the second derivatives.
    """
    values, given = ([in_dtype(each, dtype) for each in numbers] for numbers in (trial.point.values, trial.given))
    leaves = [each.to(trial.operation.device).requires_grad_() for each in values]
    try:
        with torch.no_grad():
            trial.operation(leaves)
    except Exception as error:
        raise NotImplementedError(one_line(str(error))) from error  # it is not there in this dtype
    found = trial.operation.gradients(leaves, trial.on_device(given))
    bounds, curved = trial.exact_gradient(), trial.second()
    largest = max([0.0, *real_vector(trial.given).abs().tolist()])
    spread = bigger(bounds) + bigger(curved) + largest
    sane = spread.isfinite() & (spread < torch.finfo(dtype).max / 1e3)
    is_same = real_vector(values) == real_vector(
        trial.point.values
    )  # no number of so few digits was too large or small
    if trial.is_elementwise:
        size = real_vector(values).abs()
        sane &= is_same & ((size == 0) | ((size > TAME[0]) & (size < TAME[1])))
    else:
        sane &= is_same.all()
    widened = torch.where(sane, max(NATIVE * torch.finfo(dtype).eps, rough) * spread, torch.full_like(spread, math.inf))
    name = str(dtype).rpartition(".")[2]
    return trial.wrong(f"the gradient in {name}", found, Slopes(bounds.low - widened, bounds.high + widened))


EVERYWHERE: Dict[str, Differentiation] = {"backward": backward, "forward mode": forward_mode}
ONCE: Dict[str, Differentiation] = {
    "some inputs": some_inputs, "batched gradients": batched_gradients, "incoming gradients": incoming_gradients,
    "memory": memory, "writes": writes, "accumulation": accumulation, "saved elsewhere": saved_elsewhere,
}  # fmt: skip
