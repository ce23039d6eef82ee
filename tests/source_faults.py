"""Faults in what of torch is written in Python, drawn by chance and planted from outside.

A fault is a small change of one place in a function: another comparison, a condition turned round, a number one larger,
a statement or a keyword left out, two arguments exchanged, nothing returned. Each is tried in a fork, in which the
functions of the file take over the changed code, on cases that have run its line without it. It is caught if one of
these, all of which pass without it, doesn't pass with it. Of the others a person has to tell which change what can be
observed: some lines only make torch faster, or say something.

    python tests/source_faults.py torch.optim torch.nn.modules --count 300 --seed 1
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import importlib
import pkgutil
import random
import sys
import threading
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from campaigns import TARGET, explored, in_forks, runnable, say, status_of
from planting import RED
from running import running_engine, spoils_its_process

from conformance.language.files import case_files, shipped_cases
from conformance.model.case import Case

MODULES = (
    "torch._functorch", "torch._library", "torch._tensor", "torch.amp", "torch.autograd", "torch.distributions",
    "torch.functional", "torch.masked", "torch.nested", "torch.nn", "torch.optim", "torch.utils.checkpoint",
    "torch.utils.hooks",
)  # fmt: skip
MOST_CASES = 40  # that are tried for a fault: half of them those that run the fewest lines
TRACED = frozenset({"compiled", "exported"})  # what cases need whose lines aren't noted: they take long
SPEAKING = frozenset({"__repr__", "extra_repr", "_extra_repr", "__str__", "__dir__"})
ELSEWHERE = ("scripting", "torch_function", "TYPE_CHECKING", "tracing", "compiling")  # conditions that no case meets
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip

Line = tuple[str, int]  # a file and a line of it


@dataclass(frozen=True)
class Fault:
    """A change of the node that `ast.walk` comes to at this place."""

    path: str
    line: int
    place: int
    kind: str

    @property
    def text(self) -> str:
        """Where it is, and how the code reads with it."""
        changed = ast.unparse(changed_tree(self)[1]).partition("\n")[0]
        return f"{self.path.rpartition('site-packages/')[2]}:{self.line}, {self.kind}: {changed[:110]}"


@cache
def tree_of(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text(encoding="utf-8"))


def with_(node: Any, **fields: Any) -> Any:
    made = copy.copy(node)
    vars(made).update(fields)
    return made


def changes(node: Any) -> dict[str, Any]:
    """Return what can stand in the place of a node, by kind."""
    found: dict[str, Any] = {}
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        found["comparison"] = with_(node, ops=[SWAPPED[type(node.ops[0])]()])
    elif isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in SWAPPED:
        found["operator"] = with_(node, op=SWAPPED[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        found["sign"] = node.operand
    elif isinstance(node, (ast.If, ast.IfExp)):
        found["condition"] = with_(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        found["constant"] = ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, (ast.AugAssign, ast.Assign, ast.Expr)) and is_effect(node):
        found["left out"] = ast.Pass()
    elif isinstance(node, ast.Return) and node.value is not None:
        found["nothing returned"] = ast.Return(None)
    elif isinstance(node, ast.Call):
        if node.keywords and isinstance(node.func, ast.Attribute):
            found["keyword left out"] = with_(node, keywords=node.keywords[1:])
        if isinstance(node.func, ast.Attribute) and len(node.args) > 1 and not is_starred(node):
            found["arguments"] = with_(node, args=[node.args[1], node.args[0], *node.args[2:]])
    return found


def is_effect(statement: ast.AST) -> bool:
    """Whether a statement can be left out so that those after it still have their names."""
    if isinstance(statement, ast.Assign):
        return isinstance(statement.targets[0], (ast.Attribute, ast.Subscript))
    return not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


def is_starred(call: ast.Call) -> bool:
    return any(isinstance(argument, ast.Starred) for argument in call.args)


def is_speaking(node: ast.AST) -> bool:
    """Whether a node only says something, or refuses what it is given in words."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name in SPEAKING
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    said = ast.unparse(called) if called is not None else ""
    return isinstance(node, (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)) or any(
        word in said for word in ("warn", "log", "print")
    )


def faults_in(path: str) -> Iterator[Fault]:
    """Yield each fault that the functions of a file can have."""
    tree = tree_of(path)
    places = {id(node): place for place, node in enumerate(ast.walk(tree))}

    def below(node: ast.AST, *, is_inside: bool) -> Iterator[Fault]:
        if is_speaking(node):
            return
        parts = list(ast.iter_child_nodes(node))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parts, is_inside = list(node.body), True
        elif isinstance(node, ast.AnnAssign):
            parts = [part for part in (node.target, node.value) if part is not None]
        elif isinstance(node, ast.If) and any(word in ast.unparse(node.test) for word in ELSEWHERE):
            parts = list(node.orelse)
        elif is_inside and hasattr(node, "lineno"):
            for kind in changes(node):
                yield Fault(path, node.lineno, places[id(node)], kind)
        for part in parts:
            yield from below(part, is_inside=is_inside)

    yield from below(tree, is_inside=False)


