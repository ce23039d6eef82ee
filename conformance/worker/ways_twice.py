"""The ways to differentiate an operation more than once: each says what is wrong with it at a point."""

from __future__ import annotations

import functools
from typing import Dict, List, Optional, Sequence

import torch

from conformance.worker.differences import Slopes, Values
from conformance.worker.points import ORDINARY, OTHER
from conformance.worker.trial import Judgement, Trial, second_gradients
from conformance.worker.values import one_line
from conformance.worker.ways import Differentiation, forward_mode, joined, joined_unless_missing, with_gaps


def backward_twice(trial: Trial) -> Judgement:
    leaves = trial.leaves()
    given = [each.detach().requires_grad_() for each in spread(trial, trial.given)]
    found = trial.operation.gradients(leaves, given, create_graph=True)
    pairs = [(each, own) for each, own in zip(found, spread(trial, trial.tangents())) if each.requires_grad]
    inputs = [*leaves, *given]
    second: Sequence[Optional[torch.Tensor]] = [None] * len(inputs)
    if pairs:
        ends, own = zip(*pairs)
        parts = [leaves, given] if trial.point.name == OTHER else [inputs]  # there each is asked for without the other
        second = [
            each for count, part in enumerate(parts, 1)
            for each in torch.autograd.grad(ends, part, own, allow_unused=True, retain_graph=count < len(parts))
        ]  # fmt: skip
    filled = [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(inputs, second)]
    return joined(iter([
        trial.wrong(f"the gradient of the gradient{gaps(trial)}", filled[: len(leaves)], trial.second()),
        trial.wrong_tangents(f"the gradient by the given gradient{gaps(trial)}", filled[len(leaves) :]),
    ]))  # fmt: skip


def forward_over_backward(trial: Trial) -> Judgement:
    tangents = trial.tangents()
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        duals = [forward.make_dual(*pair) for pair in zip(trial.leaves(), trial.on_device(tangents))]
        found = trial.operation.gradients(duals, spread(trial, trial.given), create_graph=True)
        parts = [forward.unpack_dual(each) for each in found]
        second = [torch.zeros_like(part.primal) if part.tangent is None else part.tangent for part in parts]
        return trial.wrong(f"the tangent of the gradient{gaps(trial)}", second, trial.second())


def backward_over_forward(trial: Trial) -> Judgement:
    tangents = trial.tangents()
    leaves = trial.leaves()
    forward = torch.autograd.forward_ad
    found: Sequence[Optional[torch.Tensor]] = [None] * len(leaves)
    with forward.dual_level():
        duals = [forward.make_dual(*pair) for pair in zip(leaves, trial.on_device(tangents))]
        parts = [forward.unpack_dual(each) for each in trial.operation(duals)]
        pairs = [
            (part.tangent, own) for part, own in zip(parts, spread(trial, trial.given))
            if part.tangent is not None and part.tangent.requires_grad
        ]  # fmt: skip
        if pairs:
            ends, own = zip(*pairs)
            found = torch.autograd.grad(ends, leaves, own, allow_unused=True)
    filled = [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, found)]
    return trial.wrong(f"the gradient of the tangent{gaps(trial)}", filled, trial.second())


def backward_three_times(trial: Trial) -> Judgement:
    """Differentiate the gradient of the gradient, too: formulas for it may take what they were given for constants."""
    leaves = trial.leaves()
    given = trial.on_device(trial.given)
    found: Sequence[Optional[torch.Tensor]] = [None] * len(leaves)
    try:
        second = second_gradients(trial.operation, leaves, given, trial.on_device(trial.tangents()))
        pairs = [(each, own) for each, own in zip(second, trial.on_device(trial.tangents())) if each.requires_grad]
        if pairs:
            ends, own = zip(*pairs)
            found = torch.autograd.grad(ends, leaves, own, allow_unused=True)
    except Exception as error:
        raise NotImplementedError(one_line(str(error))) from error  # a refusal misleads nobody
    filled = [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, found)]
    return trial.wrong("the third derivative", filled, trial.third(second))


