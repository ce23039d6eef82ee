"""A tensor that holds another and passes each operation on to it, as tensors of libraries do."""

from __future__ import annotations

from typing import Any

import torch


class Wrapped(torch.Tensor):  # type: ignore[misc]
    """A tensor without memory of its own; operations see it below autograd, which records for it as for any other."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: Any, held: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=held.device,
        )

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    def __repr__(self) -> str:
        return f"Wrapped({self.held!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from torch.utils._pytree import tree_map  # noqa: PLC0415 - not for those who make none

        kwargs = kwargs or {}
        given, named = tree_map(unwrapped, (args, kwargs))
        result = tree_map(lambda value: cls(value) if isinstance(value, torch.Tensor) else value, func(*given, **named))
        written = [written_argument(func._schema, returned, args, kwargs) for returned in func._schema.returns]
        if all(argument is None for argument in written):
            return result
        if len(written) == 1:
            return written[0]
        return tuple([value if argument is None else argument for value, argument in zip(result, written)])


def written_argument(schema: Any, returned: Any, args: Any, kwargs: Any) -> Any:
    """Return the argument that an operation writes to and returns in this place, or None."""
    if returned.alias_info is None or not returned.alias_info.is_write:
        return None
    for index, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.before_set == returned.alias_info.before_set:
            return args[index] if index < len(args) else kwargs[argument.name]
    return None


def wrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Return a leaf that holds `tensor`, without a graph."""
    made: torch.Tensor = Wrapped(tensor.detach())
    return made


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Return what a tensor holds, or the tensor if it holds none."""
    held: torch.Tensor = getattr(tensor, "held", tensor)
    return held
