"""Puts the pieces of a source together to the bodies of cases: cells that need one another, functions, and variants.

A cell that uses what earlier ones have set belongs to them. One that goes through the graph, after another one has, is
a case by itself, too, with the definitions that it needs: who writes a notebook runs its cells in any order. Code in
comments and in text is a variant of the cell that it stands in.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.language.drafting.rewriting import loaded_names, names_of_imports, stored_names
from conformance.language.drafting.sources import Cell, commented, parses
from conformance.language.drafting.statements import Untold
from conformance.language.parsing import COMPREHENSIONS, names_bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The statements of one case, what they are called, and the names that they import."""

    name: str
    line: int
    statements: tuple[ast.stmt, ...]
    imports: dict[str, str]
    told: tuple[Untold, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A cell as a syntax tree: what it sets, and what it needs of others."""

    cell: Cell
    tree: ast.Module

    @property
    def sets(self) -> set[str]:
        return names_bound(self.tree)

    @property
    def needs(self) -> set[str]:
        """The names that it uses before it sets them."""
        known: set[str] = set()
        needed: set[str] = set()
        for node in self.tree.body:
            needed |= free_names(node) - known
            known |= names_bound(node, itself=True)
        return needed

    @property
    def acts(self) -> bool:
        """Whether it calls something for what that does, such as backward()."""
        return any(is_action(node) for node in self.tree.body)


def free_names(node: ast.AST) -> set[str]:
    """Return the names that a statement uses and doesn't set in an inner scope."""
    scopes = (ast.FunctionDef, ast.ClassDef, ast.Lambda, *COMPREHENSIONS)
    inner = [each for each in ast.walk(node) if isinstance(each, scopes)]
    return loaded_names([node]) - stored_names(inner)


def is_action(node: ast.stmt) -> bool:
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return is_call and ".backward(" in ast.unparse(node)


def placed(tree: ast.Module, first: int) -> ast.Module:
    return ast.increment_lineno(tree, first - 1)


def bodies_of(cells: Sequence[Cell]) -> tuple[list[Body], list[Untold]]:
    """Return the bodies of the cases in cells, and what in them isn't Python."""
    untold, pieces = [], []
    imports: dict[str, str] = {}
    for cell in cells:
        untold += [
            Untold(line=line, text=text.strip(), why="this is IPython's, not Python's", hint="leave it out")
            for line, text in cell.left_out
        ]
        tree = parses(cell.code)
        if tree is None:
            first = next(iter(cell.code.strip().splitlines()), "")
            untold.append(Untold(line=cell.line, text=first, why="this is no Python", hint="write it in Python 3"))
            continue
        imports |= names_of_imports(tree)
        pieces.append(Piece(cell=cell, tree=placed(tree, cell.line)))
    found = [body for group in groups_of(pieces) for body in bodies_of_group(group, imports)]
    return [body for body in found if body.statements], untold


def groups_of(pieces: list[Piece]) -> list[list[Piece]]:
    """Return pieces by what they need: each goes to the last one that sets a name that it uses."""
    groups: list[list[Piece]] = []
    for piece in pieces:
        needed = piece.needs
        home = next((group for group in reversed(groups) if any(each.sets & needed for each in group)), None)
        if home is None:
            groups.append([piece])
        else:
            home.append(piece)
    return groups


def bodies_of_group(group: list[Piece], imports: dict[str, str]) -> Iterator[Body]:
    yield body_of(group, imports)
    acting = [at for at, piece in enumerate(group) if piece.acts]
    for number, at in enumerate(acting[1:], 1):
        after = acting[number + 1] if number + 1 < len(acting) else len(group)
        looking = [piece for piece in group[at + 1 : after] if not piece.sets]
        yield body_of([*definitions(group[:at], group[at].needs), group[at], *looking], imports)
    for at, piece in enumerate(group):
        for variant in variants_of(piece):
            yield body_of([*group[:at], variant, *group[at + 1 :]], imports)


def body_of(pieces: list[Piece], imports: dict[str, str]) -> Body:
    own = next((piece for piece in pieces if piece.cell.heading), pieces[0])
    statements = tuple(node for piece in pieces for node in piece.tree.body)
    return Body(name=own.cell.heading, line=pieces[0].cell.line, statements=statements, imports=imports)


def definitions(pieces: list[Piece], needed: set[str]) -> list[Piece]:
    """Return what of pieces sets names, as far as others need these, and nothing that is done beside."""
    kept: list[Piece] = []
    for piece in reversed(pieces):
        body: list[ast.stmt] = []
        for node in reversed(piece.tree.body):
            sets = names_bound(node, itself=True)
            if sets & needed and not isinstance(node, ast.Expr):
                needed = (needed - sets) | free_names(node)
                body.insert(0, node)
        if body:
            kept.insert(0, Piece(cell=piece.cell, tree=ast.Module(body, [])))
    return kept


def variants_of(piece: Piece) -> Iterator[Piece]:
    """Yield a cell with code in it that was put out of use: each run of comments, each call in one, each text."""
    lines = piece.cell.code.split("\n")
    for block in comment_blocks(lines):
        calls = [each for each in block if isinstance(each[1].body[0], ast.Expr)] if len(block) > 1 else []
        for chosen in (block, *([call] for call in calls)):
            changed = list(lines)
            for at, tree in chosen:
                own = lines[at].split("#", 1)[0].rstrip()
                changed[at] = f"{own}; {ast.unparse(tree)}" if own.strip() else indent_of(lines, at) + ast.unparse(tree)
            whole = parses("\n".join(changed))
            variant = Piece(cell=piece.cell, tree=placed(whole, piece.cell.line)) if whole is not None else None
            if variant is not None and variant.needs <= piece.needs:
                yield variant
    for node in piece.tree.body:
        inner = text_code(node)
        if inner is not None:
            before = [each for each in piece.tree.body if each.lineno < node.lineno]
            names = loaded_names(inner.body) - stored_names(inner.body)
            kept = definitions([Piece(cell=piece.cell, tree=ast.Module(before, []))], names)
            body = [each for one in kept for each in one.tree.body] + placed(inner, node.lineno).body
            yield Piece(cell=piece.cell, tree=ast.Module(body, []))


def indent_of(lines: list[str], at: int) -> str:
    return lines[at][: len(lines[at]) - len(lines[at].lstrip())]


def text_code(node: ast.stmt) -> ast.Module | None:
    """Return the code in a text that stands alone, if it is several statements."""
    value = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
        return None
    tree = parses(value.value.strip("\n"))
    return tree if tree is not None and len(tree.body) > 1 else None


def comment_blocks(lines: list[str]) -> Iterator[list[tuple[int, ast.Module]]]:
    """Yield runs of comments that are code, which no code stands between."""
    block: list[tuple[int, ast.Module]] = []
    for at, line in enumerate(lines):
        before, sign, comment = line.partition("#")
        if sign and not before.strip():
            tree = commented(comment.split(" #", 1)[0])
            if tree is not None:
                block.append((at, tree))
            continue
        if before.strip() and block:
            yield block
            block = []
        tree = alternative_in(before, comment) if sign else None
        if tree is not None:
            yield [(at, tree)]
    if block:
        yield block


def alternative_in(code: str, comment: str) -> ast.Module | None:
    """Return another assignment to the name that a line sets, which the comment at its end speaks of."""
    tree = parses(code.strip())
    first = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if not isinstance(first, ast.Assign) or not isinstance(first.targets[0], ast.Name):
        return None
    name = first.targets[0].id
    for word in re.split(r"[\s,;\uff0c]+", comment):
        at = word.find(f"{name}=")
        found = parses(word[at:]) if at >= 0 and word[at : at + len(name) + 2] != f"{name}==" else None
        if found is not None and found.body and ast.unparse(found) != ast.unparse(first):
            return found
    return None
