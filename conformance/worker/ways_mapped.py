"""To map an operation over samples is to loop over them: says where values, gradients or tangents differ from that."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from conformance.worker.differences import real_vector
from conformance.worker.operation import Operation, gradients_of
from conformance.worker.points import in_few_digits, weights
from conformance.worker.trial import ROUGH, Judgement, Trial
from conformance.worker.values import display_value, on_cpu, one_line
from conformance.worker.ways import joined

SAMPLES = (0, 1, 0, 0, 1)  # which of two each is; they are more than sizes have, so that nothing fits by accident
SHRUNK = 0.875  # keeps numbers of each kind in its domain
AS_ALONE = 1e-7  # how far numbers may be apart, relative to the largest, where they are of double precision

Rows = Sequence[Sequence[torch.Tensor]]  # of each of the two samples, what it has of each input or result
Mapped = NamedTuple("Mapped", [("what", str), ("inputs", Tuple[int, ...]), ("dim", int), ("arguments", bool)])


def mappings(inputs: int, has_arguments: bool) -> Iterator[Mapped]:
    """Yield what is mapped: each set of one or two inputs, of more each alone and all; then all at their end.

    Where other arguments are tensors, these are mapped, too, with all inputs and without any.
    """
    places = tuple(range(inputs))
    for size in range(1, inputs + 1) if inputs < 3 else (1, inputs):
        for chosen in itertools.combinations(places, size):
            what = "all inputs" if chosen == places else f"inputs {list(chosen)}"
            yield Mapped(what, chosen, 0, False)
    yield Mapped("all inputs, by their last dimension", places, -1, False)
    if has_arguments:
        yield Mapped("all inputs and arguments", places, 0, True)
        yield Mapped("arguments alone", (), 0, True)


class Samples:
    """The inputs of a mapped operation, with what each sample has alone."""

    def __init__(self, trial: Trial, mapping: Mapped) -> None:
        self.trial = trial
        self.mapping = mapping
        self.dims = tuple(mapping.dim if place in mapping.inputs else None for place in range(len(trial.point.values)))
        pairs = [(each, each if dim is None else other(each)) for each, dim in zip(trial.point.values, self.dims)]
        self.two: Rows = [trial.on_device(sample) for sample in zip(*pairs)]
        self.given: Rows = [trial.on_device([weights(each, seed) for each in trial.given]) for seed in (0, 4)]
        self.others: Dict[str, torch.Tensor] = {}
        if mapping.arguments:
            self.others = {
                name: torch.stack([each.to(trial.operation.device)] * len(SAMPLES))
                for name, each in trial.operation.others.items() if isinstance(each, torch.Tensor)
            }  # fmt: skip
        self.inputs = tuple(
            first if dim is None else stacked(pair, dim)
            for first, pair, dim in zip(self.two[0], zip(*self.two), self.dims)
        )

    def operation(self, others: Dict[str, torch.Tensor], inputs: Sequence[torch.Tensor]) -> Tuple[torch.Tensor, ...]:
        own = self.trial.operation
        return tuple((Operation(own.function, {**own.others, **others}, own.device) if others else own)(inputs))

    def values_and_gradients(self) -> Tuple[Rows, Rows]:
        """Return the results and the gradients of each of the two samples alone."""
        found = []
        for inputs, given in zip(self.two, self.given):
            leaves = [each.clone().requires_grad_() for each in inputs]
            results = self.trial.operation(leaves)
            found.append(([each.detach() for each in results], gradients_of(results, leaves, given)))
        values, gradients = zip(*found)
        return values, gradients

    def wrong(self, what: str, found: Sequence[torch.Tensor], wanted: Rows) -> Judgement:
        """Say which sample has something else than alone; `found` has the samples in the first dimension."""
        bounds = [bound_of(alone) for alone in wanted]
        shapes = [[(len(SAMPLES), *each.shape) for each in alone] for alone in wanted]
        if [each.shape for each in found] in shapes and shapes[0] == shapes[1]:
            vector, expected = vector_of(found), vector_of([stacked(pair) for pair in zip(*wanted)])
            if not apart(vector, expected, min(bounds)):
                return 1, []
        for sample, own in enumerate(SAMPLES):
            told = self.differs(f"{what} of sample {sample}", [each[sample] for each in found], wanted[own])
            if told:
                return 1, told
        return 1, []

    def differs(self, what: str, found: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> List[str]:
        vector, expected = vector_of(found), vector_of(wanted)
        where = f"{what}, mapped over {self.mapping.what},"
        if vector.shape != expected.shape:
            return [self.trial.line(f"{where} has {vector.numel()} numbers, alone {expected.numel()}")]
        places = apart(vector, expected, bound_of(wanted))
        if not places:
            return []
        own, alone = (display_value(each[places[0]].item()) for each in (vector, expected))
        also = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
        return [self.trial.line(f"{where} is {own} at {places[0]}, alone {alone}{also}")]


def vector_of(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return real_vector([on_cpu(each) for each in tensors])


def bound_of(alone: Sequence[torch.Tensor]) -> float:
    """Return how far numbers may be from those of a sample alone."""
    vector = vector_of(alone)
    is_exact = all(each.dtype in (torch.float64, torch.complex128) for each in alone)
    sizes: List[float] = vector[vector.isfinite()].abs().tolist()
    return (AS_ALONE if is_exact else ROUGH) * max([1.0, *sizes])


def apart(vector: torch.Tensor, expected: torch.Tensor, bound: float) -> List[int]:
    """Return the places at which numbers are further apart than a bound."""
    close = torch.isclose(vector, expected, rtol=0, atol=bound, equal_nan=True)
    return [] if bool(close.all()) else (~close).nonzero().reshape(-1).tolist()


def other(value: torch.Tensor) -> torch.Tensor:
    """Return another sample of the same kind: the numbers in another order, and a bit smaller."""
    return in_few_digits(SHRUNK * value.flip(tuple(range(value.dim()))))


def stacked(two: Sequence[torch.Tensor], dim: int = 0) -> torch.Tensor:
    return torch.stack([two[own] for own in SAMPLES], dim)


def differentiated_outside(samples: Samples, values: Rows, gradients: Rows) -> Judgement:
    """Map the operation, and go backward through that."""
    leaves = tuple(each.clone().requires_grad_() for each in samples.inputs)
    found = torch.func.vmap(samples.operation, (0, samples.dims))(samples.others, leaves)
    own = gradients_of(found, leaves, [stacked(pair) for pair in zip(*samples.given)])
    told = []
    for place, (each, pair, dim) in enumerate(zip(own, zip(*gradients), samples.dims)):
        wanted = stacked(pair).sum(0) if dim is None else stacked(pair, dim)
        told += samples.differs(f"the gradient of input {place} outside of the map", [each], [wanted])
    return joined(iter([samples.wrong("the value", [each.detach() for each in found], values), (1, told[:1])]))


def differentiated_inside(samples: Samples, _: Rows, gradients: Rows) -> Judgement:
    """Map the gradient of the operation."""

    def gradient(others: Dict[str, torch.Tensor], inputs: Sequence[torch.Tensor], given: Any) -> Any:
        return torch.func.vjp(lambda *each: samples.operation(others, each), *inputs)[1](given)

    given = tuple(stacked(pair) for pair in zip(*samples.given))
    found = torch.func.vmap(gradient, (0, samples.dims, 0))(samples.others, samples.inputs, given)
    judgement = samples.wrong("the gradient", found, gradients)
    if judgement[1] or samples.mapping.dim or samples.mapping.arguments or None in samples.dims:
        return judgement
    first = [each[0] for each in found]  # once by differences, too, not only by what going backward alone gives
    return joined(
        iter([judgement, samples.trial.wrong_gradients("the gradient of sample 0", first, samples.trial.given)])
    )


def pushed_inside(samples: Samples, *_: Rows) -> Judgement:
    """Map the derivative of the operation along tangents."""

    def tangents_of(others: Dict[str, torch.Tensor], inputs: Sequence[torch.Tensor], tangents: Any) -> Any:
        return torch.func.jvp(lambda *each: samples.operation(others, each), tuple(inputs), tuple(tangents))[1]

    first = samples.trial.on_device(samples.trial.tangents())
    two = [first, [each if dim is None else -2 * each for each, dim in zip(first, samples.dims)]]
    tangents = tuple(
        each if dim is None else stacked(pair, dim) for each, pair, dim in zip(first, zip(*two), samples.dims)
    )
    wanted = [tangents_of({}, *each) for each in zip(samples.two, two)]
    found = torch.func.vmap(tangents_of, (0, samples.dims, samples.dims))(samples.others, samples.inputs, tangents)
    return samples.wrong("the tangent", found, wanted)


MAPPED: Tuple[Callable[..., Judgement], ...] = (differentiated_outside, differentiated_inside, pushed_inside)


def per_sample(trial: Trial) -> Judgement:
    """Map over inputs: each sample has the values, gradients and tangents that it has alone.

    A refusal, in one of many words, misleads nobody; if all is refused, one is raised.
    """
    judged: List[Judgement] = []
    refused: Optional[Exception] = None
    has_arguments = any(isinstance(each, torch.Tensor) for each in trial.operation.others.values())
    for mapping in mappings(len(trial.point.values), has_arguments):
        samples = Samples(trial, mapping)
        try:
            alone = samples.values_and_gradients()
        except Exception as error:  # which going backward has told already
            refused = refused or error
            continue
        for way in MAPPED:
            try:
                judged.append(way(samples, *alone))
            except Exception as error:
                refused = refused or error
    if refused is not None and not judged:
        raise NotImplementedError(one_line(str(refused))) from refused
    return joined(iter(judged))
