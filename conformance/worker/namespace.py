"""Offers the vocabulary to cases: torch's own objects, save those that must know the target.

Factories make their tensors on the target's device. Random ones draw from one seeded CPU generator in
double precision, so that every device and dtype sees the same numbers. Modules are initialised on the
CPU and then moved. The target's dtype is torch's default dtype while the case runs.
"""

from __future__ import annotations

import builtins
import copy
import functools
import importlib
import pickle
import sys
import threading
import types
from typing import Any, Callable, Dict, List

import torch

from conformance.language import vocabulary
from conformance.worker.sandbox import MODULE, Namespace, base_checker, read, writable

MOST_THREADS = 64
PLACE = types.ModuleType(MODULE)  # where functions stand that are compiled
LAZY = torch.nn.modules.lazy.LazyModuleMixin


class Layer:
    """A module class whose instances are moved to the target's device."""

    def __init__(self, cls: type, device: str) -> None:
        self.cls = cls
        self.device = device

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if issubclass(self.cls, LAZY):  # there is nothing to initialise yet, and not every device can be moved to
            kwargs.setdefault("device", self.device)
        made = self.cls(*args, **kwargs)
        return made if "device" in kwargs else made.to(self.device)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cls, name)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.cls)


def real_module(path: str) -> Any:
    """Return what stands behind a namespace, or None if this torch doesn't have it."""
    outside = path == "torch" or path in vocabulary.PYTHON_MODULES
    try:
        return importlib.import_module(path if outside else f"torch.{path}")
    except ImportError:
        return None


