"""Provides the vocabulary to cases: torch's own objects, but factories and modules for the target's device.

The target's dtype is torch's default dtype while the case runs.
"""

from __future__ import annotations

import builtins
import importlib
import operator
import os
import sys
import types
from typing import Any, Callable, Dict

import torch

from conformance.language import vocabulary
from conformance.worker import confinement
from conformance.worker.derivatives import derivatives
from conformance.worker.factories import (
    allowing_for_rounding,
    array_on_device,
    moved,
    on_device,
    seeded,
    seeded_like,
    seeded_normal,
)
from conformance.worker.functions import copied, custom_op, deepcopied, exported, in_thread, in_threads, pickled
from conformance.worker.lacking import DISABLED
from conformance.worker.modes import in_mode_of
from conformance.worker.refusals import refusing
from conformance.worker.sandbox import LAYERS, MODULE, PLACE, Namespace, base_checker, own, readable, shown, writable
from conformance.worker.state import global_state
from conformance.worker.wrapped import unwrapped, wrapped

# Modules of classes that type() shows, beside Tensor and those of errors and tuples. Not of all modules of torch:
# one of torch.fx is made of any object that is called a graph, and takes whatever that names.
KINDS = frozenset({MODULE, "builtins", "torch._C._autograd"})
SHOWN = (*LAYERS, "torch.optim.")  # how modules of further ones begin
# What a compiler finds as Python's own, also for what it traces of torch. Of the names that a case may have itself, and
# finds here before it has set them, `input` alone does harm.
BUILTINS = types.ModuleType("builtins")
vars(BUILTINS).update({name: value for name, value in vars(builtins).items() if name != "input"})
# What may run a compiled function, by the module of torch's compiler that has it.
BACKENDS = {"aot_eager": "debugging", "aot_eager_decomp_partition": "debugging", "inductor": "inductor"}


def real_module(path: str) -> Any:
    """Return the module of a namespace, or None if this torch doesn't have it."""
    outside = path == "torch" or path in vocabulary.PYTHON_MODULES
    try:
        if path.partition(".")[0] == "ops":
            return operator.attrgetter(path)(torch)  # made when it is asked for: no import finds it
        return importlib.import_module(path if outside else f"torch.{path}")
    except Exception:  # a broken one raises what it likes
        return None


def random_factory(name: str, target: Any) -> Callable[..., Any]:
    plain, like, _ = name.partition("_like")
    return (seeded_like if like else seeded_normal if plain == "normal" else seeded)(getattr(torch, plain), target)


def kind_of(value: object) -> type:
    """Return the class of an instance of a case, of Python or of autograd.

    It isn't that of a class, with which a case could make classes, nor that of any other object, which a case could
    make with whatever it likes in it: of any memory, of code, or in place of one that torch has. A back-end may have
    a class of its own for all of its tensors: to a case they are tensors, and those that it marks are parameters.
    """
    kind = type(value)
    is_of_torch = kind is torch.Tensor or kind.__module__.startswith(SHOWN)
    is_shown = is_of_torch or kind.__module__ in KINDS or issubclass(kind, (BaseException, tuple))
    if not is_shown or isinstance(value, (type, memoryview)):
        if isinstance(value, torch.Tensor) and not kind.__module__.startswith("torch."):
            is_parameter = isinstance(value, torch.nn.Parameter)
            return torch.nn.Parameter if is_parameter else torch.Tensor  # type: ignore[no-any-return]
        what = "a class" if isinstance(value, type) else repr(kind.__name__)
        raise TypeError(f"type() of {what} is not part of the language")
    return kind


def class_of(value: object) -> type:
    """Return any object's class: for what the compiler writes into the namespace of a case, which says `__type__`."""
    return type(value)


