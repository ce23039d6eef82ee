"""Refuses calls by which functions of torch and of Python lead out of the case language.

These look up a name that they are given as text, or execute it, set attributes of what they are given, take any memory
for numbers, or change what all cases share.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import functools
import importlib
import importlib.machinery
import inspect
import os
import re
import sys
import threading
import types
from typing import Any, Callable, Dict

import torch
from torch.nn.utils import prune
from torch.optim.swa_utils import SWALR

from conformance.worker.functions import as_function, without_overrides
from conformance.worker.lacking import DISABLED
from conformance.worker.sandbox import MODULE

# Namespaces whose functions take a module and the name of one of its tensors, in arguments of these names.
OF_TENSORS = frozenset({"nn.utils", "nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.prune"})
NAMES = ("name", "tensor_name")
# Modules of torch that register members of modules under names that begin with _.
OF_PRIVATE_NAMES = frozenset(
    {"torch.fx.graph_module", "torch.nn.modules.pooling", "torch.nn.utils.parametrizations", "torch.export.unflatten"}
)
# Argument of a function by which it looks up an attribute of a class, with the texts that it is meant to take.
OF_ATTRIBUTES = {"orthogonal": ("orthogonal_map", ("matrix_exp", "cayley", "householder", None))}
MOST_THREADS = 16
EVALUATOR = "sympy.parsing.sympy_parser"  # has text executed, which other functions of sympy hand it
ARITHMETIC = re.compile(r"[\w\s.+\-*/()<>=,]+")
LEADS_ON = re.compile(r"__|[^\W\d]\w*\s*[.(]|\)\s*[.(]")  # a call, or an attribute
NAME = re.compile(r"[^\W\d]\w*")
OFF = ("0", "0v", "false", "no")  # what torch takes for no


def refusing(path: str, members: Dict[str, Any]) -> Dict[str, Any]:
    """Return the members of a namespace, of which some refuse arguments that others than a case may give."""
    guarded = dict(members)
    for name, member in members.items():
        if path in OF_TENSORS and inspect.isfunction(member):
            guarded[name] = naming_tensors(member)
        elif f"{path}.{name}" in GUARDS:
            guarded[name] = GUARDS[f"{path}.{name}"](member)
    return guarded


def naming_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that refuses to be given the name of what is no tensor of a module: it may hand that out."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        key, meant = OF_ATTRIBUTES.get(function.__name__, ("", ()))
        if key in given and (type(given[key]) not in (str, type(None)) or given[key] not in meant):
            raise ValueError(f"a case can't give {function.__name__}() another {key} than {meant}")
        for key in filter(given.__contains__, NAMES):
            expect_tensor(given.get("module"), given[key])
        for module, name in given["parameters"] if function.__name__ == "global_unstructured" else ():
            expect_tensor(module, name)
        return function(*args, **kwargs)

    return named


def expect_tensor(module: Any, name: Any) -> None:
    if type(name) is not str or name.startswith("_") or not isinstance(module, torch.nn.Module):
        raise TypeError("a case gives a module and the name of one of its tensors here")
    if not may_be_tensor(module, name):
        raise TypeError(f"a case can't use {name!r} here, which is no tensor of the module")


def may_be_tensor(module: torch.nn.Module, name: str) -> bool:
    """Whether a module has a tensor of this name, or nothing; one that is computed isn't computed for that."""
    held = vars(module)
    if any(name in held.get(kept, ()) for kept in ("_parameters", "_buffers")):
        return True
    if name in held:
        return isinstance(held[name], torch.Tensor)
    of_class = next((vars(cls)[name] for cls in type(module).__mro__ if name in vars(cls)), None)
    is_parametrized = name in held["_modules"].get("parametrizations", ())
    return isinstance(of_class, property) if is_parametrized else of_class is None and name not in held["_modules"]


def alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that, as what it returns, can't be called while other threads of the case run.

    Nor does it take what is meant for torch alone: jit.trace() hands a compiler of text to what is to make its module.
    """
    private = {name for name in inspect.signature(function).parameters if name.startswith("_")}

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(f"a case can't call {function.__name__}() in a thread")
        given = private.intersection(inspect.signature(function).bind(*args, **kwargs).arguments) if private else ()
        if given:
            raise TypeError(f"a case can't give {min(given)} to {function.__name__}()")
        if function.__name__ == "trace" and os.environ.get("PYTORCH_JIT", "1").lower() in OFF:  # it would do nothing
            raise RuntimeError(f"jit.trace {DISABLED}")
        result = function(*args, **kwargs)
        if inspect.isfunction(result):
            return alone(result)
        return as_function(result) if type(result).__module__.startswith("torch.fx.") else result

    return called


def within_bounds(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return segment_reduce(), which reads memory anywhere when it is told not to look at its offsets."""

    @functools.wraps(function)
    def called(*args: Any, unsafe: bool = False, **kwargs: Any) -> Any:
        if unsafe:
            raise ValueError("a case can't switch off the checks of segment_reduce()")
        return function(*args, **kwargs)

    return called


def of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return asarray(), which takes any memory for that of numbers: also what refers to objects, as numpy's may."""

    @functools.wraps(function)
    def called(obj: Any, **options: Any) -> Any:
        if isinstance(obj, memoryview) and "O" in obj.format:
            raise TypeError("a case can't take references to objects for numbers")
        return function(obj, **options)

    return called


