"""Modes in which a whole case can run, though none of them is to change what autograd does."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, Callable, ContextManager, Dict, Iterator

import torch

from conformance.worker.backend import named

Mode = Callable[[str], Any]  # takes the type of a device, and returns a context manager


def anomaly(_device: str) -> Any:
    return torch.autograd.set_detect_anomaly(True)


def hooks_of_saved_tensors(_device: str) -> Any:
    return torch.autograd.graph.saved_tensors_hooks(lambda tensor: [tensor], lambda packed: packed[0])


def one_thread(_device: str) -> Any:
    return torch.autograd.set_multithreading_enabled(False)


def function_mode(_device: str) -> Any:
    from torch.overrides import BaseTorchFunctionMode  # noqa: PLC0415 - newer than the oldest release

    return BaseTorchFunctionMode()


def dispatch_mode(_device: str) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415 - newer than the oldest release

    class PassThrough(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    return PassThrough()


def profiler(_device: str) -> Any:
    return torch.autograd.profiler.profile(use_kineto=False)


@contextlib.contextmanager
def deterministic_algorithms(_device: str) -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def default_device(device: str) -> Any:
    return torch.device(device)


def no_autocast(device: str) -> Any:
    return torch.autocast(device.partition(":")[0], enabled=False)


def sparse_checks(_device: str) -> Any:
    return torch.sparse.check_sparse_tensor_invariants()


@contextlib.contextmanager
def hooks_of_modules(_device: str) -> Iterator[None]:
    """Hooks for all modules that look at what passes, and return nothing."""
    place = torch.nn.modules.module
    with contextlib.ExitStack() as stack:
        for register in (place.register_module_forward_pre_hook, place.register_module_forward_hook):
            stack.callback(register(lambda *_seen: None).remove)
        yield


def dual_level(_device: str) -> Any:
    return torch.autograd.forward_ad.dual_level()


def compiled_autograd(_device: str) -> Any:
    """Compiled autograd with a compiler that hands back what it is given: backward is traced, and the trace is run."""
    place = importlib.import_module("torch._dynamo.compiled_autograd")
    enable = getattr(place, "_enable", None) or place.enable  # of the releases up to 2.5
    return enable(lambda graph: graph)


MODES: Dict[str, Mode] = {
    "anomaly": anomaly,
    "saved-tensor-hooks": hooks_of_saved_tensors,
    "one-thread": one_thread,
    "function-mode": function_mode,
    "dispatch-mode": dispatch_mode,
    "profiler": profiler,
    "deterministic": deterministic_algorithms,
    "default-device": default_device,
    "no-autocast": no_autocast,
    "sparse-checks": sparse_checks,
    "module-hooks": hooks_of_modules,
    "dual-level": dual_level,
}
# That a case enters around parts of it. What whole cases ask, these don't promise.
OF_CASES: Dict[str, Mode] = {**MODES, "compiled-autograd": compiled_autograd}


def mode_of(name: str, device: str) -> ContextManager[Any]:
    """Return a new context manager: one of `MODES`, or what the object `module:name` returns when it is called."""
    made: ContextManager[Any] = MODES[name](device) if name in MODES else named(name)()
    return made


def in_mode_of(device: str) -> Callable[[str], ContextManager[None]]:
    """Return the function by which cases on a device enter the modes that have a name here, and are given nothing."""

    @contextlib.contextmanager
    def in_mode(name: str) -> Iterator[None]:
        if name not in OF_CASES:
            raise ValueError(f"there is no mode {name!r}")
        with OF_CASES[name](device):
            yield

    return in_mode
