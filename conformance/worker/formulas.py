"""Breaks torch's formulas for derivatives from outside, for those who ask whether a case would notice.

A fault is a kind (a sign, a factor, a lane, …) in one formula of `derivatives.yaml`, which is known by the name of its
node. One in a backward formula changes what the node returns; one in a forward formula changes the tangents that the
function of that name gives.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch

from conformance.worker.reach import is_readable, nodes_below
from conformance.worker.watched import Watched

CHANGED: List[bool] = []  # not empty if a planted fault has changed a number in this process

Gradients = Tuple[Any, ...]
Kept = Dict[str, Any]  # what a node has saved, by name


def first_part(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Kept, Gradients, Gradients], Gradients]:
    """Return a kind that changes one of the gradients that a node returns, whatever the node has saved."""

    def kind(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:  # noqa: ARG001 - as all kinds
        place = next(telling(gradients), None)
        return gradients if place is None else replaced(gradients, place, change(gradients[place]))

    return kind


def telling(gradients: Gradients) -> Iterator[int]:
    """Yield the places of gradients that are not 0, as some always are, from the last to the first."""
    for place, each in reversed([*enumerate(gradients)]):
        if each is not None and (not is_readable(each) or bool(each.any())):
            yield place


def replaced(gradients: Gradients, place: int, new: torch.Tensor) -> Gradients:
    return (*gradients[:place], new, *gradients[place + 1 :])


def one_lane(gradient: torch.Tensor) -> torch.Tensor:
    weights = torch.ones(gradient.numel(), dtype=gradient.dtype, device=gradient.device)
    weights[-1:] = 1.125
    return gradient * weights.reshape(gradient.shape)


def where_saved(chosen: Callable[[torch.Tensor], torch.Tensor], factor: float) -> Any:
    """Return a kind that is wrong where numbers that the node has saved are so."""

    def kind(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:  # noqa: ARG001 - as all kinds
        tensors = [each for each in kept.values() if isinstance(each, torch.Tensor)]
        for place in telling(gradients):
            alike = [tensor for tensor in tensors if gradients[place].shape == tensor.shape]
            for tensor in alike[-1:]:  # `_saved_self` behind `_saved_grad_output`
                wrong = torch.where(chosen(tensor.detach().abs()), factor, 1.0).to(gradients[place].dtype)
                return replaced(gradients, place, gradients[place] * wrong)
        return gradients

    return kind


def saved(node: Any) -> Kept:
    """Return what a node has saved and not yet freed, by name."""
    found = {}
    for name in dir(node):
        if name.startswith("_saved_"):
            with contextlib.suppress(RuntimeError):
                found[name] = getattr(node, name)
    return found


def is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def keywords(kept: Kept) -> Kept:
    """Return what a node has saved beside tensors."""
    return {
        name: value for name, value in kept.items()
        if isinstance(value, (bool, int, float, str)) and "sizes" not in name and "size" not in name
    }  # fmt: skip


def for_keyword(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:
    """Be wrong where the last argument that the node has saved is true, or not 0."""
    values = list(keywords(kept).values())
    return first_part(lambda each: each * 2)(kept, gradients, given) if values and bool(values[-1]) else gradients


def for_layout(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:
    is_odd = any(each is not None and not each.is_contiguous() for each in given)
    return first_part(lambda each: each * 2)(kept, gradients, given) if is_odd else gradients


def for_subset(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:
    return first_part(lambda each: each * 2)(kept, gradients, given) if None in gradients else gradients


def without_second(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.detach() if torch.is_grad_enabled() else gradient


def added(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:  # noqa: ARG001 - as all kinds
    """Add to a gradient, which may be 0 everywhere."""
    places = [place for place, each in enumerate(gradients) if each is not None]
    return replaced(gradients, places[-1], gradients[places[-1]] + 0.125) if places else gradients


def unreduced(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:  # noqa: ARG001 - as all kinds
    """Take the first of what should be summed over."""
    whole = next((each for each in given if each is not None), None)
    for place, each in enumerate(gradients):
        if whole is not None and each is not None and each.numel() < whole.numel():
            return replaced(gradients, place, each * (each.numel() / whole.numel()))
    return gradients


ANY, READ = "any node", ("saved", "keywords")

KINDS: Dict[str, Tuple[str, Any]] = {  # what a node must have for it, and what it does
    "sign": (ANY, first_part(lambda each: -each)),
    "factor": (ANY, first_part(lambda each: each * 1.01)),
    "missing term": (ANY, first_part(torch.zeros_like)),
    "one lane": (ANY, first_part(one_lane)),
    "size one": (ANY, first_part(lambda each: each * 2 if 1 in each.shape else each)),
    "float32": (ANY, first_part(lambda each: each * 1.01 if each.dtype is torch.float32 else each)),
    "second order": (ANY, first_part(without_second)),
    "added": (ANY, added),
    "layout": (ANY, for_layout),
    "not reduced": ("broadcast", unreduced),
    "at zero": ("saved", where_saved(lambda size: size == 0, float("nan"))),
    "near zero": ("saved", where_saved(lambda size: size < 0.2, 2.0)),
    "large": ("saved", where_saved(lambda size: size > 2.5, 0.0)),
    "subset": ("several", for_subset),
    "keyword": ("keywords", for_keyword),
}
FORWARD_KINDS: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "tangent: sign": lambda each: -each,
    "tangent: factor": lambda each: each * 1.01,
    "tangent: zero": torch.zeros_like,
    "tangent: one lane": one_lane,
}


def watch(look: Callable[[Any], None]) -> None:
    variable = torch.autograd.Variable
    variable._execution_engine = Watched(variable._execution_engine, look)


def plant(formula: str, kind: str) -> None:
    """Break a formula, which the name of its node names, in this process, for good."""
    if kind in FORWARD_KINDS:
        plant_forward(formula, FORWARD_KINDS[kind])
        return
    needed, change = KINDS[kind]

    def look(roots: Any) -> None:
        for node in nodes_below(roots):
            if node.name() == formula and "fault" not in node.metadata:
                node.metadata["fault"] = True
                kept = saved(node) if needed in READ else {}  # now, as it may be freed before hooks are called
                node.register_hook(lambda gradients, given, kept=kept: noted(gradients, change(kept, gradients, given)))

    watch(look)


def noted(before: Gradients, after: Gradients) -> Gradients:
    """Return gradients, and note whether they are others than before, or have no graph where those have one."""
    CHANGED.extend([True] * are_changed(before, after))
    return after


def are_changed(before: Gradients, after: Gradients) -> bool:
    pairs = [(old, new) for old, new in zip(before, after) if old is not None and old is not new]
    return any(differ(old, new) for old, new in pairs)


def differ(old: torch.Tensor, new: torch.Tensor) -> bool:
    if not is_readable(old):  # the same fault shows in plain tensors too
        return False
    return old.requires_grad != new.requires_grad or not torch.allclose(old, new, rtol=0, atol=0, equal_nan=True)


def functions_of(node: str) -> List[Tuple[Any, str]]:
    """Return where torch has the functions of a formula, by its name: SinBackward0 is of sin."""
    words = re.sub(r"Backward(?:Autograd[A-Za-z]+)?\d+\w*$", "", node)
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", words).lower()
    spaces = [torch, torch.Tensor, torch.nn.functional, torch.special, torch.linalg, torch.fft]
    names = [name, f"_{name}", f"{name}_", f"__{name}__", *re.findall(r"^(?:linalg|special|fft)_(\w+)", name)]
    return [(space, each) for space in spaces for each in names if callable(getattr(space, each, None))]


def plant_forward(formula: str, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    forward = torch.autograd.forward_ad

    def mistaken(each: Any) -> Any:
        if not isinstance(each, torch.Tensor):
            return each
        primal, tangent = forward.unpack_dual(each)
        return each if tangent is None else forward.make_dual(primal, *noted((tangent,), (change(tangent),)))

    def wrapped(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            found = function(*args, **kwargs)
            if forward._current_level < 0:
                return found
            return tuple(map(mistaken, found)) if isinstance(found, (tuple, list)) else mistaken(found)

        return call

    for space, name in functions_of(formula):
        setattr(space, name, wrapped(getattr(space, name)))
