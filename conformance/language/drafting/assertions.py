"""Says what an assertion of a test expects, as steps of a case.

Some have several readings, since nothing says what is a tensor: the first that holds when it is run is meant.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from conformance.language.drafting.slots import CHECKS, METHODS

Expected = dict[str, Any]  # from subject to checks or value
Reading = tuple[list[str], Expected]  # statements, and what is expected after them
COMPARISONS = {
    "assertGreater": ">", "assertGreaterEqual": ">=", "assertLess": "<", "assertLessEqual": "<=", "assertIn": "in",
    "assertNotIn": "not in",
}  # fmt: skip
EQUAL = frozenset({"assertEqual", "assertEquals", "assertAlmostEqual", "assert_close", "assertEqualIgnoreType"})
NAME_OF_NODE = re.compile(
    r"(?P<of>.+)\.grad_fn(?:\.name\(\)|\.__class__\.__name__)|type\((?P<typed>[^()]+)\.grad_fn\)\.__name__"
)
GROUPS = re.compile(r"\\[A-Za-z]|\.[*+]|\[[^\]]+\][*+]|\|")  # of a pattern that can't be plain text
SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
RAISING = {"assertRaises": "raises", "assertRaisesRegex": "raises", "assertWarns": "warns", "assertWarnsRegex": "warns"}
RAISING["assertWarnsOnceRegex"] = "warns"


def assertion_of(node: ast.stmt) -> ast.Call | None:
    """Return the call of an assertion, also of what an assert statement asserts, or None for another statement."""
    if isinstance(node, ast.Assert):
        name = ast.Attribute(ast.Name("self", ast.Load()), "assertTrue", ast.Load())
        return ast.copy_location(ast.Call(name, [node.test], []), node)
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    is_own = isinstance(call.func.value, ast.Name) and call.func.value.id == "self" and call.func.attr[:6] == "assert"
    return call if is_own or call.func.attr == "assert_close" else None


def text(node: ast.expr) -> str:
    return ast.unparse(node)


def literal(node: ast.expr) -> Any:
    """Return an expected value as data: a number, true, false, null, or else an expression."""
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (bool, int, float))):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = literal(node.operand)
        return -inner if type(inner) in (int, float) else text(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {"text": node.value}
    return text(node)


def holds(subject: ast.expr, value: Any) -> Expected:
    """Return the expectation that an expression has a value, by the check that there is for it."""
    if isinstance(subject, ast.Attribute) and subject.attr in CHECKS:
        check, of = CHECKS[subject.attr], subject.value
        fits = {"is_leaf": bool, "requires_grad": bool, "retains_grad": bool, "version": int, "output_nr": int}
        if check == "grad" or (check == "grad_fn" and value is None) or type(value) is fits.get(check):
            return {text(of): {check: value}}
    node = NAME_OF_NODE.fullmatch(text(subject))
    if node and type(value) is dict:
        return {node["of"] or node["typed"]: {"grad_fn": value["text"]}}
    called = subject.func if isinstance(subject, ast.Call) and not subject.args else None
    if isinstance(called, ast.Attribute) and type(value) is bool and METHODS.get(called.attr, "").startswith("is_"):
        return {text(called.value): {called.attr: value}}
    return {text(subject): value}


def readings_of(call: ast.Call, fresh: Callable[[str], str]) -> list[Reading]:
    """Return what an assertion may mean, the likeliest first; none where a case can't say it."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = call.args
    options = {each.arg: each.value for each in call.keywords if each.arg in ("rtol", "atol")}
    if name in EQUAL and len(given) >= 2:
        return equal(given[0], given[1], options, fresh)
    if name in ("assertTrue", "assertFalse") and given:
        return truth(given[0], name == "assertTrue")
    if name in ("assertIsNone", "assertIsNotNone") and given:
        return truth(ast.Compare(given[0], [ast.Is() if name == "assertIsNone" else ast.IsNot()], [NONE]), True)
    if name in ("assertIs", "assertIsNot") and len(given) >= 2:
        operator = ast.Is() if name == "assertIs" else ast.IsNot()
        return truth(ast.Compare(given[0], [operator], [given[1]]), True)
    if name in COMPARISONS and len(given) >= 2:
        return [([], {f"{operand(given[0])} {COMPARISONS[name]} {operand(given[1])}": True})]
    if name in ("assertIsInstance", "assertNotIsInstance") and len(given) >= 2:
        return [([], {f"isinstance({text(given[0])}, {text(given[1])})": name == "assertIsInstance"})]
    if name == "assertRegex" and len(given) >= 2 and (words := words_of(given[1])):
        return [([], {f"{words!r} in {text(given[0])}": True})]
    if name == "assertNotEqual" and len(given) >= 2:
        one, other = operand(given[0]), operand(given[1])
        return [([], {f"{one} != {other}": True}), ([], {f"torch.equal({one}, {other})": False})]
    return []


NONE = ast.Constant(None)


def words_of(pattern: ast.expr) -> str:
    """Return the text that a pattern stands for, if it is one that has no variants."""
    words = pattern.value if isinstance(pattern, ast.Constant) else ""
    return unescaped(words) if isinstance(words, str) and not GROUPS.search(words) else ""


