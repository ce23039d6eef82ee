"""Gives each case the same global state: seeds and modes are set before it and restored after it."""

from __future__ import annotations

import contextlib
import copy
import gc
import getpass
import importlib
import os
import sys
import warnings
from typing import Any, Callable, Dict, Iterable, List, Mapping, Tuple

import torch

from conformance.language import vocabulary
from conformance.worker.refusals import close_ways_out
from conformance.worker.sandbox import MODULE
from conformance.worker.state import nesting

MARK_OF_COMPILER = "___"  # says that it has patched a class: it would do so again, on top of the patch, in each case
SEED = 0
ROUNDS = 8  # of taking away what a case has left, before its process is given up


def forget(names: Dict[str, Any]) -> None:
    """Delete names, but for the compiler's, which it deletes when the code is collected that it has made for them."""
    for name in [name for name in names if not (name.startswith("__") or vocabulary.OF_COMPILER.search(name))]:
        del names[name]


def forget_compiled() -> None:
    """Have the compiler forget what it has compiled. What it has too often it refuses, also in torch, as in cond()."""
    getattr(sys.modules.get("torch._dynamo"), "reset", lambda: None)()
    # Up to 2.3 it goes on to ask less of modules of a class of which one was written to.
    tracker = getattr(sys.modules.get("torch._dynamo.mutation_guard"), "GenerationTracker", None)
    for name in ("dynamic_classes", "generation_values"):
        getattr(getattr(tracker, name, None), "clear", lambda: None)()
    sys.modules.pop(MODULE, None)  # as the module of compiled functions


def prepare_process() -> None:
    """Prepare this process for many cases: garbage collection on request only, and no warning shown just once."""
    torch.set_warn_always(True)
    torch.set_num_threads(1)  # cases are small, and idle threads would take CPU time from pytest
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases deprecate these names
        torch.backends.cuda.matmul.allow_tf32 = False  # its 10-bit mantissa is outside float32's tolerance
        torch.backends.cudnn.allow_tf32 = False
    os.environ.setdefault("TORCH_SYMBOLIZE_MODE", "dladdr")  # C++ stacks without starting a process for their names
    os.environ.setdefault("TORCH_DYNAMO_RUN_GC_AFTER_COMPILE", "0")  # there is a collection after each case
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # else torch's compiler has processes of its own for it
    name_user()
    close_ways_out()
    # The compiler measures how long its guards take, for a log, and empties the processor's caches before: that is a
    # third of the time in which a small function is compiled. It takes the function from here when it is imported.
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    if guards is not None and hasattr(guards, "profile_guard_manager"):
        guards.profile_guard_manager = lambda *_: 0.0  # microseconds
    with contextlib.suppress(Exception):  # a build may lack the compiler or its requirements
        if torch.__version__.startswith("2.3."):  # it stays broken if a transform is active when it is imported
            importlib.import_module("torch._dynamo")
        if torch.__version__.startswith(("2.0.", "2.1.", "2.2.")):
            undo_patches()
    gc.freeze()  # torch's own objects are never freed; without them collections are fast
    gc.disable()


def name_user() -> None:
    """Give the user a name where the system has none, as in many containers: the compiler names a directory by it."""
    try:
        getpass.getuser()
    except (KeyError, ImportError, OSError):
        os.environ["USER"] = f"uid_{os.getuid()}"