def some_inputs_twice(trial: Trial) -> Judgement:
    """Differentiate the gradient of one input alone, or the gradients by one input alone: other parts are undefined."""
    forward = torch.autograd.forward_ad

    def by_tangent(chosen: int) -> Judgement:
        leaves, tangents = trial.leaves(), trial.on_device(trial.tangents())
        inputs: List[torch.Tensor] = list(leaves)
        with forward.dual_level():
            inputs[chosen] = forward.make_dual(leaves[chosen], tangents[chosen])
            found = trial.operation.gradients(inputs, trial.on_device(trial.given), create_graph=True)
            parts = [forward.unpack_dual(each) for each in found]
            second = [torch.zeros_like(part.primal) if part.tangent is None else part.tangent for part in parts]
            return trial.wrong(f"the tangent by input {chosen} of the gradient", second, trial.second_alone(chosen))

    def of_gradient(chosen: int) -> Judgement:
        leaves, given = trial.leaves(), [each.requires_grad_() for each in trial.on_device(trial.given)]
        second = weighed(trial, leaves, given, chosen, [*leaves, *given])
        what = f"the gradient by the given gradient of the gradient of input {chosen}"
        return joined(iter([
            trial.wrong(
                f"the gradient of the gradient of input {chosen}", second[: len(leaves)], trial.second_alone(chosen)
            ),
            trial.wrong_tangents_alone(what, second[len(leaves) :], chosen),
        ]))  # fmt: skip

    def alone(chosen: int) -> Judgement:
        values = trial.on_device(trial.point.values)
        leaves = [each.clone().requires_grad_(place == chosen) for place, each in enumerate(values)]
        second = weighed(trial, leaves, trial.on_device(trial.given), chosen, [leaves[chosen]])
        sides = (side[chosen] for side in trial.by_input(trial.second_alone(chosen)))
        return trial.wrong(
            f"the gradient of the gradient by input {chosen}, which alone has one,", second, Slopes(*sides)
        )

    places = range(len(trial.point.values) if len(trial.point.values) > 1 else 0)
    return joined_unless_missing(
        functools.partial(part, place) for part in (of_gradient, alone, by_tangent) for place in places
    )


def weighed(
    trial: Trial, leaves: Values, given: Values, chosen: int, inputs: Sequence[torch.Tensor]
) -> List[torch.Tensor]:
    """Return the gradient by `inputs` of that of one leaf, weighed with its tangent."""
    results = trial.operation(leaves)
    pairs = [(end, own) for end, own in zip(results, given) if end.requires_grad]
    found: Sequence[Optional[torch.Tensor]] = [None] * len(inputs)
    if pairs:
        ends, own = zip(*pairs)
        (first,) = torch.autograd.grad(ends, leaves[chosen], own, create_graph=True, allow_unused=True)
        if first is not None and first.requires_grad:
            tangent = trial.on_device(trial.tangents())[chosen]
            found = torch.autograd.grad(first, inputs, tangent, allow_unused=True)
    return [torch.zeros_like(each) if own is None else own for each, own in zip(inputs, found)]


def spread(trial: Trial, values: Values) -> List[torch.Tensor]:
    """Return numbers on the device; at hard points there are gaps between them in memory."""
    placed = trial.on_device(values)
    return [with_gaps(each) for each in placed] if gaps(trial) else placed


def gaps(trial: Trial) -> str:
    return "" if trial.point.name in (ORDINARY, OTHER) else ", given with gaps,"


SECOND: Dict[str, Differentiation] = {
    "backward twice": backward_twice, "forward over backward": forward_over_backward,
    "backward over forward": backward_over_forward,
}  # fmt: skip
NARROW: Dict[str, Differentiation] = {"forward mode": forward_mode, "backward twice": backward_twice}
