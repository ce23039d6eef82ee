"""Evaluates the expressions of expectations on float64 CPU copies, apart from the tensors under test."""

from __future__ import annotations

import copy
import types
from typing import Any, Dict

import torch


def reference_of(value: Any) -> Any:
    """Return a detached copy of `value` on the CPU, in float64 or complex128 where it isn't integral.

    A tensor's copy carries a copy of its gradient; lists, tuples and dicts are copied with what they
    hold; a module becomes a copy whose parameters and buffers are such copies. Anything else is
    returned as it is.
    """
    if isinstance(value, torch.Tensor):
        copied = wide(value)
        if value.grad is not None:
            copied.grad = wide(value.grad)
        return copied
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(reference_of(item) for item in value)
    if type(value) is dict:
        return {key: reference_of(item) for key, item in value.items()}
    if isinstance(value, torch.nn.Module):
        return Copied(value)
    return value


def wide(tensor: torch.Tensor) -> torch.Tensor:
    dense = tensor.detach() if tensor.layout is torch.strided else tensor.detach().to_dense()
    dtype = (
        torch.complex128 if dense.dtype.is_complex else torch.float64 if dense.dtype.is_floating_point else dense.dtype
    )
    return dense.to(device="cpu", dtype=dtype, copy=True)


class Copied:
    """A module as expressions see it: each attribute is a reference of the module's."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return reference_of(getattr(self._module, name))

    def __getitem__(self, index: Any) -> Any:
        return reference_of(self._module[index])

    def __call__(self, *args: Any) -> Any:
        return copy.deepcopy(self._module).to(device="cpu", dtype=torch.float64)(*args)


class References:
    """Evaluates expressions against what a case's names hold now."""

    def __init__(self, offered: Dict[str, Any]) -> None:
        self.offered = offered

    def evaluate(self, code: types.CodeType, names: Dict[str, Any]) -> Any:
        copies: Dict[str, Any] = {"__builtins__": self.offered, "__name__": names["__name__"]}
        for name in code.co_names:
            if name in names and not name.startswith("__"):
                copies[name] = reference_of(names[name])
        copies.setdefault("device", "cpu")
        copies["dtype"] = torch.float64
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            with torch.no_grad():
                return eval(code, copies)
        finally:
            torch.set_default_dtype(default)
