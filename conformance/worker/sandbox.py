"""Compiles the text of steps and expressions into code that can access only objects of the case.

The parent has already checked every name and attribute. Two things can't be checked statically: whether an attribute
that the case defines is read from an object that isn't its own, and whether an assignment changes an object that all
cases share. The compiled code checks both at run time.
"""

from __future__ import annotations

import ast
import builtins
import functools
import sys
import types
import warnings
from typing import Any, Callable, Sequence

import torch

from conformance.language import vocabulary

# Objects of the suite, graphs of operations, from which code is written, and operations themselves.
CLOSED = ("conformance.", "torch.fx.", "torch._ops")
# What torch makes for a case and the case may give attributes, beside what it has made itself. Anything else that torch
# has may be one object for all cases, such as a constraint of distributions.
OPEN = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)
# Whose attributes are torch's, though they are tensors and modules: a tensor of the compiler has the mode that made it.
TRACED = ("torch.fx.", "torch._subclasses.")
MODULES = ("torch.nn.", "torch.optim.")  # whose modules a case may give attributes, beside its own
SHARED = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)
MODULE = "__case__"  # the __name__ of steps, and so the __module__ of their functions and classes
PLACE = types.ModuleType(MODULE)  # the module of steps, which one case after the other has
MADE = (MODULE, "torch.autograd.function")  # modules of classes, of the case and of contexts, which 2.10 traces by name
LAYERS = ("torch.nn.modules.", "torch.nn.parameter")  # of what a case makes by torch's classes, and may give attributes
EXPRESSION = "<case>"  # the file name of expressions
# Where objects that a Function is given instead of its context have it, and the modules of their classes: in transforms
# and under compiled autograd. They pass on what is read.
PASSED_ON = {"_pt_inner_ctx": "torch._functorch.", "real": "torch._dynamo."}
# What a tensor shows, and a node of a graph, but neither the storage or array that lends a tensor its memory nor a
# symbolic number: it changes that memory under the tensor, imports the module of a type's name, or takes any operand.
WITHHELD = frozenset({"resize_", "resize", "type", "node"})
SYMBOLIC = ("SymInt", "SymFloat", "SymBool")


