"""Hands texts to every function and method that cases are offered; prints which take one for a path, module or code.

    python tests/handing.py PLACE 1     all of them, with a directory for what they may write; each 40th with 40

A name that a release adds to the vocabulary is tried as soon as it is there.
"""

# ruff: noqa: T201

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from conformance.language import vocabulary
from conformance.worker import main, namespace
from conformance.worker.isolation import prepare_process
from conformance.worker.sandbox import WITHHELD, Namespace

MODULE = "planted_for_handing"  # it writes a file when it is imported
SYMBOL = f"""b"Symbol ('{MODULE}' )\""""  # how sympy reads a name, which calls nothing
OPTIONS = ("device", "dtype", "mode", "name", "schema", "backend", "layout", "pattern", "reduction")
TOGETHER = 40  # are handed texts in one process
ACTS = ("os.mkdir", "os.system", "os.exec", "os.posix_spawn", "subprocess.", "socket.")
LATER = ("print", "in_thread", "in_threads")  # show or call what they are given
WITHOUT = ("array", "storage", "symbolic number")  # from which a case is withheld something that a tensor shows


@cache
def symbolic_number() -> Any:
    """Return half of a size that a tracer knows by name, which goes on computing after it."""
    held = []

    def halved(x: torch.Tensor) -> torch.Tensor:
        held.append(x.shape[0] / 2)
        return x * 1

    make_fx(halved, tracing_mode="symbolic")(torch.ones(5))
    return held[0]


OBJECTS: dict[str, Callable[[], Any]] = {
    "tensor": lambda: torch.ones(2), "leaf": lambda: torch.ones(2, requires_grad=True),
    "sparse": lambda: torch.ones(2).to_sparse(), "array": lambda: torch.ones(2).numpy(),
    "node": lambda: torch.ones(2, requires_grad=True).sum().grad_fn, "module": lambda: nn.Linear(2, 2),
    "modules": lambda: nn.ModuleDict({"a": nn.ReLU()}), "parameters": lambda: nn.ParameterDict({"a": torch.ones(1)}),
    "optimizer": lambda: torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.1), "text": lambda: "x y",
    "distribution": lambda: torch.distributions.Normal(0.0, 1.0), "generator": torch.Generator, "list": lambda: [1],
    "mapping": lambda: {1: 2}, "scaler": lambda: torch.amp.GradScaler("cpu"), "class": lambda: nn.Module,
    "class of tensors": lambda: torch.Tensor, "class of functions": lambda: torch.autograd.Function,
    "operator": lambda: torch.ops.aten.alias, "storage": lambda: torch.ones(2).untyped_storage(),
    "symbolic number": symbolic_number,
}  # fmt: skip


def offered() -> dict[str, Callable[[], Any]]:
    """Return what finds each function and method that a case could call, by name."""
    found: dict[str, Callable[[], Any]] = {}
    for name, value in namespace.offer("cpu", torch.Generator()).items():
        members = [(f"{name}.{each}", held) for each, held in vars(value).items()] if type(value) is Namespace else []
        for path, function in [(name, value), *members] if not name.startswith("_") and name not in LATER else ():
            if callable(function) and type(function) is not Namespace:
                found[path] = partial(itself, function)
    for kind, make in OBJECTS.items():
        for attribute in vocabulary.ATTRIBUTES.keys() - (WITHHELD if kind in WITHOUT else set()):
            if is_callable(make(), attribute):
                found[f"{kind}.{attribute}"] = partial(attribute_of, make, attribute)
    return dict(sorted(found.items()))


def itself(function: Any) -> Any:
    return function


def attribute_of(make: Callable[[], Any], attribute: str) -> Any:
    return getattr(make(), attribute)


def is_callable(owner: Any, attribute: str) -> bool:
    try:
        return callable(getattr(owner, attribute))
    except Exception:  # noqa: BLE001 - the shape of a tensor may forbid it, say
        return False


def ways_to_hand(text: str) -> Iterator[tuple[tuple[Any, ...], dict[str, str]]]:
    """Yield arguments with a text at each place, alone and beside a tensor, a module or a symbolic number."""
    yield (text,), {}
    for make in (OBJECTS["tensor"], OBJECTS["module"], OBJECTS["symbolic number"]):
        yield from (
            ((make(), text), {}),
            ((text, make()), {}),
            ((make(), make(), text), {}),
            ((make(), {text: text}), {}),
        )
    yield ([text],), {}
    yield ({text: text},), {}
    yield from (((torch.ones(2),), {option: text}) for option in OPTIONS)


class Listener:
    """Hears by Python's audit what becomes of the texts."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.texts = (f"{place}/secret", f"file://{place}/made", MODULE, f"{MODULE}.name",
                      f"__import__('os').mkdir('{place}/made')")  # fmt: skip
        self.handed = ""
        self.heard: list[str] = []

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        words = repr(arguments[0]) if arguments else ""
        is_text = event in ("open", "import", "compile", "exec") and (self.place in words or MODULE in words)
        makes_none = event == "os.mkdir" and os.path.isdir(arguments[0])  # noqa: PTH112 - nothing that could be heard
        if (is_text and words != SYMBOL) or (event.startswith(ACTS) and not makes_none):
            self.heard.append(f"{self.handed}: {event} {words[:100]}")

    def hand(self, name: str, find: Callable[[], Any]) -> None:
        for text in self.texts:
            for arguments, options in ways_to_hand(text):
                self.handed = f"{name}{arguments!r}{options}"[:200]
                try:
                    find()(*arguments, **options)
                except Exception:  # noqa: BLE001 - most take no text
                    continue


def hand_to(functions: dict[str, Callable[[], Any]], place: str) -> None:
    """Hand texts to functions in a fork, and print what is heard of them, or that one has not ended well."""
    pid = os.fork()
    if pid == 0:
        told = os.dup(1)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        main.limit_memory(2**32)
        listener = Listener(place)
        sys.addaudithook(listener.hear)
        for name, find in functions.items():
            signal.alarm(20)
            listener.hand(name, find)
        for line in dict.fromkeys(listener.heard):
            os.write(told, f"{line}\n".encode())
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) and len(functions) > 1:
        for name, find in functions.items():
            hand_to({name: find}, place)


def run() -> None:
    place, step = sys.argv[1], int(sys.argv[2])
    sys.path.append(place)
    Path(place, "secret").touch()
    Path(place, f"{MODULE}.py").write_text(f"open({place!r} + '/imported', 'w')\n", encoding="utf-8")
    warnings.simplefilter("ignore")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.gettempdir()  # compilers make one wherever they are first called
    prepare_process()
    symbolic_number()  # else each fork would import what it needs
    functions = list(offered().items())[::step]
    gc.freeze()
    for first in range(0, len(functions), TOGETHER):
        hand_to(dict(functions[first : first + TOGETHER]), place)
    print(f"{len(functions)} functions", *sorted(each.name for each in Path(place).iterdir() if each.is_file()))


if __name__ == "__main__":
    run()
