"""Finds expectations that can't fail: those that compare a value with itself, or that don't depend on the case.

An expression that only reads names, attributes and items gives the same value twice. An operation or a call may not,
since the reference is computed on float64 copies; nor need an attribute read twice be the same object.
"""

import ast
import re
from functools import lru_cache
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
    """Return an expected value as an expression."""
    if isinstance(value, list):
        return f"[{', '.join(map(source_of, value))}]"
    return f"({value['expr']}\n)" if isinstance(value, dict) else repr(value)


def compares_with_itself(subject: str, check: str, value: Any) -> bool:
    """Whether a check whose value is an expression, or a list with expressions, compares `subject` with itself."""
    source = source_of(value)
    if IDENTIFIER.findall(subject) != IDENTIFIER.findall(source):  # saves parsing, which is slow
        return False
    observed, expected = tree_of(subject), tree_of(source)
    if observed is None or expected is None or ast.dump(observed) != ast.dump(expected):
        return False
    if check in BY_IDENTITY:
        return isinstance(observed, ast.Name)
    return all(isinstance(node, READING) for node in ast.walk(observed))


@lru_cache(maxsize=1024)  # spellings repeat the same subjects
def is_independent_of_case(subject: str) -> bool:
    """Whether `subject` doesn't depend on the case: it has no names, or compares a name with itself."""
    tree = None if subject.isidentifier() else tree_of(subject)
    if tree is None:
        return False
    if isinstance(tree, ast.Compare) and all(isinstance(side, ast.Name) for side in (tree.left, *tree.comparators)):
        return len({ast.dump(side) for side in (tree.left, *tree.comparators)}) == 1
    return not any(isinstance(node, ast.Name) for node in ast.walk(tree))