def operand(node: ast.expr) -> str:
    simple = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Tuple)
    return text(node) if isinstance(node, simple) else f"({text(node)})"


def equal(one: ast.expr, other: ast.expr, options: dict[str, Any], fresh: Callable[[str], str]) -> list[Reading]:
    """Return the readings of an assertion that two things are equal: one is the subject, the other what is expected."""
    if isinstance(one, ast.Constant) and not isinstance(other, ast.Constant):
        one, other = other, one
    limits = {name: literal(value) for name, value in options.items() if type(literal(value)) in (int, float)}
    found = []
    for expected, before in ((other, []), (None, [f"{(kept := fresh('wanted'))} = {text(other)}"])):
        value = literal(expected) if expected is not None else kept
        entry = holds(one, value)
        subject, checks = next(iter(entry.items()))
        if limits:
            checks = {**(checks if type(checks) is dict and "text" not in checks else {"value": checks}), **limits}
        found.append((before, {subject: checks}))
    kept_one = fresh("seen")
    found.append(([f"{kept_one} = {text(one)}", f"{kept} = {text(other)}"], {f"torch.equal({kept_one}, {kept})": True}))
    found.append(([f"{kept_one} = {text(one)}", f"{kept} = {text(other)}"], {f"{kept_one} == {kept}": True}))
    return found


def truth(node: ast.expr, wanted: bool) -> list[Reading]:
    """Return the readings of an assertion that something is true, or not."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return truth(node.operand, not wanted)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        operator, left, right = node.ops[0], node.left, node.comparators[0]
        is_none = isinstance(right, ast.Constant) and right.value is None
        if isinstance(operator, (ast.Is, ast.IsNot)):
            is_same = isinstance(operator, ast.Is) is wanted
            if is_none and is_same:
                return [([], holds(left, None))]
            if not is_none and not isinstance(right, ast.Constant):
                return [([], {text(left): {"is" if is_same else "is_not": text(right)}}), *plainly(node, wanted)]
    return [([], holds(node, wanted)), *plainly(node, wanted)]


def plainly(node: ast.expr, wanted: bool) -> list[Reading]:
    return [([], {text(node): wanted}), ([], {f"bool({text(node)})": wanted})]


AS_IT_IS = "def as_it_is(x):\n    return x.detach().clone() if isinstance(x, torch.Tensor) else x"


def pair_of(call: ast.Call) -> tuple[str, str] | None:
    """Return what an assertion inside of a function or block compares: what is seen, and what it is to be."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = call.args
    if name in EQUAL and len(given) >= 2:  # of tensors as they are now: they may be written to before the end
        return f"as_it_is({text(given[0])})", f"as_it_is({text(given[1])})"
    if name in ("assertTrue", "assertFalse") and given:
        return f"bool({text(given[0])})", str(name == "assertTrue")
    if name in ("assertIsNone", "assertIsNotNone") and given:
        return f"{operand(given[0])} is None", str(name == "assertIsNone")
    if name in ("assertIs", "assertIsNot") and len(given) >= 2:
        return f"{operand(given[0])} is {operand(given[1])}", str(name == "assertIs")
    if name == "assertRegex" and len(given) >= 2 and (words := words_of(given[1])):
        return f"{words!r} in {operand(given[0])}", "True"
    if name in COMPARISONS and len(given) >= 2:
        return f"{operand(given[0])} {COMPARISONS[name]} {operand(given[1])}", "True"
    if name in ("assertIsInstance", "assertNotIsInstance") and len(given) >= 2:
        return f"isinstance({text(given[0])}, {text(given[1])})", str(name == "assertIsInstance")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Raising:
    """What `assertRaises` and the like expect: `raises` or `warns`, the class, an expression for words, what is called.

    The `entries` are what a case may say of that, the likeliest first: none where the words are not said.
    """

    kind: str
    type: ast.expr
    words: ast.expr | None
    called: list[ast.expr]

    @property
    def entries(self) -> list[dict[str, Any]]:
        words = self.words.value if isinstance(self.words, ast.Constant) else None
        if not isinstance(words, str) or not words.strip():
            return []
        name = text(self.type).rpartition(".")[2]
        plain = [] if GROUPS.search(words) else [{"type": name, "match": unescaped(words)}]
        return [*plain, *([{"type": name, "match": {"regex": words}}] if SPECIAL.search(words) else [])]

    @property
    def inside(self) -> str:
        """An expression for whether the message of an `error` has the words."""
        if self.words is None:
            return "True"
        constant = self.words.value if isinstance(self.words, ast.Constant) else None
        return f"{repr(unescaped(constant)) if isinstance(constant, str) else text(self.words)} in str(error)"


def unescaped(words: str) -> str:
    return re.sub(r"\\(\W)", r"\1", words)


def raising_of(node: ast.expr) -> Raising | None:
    """Return what a call of `assertRaises` and the like expects."""
    call = node if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr not in RAISING or not call.args:
        return None
    has_words = call.func.attr.endswith("Regex")
    words = call.args[1] if has_words and len(call.args) > 1 else None
    called = call.args[2 if has_words else 1 :]
    return Raising(kind=RAISING[call.func.attr], type=call.args[0], words=words, called=called)
