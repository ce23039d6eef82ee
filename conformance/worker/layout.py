"""Tells whether a case differs only for how tensors lie in memory, on a device that keeps that in no tensor.

Where each tensor is contiguous, contiguous() of a transposed one is that tensor, and so is a tangent that would have to
be copied for its strides. Where tensors have no storage that two can be made to share, deepcopy() has nothing to share.
What a device drops is seen in the case: each view is compared with the one that PyTorch makes of tensors without data.
Only that something was not copied, or not shared by copies, is explained so, and never a gradient.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from conformance.worker.storage import keeps_strides, shares_storage
from conformance.worker.values import flipped

IDENTITY = re.compile(r"\bis\b")
OF_STRIDES = re.compile(r"\bstrides?\b")
OF_COPIES = ("CloneBackward0", "UnsafeViewBackward0")  # the nodes of contiguous() and reshape() where they copy
BY_STRIDES = "AsStridedBackward0"  # the node of a view that only its strides describe
APART = "memory of its own"


class Layouts(TorchFunctionMode):  # type: ignore[misc]  # torch has no types for it
    """While it is on, notes what a device drops: strides, storage, and conjugation of views, and sharing of copies."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device
        self.kind = device.partition(":")[0]
        self.dropped: Set[str] = set()
        self.copies: List[Tuple[Any, torch.Tensor, torch.Tensor]] = []  # with the memo of their deepcopy() call

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.device.type == self.kind:
            with contextlib.suppress(Exception):  # what can't be compared says nothing
                if func is torch.Tensor.__deepcopy__:
                    self.compare_copies(args[1], args[0], result)
                else:
                    self.dropped |= dropped_by(func, (args, kwargs or {}), result)
        return result

    def compare_copies(self, memo: Any, tensor: torch.Tensor, copy: torch.Tensor) -> None:
        for other_memo, other, its_copy in self.copies:
            if other_memo is memo and shares_storage(tensor, other) and not shares_storage(copy, its_copy):
                self.dropped.add("sharing")
        self.copies.append((memo, tensor, copy))

    def why_different(self, failures: Sequence[Dict[str, Any]]) -> Optional[str]:
        """Return why a case that failed so must do so on this device, or None where it is at fault."""
        if is_apart(failures):
            return f"{self.device} has no storage that copies can share" if "sharing" in self.dropped else None
        dropped = self.dropped - {"sharing"}
        if all(map(is_of_replay, failures)) and not keeps_strides(self.kind):
            dropped.add("strides")
        told = " and ".join(sorted(dropped))
        return f"{self.device} keeps no {told} of views, for which others are copied" if told else None


def may_be_of_layout(failures: Sequence[Dict[str, Any]]) -> bool:
    """Whether failures say no more than that something was not copied, or that copies don't share."""
    return bool(failures) and all(map(is_of_copies if is_apart(failures) else is_uncopied, failures))


def is_apart(failures: Sequence[Dict[str, Any]]) -> bool:
    """Whether memory is not shared that should be."""
    return any(failure["observed"] == APART for failure in failures)


def is_uncopied(failure: Dict[str, Any]) -> bool:
    """Whether something is the same, shares memory or is a view, which it is not where strides force a copy."""
    path, expected, observed = failure["path"], failure["expected"], failure["observed"]
    return bool(
        observed in ("the same object", "the same memory")
        or expected == "null: no view"
        or (path.endswith(".grad_fn") and expected in OF_COPIES)
        or (IDENTITY.search(path) and (expected, observed) == ("false", "true"))
        or (path == "raises" and OF_STRIDES.search(expected))
        or is_of_replay(failure)
    )


def is_of_replay(failure: Dict[str, Any]) -> bool:
    """Whether a view was made again by its own operation, in place of its strides."""
    return BY_STRIDES in failure["expected"] and BY_STRIDES not in failure["observed"]


def is_of_copies(failure: Dict[str, Any]) -> bool:
    """Whether a copy doesn't share memory with another, or has values that were not written through that."""
    is_value = "." not in failure["path"] and failure["path"] not in ("raises", "warns", "log")
    return "exception" not in failure and (failure["observed"] == APART or is_value)


def dropped_by(func: Any, arguments: Any, view: torch.Tensor) -> Set[str]:
    """Return what a view lacks that PyTorch gives one of tensors without data; nothing if it is no view."""
    leaves, structure = tree_flatten(arguments)
    bases = [each for each in leaves if isinstance(each, torch.Tensor)]
    if any(each is view for each in bases) or not any(shares_storage(view, each) for each in bases):
        return set()
    plain = [without_data(each) if isinstance(each, torch.Tensor) else each for each in leaves]
    with torch.no_grad():
        args, kwargs = tree_unflatten(plain, structure)
        wanted = func(*args, **kwargs)
    found = set()
    if wanted.stride() != view.stride() or wanted.storage_offset() > view.storage_offset():
        found.add("strides")
    if has_storage_of_its_size(view) and not has_storage_of_its_size(wanted):
        found.add("storage")
    if wanted.is_conj() != view.is_conj() or wanted.is_neg() != view.is_neg():
        found.add("conjugation")
    return found


def has_storage_of_its_size(tensor: torch.Tensor) -> bool:
    """Whether the storage of a tensor has no more elements than the tensor, as far as autograd can tell."""
    apart = torch.empty(tuple(tensor.shape), dtype=tensor.dtype, device=tensor.device)
    try:
        return bool(torch.ops.aten._has_same_storage_numel(tensor, apart))
    except Exception:  # it has none to ask, and may have dropped its strides all the same
        return False


def without_data(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta")
    return flipped(made, tensor.is_conj(), tensor.is_neg())
