"""Notes which kinds of nodes of autograd a case goes backward through."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Set

import torch

from conformance.worker.runner import CaseRun
from conformance.worker.tracer import Watched
from conformance.worker.values import is_node


def reach(run: CaseRun) -> Dict[str, Any]:
    """Run the steps of `run`, and return its result with the names of the nodes in each graph that it goes through."""
    names: Set[str] = set()
    variable = torch.autograd.Variable
    engine = variable._execution_engine
    variable._execution_engine = Watched(engine, noting(names))
    try:
        return {**run.all_steps(), "nodes": sorted(names)}
    finally:
        variable._execution_engine = engine


def noting(names: Set[str]) -> Callable[[Any], None]:
    """Return a function that adds the names of all nodes below the roots of a backward to `names`."""
    return lambda roots: names.update(node.name() for node in nodes_below(roots))


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
