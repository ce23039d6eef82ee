"""Parses the text of steps and expressions, and notes which names they bind, delete and define."""

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

MAX_LENGTH = 10_000
MAX_NESTING = 60
OLDEST_PYTHON = (3, 8)  # of the interpreters in which a worker may run
TAB = re.compile(r"^ *\t", re.MULTILINE)
PLACE = re.compile(
    r" (?:on line \d+|\(detected at line \d+\))"
)  # in what Python says, counted from the step's beginning
SYNTAX_HINTS = {
    "expected ':'": "it ends the first line of for, if, def, with and class",
    "indent": "the lines of a block stand deeper than its first line, and all alike",
    "was never closed": "close it in this step",
    "unterminated string": "a ' within '…' ends it, and ' #' ends a line of YAML; write the step below a |",
    "invalid character": "type it as a program has it: straight quotation marks, and - for minus",
    "cannot assign": "on the left of = stands a name; == compares",
}
UNBALANCED = re.compile(r"unmatched|was never closed|does not match")
REGISTER = frozenset({"register_buffer", "register_parameter", "register_module", "add_module"})
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something in a step that is not allowed; `line` and `column` count from 1 inside the step's text."""

    line: int
    column: int
    message: str
    hint: str = ""


@dataclass(slots=True, kw_only=True)
class Parsed:
    """The text of a step or expression, its syntax tree (None for a syntax error) and what is wrong with it."""

    text: str
    tree: ast.Module | ast.Expression | None = None
    bound: frozenset[str] = frozenset()  # names that it sets in the case's global scope and doesn't delete
    deleted: frozenset[str] = frozenset()  # names that it deletes
    attributes: frozenset[str] = frozenset()  # attributes that it sets or defines
    mentioned: frozenset[str] = frozenset()  # every name and attribute in it
    findings: list[Finding] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)  # names of the vocabulary that not every supported release has


def parse_code(text: str, mode: str = "exec") -> Parsed:
    """Parse a step (`exec`) or an expression (`eval`); syntax errors become findings."""
    found = parsed_once(text, mode)
    return replace(found, findings=list(found.findings), needs=set())


@lru_cache(maxsize=4096)  # expanded cases repeat the same texts
def parsed_once(text: str, mode: str) -> Parsed:
    parsed = Parsed(text=text)

    def found(message: str, hint: str = "", line: int = 1, column: int = 1) -> Parsed:
        parsed.findings.append(Finding(line=line, column=column, message=message, hint=hint))
        return parsed

    if len(text) > MAX_LENGTH:
        return found(f"expected at most {MAX_LENGTH} characters, got {len(text)}")
    tab = TAB.search(text)
    if tab is not None:
        hint = "a tab can't indent; use spaces"
        return found(
            "expected statements, got a tab before one",
            hint,
            text.count("\n", 0, tab.start()) + 1,
            tab.end() - tab.start(),
        )
    if "\r" in text:  # a line end to Python alone
        return found("expected lines that end with a newline, got a carriage return")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as SyntaxWarning
            source = text if mode == "exec" else text.strip()
            tree: ast.AST = ast.parse(source, mode=mode, feature_version=OLDEST_PYTHON)
            depth = survey(tree, parsed)
            if depth <= MAX_NESTING:
                compile(tree, "<step>", mode, dont_inherit=True)  # type: ignore[call-overload]
    except SyntaxError as error:
        lead = margin(text) if mode == "eval" and (error.lineno or 1) == 1 else 0
        return found(*syntax_problem(error.msg, mode), error.lineno or 1, (error.offset or 1) + lead)
    except (ValueError, MemoryError, RecursionError, OverflowError) as error:
        return found(f"can't be read as Python: {str(error) or 'nested too deeply'}")
    if depth > MAX_NESTING:
        return found(f"nested {depth} deep, expected at most {MAX_NESTING}", "split it into steps")
    assert isinstance(tree, (ast.Module, ast.Expression))
    parsed.tree = tree
    if mode == "exec" and isinstance(tree, ast.Module) and not tree.body:
        found("expected statements, got a comment")
    return parsed