def settings() -> List[Tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Return the (get, set) pairs of the modes that a case can change."""
    pairs: List[Tuple[Callable[[], Any], Callable[[Any], Any]]] = [
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.get_default_dtype, torch.set_default_dtype),
        (
            anomaly_mode,
            lambda mode: torch.autograd.set_detect_anomaly(*mode),
        ),
        (torch.is_warn_always_enabled, torch.set_warn_always),
        (deterministic_mode, lambda mode: torch.use_deterministic_algorithms(mode[0], warn_only=mode[1])),
        (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
        (autocast_dtype, set_autocast_dtype),
        (torch.get_num_threads, torch.set_num_threads),
    ]
    is_multithreaded = getattr(torch.autograd, "is_multithreading_enabled", None)
    if is_multithreaded is not None:
        pairs.append((is_multithreaded, torch.autograd.set_multithreading_enabled))
    for get, put in SWITCHES:
        if hasattr(torch._C, get):
            pairs.append((getattr(torch._C, get), getattr(torch._C, put)))
    return pairs


def deterministic_mode() -> Tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def autocast_dtype() -> torch.dtype:
    return torch.get_autocast_dtype("cpu") if hasattr(torch, "get_autocast_dtype") else torch.get_autocast_cpu_dtype()


def set_autocast_dtype(dtype: torch.dtype) -> None:
    if hasattr(torch, "set_autocast_dtype"):
        torch.set_autocast_dtype("cpu", dtype)
    else:
        torch.set_autocast_cpu_dtype(dtype)  # before 2.4


def anomaly_mode() -> Tuple[bool, bool]:
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def undo_patches() -> None:
    """Let the compiler apply its patches to torch now, and restore the hooks of optimizers that these remove."""
    classes = [cls for cls in vars(torch.optim).values() if isinstance(cls, type)]
    steps = {cls: vars(cls)["step"] for cls in classes if "step" in vars(cls)}
    importlib.import_module("torch._dynamo.eval_frame").TorchPatcher.patch()
    for cls, step in steps.items():
        vars(step).pop("hooked", None)
        cls.step = step  # type: ignore[attr-defined]


def global_hooks() -> Dict[str, Any]:
    """Return the hooks that are registered for all modules: dicts, and a flag for the kind of backward hooks."""
    return {name: value for name, value in vars(torch.nn.modules.module).items() if name.startswith("_global_")}


def leftovers() -> List[Callable[[], Any]]:
    """Return functions that tell whether a mode is on that only its own `with` statement can turn off."""
    found: List[Callable[[], Any]] = [torch.is_autocast_enabled]
    try:
        torch.is_autocast_enabled("cpu")
        found.append(lambda: torch.is_autocast_enabled("cpu"))
    except TypeError:
        found.append(torch.is_autocast_cpu_enabled)  # before 2.4
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    if hooks is not None:
        found.append(lambda: hooks(True))
    invariants = getattr(torch.sparse, "check_sparse_tensor_invariants", None)
    if invariants is not None:
        found.append(invariants.is_enabled)
    found += [differing(get) for get in nesting().values()]
    return [is_on for is_on in found if not is_on()]  # modes that are on before any case don't count


def differing(get: Callable[[], Any]) -> Callable[[], bool]:
    """Return a function that tells whether `get` has another result than now."""
    before = str(get())  # two equal sets of dispatch keys are two objects, which older releases can't compare
    return lambda: str(get()) != before


# Settings of newer releases that stay in force when they are called as functions, or when blocks end in another order
# than that in which they began.
KERNELS = ("flash", "mem_efficient", "math", "cudnn", "overrideable", "fa3")  # of attention
SWITCHES = (
    *[(f"_get_{kernel}_sdp_enabled", f"_set_sdp_use_{kernel}") for kernel in KERNELS],
    ("_get_sdp_priority_order", "_set_sdp_priority_order"),
    ("_is_view_replay_enabled", "_set_view_replay_enabled"),
    ("_is_grad_layout_enforcement_enabled", "_set_grad_layout_enforcement_enabled"),
    ("_warn_on_accumulate_grad_stream_mismatch", "_set_warn_on_accumulate_grad_stream_mismatch"),
)


def is_equal(now: Mapping[str, Any], before: Dict[str, Any]) -> bool:
    try:
        return bool(now == before)  # the same objects, nearly always
    except Exception:  # what is there in place of another may not be comparable
        return False


def end_transforms() -> None:
    """End the transforms of torch.func that are still in force, as after an error in a program that was exported."""
    functorch = getattr(torch._C, "_functorch", None)
    level = getattr(functorch, "maybe_current_level", None)
    pop = getattr(functorch, "pop_dynamic_layer_stack", None)
    while level is not None and pop is not None and level():
        pop()


class GlobalState:
    """The modes as they were when the worker started; `restore` restores them."""

    def __init__(self) -> None:
        self.shared: List[Tuple[Any, Dict[str, Any]]] = []  # what cases share, and the attributes that it had before
        self.overwritten = ""  # what a case has set there
        self.leftovers = leftovers()
        self.before = [(get, put, get()) for get, put in settings()]
        self.hooks = {name: copy.copy(value) for name, value in global_hooks().items()}
        self.validates = torch.distributions.Distribution._validate_args

    def begin(self, device: str, dtype: torch.dtype, generator: torch.Generator) -> None:
        self.overwritten = ""
        if device == "cpu":
            torch.default_generator.manual_seed(SEED)
        else:
            torch.manual_seed(SEED)  # for every device; slower, since it records a stack trace for CUDA
        generator.manual_seed(SEED)
        torch.distributions.Distribution.set_default_validate_args(self.validates)  # the compiler's first use ends it
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)

    def changed(self) -> List[str]:
        """Return what says that the modes are others than when the worker started."""
        names = [get.__name__ for get, _, value in self.before if get() != value]
        return names + ["what only its own `with` statement ends"] * (not self.is_clean())

    def is_clean(self) -> bool:
        """Whether no mode is left on that can't be restored, for example by a generator that can't be closed."""
        return not any(leftover() for leftover in self.leftovers)

    def share(self, owners: Iterable[Any]) -> None:
        """Take note of the attributes of classes, functions and other objects that all cases share."""
        self.shared += [(owner, dict(vars(owner))) for owner in owners]

    def undo(self) -> bool:
        """Take away what a case has left in places that cases share; return whether there was anything."""
        level = getattr(torch.autograd.forward_ad, "_current_level", -1)
        for _ in range(level + 1):
            torch.autograd.forward_ad.exit_dual_level()
        had_hooks = self.remove_hooks()
        return self.restore_shared() or had_hooks or level >= 0

    def remove_hooks(self) -> bool:
        """Remove hooks for all modules; return whether there were any."""
        place = vars(torch.nn.modules.module)
        changed = {name: before for name, before in self.hooks.items() if place[name] != before}
        for name, before in changed.items():
            if isinstance(before, dict):
                place[name].clear()
                place[name].update(before)
            else:
                place[name] = before
        return bool(changed)

    def restore_shared(self) -> bool:
        """Delete attributes that a case has added to what cases share, put back those that it has set, and say if any.

        A method that is called on a class, or borrowed for another object, may add one. What others than torch set
        shows a way out of the language.
        """
        is_changed = False
        for owner, before in self.shared:
            if is_equal(vars(owner), before):
                continue
            for name in vars(owner).keys() - before.keys():
                if not name.startswith(MARK_OF_COMPILER if isinstance(owner, type) else "_"):
                    delattr(owner, name)
                    is_changed = True
            for name, value in before.items():
                now = vars(owner).get(name)
                if now is value:
                    continue
                if name.startswith("_") or str(getattr(now, "__module__", "")).startswith("torch."):
                    before[name] = now  # as optimizers do when the first is made, and the compiler when it is imported
                else:
                    setattr(owner, name, value)
                    shown = getattr(owner, "__name__", type(owner).__name__)
                    self.overwritten = f"it has set {shown}.{name}, which all cases share"
                    is_changed = True
        return is_changed

    def restore(self) -> None:
        forget_compiled()
        # Collect before restoring modes: a generator that a case left open restores its own when it is collected, and
        # runs code of the case. It may be held by what is taken away here, and leave something again.
        for _ in range(ROUNDS):
            # What is left is torch's, for example modules that it has imported; without it the next are fast. A full
            # collection is slow, and needed only if the case has collected: what survived that is in the last one.
            gc.collect(2 if gc.get_objects(generation=2) else 1)
            if not self.undo():
                break
        else:
            self.overwritten = self.overwritten or "it leaves something behind each time that this is taken away"
        gc.freeze()
        end_transforms()
        for get, put, value in self.before:
            if get() != value:
                put(value)
