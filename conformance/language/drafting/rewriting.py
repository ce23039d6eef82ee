"""Rewrites Python into the case language: what a target brings is left out, and names are those of the vocabulary."""

import ast
from collections.abc import Iterable, Mapping

from conformance.language import vocabulary

TARGETS_DTYPE = frozenset({"torch.float", "torch.float32"})  # what a target has anyhow
OF_FLOATS = frozenset("rand randn ones zeros empty eye linspace".split())  # whose usual dtype is the target's
OF_ONE_DTYPE = {"LongTensor": "int64", "IntTensor": "int32", "BoolTensor": "bool", "DoubleTensor": "float64"}
UNIQUE = "_"


def names_of_imports(tree: ast.AST) -> dict[str, str]:
    """Return what each imported name stands for, such as `torch.nn.functional`."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                found[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return found


def is_own(alias: str, path: str) -> bool:
    """Whether an imported name stands for the same thing in the case language."""
    return alias in vocabulary.NAMES and path.rpartition(".")[2] == alias


def stored_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that code sets, as variables, parameters, functions or classes."""
    found = set()
    for node in (inner for each in nodes for inner in ast.walk(each)):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
    return found


def loaded_names(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        node.id
        for each in nodes
        for node in ast.walk(each)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def renamed(name: str) -> str:
    """Return a name that a case can set in place of one that it can't."""
    if name.startswith("_") and name != UNIQUE and name not in vocabulary.DUNDERS:
        return f"{name.strip('_') or 'x'}_"
    return f"{name}_" if name in vocabulary.RESERVED | vocabulary.FOREIGN else name


class Rewriter(ast.NodeTransformer):
    """Rewrites statements in place; `own` are the names that the code sets."""

    def __init__(self, imports: Mapping[str, str], own: Iterable[str]) -> None:
        self.renames = {name: new for name in own if (new := renamed(name)) != name and name != "self"}
        self.paths = {
            alias: path for alias, path in imports.items() if not is_own(alias, path) and alias not in set(own)
        }

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "Ellipsis":
            return ast.copy_location(ast.Constant(...), node)
        if node.id in self.paths and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.parse(self.paths[node.id], mode="eval").body, node)
        node.id = self.renames.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg, node.annotation = self.renames.get(node.arg, node.arg), None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.name = self.renames.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self.renames.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))  # type: ignore[no-any-return]

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if ast.unparse(node) == "torch.tensor":
            return ast.copy_location(ast.Name("tensor", ast.Load()), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        called = node.func
        for each in node.keywords:
            if each.arg == "dtype" and ast.unparse(each.value) in TARGETS_DTYPE:
                each.value = ast.Name("dtype", ast.Load())
        node.keywords = [each for each in node.keywords if not is_of_the_target(each, ast.unparse(called))]
        if isinstance(called, ast.Attribute) and called.attr == "cuda" and ast.unparse(called.value) != "torch":
            called.attr, node.args = "to", [ast.Name("device", ast.Load())]
        elif ast.unparse(called) == "torch.device" and all(isinstance(each, ast.Constant) for each in node.args):
            return ast.copy_location(ast.Name("device", ast.Load()), node)
        elif isinstance(called, ast.Attribute) and called.attr in OF_ONE_DTYPE and is_list(node.args):
            given = ast.keyword("dtype", ast.parse(f"torch.{OF_ONE_DTYPE[called.attr]}", mode="eval").body)
            return ast.copy_location(ast.Call(ast.Name("tensor", ast.Load()), node.args, [given]), node)
        elif isinstance(called, ast.Attribute) and called.attr == "_is_view":
            views = f"({ast.unparse(called.value)})._base is not None"
            return ast.copy_location(ast.parse(views, mode="eval").body, node)
        elif isinstance(called, ast.Name) and called.id == "print":
            called.id, node.keywords = "log", []
        return node

    def visit_Import(self, _: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, _: ast.ImportFrom) -> None:
        return None


def is_list(given: list[ast.expr]) -> bool:
    return len(given) == 1 and isinstance(given[0], ast.List)


def is_of_the_target(keyword: ast.keyword, called: str) -> bool:
    """Whether an argument says what the target says anyhow: a device by its name, or the dtype of floats."""
    if keyword.arg == "dtype":
        is_usual = isinstance(keyword.value, ast.Name) and keyword.value.id == "dtype"
        return is_usual and called.rpartition(".")[2] in OF_FLOATS
    return keyword.arg == "device" and isinstance(keyword.value, ast.Constant)


def sets_device(node: ast.stmt) -> bool:
    """Whether a statement chooses the device, which a case leaves to its target."""
    is_choice = isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == ["device"]
    return is_choice or ast.unparse(node).startswith(("torch.manual_seed(", "torch.set_default_device("))