def changed_tree(fault: Fault) -> tuple[ast.Module, ast.AST]:
    """Return the tree of a file with a fault in it, and the node that stands there now."""
    made = copy.deepcopy(tree_of(fault.path))
    wanted = list(ast.walk(made))[fault.place]
    changed = ast.copy_location(changes(wanted)[fault.kind], wanted)

    class Exchange(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return changed if node is wanted else self.generic_visit(node)

    return ast.fix_missing_locations(Exchange().visit(made)), changed


def functions_in(code: types.CodeType) -> dict[tuple[str, int], types.CodeType]:
    """Return the codes of the functions that stand in modules and classes, by their names and first lines."""
    found = {}
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            is_function = each.co_flags & 1  # its locals are fast, unlike those of a class
            found.update({(each.co_name, each.co_firstlineno): each} if is_function else functions_in(each))
    return found


def plant(fault: Fault) -> int:
    """Have the functions that a fault changes take over their changed code; return how many have."""
    sound, broken = (
        functions_in(compile(tree, fault.path, "exec", dont_inherit=True))
        for tree in (tree_of(fault.path), changed_tree(fault)[0])
    )
    count = 0
    for each in gc.get_objects():
        if type(each) is types.FunctionType and each.__code__.co_filename == fault.path:
            key = (each.__code__.co_name, each.__code__.co_firstlineno)
            if key in broken and broken[key] != sound[key]:
                each.__code__ = broken[key]
                count += 1
    return count


class Campaign:
    """The cases that pass, and which of them run each line of some files."""

    def __init__(self, cases: Sequence[Case], files: set[str]) -> None:
        self.cases = {case.id: case for case in cases}
        self.files = files
        self.through: dict[Line, list[str]] = {}
        self.counts: Counter[str] = Counter()  # of the lines that each case runs

    def explore(self) -> None:
        for told in explored(list(self.cases), self.lines_of):
            for case, lines in told.items():
                self.counts[case] = len(lines)
                for path, line in lines:
                    self.through.setdefault((path, line), []).append(case)

    def lines_of(self, ids: Sequence[str]) -> dict[str, list[Line]]:
        """Run cases, and return the lines that each that passes has run. For a fork."""
        current: set[Line] = set()

        def each_line(frame: types.FrameType, event: str, _: Any) -> Any:
            if event == "line":
                current.add((frame.f_code.co_filename, frame.f_lineno))
            return each_line

        def each_call(frame: types.FrameType, *_: Any) -> Any:
            return each_line if frame.f_code.co_filename in self.files else None

        found = {}
        with running_engine() as engine:
            for case in ids:
                current.clear()
                threading.settrace(each_call)
                sys.settrace(each_call)
                status = status_of(engine, self.cases[case])
                sys.settrace(None)
                threading.settrace(None)
                if status in ("pass", "known"):
                    found[case] = sorted(current)
        return found

    def draw(self, count: int, seed: int) -> list[Fault]:
        """Draw faults by chance in lines that some case runs, and say how many there are in others."""
        everything = [fault for path in sorted(self.files) for fault in faults_in(path)]
        possible = [fault for fault in everything if (fault.path, fault.line) in self.through]
        say(f"{len(possible)} of {len(everything)} faults lie in lines that cases run")
        return random.Random(seed).sample(possible, min(count, len(possible)))

    def caught_by(self, fault: Fault) -> str:
        """Plant a fault and return the first case that is red, or how many are not. For a fork."""
        through = sorted(self.through[fault.path, fault.line], key=lambda case: self.counts[case])
        few, rest = through[: MOST_CASES // 2], through[MOST_CASES // 2 :]
        tried = few + rest[:: max(1, len(rest) * 2 // MOST_CASES)]
        if not plant(fault):
            return "no function has this code"
        with running_engine() as engine:
            for case in tried:
                if status_of(engine, self.cases[case]) in RED:
                    return f"caught by {case}"
        return f"unseen in {len(tried)} of {len(through)} cases"


def files_of(names: Sequence[str]) -> set[str]:
    """Import modules and those below them, as far as that is possible here, and return their files."""
    found = set()
    for name in names:
        places = getattr(importlib.import_module(name), "__path__", ())
        for inner in [name, *(each.name for each in pkgutil.walk_packages(places, f"{name}.", onerror=str))]:
            try:
                found.add(str(importlib.import_module(inner).__file__))
            except Exception:  # noqa: BLE001 - no case can run it then
                continue
    return {path for path in found if path.endswith(".py")}


def is_tried(case: Case) -> bool:
    return TRACED.isdisjoint(name for name, _ in case.needs) and not spoils_its_process(case, TARGET)


def main() -> None:
    parser = argparse.ArgumentParser(description="Plants faults in torch's Python sources, and says which are caught.")
    parser.add_argument("modules", nargs="*", default=MODULES, help="where; what lies below them, too")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    cases = [case for case in runnable(case_files([shipped_cases()])) if is_tried(case)]
    campaign = Campaign(cases, files_of(options.modules))
    campaign.explore()
    faults = campaign.draw(options.count, options.seed)
    found: Counter[str] = Counter()
    for fault, answer in zip(faults, in_forks(faults, campaign.caught_by), strict=True):
        said = answer or "no answer"
        found[said.split(" in ")[0].split(" by ")[0]] += 1
        say(f"{said}: {fault.text}")
    say(", ".join(f"{said} {count}" for said, count in found.most_common()))


if __name__ == "__main__":
    main()
