"""Modes for `--under`: one that is as it should be, and others that aren't."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


@contextmanager
def that_does_nothing() -> Iterator[None]:
    yield


class DroppingMode(TorchFunctionMode):  # type: ignore[misc]
    """Cuts products off from their second operands."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in (torch.mul, torch.Tensor.mul) and len(args) == 2 and isinstance(args[1], torch.Tensor):
            args = (args[0], args[1].detach())
        return func(*args, **(kwargs or {}))


def that_drops_a_gradient() -> AbstractContextManager[Any]:
    return DroppingMode()


def that_swaps_saved_tensors() -> Any:
    """Hooks that give back the tensor that was saved before, where it has the same shape."""
    saved: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> int:
        saved.append(tensor.detach())
        return len(saved) - 1

    def unpack(place: int) -> torch.Tensor:
        before = saved[max(place - 1, 0)]
        return before if before.shape == saved[place].shape else saved[place]

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


@contextmanager
def that_forgets_to_restore() -> Iterator[None]:
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float64)
    yield


@contextmanager
def that_forgets_to_restore_after_an_error() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def that_is_none() -> AbstractContextManager[Any]:
    raise OSError("on purpose")


class DoublingMode(TorchFunctionMode):  # type: ignore[misc]
    """Makes products twice as large as they are."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        return result + result if func is torch.Tensor.mul else result


def that_doubles_products() -> AbstractContextManager[Any]:
    return DoublingMode()
