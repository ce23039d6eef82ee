"""Gives each case the same world: seeds and modes are set before it, and put back after it."""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import sys
import warnings
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Tuple

import torch

from conformance.worker.sandbox import MODULE

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
    with contextlib.suppress(Exception):  # a build without a compiler, or what that needs, does without all this
        if torch.__version__.startswith("2.3."):  # imported for the first time inside a transform, it stays broken
            importlib.import_module("torch._dynamo")
        if torch.__version__.startswith(("2.0.", "2.1.", "2.2.")):
            undo_patches()
    gc.collect()
    gc.freeze()  # torch's own objects live as long as the process; what a case leaves behind is found quickly
    gc.disable()


def settings() -> List[Tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Return the (get, set) pairs of the modes that a case can change."""
    pairs: List[Tuple[Callable[[], Any], Callable[[Any], Any]]] = [
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.get_default_dtype, torch.set_default_dtype),
        (anomaly_mode, lambda mode: torch.autograd.set_detect_anomaly(*mode)),
        (torch.is_warn_always_enabled, torch.set_warn_always),
        (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
        (torch.get_num_threads, torch.set_num_threads),
    ]
    is_multithreaded = getattr(torch.autograd, "is_multithreading_enabled", None)
    if is_multithreaded is not None:
        pairs.append((is_multithreaded, torch.autograd.set_multithreading_enabled))
    for get, put in SWITCHES:
        if hasattr(torch._C, get):
            pairs.append((getattr(torch._C, get), getattr(torch._C, put)))
    return pairs


def anomaly_mode() -> Tuple[bool, bool]:
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def undo_patches() -> None:
    """Have the compiler patch torch now, as it does once, and give optimizers back the hooks that it takes away."""
    classes = [cls for cls in vars(torch.optim).values() if isinstance(cls, type)]
    steps = {cls: vars(cls)["step"] for cls in classes if "step" in vars(cls)}
    importlib.import_module("torch._dynamo.eval_frame").TorchPatcher.patch()
    for cls, step in steps.items():
        vars(step).pop("hooked", None)
        cls.step = step  # type: ignore[attr-defined]


def global_hooks() -> Dict[str, Any]:
    """Return what is registered for all modules alike: dicts of hooks, and which kind of backward hook these are."""
    return {name: value for name, value in vars(torch.nn.modules.module).items() if name.startswith("_global_")}


def leftovers() -> List[Callable[[], Any]]:
    """Return functions that tell whether a mode is in force that only its own `with` can end."""
    found: List[Callable[[], Any]] = [torch.is_autocast_enabled]
    try:
        torch.is_autocast_enabled("cpu")
        found.append(lambda: torch.is_autocast_enabled("cpu"))
    except TypeError:
        found.append(torch.is_autocast_cpu_enabled)  # as releases before 2.4 have it
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    if hooks is not None:
        found.append(lambda: hooks(True))
    invariants = getattr(torch.sparse, "check_sparse_tensor_invariants", None)
    if invariants is not None:
        found.append(invariants.is_enabled)
    return [is_on for is_on in found if not is_on()]  # what the environment itself has switched on stays on


# Settings of newer releases that can be called like functions, and then stay in force.
SWITCHES = (
    ("_is_view_replay_enabled", "_set_view_replay_enabled"),
    ("_is_grad_layout_enforcement_enabled", "_set_grad_layout_enforcement_enabled"),
    ("_warn_on_accumulate_grad_stream_mismatch", "_set_warn_on_accumulate_grad_stream_mismatch"),
)


class GlobalState:
    """The modes as they were when the worker started; `restore` brings them back."""

    def __init__(self) -> None:
        self.cases = 0
        self.modules = len(sys.modules)
        self.attributes: Dict[type, FrozenSet[str]] = {}  # of the classes that cases share
        self.leftovers = leftovers()
        self.before = [(get, put, get()) for get, put in settings()]
        self.hooks = {name: copy.copy(value) for name, value in global_hooks().items()}

    def begin(self, device: str, dtype: torch.dtype, generator: torch.Generator) -> None:
        if device == "cpu":
            torch.default_generator.manual_seed(SEED)
        else:
            torch.manual_seed(SEED)  # every device's; much slower, since it keeps a stack trace for CUDA
        generator.manual_seed(SEED)
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)

    def is_clean(self) -> bool:
        """Whether nothing that can't be put back is left in force, as by a generator that refuses to be closed."""
        return not any(leftover() for leftover in self.leftovers)

    def restore_classes(self, classes: Iterable[type]) -> None:
        """Take away what a case has written to classes that all cases share, as by a method called on a class."""
        for cls in classes:
            if len(vars(cls)) != len(self.attributes[cls]):
                for name in vars(cls).keys() - self.attributes[cls]:
                    delattr(cls, name)

    def restore(self) -> None:
        # Before the modes, since a generator that a case left open restores its own when it goes. What the
        # case made is in the youngest generation; the others hold leavings of many cases, and can wait.
        self.cases += 1
        place = sys.modules.pop(MODULE, None)  # where a compiled function stood
        if place is not None:  # the compiler has names of its own there, which it takes away itself
            for name in [name for name in vars(place) if not name.startswith("__")]:
                delattr(place, name)
        if len(sys.modules) != self.modules:  # what a case had imported lives as long as the process, too
            self.modules = len(sys.modules)
            gc.collect()
            gc.freeze()
        else:
            gc.collect() if self.cases % FULL_COLLECTION == 0 else gc.collect(0)
        level = getattr(torch.autograd.forward_ad, "_current_level", -1)
        while level >= 0:
            torch.autograd.forward_ad.exit_dual_level()
            level -= 1
        for get, put, value in self.before:
            if get() != value:
                put(value)
        for name, hooks in global_hooks().items():
            if hooks != self.hooks[name]:
                if isinstance(hooks, dict):
                    hooks.clear()
                    hooks.update(self.hooks[name])
                else:
                    setattr(torch.nn.modules.module, name, self.hooks[name])