@functools.lru_cache(maxsize=None)
def compile_text(text: str, mode: str) -> types.CodeType:
    """Return the code of a step (`exec`) or an expression (`eval`)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as SyntaxWarning
        tree: Any = ast.parse(text if mode == "exec" else text.strip(), mode=mode)
        guard(tree)
        return compile(tree, EXPRESSION, mode, dont_inherit=True)


def compile_step(text: str, file: str, line: int) -> types.CodeType:
    """Return the code of a step that begins in `line` of what is called `file`, with these places in tracebacks."""
    return relocate(compile_text(text, "exec"), file, line - 1)


def relocate(code: types.CodeType, file: str, offset: int) -> types.CodeType:
    constants = tuple(relocate(each, file, offset) if type(each) is types.CodeType else each for each in code.co_consts)
    return code.replace(co_filename=file, co_firstlineno=code.co_firstlineno + offset, co_consts=constants)


def guard(tree: ast.AST) -> None:
    """Add a run-time check to each base class, attribute write, and read of an attribute outside the vocabulary."""
    pending = [tree]
    while pending:
        node = pending.pop()
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                pending += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                pending.append(value)
        is_augmented = isinstance(node, ast.AugAssign)
        read = node.target if is_augmented else node  # type: ignore[attr-defined]
        is_read = is_augmented or isinstance(getattr(node, "ctx", None), ast.Load)
        if isinstance(read, ast.Name) and read.id in vocabulary.FOREIGN and is_read:
            raise NameError(f"name {read.id!r} is not defined")  # beside what is compiled it would be Python's
        if isinstance(node, ast.Name) and node.id == "type":
            node.id = "__type__"  # what the compiler writes calls Python's by this name, in the same namespace
        elif isinstance(node, ast.ClassDef):
            node.bases = [call_node("__base__", base) for base in node.bases]
        elif isinstance(read, ast.Attribute) and is_read:
            read.value = checked(read.value, read.attr)
        elif isinstance(node, ast.Attribute):
            node.value = call_node("__writable__", node.value)


def checked(owner: ast.expr, name: str) -> ast.expr:
    """Return the owner of an attribute that is read, with the check that this name needs at run time."""
    if name in WITHHELD:
        return call_node("__shown__", owner, ast.Constant(value=name, kind=None))
    if name in vocabulary.ATTRIBUTES or name.startswith("_"):
        return owner
    check = "__readable__" if name in inherited() else "__own__"
    return call_node(check, owner, ast.Constant(value=name, kind=None))


def call_node(name: str, owner: ast.expr, *arguments: ast.Constant) -> ast.Call:
    """Return a call of the function `name`, in the place of `owner`, its first argument."""
    call = ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=[owner, *arguments], keywords=[])
    for node in (call, call.func, *arguments):
        ast.copy_location(node, owner)
    return call


def writable(owner: Any) -> Any:
    """Return `owner` if a case may set its attributes."""
    if not is_open(owner):
        raise AttributeError(f"a case can't change {owner!r}, which all cases may share")
    return owner


def is_open(owner: Any) -> bool:
    """Whether a case may give an object attributes: it has made it, or torch has made it for this case."""
    if isinstance(owner, SHARED):
        return getattr(owner, "__module__", None) == MODULE
    if isinstance(owner, torch.nn.Module):
        return type(owner).__module__.startswith((MODULE, *MODULES))
    if isinstance(owner, OPEN) or type(owner).__module__ in MADE:
        return True
    held = getattr(owner, "__dict__", {})
    for kept, module in PASSED_ON.items():
        if kept in held and type(owner).__module__.startswith(module):
            return is_open(held[kept])
    return False


def bases() -> list[type]:
    """Return the classes of torch and Python from which a case may derive its own."""
    places = (builtins, torch, torch.nn, torch.optim, torch.autograd, torch.autograd.function)
    return [getattr(place, name) for name in vocabulary.BASES for place in places if hasattr(place, name)]


@functools.lru_cache(maxsize=None)
def inherited() -> frozenset[str]:
    """Return the attributes that a class of a case, or an object that `own` knows, can have from torch or Python."""
    modules = [each for name, each in sys.modules.items() if name in MADE or name.startswith(LAYERS)]
    classes = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    return frozenset(name for cls in (*bases(), *classes) for place in (cls, type(cls)) for name in dir(place))


def base_checker() -> Callable[[Any], Any]:
    """Return a function that returns its argument if it may be a base class: one of torch or Python, or of the case."""
    # By name: the compiler of 2.10 can't compare with Function, and that of 2.3 reads no __qualname__.
    allowed = {f"{each.__module__}.{each.__name__}" for each in bases()}

    def base(cls: Any) -> Any:
        if isinstance(cls, type) and (cls.__module__ == MODULE or f"{cls.__module__}.{cls.__name__}" in allowed):
            return cls
        raise TypeError(f"a case can't derive a class from {cls!r}")

    return base


def shown(owner: Any, name: str) -> Any:
    """Return `owner` unless it is one of those from which `name` is withheld."""
    kind = type(owner)
    if kind.__module__.partition(".")[0] == "numpy" or kind.__name__.endswith("Storage") or kind.__name__ in SYMBOLIC:
        raise AttributeError(f"a case can't use {name} of {kind.__name__!r}")
    if isinstance(owner, type) and owner.__name__.endswith(("Storage", "StorageBase", "ndarray", *SYMBOLIC)):
        raise AttributeError(f"a case can't use {name} of {owner!r}")
    return owner


def own(owner: Any, name: str) -> Any:
    """Return `owner` as `readable` does, where `name` isn't `inherited`.

    All that is looked at is whose class it is. From 2.3 on a compiler that traces this sees no more of the classes and
    objects of a case than a function without checks would show it, and compiles anew for the same reasons. What a
    context, a layer or a tensor has beside what its class has is its own, which a case may read.
    """
    kind = owner if isinstance(owner, (type, types.FunctionType)) else type(owner)
    if kind.__module__ in MADE or kind.__module__.startswith(LAYERS):
        return owner
    return owner if kind.__module__ == "torch" and kind.__name__ == "Tensor" else readable(owner, name)


def readable(owner: Any, name: str) -> Any:
    """Return `owner` if a case may read its attribute `name`: if the case has set it, or if `owner` is a namespace."""
    if type(owner) is Namespace or is_own(owner, name):
        return owner
    raise AttributeError(f"{type(owner).__name__!r} has no attribute {name!r} that this case has given it")


def is_own(owner: Any, name: str) -> bool:
    """Whether the case has defined the attribute that `owner.name` finds."""
    if is_closed(owner):
        return False
    for cls in classes_searched(owner):
        if name in vars(cls):
            return cls.__module__ == MODULE  # the first class with the name decides
    if isinstance(owner, SHARED):
        return getattr(owner, "__module__", None) == MODULE and name in vars(owner)
    held = getattr(owner, "__dict__", {})
    for kept, module in PASSED_ON.items():
        if kept in held and type(owner).__module__.startswith(module):
            return is_own(held[kept], name)
    if name in held:
        return is_open(owner) and not type(owner).__module__.startswith(TRACED)
    return any(name in held.get(kept, ()) for kept in ("_parameters", "_buffers", "_modules"))


def is_closed(owner: Any) -> bool:
    """Whether an object has nothing that a case could read or set beside the vocabulary."""
    return type(owner).__module__.startswith(CLOSED) and not isinstance(owner, (torch.nn.Module, torch.Tensor))


def classes_searched(owner: Any) -> Sequence[type]:
    """Return the classes in which Python looks up an attribute of `owner`, in order."""
    if type(owner).__name__ == "super":
        order = owner.__self_class__.__mro__
        return order[order.index(owner.__thisclass__) + 1 :]  # type: ignore[no-any-return]
    return owner.__mro__ if isinstance(owner, type) else type(owner).__mro__


class Namespace:
    """A torch module with only the names of the vocabulary."""

    def __init__(self, path: str, members: dict[str, Any]) -> None:
        self.__dict__.update(members)
        self.__dict__["__name__"] = path

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self.__name__}.{name} belongs to the vocabulary and can't be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self.__name__}.{name} belongs to the vocabulary and can't be deleted")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"this torch has no {self.__name__}.{name}")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{self.__name__} belongs to the vocabulary and can't be copied")

    def __repr__(self) -> str:
        return f"<{self.__name__}>"
