"""Functions of the suite that cases can call: threads, pickle, exported programs, operators of their own, print()."""

from __future__ import annotations

import copy
import functools
import importlib
import io
import itertools
import pickle
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch

MOST_THREADS = 64
LONGEST_PRINTED = 100_000  # characters that a case can have printed
NUMBERS = itertools.count(1)  # of operators, whose names stay taken for as long as the process lives


def without_overrides() -> Any:
    """Return a context in which no method of a case answers for a tensor how it is to be copied."""
    name = (
        "DisableTorchFunctionSubclass" if hasattr(torch._C, "DisableTorchFunctionSubclass") else "DisableTorchFunction"
    )
    return getattr(torch._C, name)()


class Pickler(pickle.Pickler):
    """Takes no graph of torch.fx, nor the module made of one, which pickle makes by executing the code that it has."""

    def reducer_override(self, value: Any) -> Any:
        if type(value).__module__.startswith("torch.fx."):
            raise TypeError(f"a case can't pickle {type(value).__name__!r}")
        return NotImplemented


def pickled(value: Any) -> Any:
    """Return `value` after a round trip through pickle."""
    written = io.BytesIO()
    with without_overrides():
        Pickler(written).dump(value)
        return pickle.loads(written.getvalue())


def copied(value: Any) -> Any:
    with without_overrides():
        return copy.copy(value)


def deepcopied(value: Any) -> Any:
    """Return a deep copy of `value`, without the table that copy.deepcopy() takes, which tells of all objects."""
    with without_overrides():
        return copy.deepcopy(value)


def in_threads(*functions: Callable[[], Any]) -> List[Any]:
    """Call each function in a thread of its own, all at the same time, and return their results.

    If some raise, the error of the first function that raised, in the order of the arguments, is raised here.
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
        except BaseException as error:  # raised again in the calling thread
            raised[index] = error

    threads = [threading.Thread(target=call, args=(index,), daemon=True) for index in range(len(functions))]
    started: List[threading.Thread] = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
    except RuntimeError:
        together.abort()  # else the started threads wait for the others for ever
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


def custom_op(function: Callable[..., Any], schema: str, mutates_args: Sequence[str] = ()) -> Any:
    """Return an operator as torch.library.custom_op() makes it of a function, under a name of its own."""
    name = f"conformance::operator_{next(NUMBERS)}_"  # what a schema puts behind it makes no other operator's name
    return torch.library.custom_op(name, function, mutates_args=mutates_args, schema=schema)


def exported(function: Callable[..., Any], *inputs: torch.Tensor) -> Callable[..., Any]:
    """Return the program that torch.export makes of a function for tensors like these, as a function.

    It takes tensors alone: torch writes text that an exported program is given into its code.
    """
    if not all(isinstance(each, torch.Tensor) for each in inputs):
        raise TypeError("exported() takes tensors as inputs")

    class Exportable(torch.nn.Module):  # type: ignore[misc]  # torch has no types for it
        def forward(self, *given: torch.Tensor) -> Any:
            return function(*given)

    return as_function(importlib.import_module("torch.export").export(Exportable(), inputs, strict=False).module())


def as_function(program: torch.nn.Module) -> Callable[..., Any]:
    """Return a program of torch.fx as a function: the module that it is has code as text, which its copies execute."""

    def run(*given: Any) -> Any:
        return program(*given)

    return run


def print_to(kept: io.StringIO, *values: Any, sep: Optional[str] = " ", end: Optional[str] = "\n") -> None:
    """Print values as Python does, into the output of this process, and keep the text for who has sent the case."""
    text = io.StringIO()
    print(*values, sep=sep, end=end, file=text)
    sys.stdout.write(text.getvalue())
    sys.stdout.flush()
    kept.write(text.getvalue()[: max(0, LONGEST_PRINTED - kept.tell())])
