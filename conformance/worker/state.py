"""Gives each case the same world: seeds and modes are set before it, and put back after it."""

from __future__ import annotations

import gc
import warnings
from typing import Any, Callable, List, Tuple

import torch

SEED = 0
FULL_COLLECTION = 100  # every how many cases all garbage is collected, not only the last case's


def prepare_process() -> None:
    """Make this process fit for many cases: no collection at a time of its own choosing, every warning every time."""
    torch.set_warn_always(True)
    torch.set_num_threads(1)  # cases are small; idle threads would only spin where pytest wants to work
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases have other names for these
        torch.backends.cuda.matmul.allow_tf32 = False  # products of 10 bits would be no float32
        torch.backends.cudnn.allow_tf32 = False
    gc.collect()
    gc.freeze()  # torch's own objects live as long as the process; what a case leaves behind is found quickly
    gc.disable()


def settings() -> List[Tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Return the (get, set) pairs of the modes that a case can change."""
    pairs: List[Tuple[Callable[[], Any], Callable[[Any], Any]]] = [
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        (torch.is_warn_always_enabled, torch.set_warn_always),
        (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
        (torch.get_num_threads, torch.set_num_threads),
    ]
    is_multithreaded = getattr(torch.autograd, "is_multithreading_enabled", None)
    if is_multithreaded is not None:
        pairs.append((is_multithreaded, torch.autograd.set_multithreading_enabled))
    return pairs


class World:
    """The modes as they were when the worker started; `restore` brings them back."""

    def __init__(self) -> None:
        self.cases = 0
        self.before = [(get, put, get()) for get, put in settings()]

    def begin(self, device: str, dtype: torch.dtype, generator: torch.Generator) -> None:
        if device == "cpu":
            torch.default_generator.manual_seed(SEED)
        else:
            torch.manual_seed(SEED)  # every device's; much slower, since it keeps a stack trace for CUDA
        generator.manual_seed(SEED)
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)

    def restore(self) -> None:
        # Before the modes, since a generator that a case left open restores its own when it goes. What the
        # case made is in the youngest generation; the others hold leavings of many cases, and can wait.
        self.cases += 1
        gc.collect() if self.cases % FULL_COLLECTION == 0 else gc.collect(0)
        level = getattr(torch.autograd.forward_ad, "_current_level", -1)
        while level >= 0:
            torch.autograd.forward_ad.exit_dual_level()
            level -= 1
        for get, put, value in self.before:
            if get() != value:
                put(value)
