"""Tells what is in force for all of torch, or in this thread: modes, hooks, and how deep blocks and transforms nest."""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable, Dict, List, Tuple

import torch

SWITCHED = """is_grad_enabled is_inference_mode_enabled is_anomaly_enabled is_anomaly_check_nan_enabled
    get_default_dtype are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled
    is_warn_always_enabled is_autocast_enabled is_autocast_cache_enabled get_num_threads"""
# The first two have what C++ has turned off, autograd itself included, if its guards were not released in order.
NESTED = """_dispatch_tls_local_include_set _dispatch_tls_local_exclude_set _len_torch_function_stack
    _len_torch_dispatch_stack"""
KEPT = "_is_view_replay_enabled _is_grad_layout_enforcement_enabled _warn_on_accumulate_grad_stream_mismatch"


def getters_of(place: Any, names: str) -> Dict[str, Callable[[], Any]]:
    """Return those functions of a module that this release has, by name."""
    return {name: getattr(place, name) for name in names.split() if hasattr(place, name)}


def nesting() -> Dict[str, Callable[[], Any]]:
    """Return the functions that tell what only the end of its own block, or of a call, puts back."""
    return {
        **getters_of(torch._C, NESTED),
        **getters_of(torch._C._autograd, "_saved_tensors_hooks_is_enabled"),
        **getters_of(getattr(torch._C, "_functorch", None), "maybe_current_level"),
        "of_modules": switches_of_modules,
        "autocast_nesting": autocast_nesting,
    }


@functools.lru_cache(maxsize=None)
def all_getters() -> Dict[str, Callable[[], Any]]:
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return {
        **getters_of(torch, SWITCHED),
        **getters_of(torch._C, KEPT),
        **getters_of(torch.autograd, "is_multithreading_enabled"),
        **nesting(),
        "saved_tensor_hooks": lambda: hooks is not None and hooks(True) is not None,
        "autocast_on_cpu": autocast_on_cpu,
        "forward_level": lambda: getattr(torch.autograd.forward_ad, "_current_level", None),
    }


def global_state() -> Dict[str, str]:
    """Return what is in force, as text by name, to be compared with what is in force later."""
    return {name: str(get()) for name, get in all_getters().items()}


def autocast_on_cpu() -> bool:
    try:
        return bool(torch.is_autocast_enabled("cpu"))
    except TypeError:
        return bool(torch.is_autocast_cpu_enabled())  # before 2.4


def autocast_nesting() -> int:
    """Return how many autocast blocks are open: as long as there are any, casts of weights are kept for the next."""
    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())


@functools.lru_cache(maxsize=None)
def places_of_switches() -> List[Tuple[Dict[str, Any], str]]:
    places = [vars(importlib.import_module(name)) for name in ("torch.utils.checkpoint", "torch.nn.utils.parametrize")]
    return [(place, name) for place in places for name in place if name[:2] != "__" and is_switch(place[name])]


def switches_of_modules() -> Dict[str, Any]:
    """Return the switches that checkpointing and parametrizations keep in variables of their modules."""
    return {name: place.get(name) for place, name in places_of_switches()}


def is_switch(value: object) -> bool:
    return value is None or isinstance(value, (bool, int)) or (isinstance(value, str) and value.isidentifier())
