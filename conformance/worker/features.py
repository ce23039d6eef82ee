"""Finds out which features a device has, by trying each by itself."""

from __future__ import annotations

import copy
import importlib
import warnings
from typing import Any, Callable, Dict

import torch

from conformance.worker.functions import in_thread, pickled
from conformance.worker.lacking import is_out_of_memory, message_of
from conformance.worker.storage import keeps_strides

DOUBLES = ("float64", "complex128")
SINGLE, DOUBLE = 1e-6, 1e-14  # the most that results near 1 may be off in single and in double precision
BECOMES = "tensors become"  # another dtype
WRONG = "gives other results"  # a device that does this has the feature, and a fault


class Own(torch.Tensor):  # type: ignore[misc]  # torch has no types for it
    """A class of tensors that adds nothing."""


class LessPrecise(Exception):
    """A device accepts a dtype and does not keep its digits."""


class Contiguous(Exception):
    """A device lays out each tensor anew."""


class OwnWords(Exception):
    """Tensors of a device are of a class that shows itself in its own way."""


class Filled(Exception):
    """A device makes zeros that formulas can't tell from other tensors."""


def name_of_dtype(dtype: torch.dtype) -> str:
    return str(dtype).rpartition(".")[2]


def device_module(device: str) -> Any:
    """Return the module of a device, such as torch.npu, or None."""
    return getattr(torch, device.partition(":")[0], None)


def can(operation: Callable[..., Any], device: str) -> bool:
    """Whether a device has an operation at all: in single precision."""
    there = torch.ones(2).to(device)
    try:
        operation(there, there) if operation is torch.add else operation(there)
    except Exception:
        return False
    return True


def keep(tensor: torch.Tensor, dtype: torch.dtype) -> None:
    """Raise an error if a tensor that was given a dtype has another."""
    if tensor.dtype is not dtype:
        raise LessPrecise(f"{BECOMES} {name_of_dtype(tensor.dtype)}")


def has_dtype(dtype: torch.dtype) -> Callable[[str], Any]:
    def probe(device: str) -> Any:
        there = torch.ones(2).to(dtype).to(device)
        keep(there, dtype)
        if not can(torch.add, device):  # which says nothing of the dtype
            return (there.cpu() == torch.ones(2).to(dtype)).all()
        return ((there + there).cpu() == torch.full((2,), 2).to(dtype)).all()

    return probe


def has_double(dtype: torch.dtype) -> Callable[[str], Any]:
    """Return the probe of a dtype in double precision, which some devices accept and compute in single precision."""

    def probe(device: str) -> Any:
        wanted = torch.tensor([1 / 3, 0.7], dtype=dtype)
        there = wanted.to(device)
        keep(there, dtype)
        for operation in (torch.clone, torch.exp, torch.square):
            if operation is not torch.clone and not can(operation, device):
                continue  # it is missing in every dtype
            difference = (operation(there).cpu() - operation(wanted)).abs().max().item()
            if difference > SINGLE:
                return False
            if difference > DOUBLE:
                raise LessPrecise("computed in single precision")
        return True

    return probe


def has_strides(device: str) -> Any:
    if not keeps_strides(device.partition(":")[0]):
        raise Contiguous("a transposed tensor has the strides of any other")
    matrix = torch.arange(6.0).reshape(2, 3)
    return (matrix.to(device).t() + 1).cpu().tolist() == (matrix.t() + 1).tolist()


def has_aliasing_views(device: str) -> Any:
    matrix = torch.zeros(2, 2).to(device)
    matrix[0].add_(1.0)
    return matrix.cpu().tolist() == [[1.0, 1.0], [0.0, 0.0]]


def has_storage(device: str) -> Any:
    tensor = torch.ones(2).to(device)
    return (tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()).data_ptr() != 0


def has_device_module(device: str) -> Any:
    return getattr(torch, device.partition(":")[0]) is not None


def has_streams(device: str) -> Any:
    return device_module(device).current_stream() is not None


def has_amp(device: str) -> Any:
    with torch.autocast(device.partition(":")[0]):
        return True


def has_sparse(device: str) -> Any:
    return torch.eye(2).to_sparse().to(device).to("cpu").to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]


def has_nested(device: str) -> Any:
    make = getattr(torch.nested, "nested_tensor_from_jagged", None)
    if make is None:  # this torch has none
        return True
    nested = make(torch.ones(3, 2).to(device), offsets=torch.tensor([0, 1, 3]).to(device))
    return (nested * 2).values().cpu().tolist() == [[2.0, 2.0]] * 3


