"""Makes steps of statements: what they do is done, and what they look at or assert is expected."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from conformance.language.drafting.assertions import (
    AS_IT_IS,
    Raising,
    assertion_of,
    literal,
    pair_of,
    raising_of,
    readings_of,
)
from conformance.language.drafting.rewriting import Rewriter, sets_device, stored_names
from conformance.language.drafting.slots import Slot, calls_something, slots_of
from conformance.language.parsing import names_bound
from conformance.language.unconfirmed import opened
from conformance.language.yaml import UNKNOWN

OPEN = opened(UNKNOWN)
MOST_ROUNDS = 16  # that a loop is written out to
LOOKS_AT_GRAD = "grad"
OF_THE_TARGET = frozenset({"device", "dtype"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """What a case can't say: its line in the source, the text, why, a hint, and the name of which nothing is said."""

    line: int
    text: str
    why: str
    hint: str = ""
    name: str = ""


@dataclass(slots=True, kw_only=True)
class Step:
    """What one statement of a source becomes: the first of several readings, each some steps of a case."""

    line: int
    text: str
    readings: list[list[Any]]
    is_assertion: bool = False
    block: int = 0  # of those with one number, other than 0, none comes after one that raises

    @property
    def steps(self) -> list[Any]:
        return self.readings[0]


