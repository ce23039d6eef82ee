"""Offers the vocabulary to cases: torch's own objects, save those that must know the target.

Factories make their tensors on the target's device. Random ones draw from one seeded CPU generator in
double precision, so that every device and dtype sees the same numbers. Modules are initialised on the
CPU and then moved. The target's dtype is torch's default dtype while the case runs.
"""

from __future__ import annotations

import builtins
import copy
import importlib
import pickle
from typing import Any, Callable, Dict

import torch

from conformance import vocabulary
from conformance.worker.code import Namespace, read, writable

FACTORIES = """tensor as_tensor asarray ones zeros empty full arange linspace logspace eye empty_strided
    empty_permuted scalar_tensor tril_indices triu_indices bartlett_window blackman_window hamming_window hann_window
    kaiser_window""".split()
SHAPED = ("rand", "randn")
CONTAINERS = frozenset("Module Sequential ModuleList ModuleDict ParameterList ParameterDict Parameter Buffer".split())


class Layer:
    """A module class whose instances are moved to the target's device."""

    def __init__(self, cls: type, device: str) -> None:
        self.cls = cls
        self.device = device
        self.__module__ = cls.__module__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.cls(*args, **kwargs).to(self.device)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.cls)


def real_module(path: str) -> Any:
    """Return what stands behind a namespace, or None if this torch doesn't have it."""
    outside = path in ("math", "copy", "gc", "weakref", "warnings", "functools")
    try:
        return importlib.import_module(path if outside or path == "torch" else f"torch.{path}")
    except ImportError:
        return None


def on_device(make: Callable[..., Any], device: str) -> Callable[..., Any]:
    def factory(*args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("device", device)
        return make(*args, **kwargs)

    return factory


def seeded(device: str, generator: torch.Generator) -> Dict[str, Callable[..., Any]]:
    """Return the random factories; all draw from `generator`."""

    def move(drawn: Any, kwargs: Dict[str, Any], dtype: Any) -> Any:
        narrow = drawn.to(dtype=kwargs.get("dtype") or dtype)  # first, since not every device has double precision
        moved = narrow.to(device=kwargs.get("device") or device)
        return moved.requires_grad_(kwargs.get("requires_grad", False))

    def wide(dtype: torch.dtype) -> torch.dtype:
        return torch.complex128 if dtype.is_complex else torch.float64

    def shaped(name: str) -> Callable[..., Any]:
        make = getattr(torch, name)

        def factory(*size: Any, **kwargs: Any) -> Any:
            dtype = kwargs.get("dtype") or torch.get_default_dtype()
            drawn = make(*size, generator=kwargs.get("generator") or generator, dtype=wide(dtype))
            return move(drawn, kwargs, dtype)

        def like(other: Any, **kwargs: Any) -> Any:
            return factory(*other.shape, **{"device": other.device, "dtype": other.dtype, **kwargs})

        return like if name.endswith("_like") else factory

    def like(factory: Callable[..., Any]) -> Callable[..., Any]:
        def made(other: Any, *args: Any, **kwargs: Any) -> Any:
            return factory(*args, tuple(other.shape), **{"device": other.device, "dtype": other.dtype, **kwargs})

        return made

    def randint(*args: Any, **kwargs: Any) -> Any:
        drawn = torch.randint(*args, generator=kwargs.get("generator") or generator)
        return move(drawn, kwargs, torch.int64)

    def randperm(count: int, **kwargs: Any) -> Any:
        drawn = torch.randperm(count, generator=kwargs.get("generator") or generator)
        return move(drawn, kwargs, torch.int64)

    rand, randn = shaped("rand"), shaped("randn")
    return {
        "rand": rand, "randn": randn, "rand_like": like(rand), "randn_like": like(randn),
        "randint": randint, "randint_like": like(randint), "randperm": randperm,
    }  # fmt: skip


def kind_of(value: object) -> type:
    return type(value)


def pickled(value: Any) -> Any:
    """Return what comes back from a round trip through pickle."""
    return pickle.loads(pickle.dumps(value))


def offer(device: str, generator: torch.Generator) -> Dict[str, Any]:
    """Return the names of the vocabulary for cases on `device`, as the `__builtins__` of their steps."""
    replaced: Dict[str, Any] = dict(seeded(device, generator))
    if device != "cpu":
        for name in FACTORIES:
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
        elif path == "nn" and device != "cpu":
            for name, value in members.items():
                if isinstance(value, type) and issubclass(value, torch.nn.Module) and name not in CONTAINERS:
                    members[name] = Layer(value, device)
        for inner, space in spaces.items():
            if vocabulary.inner(path, inner.rpartition(".")[2]) == inner:
                members[inner.rpartition(".")[2]] = space
        spaces[path] = Namespace(path, members)

    names = {
        name: getattr(spaces["torch"], name) for name in vocabulary.NAMESPACES["torch"] if name in vars(spaces["torch"])
    }
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
        pickled=pickled, deepcopy=copy.deepcopy,
        __build_class__=builtins.__build_class__, __read__=read, __writable__=writable,
    )  # fmt: skip
    return names
