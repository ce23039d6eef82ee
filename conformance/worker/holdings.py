"""Finds the tensors and nodes in the variables of a case, also inside lists, modules and other objects."""

from __future__ import annotations

import contextlib
import types
from typing import Any, Dict, Iterable, Iterator, Set, Tuple

import torch

from conformance.worker.sandbox import MODULE
from conformance.worker.values import is_node

MOST_ITEMS = 100  # of one list or mapping
DEPTH = 6
SIMPLE = (bool, int, float, complex, str, type(None), type, types.FunctionType, types.MethodType, torch.dtype)


def held(names: Dict[str, Any]) -> Iterator[Tuple[str, Any]]:
    """Yield the tensors and nodes in `names`, each with an expression for it."""
    seen: Set[int] = set()
    for name, value in list(names.items()):
        if isinstance(value, torch.Tensor):
            yield name, value
        elif type(value) not in SIMPLE and not name.startswith("__"):
            with contextlib.suppress(Exception):
                yield from within(name, value, seen, DEPTH)


def within(name: str, value: Any, seen: Set[int], depth: int) -> Iterator[Tuple[str, Any]]:
    """Yield the tensors and nodes in a value that isn't a tensor."""
    if not depth or id(value) in seen:
        return
    seen.add(id(value))
    parts: Iterable[Tuple[str, Any]] = ()
    if isinstance(value, (list, tuple)):
        parts = ((f"[{index}]", item) for index, item in enumerate(value[:MOST_ITEMS]))
    elif isinstance(value, dict):
        parts = ((f"[{key!r}]", item) for key, item in list(value.items())[:MOST_ITEMS])
    elif isinstance(value, torch.nn.Module) or type(value).__module__ == MODULE:
        parts = attributes(value)
    elif is_node(value):
        yield name, value
    for part, item in parts:
        if isinstance(item, torch.Tensor):
            yield name + part, item
        elif type(item) not in SIMPLE:
            yield from within(name + part, item, seen, depth - 1)


def attributes(owner: Any) -> Iterator[Tuple[str, Any]]:
    """Yield the public attributes of a module, or of an instance of a class of the case."""
    values = vars(owner)
    for kind in ("_parameters", "_buffers", "_modules"):
        for name, value in list(values.get(kind, {}).items()):
            yield f"[{name}]" if name.isdigit() else f".{name}", value
    if type(owner).__module__ == MODULE:  # modules of torch have nothing else of interest
        for name, value in list(values.items()):
            if not name.startswith("_") and type(value) not in SIMPLE:
                yield f".{name}", value
