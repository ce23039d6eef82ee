"""Notes which kinds of nodes of autograd a case goes backward through, and how they are used there."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Sequence, Set

import torch

from conformance.worker.case_run import CaseRun
from conformance.worker.values import is_node
from conformance.worker.watched import Watched

SMALL, LARGE = 0.2, 2.5  # sizes of numbers below and above which a formula may have another branch
SEEN = "reach"  # in a node's metadata: that its hook is there


def reach(run: CaseRun) -> Dict[str, Any]:
    """Run the steps of `run`, and return its result with what is used of each graph that it goes through.

    These are the names of its nodes, `SinBackward0`, and the circumstances of each, `SinBackward0 recorded`.
    """
    uses: Set[str] = set()
    variable = torch.autograd.Variable
    engine = variable._execution_engine
    variable._execution_engine = Watched(engine, noting(uses))
    try:
        return {**run.all_steps(), "uses": sorted(uses)}
    finally:
        variable._execution_engine = engine


def noting(uses: Set[str]) -> Callable[[Any], None]:
    """Return a function that notes in `uses` what is below the roots of a backward."""

    def look(roots: Any) -> None:
        for node in nodes_below(roots):
            name = node.name()
            uses.add(name)
            uses.update(f"{name} {each}" for each in kept_by(node))
            if SEEN not in node.metadata:
                node.metadata[SEEN] = True
                node.register_hook(lambda *flow, name=name: uses.update(f"{name} {each}" for each in told_by(*flow)))

    return look


def nodes_below(roots: Any) -> Iterator[Any]:
    """Yield the nodes below the roots of a backward, each once."""
    waiting = [root if is_node(root) else getattr(root, "grad_fn", None) for root in roots]
    seen = set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            waiting += [each for each, _ in node.next_functions]


def kept_by(node: Any) -> Iterator[str]:
    """Yield what kinds of values a node has saved, and whether some input needs no gradient."""
    if any(below is None for below, _ in node.next_functions):
        yield "in part"
    for attribute in dir(node):
        if not attribute.startswith("_saved_"):
            continue
        try:
            value = getattr(node, attribute)
        except RuntimeError:  # it was freed, or a hook can't unpack it
            continue
        name = attribute[len("_saved_") :]
        if isinstance(value, (bool, str)) or value is None:
            yield f"{name}={value}"
        elif isinstance(value, (int, float)):
            yield f"{name}{'<' if value < 0 else '=' if value == 0 else '>'}0"
        elif isinstance(value, torch.Tensor) and value.is_floating_point() and is_readable(value):
            yield from (f"{name} {each}" for each in sizes_in(value.detach().abs()))


def sizes_in(sizes: torch.Tensor) -> Iterator[str]:
    kinds = {
        "none": sizes.numel() == 0, "zero": sizes == 0, "small": (sizes > 0) & (sizes < SMALL), "large": sizes > LARGE,
        "not finite": ~sizes.isfinite(),
    }  # fmt: skip
    for kind, where in kinds.items():
        if where if isinstance(where, bool) else bool(where.any()):
            yield kind


def told_by(returned: Sequence[Any], given: Sequence[Any]) -> Iterator[str]:
    """Yield under what circumstances a node runs, by the gradients that it returned and was given."""
    if torch.is_grad_enabled():
        yield "recorded"
    whole = [each for each in given if each is not None]
    for gradient in whole:
        yield str(gradient.dtype)
        if not is_readable(gradient):
            yield "wrapped"
        elif not gradient.is_contiguous():
            yield "not contiguous"
    for gradient in returned:
        if gradient is not None and is_readable(gradient):
            if whole and gradient.numel() < max(each.numel() for each in whole):
                yield "summed"
            if 1 in gradient.shape:
                yield "of size one"


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether a tensor's numbers can be looked at."""
    functorch = torch._C._functorch
    is_wrapped = functorch.is_batchedtensor(tensor) or functorch.is_gradtrackingtensor(tensor)
    return not (is_wrapped or tensor.layout is not torch.strided or tensor.is_nested or tensor.is_meta)