def on_device(make: Callable[..., Any], device: str) -> Callable[..., Any]:
    def factory(*args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("device", device)
        return make(*args, **kwargs)

    return factory


def seeded(device: str, generator: torch.Generator) -> Dict[str, Callable[..., Any]]:
    """Return the random factories; all draw from `generator`."""

    def factory(make: Callable[..., Any], wide: bool) -> Callable[..., Any]:
        def made(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("out") is not None:
                return make(*args, **kwargs)
            place, requires_grad = kwargs.pop("device", None) or device, kwargs.pop("requires_grad", False)
            dtype = kwargs.pop("dtype", None) or (torch.get_default_dtype() if wide else torch.int64)
            kwargs.setdefault("generator", generator)
            if wide:
                kwargs["dtype"] = torch.complex128 if dtype.is_complex else torch.float64
            narrow = make(*args, **kwargs).to(dtype=dtype)  # first, since not every device has double precision
            return narrow.to(device=place).requires_grad_(requires_grad)

        return made

    def like(made: Callable[..., Any]) -> Callable[..., Any]:
        def made_like(other: Any, *args: Any, **kwargs: Any) -> Any:
            requires_grad = kwargs.pop("requires_grad", False)
            kept = {name: kwargs.pop(name) for name in ("memory_format", "layout") if name in kwargs}
            drawn = made(*args, size=tuple(other.shape), **{"device": other.device, "dtype": other.dtype, **kwargs})
            result = torch.empty_like(other, device=drawn.device, dtype=drawn.dtype, requires_grad=False, **kept)
            result.data.copy_(drawn)  # so that the strides are the other's, and the version is 0
            return result.requires_grad_(requires_grad)

        return made_like

    def normal(*args: Any, **kwargs: Any) -> Any:
        given = [*args, *kwargs.values()]
        if kwargs.get("out") is not None or any(isinstance(value, torch.Tensor) for value in given):
            return torch.normal(*args, **kwargs)
        return sized(*args, **kwargs)

    rand, randn, randint = factory(torch.rand, True), factory(torch.randn, True), factory(torch.randint, False)
    sized = factory(torch.normal, True)
    return {
        "rand": rand, "randn": randn, "rand_like": like(rand), "randn_like": like(randn), "normal": normal,
        "randint": randint, "randint_like": like(randint), "randperm": factory(torch.randperm, False),
    }  # fmt: skip


def kind_of(value: object) -> type:
    """Return the class of an instance; a class's own class would make others."""
    if isinstance(value, type):
        raise TypeError("type() of a class is not part of the language")
    return type(value)


def pickled(value: Any) -> Any:
    """Return what comes back from a round trip through pickle."""
    return pickle.loads(pickle.dumps(value))


def in_threads(*functions: Callable[[], Any]) -> List[Any]:
    """Call each function in a thread of its own, all at once; return what they return once the last has ended.

    What the first of them raised, in their order, is raised here.
    """
    if len(functions) > MOST_THREADS:
        raise ValueError(f"in_threads() takes at most {MOST_THREADS} functions, got {len(functions)}")
    results: List[Any] = [None] * len(functions)
    raised: Dict[int, BaseException] = {}
    together = threading.Barrier(max(1, len(functions)))

    def call(index: int) -> None:
        try:
            together.wait()
            results[index] = functions[index]()
        except BaseException as error:  # the thread of the case raises it
            raised[index] = error

    threads = [threading.Thread(target=call, args=(index,), daemon=True) for index in range(len(functions))]
    started: List[threading.Thread] = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
    except RuntimeError:
        together.abort()  # those that have started would wait for the others for ever
        raise
    finally:
        for thread in started:
            thread.join()
    if raised:
        raise raised.pop(min(raised))
    return results


def in_thread(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function in a thread of its own, and return what it returns or raise what it raises."""
    return in_threads(functools.partial(function, *args, **kwargs))[0]


def compiled(function: Any) -> Any:
    """Return a function of the case as torch.compile() makes it with aot_eager: traced by autograd, run eagerly."""
    if not is_own_function(function):
        raise TypeError("compiled() takes a function that the case has defined")
    importlib.import_module("torch._dynamo").reset()
    own = function.__globals__
    # The compiler takes for Python's own whatever it finds in the builtins, and imports the module of a function; so
    # the function comes to stand in a module that holds all names. It goes when the case ends, but comes back as the
    # same object: some compilers remember which module had the name, and refuse another one.
    sys.modules[MODULE] = PLACE
    names = vars(PLACE)
    names.update({**own["__builtins__"], **own, "__builtins__": builtins})

    def opened(known: Any) -> Any:
        parts = (without_source(known.__code__), names, known.__name__, known.__defaults__, known.__closure__)
        made = types.FunctionType(*parts)
        made.__kwdefaults__ = known.__kwdefaults__
        return made

    names.update({name: opened(value) for name, value in own.items() if is_own_function(value)})
    return torch.compile(opened(function), backend="aot_eager")


def without_source(code: Any) -> Any:
    """Return code that is from no file: a compiler would read the case file, if it finds it, and take it for Python."""
    constants = tuple(without_source(each) if isinstance(each, types.CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=f"{code.co_filename} (no source)", co_consts=constants)


def is_own_function(value: object) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__ == MODULE


def bases() -> List[type]:
    """Return the classes from which a case may derive its own."""
    places = (builtins, torch, torch.nn, torch.optim, torch.autograd, torch.autograd.function)
    return [getattr(place, name) for name in vocabulary.BASES for place in places if hasattr(place, name)]


def offer(device: str, generator: torch.Generator) -> Dict[str, Any]:
    """Return the names of the vocabulary for cases on `device`, as the `__builtins__` of their steps."""
    replaced: Dict[str, Any] = dict(seeded(device, generator))
    if device != "cpu":
        for name in vocabulary.FACTORIES:
            if hasattr(torch, name):
                replaced[name] = on_device(getattr(torch, name), device)
        replaced["from_numpy"] = lambda array: torch.from_numpy(array).to(device)

    spaces: Dict[str, Namespace] = {}
    for path in sorted(vocabulary.NAMESPACES, key=lambda path: (path == "torch", -path.count("."))):  # inner ones first
        real = real_module(path)
        if real is None:
            continue
        members = {name: getattr(real, name) for name in vocabulary.NAMESPACES[path] if hasattr(real, name)}
        if path == "torch":
            members.update({name: value for name, value in replaced.items() if name in members})
        elif path == "fft" and device != "cpu":
            members.update({name: on_device(members[name], device) for name in vocabulary.FREQUENCIES})
        elif path == "nn" and device != "cpu":
            for name, value in members.items():
                if isinstance(value, type) and issubclass(value, torch.nn.Module) and name not in vocabulary.CONTAINERS:
                    members[name] = Layer(value, device)
        for inner, space in spaces.items():
            if vocabulary.inner(path, inner.rpartition(".")[2]) == inner:
                members[inner.rpartition(".")[2]] = space
        spaces[path] = Namespace(path, members)

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
    # torch's C++ imports modules through the builtins of the frame that calls it; a case can't name `__import__`.
    names.update(
        __import__=builtins.__import__, type=kind_of, device=device,
        pickled=pickled, deepcopy=copy.deepcopy, in_thread=in_thread, in_threads=in_threads, compiled=compiled,
        __build_class__=builtins.__build_class__, __read__=read, __writable__=writable, __base__=base_checker(bases()),
    )  # fmt: skip
    return names