@dataclass(slots=True, kw_only=True)
class Converter:
    """Collects the steps of a case, and what can't be said in one."""

    imports: Mapping[str, str]
    own: set[str]
    steps: list[Step] = field(default_factory=list)
    untold: list[Untold] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)  # names for objects whose identity is looked at
    used: set[str] = field(default_factory=set)
    line: int = 1
    text: str = ""
    block: int = 0
    blocks: int = 0

    def convert(self, statements: Iterable[ast.stmt]) -> None:
        for node in statements:
            self.line, self.text = node.lineno, ast.unparse(node).split("\n", 1)[0]
            self.statement(node)

    def finish(self) -> None:
        """Add what is expected at the end: of all that was logged, and of what functions asserted."""
        if "checked" in self.used:
            self.steps.insert(0, Step(line=1, text="", readings=[[AS_IT_IS, "checked = []"]]))
            seen, wanted = "[seen for seen, _ in checked]", "[wanted for _, wanted in checked]"
            self.add([{"expect": {"len(checked)": OPEN}}])
            alike = "all([torch.equal(seen, wanted) for seen, wanted in checked])"
            self.text = "the assertions in functions and blocks"
            self.add([{"expect": {seen: wanted}}], [{"expect": {alike: True}}], is_assertion=True)
        if "log" in self.used:
            self.add([{"expect": {"log": OPEN}}])

    def fresh(self, word: str) -> str:
        name = next(name for n in range(1, 10_000) if (name := f"{word}_{n}") not in self.own)
        self.own.add(name)
        return name

    def rewritten(self, node: Any) -> Any:
        return ast.fix_missing_locations(Rewriter(self.imports, self.own).visit(deepcopy(node)))

    def add(self, steps: list[Any], *others: list[Any], is_assertion: bool = False) -> None:
        self.steps.append(
            Step(
                line=self.line, text=self.text, readings=[steps, *others], is_assertion=is_assertion, block=self.block
            )
        )  # fmt: skip

    def add_silently(self, code: str) -> None:
        """Add a statement that the source doesn't have: where it can't be done nothing is told of it."""
        self.text = ""
        self.add([code])

    def cannot(self, why: str, hint: str = "") -> None:
        self.untold.append(Untold(line=self.line, text=self.text, why=why, hint=hint))

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)) or sets_device(node):
            return
        if isinstance(node, ast.AnnAssign) and node.value is None:  # says of what type a name will be
            return
        lacking = self.lacking(node)
        if lacking:
            self.cannot(f"nothing says what {lacking} is", "write it before")
            return
        assertion = assertion_of(node)
        if assertion is not None and raising_of(assertion) is None:
            self.assertion(assertion)
        elif isinstance(node, ast.Expr):
            self.expression(node.value)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                self.look_at(self.rewritten(node.value))
        elif isinstance(node, ast.With) and self.is_special(node):
            self.special(node)
        elif isinstance(node, ast.Try):
            self.try_(node)
        elif (
            isinstance(node, ast.For)
            and (has_looks(node) or is_product(node.iter))
            and (rounds := rounds_of(node)) is not None
        ):
            for values in rounds:
                self.convert([ast.copy_location(ast.Assign([node.target], values), node)])
                self.convert(node.body)
        else:
            self.plain(node)

    def lacking(self, node: ast.stmt) -> str:
        """Return what a statement leaves open: a value that is `...`, or or a variable named as a function is."""
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is ...:
            return ast.unparse(node.targets[0])
        read = [each.value for each in ast.walk(node) if isinstance(each, ast.Attribute)]
        owners = {each.id for each in read if isinstance(each, ast.Name)}
        return "tensor" if "tensor" in owners and "tensor" not in self.own else ""

    def plain(self, node: ast.stmt) -> None:
        is_caught = any(isinstance(each, ast.With) and is_raising(each) for each in walk_outside_functions(node))
        node = Inner(self).visit(self.rewritten(node))
        found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        self.used |= {"log"} & found
        if is_caught and not isinstance(node, ast.FunctionDef):  # an error can be caught in a function alone
            node, call = self.as_function(node)
            self.add([ast.unparse(node)])
            self.add([call])
        else:
            self.add([ast.unparse(ast.fix_missing_locations(node))])

    def as_function(self, node: ast.stmt) -> tuple[ast.stmt, str]:
        """Return a function that does a statement in the case's own scope, and its call."""
        name = self.fresh("block")
        sets = sorted(names_bound(node, itself=True) - {"error"})
        inside = [ast.Global(sets)] if sets else []
        made = ast.parse(f"def {name}(): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.body = [*inside, node]
        return ast.fix_missing_locations(made), f"{name}()"

    def assertion(self, call: ast.Call) -> None:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "assertNotWarn" and call.args:
            text = ast.unparse(self.rewritten(ast.Call(call.args[0], call.args[1:], [])))
            self.add([{"do": text, "warns": "none"}], is_assertion=True)
            return
        readings = readings_of(self.rewritten(call), self.fresh)
        found = [[*before, {"expect": expected}] for before, expected in readings]
        if found:
            self.add(*found, is_assertion=True)
        else:
            self.cannot("this assertion has no form in a case", "say it as an expectation of your own")

    def expression(self, node: ast.expr) -> None:
        raising = raising_of(node)
        if raising is not None:
            if raising.called:
                call = ast.Call(raising.called[0], raising.called[1:], [])
                self.ends(raising, ast.unparse(self.rewritten(call)))
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            for argument in node.args:
                self.look_at(self.rewritten(argument))
        elif isinstance(node, (ast.Call, ast.Yield, ast.Await)):
            self.plain(ast.copy_location(ast.Expr(node), node))
        elif not (isinstance(node, ast.Constant) and isinstance(node.value, str)):  # such as a docstring
            self.look_at(self.rewritten(node))

    def ends(self, raising: Raising, text: str) -> None:
        readings = [[{"do": text, raising.kind: entry}] for entry in raising.entries]
        self.add(*(readings or [[{"do": text, raising.kind: OPEN}]]), is_assertion=bool(readings))

    def look_at(self, node: ast.expr) -> None:
        for slot in slots_of(node):
            if slot.is_identity:
                self.identity(slot)
                continue
            subject = ast.unparse(slot.subject)
            if subject in OF_THE_TARGET:
                continue
            if calls_something(slot.subject):
                name = self.fresh("seen")
                self.add([f"{name} = {subject}"])
                subject = name
            if LOOKS_AT_GRAD in slot.checks:
                self.add([{"do": f"{subject}.grad", "warns": OPEN}])
            only_value = slot.checks == ("value",)
            self.add([{"expect": {subject: OPEN if only_value else dict.fromkeys(slot.checks, OPEN)}}])

    def identity(self, slot: Slot) -> None:
        subject = ast.unparse(slot.subject)
        if subject in self.kept:
            self.add([{"expect": {f"{subject} is {self.kept[subject]}": OPEN}}])
        else:
            self.kept[subject] = self.fresh("first")
            self.add([f"{self.kept[subject]} = {subject}"])

    def is_special(self, node: ast.With) -> bool:
        first = node.items[0].context_expr
        is_sub = isinstance(first, ast.Call) and ast.unparse(first.func).endswith(".subTest")
        return len(node.items) == 1 and (is_sub or raising_of(first) is not None)

    def special(self, node: ast.With) -> None:
        raising = raising_of(node.items[0].context_expr)
        if raising is None:  # a subtest
            self.convert(node.body)
            return
        if node.items[0].optional_vars is not None:
            self.cannot("the error or warning is kept, to be looked at", "say in raises or warns what it must contain")
        if has_looks_in(node.body):
            self.cannot("there are assertions where something must raise or warn", "write them as steps of their own")
        body = [Inner(self).visit(self.rewritten(each)) for each in node.body]
        self.ends(raising, "\n".join(ast.unparse(ast.fix_missing_locations(each)) for each in body))

    def try_(self, node: ast.Try) -> None:
        """Do what is tried: of what raises when it is run, a step is made that must raise."""
        around = self.block
        self.blocks += 1
        self.block = self.blocks
        self.convert([*node.body, *node.orelse])
        self.block = around
        self.convert(node.finalbody)


class Inner(ast.NodeTransformer):
    """Has functions and blocks keep what they assert, since a step can't be inside of them."""

    def __init__(self, converter: Converter) -> None:
        self.converter = converter

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return self.keeping(node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        return self.keeping(node)

    def keeping(self, node: ast.stmt) -> ast.stmt:
        call = assertion_of(node)
        if call is None:
            return node
        pair = pair_of(call)
        if pair is None:
            self.converter.line, self.converter.text = node.lineno, ast.unparse(node)
            self.converter.cannot("this assertion has no form in a function or block", "say it after the step")
            return ast.copy_location(ast.Pass(), node)
        self.converter.used.add("checked")
        return ast.copy_location(ast.parse(f"checked.append(({pair[0]}, {pair[1]}))").body[0], node)

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        raising = raising_of(node.items[0].context_expr)
        if raising is None:
            return self.generic_visit(node)
        self.converter.line, self.converter.text = node.lineno, ast.unparse(node).split("\n", 1)[0]
        if raising.kind == "warns":
            self.converter.cannot("something must warn inside of a block", "write the block out as steps")
            return node.body
        self.converter.used.add("checked")
        lines = ["try: pass", f"except {ast.unparse(raising.type)} as error:"]
        lines += [f"    checked.append(({raising.inside}, True))", "else:", "    checked.append((False, True))"]
        made = ast.parse("\n".join(lines)).body[0]
        assert isinstance(made, ast.Try)
        made.body = [self.visit(each) for each in node.body]
        return ast.copy_location(made, node)


def has_looks_in(statements: Iterable[ast.stmt]) -> bool:
    return any(map(has_looks, statements))


def has_looks(node: ast.stmt) -> bool:
    """Whether a statement asserts or prints something in itself, outside of functions."""
    return any(
        isinstance(each, ast.stmt)
        and (assertion_of(each) is not None or is_print(each) or (isinstance(each, ast.With) and is_raising(each)))
        for each in walk_outside_functions(node)
    )


def walk_outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            yield from walk_outside_functions(child)


def is_print(node: ast.stmt) -> bool:
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return isinstance(called, ast.Name) and called.id == "print"


def is_raising(node: ast.With) -> bool:
    return any(raising_of(item.context_expr) is not None for item in node.items)


def rounds_of(node: ast.For) -> list[ast.expr] | None:
    """Return what a loop sets its names to, one after another, or None where its text doesn't say that.

    One that looks at nothing stays as it is.
    """
    found = values_of(node.iter) if has_looks(node) or is_product(node.iter) else None
    return found if found is not None and len(found) <= MOST_ROUNDS and not node.orelse else None


def values_of(node: ast.expr) -> list[ast.expr] | None:
    if isinstance(node, (ast.List, ast.Tuple)):
        return list(node.elts) if not any(isinstance(each, ast.Starred) for each in node.elts) else None
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    called = ast.unparse(node.func)
    if called == "range":
        bounds = [literal(each) for each in node.args]
        if all(type(each) is int for each in bounds) and len(range(*bounds)) <= MOST_ROUNDS:
            return [ast.Constant(each) for each in range(*bounds)]
    if is_product(node) and node.args:
        inner = [values_of(each) for argument in node.args for each in repeated(argument)]
        if all(each is not None for each in inner):
            return [ast.Tuple(list(each), ast.Load()) for each in product(*[each or [] for each in inner])]
    return None


def is_product(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("product", "itertools.product")


def repeated(node: ast.expr) -> list[ast.expr]:
    """Return what an argument such as `*[(True, False)] * 2` stands for, or the argument itself."""
    times = node.value if isinstance(node, ast.Starred) else None
    if isinstance(times, ast.BinOp) and isinstance(times.left, ast.List) and isinstance(times.right, ast.Constant):
        return times.left.elts * int(times.right.value) if type(times.right.value) is int else [node]
    return [node]


def own_names(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names that a case of these statements sets, and those that drafts set."""
    return stored_names(statements) | {"checked", "as_it_is"}