def compiled(function: Any, backend: str = "aot_eager", **options: bool) -> Any:
    """Return a function of the case as torch.compile() makes it; with aot_eager it is traced by autograd, run eagerly.

    `options` are `dynamic` and `fullgraph`.
    """
    if not is_own_function(function):
        raise TypeError("compiled() takes a function that the case has defined")
    if backend not in BACKENDS or not options.keys() <= {"dynamic", "fullgraph"}:
        raise TypeError(f"compiled() takes one of {', '.join(BACKENDS)}, and as options dynamic and fullgraph")
    if backend == "inductor" and confinement.held:
        raise PermissionError("Operation not permitted: a C++ compiler would be started, and what it makes be loaded")
    # Else torch would import all that there are.
    backends = importlib.import_module(f"torch._dynamo.backends.{BACKENDS[backend]}")
    unnest(getattr(backends, backend, None))
    compiler = importlib.import_module("torch._dynamo")
    if compiler.config.disable or os.environ.get("TORCHDYNAMO_DISABLE") == "1":  # it would hand the function back
        raise RuntimeError(f"torch.compile {DISABLED}")
    compiler.reset()
    names = function.__globals__
    offered = names["__offered__"]
    # The compiler imports the module of a function, and takes all that is in its builtins for Python's own. The module
    # is removed from sys.modules after the case; some compilers remember it, and refuse another one of this name.
    sys.modules[MODULE] = PLACE
    names.update({name: offered[name] for name in offered.keys() - names.keys() - vars(builtins).keys()})
    names["__builtins__"] = BUILTINS
    return torch.compile(function, backend=backend, **options)


def unnest(backend: Any) -> None:
    """Have a backend forget what it compiles backwards with: up to 2.5 it wraps that once more at each compilation.

    After some 300 in one process they would fail for the depth of these calls, in whichever case comes then.
    """
    cells = getattr(backend, "__closure__", None) or ()
    kept = [getattr(backend, "kwargs", None), *(cell.cell_contents for cell in cells)]
    for each in kept:
        if isinstance(each, dict):
            each.pop("bw_compiler", None)


def is_own_function(value: object) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__ == MODULE


def offer(device: str, generator: torch.Generator) -> Dict[str, Any]:
    """Return the names of the vocabulary for cases on `device`, as the `__builtins__` of their steps."""
    target = types.SimpleNamespace(device=device, generator=generator)

    spaces: Dict[str, Namespace] = {}
    for path in sorted(vocabulary.NAMESPACES, key=lambda path: (path == "torch", -path.count("."))):  # inner ones first
        real = real_module(path)
        if real is None:
            continue
        members = {name: getattr(real, name) for name in vocabulary.NAMESPACES[path] if hasattr(real, name)}
        if path == "torch":
            members.update({name: random_factory(name, target) for name in vocabulary.RANDOM & members.keys()})
            for name in vocabulary.FACTORIES & members.keys() if device != "cpu" else ():
                wrap = array_on_device if name == "from_numpy" else on_device
                members[name] = wrap(members[name], target)
        elif path == "fft" and device != "cpu":
            members.update({name: on_device(members[name], target) for name in vocabulary.FREQUENCIES})
        elif path == "copy":
            members = {"copy": copied, "deepcopy": deepcopied}
        elif path == "autograd":
            members.update({name: allowing_for_rounding(members[name], target) for name in vocabulary.CHECKERS})
        elif path == "nn" and device != "cpu":
            members.update({name: moved(members[name], target) for name in members.keys() - vocabulary.CONTAINERS})
        for inner, space in spaces.items():
            if vocabulary.inner(path, inner.rpartition(".")[2]) == inner:
                members[inner.rpartition(".")[2]] = space
        spaces[path] = Namespace(path, refusing(path, members))

    torch_names = vars(spaces["torch"])
    names = {name: torch_names[name] for name in vocabulary.NAMES if name in torch_names}
    for name, path in vocabulary.MEMBERS.items():
        if path in spaces and name in vars(spaces[path]):
            names[name] = getattr(spaces[path], name)
    for name, path in vocabulary.ROOTS.items():
        if path in spaces:
            names[name] = spaces[path]
    for name in (*vocabulary.PYTHON, *vocabulary.EXCEPTIONS):
        names[name] = getattr(builtins, name)
    # torch's C++ code imports modules through the builtins of the calling frame; a case can't name `__import__`.
    names.update(
        __import__=builtins.__import__, type=class_of, __type__=kind_of, device=device,
        pickled=pickled, deepcopy=deepcopied, in_thread=in_thread, in_threads=in_threads, compiled=compiled,
        exported=exported, custom_op=custom_op, derivatives=derivatives, global_state=global_state,
        in_mode=in_mode_of(device), wrapped=wrapped, unwrapped=unwrapped,
        __build_class__=builtins.__build_class__, __own__=own, __readable__=readable, __writable__=writable,
        __base__=base_checker(), __shown__=shown,
    )  # fmt: skip
    return names
