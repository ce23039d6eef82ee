"""Tells how tensors lie in memory, as far as their device shows it, and whether two share it.

On the CPU and on CUDA that is the address of their storage. Elsewhere a tensor may have no storage, an address that
means nothing, or one of its own for each view. There each way is tried first, on tensors that are known to share
memory and on one that doesn't, and the first that tells them apart is taken.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Callable, List, Optional

import torch

from conformance.worker.values import FULL_DEVICES, Unobservable, on_cpu, plain

OF_ADDRESS = re.compile(r"\.data_ptr\(")
OF_CONJUGATION = re.compile(r"\.is_(?:conj|neg)\(")
OF_STRIDES = re.compile(r"\.(?:stride|storage_offset|is_contiguous)\(")

Way = Callable[[torch.Tensor, torch.Tensor], bool]


def shares_storage(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors share memory; raises Unobservable where their device has no way to tell."""
    kind = first.device.type
    if kind in FULL_DEVICES:
        return have_one_address(first, second)
    if kind != second.device.type:
        return False
    way = way_of(kind)
    if way is None:
        raise Unobservable(f"{kind} shows in no way whether tensors share memory")
    try:
        return way(first, second)
    except Unobservable:
        raise
    except Exception as error:  # unusual tensors, such as those of another layout
        raise Unobservable(plain(error)) from None


def why_hidden(text: str, device: str) -> str:
    """Return why an expression of a case can't look at memory on a device; "" if it can, or doesn't."""
    kind = device.partition(":")[0]
    if OF_ADDRESS.search(text) and not has_addresses(kind):
        return f"{kind} shows no addresses"
    if OF_CONJUGATION.search(text) and not notes_conjugation(kind):
        return f"{kind} notes no conjugation"
    return f"{kind} keeps no strides" if OF_STRIDES.search(text) and not keeps_strides(kind) else ""


@functools.lru_cache(maxsize=None)
def has_addresses(kind: str) -> bool:
    """Whether tensors of a device have addresses that tell them apart."""
    if kind in FULL_DEVICES:
        return True
    with torch.inference_mode(False), torch.no_grad():
        try:
            first, other = (torch.zeros(2, dtype=torch.float32).to(kind) for _ in range(2))
            return bool(first.data_ptr() == first.detach().data_ptr() != other.data_ptr() != 0)
        except Exception:
            return False


@functools.lru_cache(maxsize=None)
def keeps_strides(kind: str) -> bool:
    """Whether a device keeps the elements of a transposed or expanded tensor where they are."""
    if kind in FULL_DEVICES:
        return True
    with torch.inference_mode(False), torch.no_grad():
        try:
            tensor = torch.zeros((2, 3), dtype=torch.float32).to(kind)
            return bool(tensor.t().stride() == (1, 3) or tensor[:1].expand(2, 3).stride() == (0, 1))
        except Exception:
            return True  # the check itself will say what is wrong


@functools.lru_cache(maxsize=None)
def notes_conjugation(kind: str) -> bool:
    """Whether conj() on a device only notes that a tensor is conjugated."""
    if kind in FULL_DEVICES:
        return True
    with torch.inference_mode(False), torch.no_grad():
        try:
            return bool(torch.zeros(2, dtype=torch.complex64).to(kind).conj().is_conj())
        except Exception:
            return True  # the check itself will say what is wrong


def have_one_address(first: torch.Tensor, second: torch.Tensor) -> bool:
    pointers = [storage_pointer(first), storage_pointer(second)]
    if 0 not in pointers:
        return pointers[0] == pointers[1]
    return hasattr(torch._C, "_is_alias_of") and are_aliases(first, second)  # empty tensors


def are_aliases(first: torch.Tensor, second: torch.Tensor) -> bool:
    return bool(torch._C._is_alias_of(first, second))  # newer than torch 1.13


def storage_pointer(tensor: torch.Tensor) -> int:
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return int(storage.data_ptr())


def write_is_seen(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether a write through `first` changes `second`; afterwards both are as before, and so are their versions.

    Raises Unobservable if that can't be tried, or if they may be different parts of one memory.
    """
    alias = first.data  # has a version counter of its own
    before, kept = state_of(first, second), on_cpu(alias).clone()
    try:
        alias.copy_((kept == 0).to(kept.dtype))  # differs from each number, also from NaN
        during = state_of(first, second)
    finally:
        alias.copy_(kept)
    if state_of(first, second) != before:
        raise Unobservable("a write to it can't be taken back")
    if during[0] == before[0]:
        raise Unobservable("a write through its data is not seen in itself")
    if during[1] != before[1]:
        return True
    if first._base is second or second._base is first or geometry_of(first) == geometry_of(second):
        return False
    raise Unobservable("they may be different parts of one memory")


def state_of(*tensors: torch.Tensor) -> List[Any]:
    """Return the contents and versions of tensors as text; NaN is the same as NaN."""
    versions = [None if tensor.is_inference() else tensor._version for tensor in tensors]
    return [*(str(on_cpu(tensor).tolist()) for tensor in tensors), *versions]


def geometry_of(tensor: torch.Tensor) -> Any:
    return tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype


@functools.lru_cache(maxsize=None)
def way_of(kind: str) -> Optional[Way]:
    """Return the first way that is right about tensors of a device, or None."""
    with torch.inference_mode(False), torch.no_grad():
        try:
            first, other = (torch.tensor([1.0, 2.0], dtype=torch.float32).to(kind) for _ in range(2))
            pairs = [(first, other), (first, first.detach()), (first, first.view(2, 1))]
        except Exception:
            return None
        try:
            right = [write_is_seen(*pair) for pair in pairs]  # a view may be a copy
        except Exception:
            right = [False, True, True]
        for way in (are_aliases, have_one_address, write_is_seen):
            try:
                if [way(*pair) for pair in pairs] == right:
                    return way
            except Exception:  # noqa: S112 - it doesn't answer on this device
                continue
    return None