def has_zero_tensors(device: str) -> Any:
    if not torch._efficientzerotensor((2,), device=device)._is_zerotensor():
        raise Filled("zeros without memory are tensors like any others")
    return True


def has_empty(device: str) -> Any:
    return (torch.ones(0, 2).to(device) + 1).cpu().shape == (0, 2)


def has_random_state(device: str) -> Any:
    return device_module(device).get_rng_state() is not None


def has_deepcopy(device: str) -> Any:
    return copy.deepcopy(torch.ones(2).to(device)).cpu().tolist() == [1.0, 1.0]


def has_pickle(device: str) -> Any:
    return pickled(torch.ones(2).to(device)).cpu().tolist() == [1.0, 1.0]


def has_threads(device: str) -> Any:
    def backward(*_: Any) -> Any:
        leaf = torch.ones(2).to(device).requires_grad_()
        with torch.enable_grad():
            (leaf * 2).backward(torch.ones_like(leaf))
        return leaf.grad

    if not can(backward, device):  # which says nothing of threads
        return True
    return in_thread(backward).cpu().tolist() == [2.0, 2.0]


def has_subclasses(device: str) -> Any:
    return type(torch.ones(2).to(device).as_subclass(Own) + 1) is Own


def has_repr(device: str) -> Any:
    leaf = torch.ones(2).to(device).requires_grad_()
    if type(leaf).__repr__ is not torch.Tensor.__repr__:
        raise OwnWords(f"{type(leaf).__module__}.{type(leaf).__name__} has a repr() of its own")
    return "requires_grad=True" in repr(leaf)


def double(there: torch.Tensor) -> torch.Tensor:
    return there * 2


def has_functionalization(device: str) -> Any:
    functionalize = getattr(getattr(torch, "func", None), "functionalize", None)
    if functionalize is None or not can(double, device):  # before torch 2.0, or for another reason
        return True
    return functionalize(double)(torch.ones(2).to(device)).cpu().tolist() == [2.0, 2.0]


def has_tracing(device: str) -> Any:
    if not can(double, device):  # for another reason
        return True
    there = torch.ones(2).to(device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is deprecated
        return torch.jit.trace(double, there, check_trace=False)(there).cpu().tolist() == [2.0, 2.0]


def has_compiler(device: str) -> Any:
    if not hasattr(torch, "compile") or not can(double, device):  # before torch 2.0, or for another reason
        return True
    importlib.import_module("torch._dynamo").reset()
    return torch.compile(double, backend="aot_eager")(torch.ones(2).to(device)).cpu().tolist() == [2.0, 2.0]


def generates_code(device: str) -> Any:
    if not hasattr(torch, "compile") or not can(double, device):  # before torch 2.0, or for another reason
        return True
    importlib.import_module("torch._dynamo").reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its modules use what others of torch call deprecated
        return torch.compile(double, backend="inductor")(torch.ones(2).to(device)).cpu().tolist() == [2.0, 2.0]


# Each is given a device, and returns something false or raises an error where the device lacks the feature.
FEATURES: Dict[str, Callable[[str], Any]] = {
    **{
        name: has_dtype(getattr(torch, name))
        for name in ("float16", "bfloat16", "complex64", "int64", "int32", "uint8", "bool")
    },
    **{name: has_double(getattr(torch, name)) for name in DOUBLES},
    "strides": has_strides,
    "aliasing-views": has_aliasing_views,
    "storage": has_storage,
    "sparse": has_sparse,
    "nested": has_nested,
    "zero-tensors": has_zero_tensors,
    "empty": has_empty,
    "device-module": has_device_module,
    "random-state": has_random_state,
    "streams": has_streams,
    "amp": has_amp,
    "deepcopy": has_deepcopy,
    "pickle": has_pickle,
    "threads": has_threads,
    "subclasses": has_subclasses,
    "repr": has_repr,
    "functionalization": has_functionalization,
    "tracing": has_tracing,
    "compiler": has_compiler,
    "generated-code": generates_code,
}


def why_missing(feature: str, device: str) -> str:
    """Return why a device lacks a feature: an error, or that it does something else; "" when it has it."""
    try:
        with torch.no_grad():
            return "" if FEATURES[feature](device) else WRONG
    except Exception as error:
        return "" if is_out_of_memory(error) else message_of(error)