def of_plain_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return rearrange(), which writes what it is told into text that it executes, as a class of a case may have it."""

    @functools.wraps(function)
    def called(tensor: Any, pattern: str, **lengths: int) -> Any:
        tensors = tensor if isinstance(tensor, (list, tuple)) else (tensor,)
        are_torch = all(isinstance(each, torch.Tensor) and type(each).__module__ != MODULE for each in tensors)
        if not are_torch or type(pattern) is not str or any(type(length) is not int for length in lengths.values()):
            raise TypeError("a case gives rearrange() tensors of torch's own classes, a text, and lengths as int")
        return function(tensor, pattern, **lengths)

    return called


def of_few_threads(function: Callable[[int], None]) -> Callable[[int], None]:
    """Return set_num_threads(), which starts as many threads as it is told, and aborts where these are too many."""

    @functools.wraps(function)
    def called(number: int) -> None:
        if type(number) is not int or not 1 <= number <= MOST_THREADS:
            raise ValueError(f"a case can use 1 to {MOST_THREADS} threads")
        function(number)

    return called


GUARDS = {
    # What they patch while they trace stays patched where two of them overlap.
    "jit.trace": alone, "fx.experimental.proxy_tensor.make_fx": alone,
    "torch.segment_reduce": within_bounds, "torch.set_num_threads": of_few_threads, "torch.asarray": of_numbers,
    "func.rearrange": of_plain_values,
}  # fmt: skip


def close_ways_out() -> None:
    """Guard what a case can't call itself, but torch and Python call on behalf of a case, for the whole process."""
    # Of the hooks of a copy those are found that a class defines, not those that a case has put into an instance. Its
    # code bears the name of Python's file, which the compiler leaves alone: that of 2.14 fails where it traces it.
    code = of_class.__code__.replace(co_filename=copy.__file__)
    copy.getattr = types.FunctionType(code, globals())  # type: ignore[attr-defined]
    own = [each for each in vars(torch.optim.lr_scheduler).values() if isinstance(each, type)]
    for schedule in [each for each in own if each.__module__ == "torch.optim.lr_scheduler"] + [SWALR]:
        for name in {"state_dict", "load_state_dict"} & vars(schedule).keys():
            setattr(schedule, name, no_state)
    for name in ("register_parameter", "register_buffer", "add_module"):
        setattr(torch.nn.Module, name, once(by_public_name, getattr(torch.nn.Module, name)))
    with contextlib.suppress(ImportError):  # 1.13 has no functional_call(), which sets what it is given
        accessor: Any = importlib.import_module("torch.nn.utils._named_member_accessor")
        accessor.swap_tensor = once(by_public_name, accessor.swap_tensor)
    torch.Tensor.__deepcopy__ = once(without_override, torch.Tensor.__deepcopy__)
    pruning = prune.BasePruningMethod
    pruning.apply = classmethod(once(pruning_tensors, pruning.apply.__func__))
    distribution = torch.distributions.Distribution
    distribution._get_checked_instance = once(of_distribution, distribution._get_checked_instance)
    if EVALUATOR in sys.modules:
        guard_evaluator(sys.modules[EVALUATOR])
    elif not any(isinstance(finder, EvaluatorFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, EvaluatorFinder())


class EvaluatorFinder:
    """Has sympy's evaluator guarded as soon as it is imported, which takes long and is left to who needs it."""

    def find_spec(self, name: str, path: Any, _: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name == EVALUATOR else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                guard_evaluator(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def guard_evaluator(module: Any) -> None:
    module.parse_expr = once(of_names, module.parse_expr)


def of_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return parse_expr() of sympy, which executes text, also what a case gives a symbolic number in place of another.

    Of texts that sympy and torch have it read themselves, such as names of units, none calls a function.
    """

    @functools.wraps(function)
    def called(s: Any, *args: Any, **kwargs: Any) -> Any:
        is_harmless = type(s) is str and ARITHMETIC.fullmatch(s) and not LEADS_ON.search(s)
        if not is_harmless or any(hasattr(builtins, name) for name in NAME.findall(s)):
            raise ValueError("a case can't give sympy a text to execute")
        return function(s, *args, **kwargs)

    return called


def once(guard: Callable[[Any], Any], function: Any) -> Any:
    """Return what `guard` makes of a function of torch, or the function if that is what it is already."""
    return function if hasattr(function, "__wrapped__") else guard(function)


def by_public_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives a module a member, but for torch alone one whose name begins with _.

    Methods of torch that a case has in a class of its own would take it for what torch has made.
    """

    @functools.wraps(function)
    def named(module: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(name, str) and name.startswith("_") and not names_privately(sys._getframe(1)):
            raise TypeError(f"a case can't call a member of a module {name!r}, which begins with _")
        return function(module, name, *args, **kwargs)

    return named


def names_privately(caller: types.FrameType) -> bool:
    """Whether this is code of torch that calls members of modules so, none of which a case has named."""
    return caller.f_code is torch.nn.Module.__setattr__.__code__ or caller.f_globals["__name__"] in OF_PRIVATE_NAMES


def pruning_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method by which a class prunes a tensor, by its name, of a module that the case may have made."""

    @functools.wraps(function)
    def named(cls: Any, module: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
        expect_tensor(module, name)
        return function(cls, module, name, *args, **kwargs)

    return named


def without_override(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that makes a deep copy of a tensor, which asks no override of a case how.

    It would be given the table of all copies, which leads to whatever was copied before.
    """

    @functools.wraps(function)
    def copied(self: Any, memo: Any) -> Any:
        own = [kind for kind in type(self).__mro__ if kind.__module__ == MODULE]
        with without_overrides() if own else contextlib.nullcontext():
            return function(self, memo)

    return copied


def of_class(owner: Any, name: str, *default: Any) -> Any:
    """Return what getattr() does, but for an instance only what its class has."""
    if isinstance(owner, type):
        return getattr(owner, name, *default)
    found = getattr(type(owner), name, *default)
    return found.__get__(owner) if hasattr(found, "__get__") else found


def no_state(*_: Any) -> None:
    """Stand for the methods by which a schedule gives and takes all attributes of itself and of what it calls."""
    raise TypeError("a case can't read or write the state of a schedule")


def of_distribution(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method by which expand() finds the object whose attributes it sets: it may be a distribution."""

    @functools.wraps(function)
    def checked(self: Any, cls: type, _instance: Any = None) -> Any:
        if not isinstance(_instance, (torch.distributions.Distribution, type(None))):
            raise TypeError(f"a case can't expand into {_instance!r}")
        return function(self, cls, _instance)

    return checked
