"""Tells expectations that can't fail: those that hold a thing against itself, or that look at nothing of the case.

What only reads (names, attributes, items) comes to the same a moment later. An operation or a call may not, since a
reference is worked out on float64 copies; and whether reading an attribute twice gives the same object is a question.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from conformance.language.parsing import parse_code

READING = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice, ast.Tuple, ast.List, ast.UnaryOp, ast.unaryop,
    ast.expr_context,
)  # fmt: skip
IDENTIFIER = re.compile(r"[^\W\d]\w*")
BY_IDENTITY = frozenset({"is", "is_not"})


def tree_of(text: str) -> ast.expr | None:
    tree = parse_code(text, mode="eval").tree
    return tree.body if isinstance(tree, ast.Expression) else None


def source_of(value: Any) -> str:
    """Return the expression that an expected value stands for."""
    if isinstance(value, list):
        return f"[{', '.join(map(source_of, value))}]"
    return f"({value['expr']}\n)" if isinstance(value, dict) else repr(value)


def only_reads(tree: ast.AST) -> bool:
    return all(isinstance(node, READING) for node in ast.walk(tree))


def compares_with_itself(subject: str, check: str, value: Any) -> bool:
    """Whether a check, whose value is an expression or a list with some, expects of `subject` what it is."""
    source = source_of(value)
    if IDENTIFIER.findall(subject) != IDENTIFIER.findall(source):  # most differ, and parsing takes long
        return False
    observed, expected = tree_of(subject), tree_of(source)
    if observed is None or expected is None or ast.dump(observed) != ast.dump(expected):
        return False
    return isinstance(observed, ast.Name) if check in BY_IDENTITY else only_reads(observed)


def looks_at_nothing(subject: str) -> bool:
    """Whether `subject` is the same whatever the case does: without names, or a comparison of a name with itself."""
    tree = None if subject.isidentifier() else tree_of(subject)
    if tree is None:
        return False
    if isinstance(tree, ast.Compare) and all(isinstance(side, ast.Name) for side in (tree.left, *tree.comparators)):
        return len({ast.dump(side) for side in (tree.left, *tree.comparators)}) == 1
    return not any(isinstance(node, ast.Name) for node in ast.walk(tree))
