"""Finds what a print or a bare expression looks at, and which checks say that in a case."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

# Attributes and methods that are checks; those of one name with their check are read from the schema's list.
CHECKS = {
    "is_leaf": "is_leaf", "requires_grad": "requires_grad", "retains_grad": "retains_grad", "grad": "grad",
    "grad_fn": "grad_fn", "_version": "version", "output_nr": "output_nr", "shape": "shape", "dtype": "dtype",
    "device": "device", "layout": "layout",
}  # fmt: skip
METHODS = {"size": "shape", "stride": "stride", "is_contiguous": "is_contiguous", "is_inference": "is_inference"}
CONVERSIONS = frozenset({"item", "tolist", "numpy"})  # which show what the tensor holds
PURE = frozenset({"len", "type", "isinstance", "str", "repr", "float", "int", "bool", "list", "tuple"})
OF_A_TENSOR = ("value", "requires_grad", "grad_fn")  # what its repr shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """What is looked at, an expression, with the checks that say what is seen; an identity is compared with others."""

    subject: ast.expr
    checks: tuple[str, ...]
    is_identity: bool = False


def slots_of(node: ast.expr) -> Iterator[Slot]:
    """Yield what an expression looks at; labels among it are left out."""
    if isinstance(node, ast.Constant):
        return
    if isinstance(node, ast.JoinedStr):
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from slots_of(part.value)
    elif isinstance(node, (ast.Tuple, ast.List)) and node.elts:
        for item in node.elts:
            yield from slots_of(item)
    elif isinstance(node, ast.BinOp) and is_text(node.left):
        yield from slots_of(node.right)
    elif isinstance(node, ast.Call) and is_text(node.func):
        for item in node.args:
            yield from slots_of(item)
    else:
        yield slot_of(node)


def is_text(node: ast.expr) -> bool:
    """Whether an expression is a text that others are put into."""
    if isinstance(node, ast.Attribute):
        return node.attr == "format" and is_text(node.value)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def slot_of(node: ast.expr) -> Slot:
    if isinstance(node, ast.Attribute) and node.attr in CHECKS:
        return Slot(subject=node.value, checks=(CHECKS[node.attr],))
    if isinstance(node, ast.Call):
        called, given = node.func, node.args
        if isinstance(called, ast.Attribute) and not given:
            if called.attr in METHODS:
                return Slot(subject=called.value, checks=(METHODS[called.attr],))
            if called.attr in CONVERSIONS:
                return slot_of(called.value)
        elif isinstance(called, ast.Name) and len(given) == 1:
            if called.id == "type":
                return Slot(subject=given[0], checks=("type",))
            if called.id == "id":
                return Slot(subject=given[0], checks=(), is_identity=True)
            if called.id in ("str", "repr"):
                return slot_of(given[0])
    if isinstance(node, (ast.Compare, ast.BoolOp)) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return Slot(subject=node, checks=("value",))
    return Slot(subject=node, checks=OF_A_TENSOR)


def calls_something(node: ast.expr) -> bool:
    """Whether an expression calls what may do more than look, so that it is to be evaluated once."""
    called = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    return not all(isinstance(each, ast.Name) and each.id in PURE for each in called)
