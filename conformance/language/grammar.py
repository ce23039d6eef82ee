"""The language of steps and expressions: a small subset of Python, checked before anything runs.

    statement   = target "=" expression | target op"=" expression | expression | "del" targets
                | "with" items ":" block | "for" target "in" expression ":" block | "if" … ":" block
                | "def" … ":" block | "class" name "(" bases ")" ":" block | "pass"
    in a def    = … | "return" | "yield" | "raise" | "try" … | "nonlocal" names | "global" names
    expression  = Python's, without "await" and bytes
    name        = a name that the case has bound, or one of the vocabulary
    attribute   = one of the vocabulary, or one that the case itself defines

There is no import, no `while`, no `assert`, and no name or attribute that begins with `_` save the
few that the vocabulary lists. A step that passes these checks can reach only names of the vocabulary.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from conformance.language import vocabulary
from conformance.language.errors import did_you_mean
from conformance.language.parsing import COMPREHENSIONS, Finding, Parsed, children, margin, names_bound, parse_code

STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.Expr, ast.Delete, ast.With, ast.For, ast.If, ast.FunctionDef, ast.ClassDef,
    ast.Pass, ast.Return, ast.Raise, ast.Try, ast.Nonlocal, ast.Global, ast.Break, ast.Continue,
)  # fmt: skip
EXPRESSIONS = (
    ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript, ast.Slice, ast.Starred, ast.BinOp, ast.UnaryOp,
    ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Lambda, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.JoinedStr, ast.FormattedValue, ast.NamedExpr, ast.Yield, ast.YieldFrom,
)  # fmt: skip
PARTS = (
    ast.Module, ast.Expression, ast.arguments, ast.arg, ast.keyword, ast.alias, ast.withitem, ast.comprehension,
    ast.ExceptHandler, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
ALLOWED = frozenset(
    cls for kind in (*STATEMENTS, *EXPRESSIONS, *PARTS) for cls in (kind, *kind.__subclasses__())
)  # fmt: skip
ONLY_IN_DEF = (ast.Return, ast.Raise, ast.Try, ast.Nonlocal, ast.Global, ast.Yield, ast.YieldFrom)
MOST_BITS = 4096  # of a number in a text
CONSTRUCT_NAMES = {
    ast.Import: "import", ast.ImportFrom: "import", ast.While: "while", ast.Assert: "assert", ast.Try: "try",
    ast.Raise: "raise", ast.Return: "return", ast.Nonlocal: "nonlocal", ast.Global: "global", ast.Yield: "yield",
    ast.YieldFrom: "yield from", ast.AsyncFunctionDef: "async def", ast.Await: "await",
    ast.AnnAssign: "a type on a name",
}  # fmt: skip
CONSTRUCT_HINTS = {
    ast.Import: "torch, nn, F, optim, autograd, math and the rest of the vocabulary are there already",
    ast.ImportFrom: "torch, nn, F, optim, autograd, math and the rest of the vocabulary are there already",
    ast.While: "use for over a list or range()",
    ast.Assert: "say it in an expect step",
    ast.Try: "say under raises what the step raises; a try can stand in a def",
    ast.Raise: "it can stand in a def",
}


@dataclass(slots=True, kw_only=True)
class Names:
    """The names that a case has bound so far, as far as static analysis can tell."""

    bound: set[str] = field(default_factory=set)  # variables that are set at this step
    anywhere: set[str] = field(default_factory=set)  # variables that are set anywhere in the case: for bodies of defs
    attributes: set[str] = field(default_factory=set)  # attributes that the case itself defines


def check_code(parsed: Parsed, names: Names) -> None:
    """Add a finding for each name, attribute and construct that isn't part of the language."""
    if parsed.tree is None:
        return
    mode = "exec" if isinstance(parsed.tree, ast.Module) else "eval"
    known = [parsed.mentioned & each for each in (names.bound, names.anywhere, names.attributes)]
    needs = needs_where_allowed(parsed.text, mode, *known)
    if needs is None:
        visit_all(parsed, names)
        parsed.findings.sort(key=lambda finding: (finding.line, finding.column))
    else:
        parsed.needs |= needs


@lru_cache(maxsize=4096)  # expanded cases repeat the same texts, and most names of a case aren't in them
def needs_where_allowed(
    text: str, mode: str, bound: frozenset[str], anywhere: frozenset[str], attributes: frozenset[str]
) -> frozenset[str] | None:
    """Return what code of these names needs of the vocabulary, or None if it isn't part of the language there."""
    parsed = parse_code(text, mode)
    visit_all(parsed, Names(bound=set(bound), anywhere=set(anywhere), attributes=set(attributes)))
    return None if parsed.findings else frozenset(parsed.needs)


