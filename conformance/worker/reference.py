"""Evaluates the expressions of expectations on float64 CPU copies of the tensors under test."""

from __future__ import annotations

import contextlib
import copy
import functools
import types
from typing import Any, Callable, Dict, FrozenSet, List, Set, Tuple

import torch

from conformance.worker.values import on_cpu


def reference_of(value: Any) -> Any:
    """Return a detached copy of `value` on the CPU, in float64 or complex128 unless it is integral.

    Tensors are copied with their gradients, and tuples, lists, dicts and modules with their contents. Anything else is
    returned unchanged.
    """
    if isinstance(value, torch.Tensor):
        return wide_with_grad(value)
    if isinstance(value, torch.nn.Module):
        return wide_module(value)
    if isinstance(value, dict):
        return {key: reference_of(item) for key, item in value.items()}
    if isinstance(value, list):
        return [reference_of(item) for item in value]
    if isinstance(value, tuple):
        items = [reference_of(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)  # a named tuple
    return value


def wide_with_grad(tensor: torch.Tensor) -> torch.Tensor:
    copied = wide(tensor)
    if tensor.grad is not None:
        copied.grad = wide(tensor.grad)
    return copied


def wide_module(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a module with its gradients, which deepcopy leaves out.

    deepcopy finds each tensor copied already, so that its device need not be able to copy one.
    """
    copies: Dict[int, Any] = {}
    for part in module.modules():
        for held in (part._parameters, part._buffers, vars(part)):
            for tensor in held.values():
                if isinstance(tensor, torch.Tensor) and not torch.nn.parameter.is_lazy(tensor):
                    copies[id(tensor)] = wide_alike(tensor)
    return copy.deepcopy(module, copies).to("cpu")


def wide_alike(tensor: torch.Tensor) -> torch.Tensor:
    """Return a wide copy that is a parameter with its gradient if `tensor` is one."""
    copied = wide(tensor)
    if not isinstance(tensor, torch.nn.Parameter):
        return copied
    parameter = torch.nn.Parameter(copied, requires_grad=False)
    parameter.grad = None if tensor.grad is None else wide(tensor.grad)
    return parameter


def wide(tensor: torch.Tensor) -> torch.Tensor:
    moved = on_cpu(tensor)
    dense = moved if moved.layout is torch.strided else moved.to_dense()
    dtype = (
        torch.complex128 if dense.dtype.is_complex else torch.float64 if dense.dtype.is_floating_point else dense.dtype
    )
    return dense.to(dtype=dtype, copy=True)


def is_function_of(names: Dict[str, Any], value: object) -> bool:
    return isinstance(value, types.FunctionType) and value.__globals__ is names


@functools.lru_cache(maxsize=None)
def names_in(code: types.CodeType) -> FrozenSet[str]:
    """Return the names that an expression looks up, also in inner lambdas and comprehensions."""
    inner = [names_in(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return frozenset(code.co_names).union(*inner)


def in_double_precision(evaluate: Callable[[], Any]) -> Any:
    """Return the result of `evaluate` with float64 as the default dtype and gradients disabled."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            return evaluate()
    finally:
        torch.set_default_dtype(default)


def add_copies(copies: Dict[str, Any], code: types.CodeType, names: Dict[str, Any], offered: Dict[str, Any]) -> None:
    """Add copies of the variables that code looks up, but not of what is offered to every case.

    A function of the case becomes one that looks up copies itself, whether it is a variable or captured by another.
    """
    waiting = [code]
    cells: List[Tuple[types.CellType, types.CellType]] = []  # of the case's functions, and of their copies
    known: Set[str] = set()
    made: Dict[int, types.FunctionType] = {}  # a function may capture itself

    def is_variable(name: str) -> bool:  # compiled() puts beside the variables what is offered
        return name in names and not name.startswith("__") and names[name] is not offered.get(name, names)

    # Not recursive: a function that holds itself would hold `names` until the next collection of garbage.
    def copy_of(value: Any) -> Any:
        if not is_function_of(names, value):
            return reference_of(value)
        if id(value) not in made:
            waiting.append(value.__code__)
            own = value.__closure__ or ()
            copied_cells = tuple(types.CellType() for _ in own)
            cells.extend(zip(own, copied_cells))
            made[id(value)] = copied = types.FunctionType(
                value.__code__, copies, value.__name__, reference_of(value.__defaults__), copied_cells or None
            )
            copied.__kwdefaults__ = reference_of(value.__kwdefaults__)
        return made[id(value)]

    while waiting or cells:
        if cells:
            own, copied = cells.pop()
            with contextlib.suppress(ValueError):  # it is empty
                copied.cell_contents = copy_of(own.cell_contents)
            continue
        needed = {name for name in names_in(waiting.pop()) if is_variable(name)} - known
        known |= needed
        copies.update({name: copy_of(names[name]) for name in needed})


class References:
    """Evaluates expressions with the current values of a case's variables."""

    def __init__(self, offered: Dict[str, Any]) -> None:
        self.offered = offered

    def evaluate(self, code: types.CodeType, names: Dict[str, Any]) -> Any:
        copies: Dict[str, Any] = {
            "__builtins__": self.offered, "__offered__": self.offered, "__name__": names["__name__"]
        }  # fmt: skip
        add_copies(copies, code, names, names["__offered__"])
        copies.setdefault("device", "cpu")
        copies["dtype"] = torch.float64
        return in_double_precision(lambda: eval(code, copies))
