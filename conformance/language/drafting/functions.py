"""Finds functions and tests in a module, and makes bodies of cases of them."""

import ast
import difflib
from collections.abc import Iterator
from copy import deepcopy
from itertools import product

from conformance.language.drafting.bodies import Body
from conformance.language.drafting.rewriting import loaded_names, names_of_imports
from conformance.language.drafting.sources import NotReadable, parses
from conformance.language.drafting.statements import Untold
from conformance.language.parsing import names_bound

MOST_ROWS = 8  # that the parameters of a test are written out to
OF_THE_TARGET = frozenset({"device", "dtype"})
Found = tuple[ast.FunctionDef, ast.ClassDef | None]


def functions_in(text: str, name: str) -> list[Body]:
    """Return the bodies of the function that `name` says, such as `f` or `TestAutograd::test_grad`, or of a class's."""
    tree = parses(text)
    if tree is None:
        raise NotReadable("this is no Python", "write it in Python 3")
    every = {qualified(each): each for each in all_functions(tree)}
    chosen = [each for key, each in every.items() if key == name or key.startswith(f"{name}::")]
    chosen = chosen or [each for key, each in every.items() if key.endswith(f"::{name}")][:1]
    if not chosen:
        near = difflib.get_close_matches(name, every, n=1, cutoff=0.5)
        raise NotReadable(f"there is no function {name!r}", f"did you mean {near[0]!r}?" if near else "name one of it")
    return [body for found in chosen for body in bodies_of_function(tree, *found)]


def all_functions(tree: ast.Module) -> Iterator[Found]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node, None
        elif isinstance(node, ast.ClassDef):
            yield from ((each, node) for each in node.body if isinstance(each, ast.FunctionDef))


def qualified(found: Found) -> str:
    return "::".join([*([found[1].name] if found[1] is not None else []), found[0].name])


def bodies_of_function(tree: ast.Module, node: ast.FunctionDef, owner: ast.ClassDef | None) -> Iterator[Body]:
    """Yield the body of a function, or one for each row of its parameters."""
    imports = names_of_imports(tree)
    rows, told = rows_of(node)
    for row in rows:
        given = [assigned(name, value, node.lineno) for name, value in row.items()]
        body = [*given, *node.body]
        helpers = helpers_of(tree, owner, body, node.name)
        selfless = Selfless(owner)
        changed = [selfless.visit(deepcopy(each)) for each in [*helpers, *body]]
        own = [Global().visit(each) for each in changed if each is not None]
        name = node.name.removeprefix("test_").replace("_", " ")
        words = "".join(f", {key} = {ast.unparse(value)}" for key, value in row.items())
        untold = tuple(
            Untold(line=node.lineno, text=f"def {node.name}", why=why, hint=hint, name=of) for why, hint, of in told
        )
        yield Body(
            name=f"{name}{words}", line=node.lineno, statements=tuple(own), imports=imports, told=untold
        )  # fmt: skip


def assigned(name: str, value: ast.expr, line: int) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    return ast.fix_missing_locations(ast.copy_location(made, ast.Pass(lineno=line, col_offset=0)))


def rows_of(node: ast.FunctionDef) -> tuple[list[dict[str, ast.expr]], list[tuple[str, str, str]]]:
    """Return what the parameters of a function are, in each row, and what isn't said of them."""
    choices = [
        choices_of(decorator)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize")
    ]
    parameters = [each.arg for each in node.args.args]
    defaults = node.args.defaults
    if defaults:
        choices.append([dict(zip(parameters[-len(defaults) :], defaults, strict=True))])
    if "devices" in parameters:
        choices.append([{"devices": ast.List([ast.Name("device", ast.Load())], ast.Load())}])
    rows = [{key: value for part in parts for key, value in part.items()} for parts in product(*choices)]
    known = {"self", *OF_THE_TARGET, *(key for row in rows for key in row)}
    told = [(f"nothing says what {each!r} is", "give it a default", each) for each in parameters if each not in known]
    if len(rows) > MOST_ROWS:
        why = f"of {len(rows)} rows of parameters {MOST_ROWS} are drafted"
        told.append((why, "write the others by parametrize", ""))
    return rows[:MOST_ROWS] or [{}], told


def choices_of(decorator: ast.Call) -> list[dict[str, ast.expr]]:
    """Return the rows of a decorator `parametrize("a, b", [(1, 2), …])`, as far as its text says them."""
    names, values = decorator.args[0], decorator.args[1] if len(decorator.args) > 1 else None
    if not isinstance(names, ast.Constant) or not isinstance(values, (ast.List, ast.Tuple)):
        return []
    keys = [each.strip() for each in str(names.value).split(",")]
    if len(keys) == 1:
        return [{keys[0]: value} for value in values.elts]
    return [dict(zip(keys, each.elts, strict=False)) for each in values.elts if isinstance(each, (ast.Tuple, ast.List))]


def helpers_of(tree: ast.Module, owner: ast.ClassDef | None, body: list[ast.stmt], name: str) -> list[ast.stmt]:
    """Return the functions, classes and values of a module, and methods of a class, that a body needs, in order."""
    there: dict[str, ast.stmt] = {}
    for node in [*tree.body, *(owner.body if owner is not None else [])]:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node is not owner:
            there[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            there[node.targets[0].id] = node
    wanted: dict[str, ast.stmt] = {}
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        for each in sorted((loaded_names([node]) | of_self(node)) & there.keys() - wanted.keys() - {name}):
            wanted[each] = there[each]
            waiting.append(there[each])
    return [node for node in there.values() if node in wanted.values()]


def of_self(node: ast.AST) -> set[str]:
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self"
    }


class Global(ast.NodeTransformer):
    """Makes what a function inside shares with the one around it global, since a case is that one's body."""

    def __init__(self) -> None:
        self.scopes: list[set[str]] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.scopes.append({each.arg for each in node.args.args} | names_bound(node))
        found = self.generic_visit(node)
        self.scopes.pop()
        return found

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.stmt:
        around = set().union(*self.scopes[:-1])
        is_own = around.isdisjoint(node.names)
        return ast.copy_location(ast.Global(node.names), node) if is_own else node


class Selfless(ast.NodeTransformer):
    """Makes functions of methods: they are called without `self`, which a case has none of."""

    def __init__(self, owner: ast.ClassDef | None) -> None:
        members = owner.body if owner is not None else []
        self.others: set[str] = set()  # names for self
        self.methods = {each.name for each in members if isinstance(each, (ast.FunctionDef, ast.ClassDef))}
        self.owner = owner.name if owner is not None else ""
        self.in_class = False

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        around, self.in_class = self.in_class, True
        found = self.generic_visit(node)
        self.in_class = around
        return found

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        around = self.in_class
        if not around and node.args.args[:1] and node.args.args[0].arg == "self":
            node.args.args = node.args.args[1:]
        if node.name in self.methods and not around:
            node.decorator_list = []
        self.in_class = False
        found = self.generic_visit(node)
        self.in_class = around
        return found

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        if isinstance(node.value, ast.Name) and node.value.id == "self" and isinstance(node.targets[0], ast.Name):
            self.others.add(node.targets[0].id)
            return None
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        node.id = "self" if node.id in self.others else node.id
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        is_member = isinstance(node.value, ast.Name) and node.value.id in ("self", self.owner)
        is_method = is_member and node.attr in self.methods
        return ast.copy_location(ast.Name(node.attr, node.ctx), node) if is_method else node