def syntax_problem(told: str, mode: str) -> tuple[str, str]:
    """Return the message and the hint for what Python says of a text that it can't read."""
    what = "statements" if mode == "exec" else "an expression"
    if "only supported in Python" in told:
        return f"expected {what}, got syntax that Python 3.8 does not have", ""
    hint = "between { and } or [ and ], quote text that holds a comma"
    if mode == "exec" or not UNBALANCED.search(told):
        hint = next((words for part, words in SYNTAX_HINTS.items() if part in told), "")
    return f"expected {what}, and this is not Python: {PLACE.sub('', told)}", hint


def margin(text: str) -> int:
    """Return the indentation of an expression, which is removed before parsing."""
    return len(text) - len(text.lstrip(" "))


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes directly below `node`: `ast.iter_child_nodes` in half the time."""
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST):
                    yield item
        elif isinstance(value, ast.AST):
            yield value


def survey(tree: ast.AST, parsed: Parsed) -> int:
    """Record in `parsed` what `tree` mentions, binds and defines, and return its nesting depth."""
    deepest = 0
    mentioned: set[str] = set()
    attributes: set[str] = set()
    bound: set[str] = set()
    deleted: set[str] = set()
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        kind = type(node)
        if kind is ast.Name:
            mentioned.add(node.id)  # type: ignore[attr-defined]
        elif kind is ast.Attribute:
            mentioned.add(node.attr)  # type: ignore[attr-defined]
            if not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                attributes.add(node.attr)  # type: ignore[attr-defined]
        elif kind is ast.FunctionDef:
            mentioned.add(node.name)  # type: ignore[attr-defined]
        elif kind is ast.ClassDef:
            attributes |= names_bound(node)
        elif kind is ast.Call:
            attributes |= registered(node)
        elif kind is ast.Global:
            bound.update(node.names)  # type: ignore[attr-defined]
        waiting += [(child, depth + 1) for child in children(node)]
    if deepest <= MAX_NESTING:
        for statement in tree.body if isinstance(tree, ast.Module) else [tree]:
            sets = names_bound(statement, itself=True)
            names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)] if "del" in parsed.text else []
            removes = {node.id for node in names if isinstance(node.ctx, ast.Del)}
            bound = (bound | sets) - removes
            deleted = (deleted | removes) - sets
    parsed.mentioned, parsed.attributes = frozenset(mentioned), frozenset(attributes)
    parsed.bound, parsed.deleted = frozenset(bound), frozenset(deleted)
    return deepest


def registered(node: ast.AST) -> set[str]:
    """Return the attribute that a call such as `self.register_buffer("scale", …)` defines."""
    assert isinstance(node, ast.Call)
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in REGISTER or not node.args:
        return set()
    first = node.args[0]
    return {first.value} if isinstance(first, ast.Constant) and isinstance(first.value, str) else set()


def names_bound(tree: ast.AST, itself: bool = False) -> set[str]:
    """Return the names that the code in `tree` binds in its own scope, without those in inner defs and classes.

    With `itself`, `tree` is a statement, and a def or class binds its own name.
    """
    bound: set[str] = set()
    waiting = [tree] if itself else list(children(tree))
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind is ast.Name:
            if isinstance(node.ctx, ast.Store):  # type: ignore[attr-defined]
                bound.add(node.id)  # type: ignore[attr-defined]
        elif kind is ast.FunctionDef or kind is ast.ClassDef:
            bound.add(node.name)  # type: ignore[attr-defined]
        elif kind in COMPREHENSIONS:
            waiting += [inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
        elif kind is not ast.Lambda:
            if kind is ast.ExceptHandler and node.name:  # type: ignore[attr-defined]
                bound.add(node.name)  # type: ignore[attr-defined]
            waiting += children(node)
    return bound
