"""Reads from the statements of a step what a graph doesn't say: which calls are made, in which modes, what is written.

It is what the text says. A function that a step calls may do more; of that only the graph tells.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.language.parsing import parse_code

MODES = frozenset("no_grad inference_mode set_grad_enabled enable_grad".split())
NOT_WRITES = frozenset("requires_grad_ share_memory_ retain_grad_".split())  # end with _ and leave the values alone
NOT_VALUES = frozenset("shape dtype device ndim layout numel size dim stride is_leaf requires_grad".split())
CUTS = frozenset("detach detach_ data".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call: the name of the function, what stands before the dot, and its keywords."""

    name: str
    owner: str
    keywords: tuple[str, ...]
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """What the statements of a step do by their text; `sources` has for each name that is set what it is made of."""

    calls: tuple[Call, ...]
    sources: dict[str, str]
    modes: tuple[str, ...]
    written: tuple[tuple[str, str], ...]  # what is written in place, and by what
    defined: tuple[str, ...] = ()  # functions and classes

    def called(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]

    def source_of(self, name: str) -> str:
        """Return the expression that a name is set to, or the variable that it is a part of."""
        return self.sources.get(name) or self.sources.get(re.split(r"[.\[]", name)[0], "")

    def cut_of(self, name: str) -> str:
        """Return what takes the value that a name is set to from the graph: detach() or .data, or an empty string."""
        tree = parse_code(self.source_of(name), "eval").tree
        found = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)] if tree is not None else []
        cut = next((each for each in found if each in CUTS), "")
        return cut and (".data" if cut == "data" else f"{cut}()")

    def mentions(self, name: str) -> set[str]:
        """Return the names in what a name is made of, but for those whose shape and the like are all that is used."""
        tree = parse_code(self.source_of(name), "eval").tree
        return set(names_in(tree)) if tree is not None else set()


def names_in(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif not (isinstance(node, ast.Attribute) and node.attr in NOT_VALUES):
        for inner in ast.iter_child_nodes(node):
            yield from names_in(inner)


def read_statements(text: str) -> Statements:
    tree = parse_code(text).tree
    if not isinstance(tree, ast.Module):
        return Statements(calls=(), sources={}, modes=(), written=())
    nodes = list(outside_functions(tree))
    calls = tuple(call_of(node) for node in nodes if isinstance(node, ast.Call))
    modes = tuple(each.name for each in calls if each.name in MODES)
    return Statements(
        calls=calls, sources=dict(sources_in(nodes)), modes=modes, written=tuple(writes_in(nodes)),
        defined=tuple(node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))),
    )  # fmt: skip


def outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of code that runs when the step does, in their order."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            yield from outside_functions(node)


def call_of(node: ast.Call) -> Call:
    is_method = isinstance(node.func, ast.Attribute)
    return Call(
        name=node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""),
        owner=ast.unparse(node.func.value) if is_method else "",  # type: ignore[attr-defined]
        keywords=tuple(f"{each.arg}={ast.unparse(each.value)}" for each in node.keywords if each.arg),
        arguments=tuple(map(ast.unparse, node.args)),
    )


def sources_in(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield the names that are set, each with the expression that it is set to."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                yield from ((ast.unparse(name), ast.unparse(node.value)) for name in names)


def writes_in(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield what is written in place, and by what."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name.endswith("_") and not name.startswith("_") and name not in NOT_WRITES | CUTS:
                yield base_of(node.func.value), f"{name}()"
        elif isinstance(node, ast.AugAssign):
            yield base_of(node.target), "the assignment"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript):
                    yield base_of(target), "the assignment"


def base_of(node: ast.AST) -> str:
    """Return the variable that an expression such as x[0] or x.view(2) is taken from."""
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return ast.unparse(node)