def visit_all(parsed: Parsed, names: Names) -> None:
    assert parsed.tree is not None
    checker = Checker(parsed, names)
    scope = names.bound | names_bound(parsed.tree)
    for node in children(parsed.tree):
        checker.visit(node, [scope], in_def=False)


class Checker:
    """Walks one syntax tree with the names of each scope."""

    def __init__(self, parsed: Parsed, names: Names) -> None:
        self.parsed = parsed
        self.names = names
        self.owners: set[ast.AST] = set()  # nodes that are visited as a part of an attribute
        self.in_class = False  # whether what is bound becomes an attribute

    def found(self, node: ast.AST, message: str, hint: str = "") -> None:
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        if isinstance(node, ast.Attribute):  # the place of its name, not of the object before it
            line, offset = node.end_lineno or line, (node.end_col_offset or 0) - len(node.attr.encode())
        shift = margin(self.parsed.text) if line == 1 and isinstance(self.parsed.tree, ast.Expression) else 0
        text = self.parsed.text.strip() if isinstance(self.parsed.tree, ast.Expression) else self.parsed.text
        before = text.split("\n")[line - 1].encode()[:offset]  # Python counts bytes
        column = len(before.decode("utf-8", "replace")) + 1 + shift
        self.parsed.findings.append(Finding(line=line, column=column, message=message, hint=hint))

    def visit(self, node: ast.AST, scopes: list[set[str]], in_def: bool) -> None:
        kind = type(node)
        if kind not in ALLOWED or (kind in ONLY_IN_DEF and not in_def):
            name = CONSTRUCT_NAMES.get(kind, kind.__name__)
            self.found(node, f"{name} is not part of the language here", CONSTRUCT_HINTS.get(kind, ""))
            return
        if kind is ast.NamedExpr and isinstance(self.parsed.tree, ast.Expression):
            self.found(node, ":= is not part of an expectation", "set the name in a step of its own")
        if kind is ast.Name:
            self.name(node, scopes, in_def)
            return
        if kind is ast.Attribute:
            self.attribute(node, scopes)
        elif kind is ast.Constant:
            if isinstance(node.value, bytes):  # type: ignore[attr-defined]
                self.found(node, "bytes are not part of the language", "use text")
            elif type(node.value) is int and node.value.bit_length() > MOST_BITS:  # type: ignore[attr-defined]
                self.found(node, f"a number of more than {MOST_BITS} bits is not part of the language", "write a power")
        elif kind is ast.FunctionDef or kind is ast.Lambda:
            self.function(node, scopes)
            return
        elif kind is ast.ClassDef:
            self.class_(node, scopes, in_def)
            return
        elif kind in COMPREHENSIONS:
            names = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name)]
            scopes = [*scopes, {name.id for name in names if isinstance(name.ctx, ast.Store)}]
        elif kind is ast.ExceptHandler:
            self.own_name(node, node.name)  # type: ignore[attr-defined]
        elif isinstance(node, ast.AugAssign) and self.in_class and getattr(node.target, "id", "") in vocabulary.FOREIGN:
            self.foreign(node, ast.unparse(node.target))  # it is read before it is bound
        for child in children(node):
            self.visit(child, scopes, in_def)

    def own_name(self, node: ast.AST, name: str | None) -> None:
        if name and name.startswith("_") and name != "_":
            self.found(node, f"{name!r} begins with _", "choose a name that doesn't")
        elif name and vocabulary.OF_COMPILER.search(name):
            self.found(node, f"{name!r} is like a name that a compiler sets", "choose another name")
        elif name in vocabulary.RESERVED:
            self.found(node, f"{name!r} belongs to the vocabulary", "choose another name")
        elif name in vocabulary.FOREIGN and (not self.in_class or isinstance(getattr(node, "ctx", None), ast.Load)):
            self.foreign(node, name)

    def foreign(self, node: ast.AST, name: str) -> None:
        self.found(node, f"{name!r} is a builtin of Python that is not part of the language", "choose another name")

    def name(self, node: ast.AST, scopes: list[set[str]], in_def: bool) -> None:
        assert isinstance(node, ast.Name)
        name = node.id
        if not isinstance(node.ctx, ast.Load):
            self.own_name(node, name)
        elif any(name in scope for scope in scopes) or (in_def and name in self.names.anywhere):
            if name in vocabulary.FOREIGN or (name.startswith("_") and name != "_"):
                self.own_name(node, name)
        elif name in vocabulary.NAMES:
            self.need(vocabulary.NAMES[name], name)
        elif name in self.names.anywhere:
            self.found(
                node, f"{name!r} isn't set at this step", "a later step sets it, or one that deletes it comes before"
            )
        else:
            known = {known for scope in scopes for known in scope} | vocabulary.NAMES.keys()
            hint = vocabulary.hint_for(name) or did_you_mean(name, known)
            self.found(
                node,
                f"unknown name {name!r}",
                hint or f"no step sets it, and {vocabulary.where_missing(name, 'torch')}",
            )

    def need(self, since: str, name: str) -> None:
        if since != vocabulary.OLDEST:
            self.parsed.needs.add(name)

    def attribute(self, node: ast.AST, scopes: list[set[str]]) -> None:
        assert isinstance(node, ast.Attribute)
        name = node.attr
        namespace = self.namespace(node.value, scopes)
        self.owners.add(node.value)
        if node not in self.owners and (self.namespace(node, scopes) or "").startswith("ops"):
            self.found(node, f"{ast.unparse(node)} is no value", "name an operation in it")
        elif namespace is not None:
            if not isinstance(node.ctx, ast.Load):
                self.found(node, f"{ast.unparse(node)} belongs to the vocabulary and can't be set")
            elif name in vocabulary.NAMESPACES[namespace]:
                self.need(vocabulary.NAMESPACES[namespace][name], f"{namespace}.{name}")
            elif f"{namespace}.{name}" not in vocabulary.NAMESPACES and vocabulary.inner(namespace, name) is None:
                known = vocabulary.NAMESPACES[namespace]
                hint = vocabulary.hint_for(name) or did_you_mean(name, known)
                hint = hint or vocabulary.where_missing(name, namespace)
                self.found(node, f"unknown name {ast.unparse(node)!r}", hint)
        elif name in vocabulary.ATTRIBUTES:
            if name not in self.names.attributes:
                self.need(vocabulary.ATTRIBUTES[name], name)
        elif name.startswith("_") and not vocabulary.is_saved_tensor(name):
            is_super = isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()"
            if not (is_super and name in vocabulary.DUNDERS):
                self.found(node, f"the attribute {name!r} begins with _")
        elif isinstance(node.value, ast.Name) and self.is_unknown(node.value.id, scopes):
            pass  # the name before it is reported
        elif name not in self.names.attributes and not vocabulary.is_saved_tensor(name):
            attributes = self.names.attributes | vocabulary.ATTRIBUTES.keys()
            hint = did_you_mean(name, attributes) or vocabulary.where_missing(name, "attributes")
            self.found(node, f"unknown attribute {name!r}", hint)

    def is_unknown(self, name: str, scopes: list[set[str]]) -> bool:
        return not any(name in known for known in (*scopes, self.names.anywhere, vocabulary.NAMES))

    def namespace(self, node: ast.AST, scopes: list[set[str]]) -> str | None:
        """Return the path of the namespace that `node` names (`nn.functional`), or None."""
        if isinstance(node, ast.Name):
            hidden = any(node.id in scope for scope in scopes)
            return None if hidden else vocabulary.ROOTS.get(node.id)
        if isinstance(node, ast.Attribute):
            outer = self.namespace(node.value, scopes)
            return vocabulary.inner(outer, node.attr) if outer is not None else None
        return None

    def function(self, node: ast.AST, scopes: list[set[str]]) -> None:
        assert isinstance(node, (ast.FunctionDef, ast.Lambda))
        arguments = node.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        around, self.in_class = self.in_class, False
        for argument in parameters:
            self.own_name(argument, argument.arg)
            if argument.annotation is not None:
                self.found(argument, "a type on a parameter is not part of the language", "remove it")
        self.in_class = around
        for default in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
            self.visit(default, scopes, in_def=False)
        body: Iterable[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else node.body
        inside = {argument.arg for argument in parameters} | names_bound(node)
        if isinstance(node, ast.FunctionDef):
            if not (node.name in vocabulary.DUNDERS and node.name in self.names.attributes):
                self.own_name(node, node.name)
            for decorator in node.decorator_list:
                self.visit(decorator, scopes, in_def=False)
            if node.returns is not None:
                self.found(node.returns, "a type of what is returned is not part of the language", "remove it")
        self.in_class = False
        for statement in ast.walk(node):
            if isinstance(statement, (ast.Nonlocal, ast.Global)):
                for name in statement.names:
                    self.own_name(statement, name)
        for child in body:
            self.visit(child, [*scopes, inside], in_def=True)
        self.in_class = around

    def class_(self, node: ast.AST, scopes: list[set[str]], in_def: bool) -> None:
        assert isinstance(node, ast.ClassDef)
        self.own_name(node, node.name)
        for keyword in node.keywords:
            self.found(keyword, f"{keyword.arg}= is not part of the language here")
        for base in node.bases:
            self.visit(base, scopes, in_def)
            last = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            if last not in vocabulary.BASES and last not in self.names.anywhere:
                hint = "it can from Function, Module, Tensor and a few others"
                self.found(base, f"a class can't be made from {ast.unparse(base)!r}", hint)
        for decorator in node.decorator_list:
            self.visit(decorator, scopes, in_def)
        around, self.in_class = self.in_class, True
        for child in node.body:
            self.visit(child, [*scopes, names_bound(node)], in_def)
        self.in_class = around
