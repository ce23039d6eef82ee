"""Splits the worker's modules into definitions, of which a stand-alone script contains those that it needs.

The modules are read as text, because importing them would import torch. Each name has one definition in all of them. A
statement that defines no name is included with all the names that it uses. Type annotations are left out.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import conformance
from conformance.language.profile import load_profile, shipped_profiles
from conformance.render.script.names import names_of_module

WORKER = Path(conformance.__file__).parent / "worker"
# In the order of scripts.
MODULES = """values storage backend lacking failures checks reference factories functions state modes wrapped
    differences points operation trial ways ways_mapped ways_twice elsewhere large derivatives standalone""".split()
REGISTRY = "CHECKS"  # of which each entry is a piece by itself
BACKENDS = "BACKENDS"  # which is filled here
ALWAYS = ("torch", "unexpected", "DEVICE", "DTYPE", "warnings", "set_up", BACKENDS)
REMARK = re.compile(r" +# (?:noqa|type: ignore|fmt: ).*")  # for the linters of the suite

IMPORT = (ast.Import, ast.ImportFrom)
DEFINITION = (ast.FunctionDef, ast.ClassDef)

START = """\
# One case of the autograd conformance suite in plain torch. It stands at the end, after the suite's own functions that
# it needs.
# Run it as: python script.py [DEVICE [DTYPE]]. The last line says pass, fail, error or unsupported.
"""
APART = """\
# The case has variables named like something in these functions, so they have names of their own.
import torch

_parts = {"__name__": "parts"}
exec(r'''
"""
BEFORE, HEAD, AFTER = "(apart)", "(start)", "(together)"  # names of pieces that nothing in them can have
TOGETHER = "''', _parts)\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some text of a module and the global names in it; `is_free` where nothing needs to ask for it."""

    text: str
    names: frozenset[str] = frozenset()
    is_free: bool = False


def entry(check: str) -> str:
    """Return the name of the piece that has a check."""
    return f"{REGISTRY}[{check!r}]"


def read_pieces() -> dict[str, Piece]:
    """Return the pieces by name, in the order in which they stand in scripts."""
    imports: dict[str, Piece] = {}
    others: dict[str, Piece] = {}
    for module in MODULES:
        text = (WORKER / f"{module}.py").read_text(encoding="utf-8")
        for name, piece in pieces_of(text, module):
            if piece.text.startswith(("import ", "from ")):
                imports[name] = piece
            elif name in others:
                raise ValueError(f"worker/{module}.py: {name} is also defined in another module that scripts contain")
            else:
                others[name] = piece
    others[BACKENDS] = Piece(text="\n" + backends_text({}), names=frozenset())
    ordered = sorted(imports.items(), key=lambda item: (item[1].text.startswith("from"), item[1].text))
    return {BEFORE: Piece(text=APART), HEAD: Piece(text=START, names=frozenset(ALWAYS)), **dict(ordered),
            **others, AFTER: Piece(text=TOGETHER)}  # fmt: skip


def backends_text(others: Mapping[str, tuple[Sequence[str], str]]) -> str:
    """Return the statement that says how devices come to torch: by type, the modules to import and the setup.

    There are those of the suite's profiles, and `others`.
    """
    known = [load_profile(path, path.name) for path in shipped_profiles().values()]
    own = {profile.device: (profile.modules, profile.setup) for profile in known if profile.modules}
    items = [f"    {device!r}: ({list(names)}, {setup!r}),\n" for device, (names, setup) in {**own, **others}.items()]
    return f"{BACKENDS} = {{\n{''.join(items)}}}\n"


def pieces_of(text: str, module: str) -> Iterator[tuple[str, Piece]]:
    """Yield the pieces of a module's text, each with its name."""
    nodes = ast.parse(text).body
    lines = [REMARK.sub("", line) for line in without_types(text, nodes).splitlines(keepends=True)]
    for before, node in pairwise(nodes):  # the first is the docstring
        if isinstance(node, IMPORT):
            yield from imported(node)
            continue
        own = "".join(lines[before.end_lineno or 0 : node.end_lineno]).strip("\n") + "\n"
        gap = "\n\n" if isinstance(node, DEFINITION) or isinstance(before, DEFINITION) else ""
        gap = "\n" if not gap and isinstance(before, IMPORT) else gap
        name = name_of(node)
        if name == REGISTRY:
            yield from entries_of(node, own, gap)
        else:
            yield name or f"{module}:{node.lineno}", Piece(text=gap + own, names=names_of_module(own), is_free=not name)


def entries_of(node: ast.stmt, text: str, gap: str) -> Iterator[tuple[str, Piece]]:
    """Yield the pieces of the registry: its first lines, each entry, and its closing bracket."""
    assert isinstance(node, ast.AnnAssign)
    assert isinstance(node.value, ast.Dict)
    lines = text.splitlines(keepends=True)
    begin = len(lines) - 1 - (node.end_lineno or 0)  # of the file, less those of it before the registry
    places = [(key.lineno + begin, ast.literal_eval(key)) for key in node.value.keys if key is not None]
    head = "".join(lines[: places[0][0]])
    yield REGISTRY, Piece(text=gap + head, names=names_of_module(head + "}") | {"}"})
    for (line, key), (following, _) in pairwise([*places, (len(lines) - 1, "")]):
        item = "".join(lines[line:following])
        yield entry(key), Piece(text=item, names=names_of_module(f"{{{item}}}"))
    yield "}", Piece(text="}\n")


def without_types(text: str, nodes: list[ast.stmt]) -> str:
    """Return the text of a module without its annotations, in the same lines."""
    lines = text.splitlines(keepends=True)
    spans: list[tuple[int, int, ast.expr]] = []  # line and column behind which an annotation stands, and it
    for node in (node for outer in nodes for node in ast.walk(outer)):
        if isinstance(node, ast.arg) and node.annotation is not None:
            spans.append((node.lineno, node.col_offset + len(node.arg), node.annotation))
        elif isinstance(node, ast.AnnAssign):
            spans.append((node.lineno, node.target.end_col_offset or 0, node.annotation))
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            line = node.returns.lineno
            spans.append((line, lines[line - 1].rindex(" -> ", 0, node.returns.col_offset), node.returns))
    for line, column, annotation in sorted(spans, key=lambda span: span[:2], reverse=True):
        own = lines[line - 1]
        rest = own[annotation.end_col_offset :]
        is_default = rest.startswith(" = ") and own.lstrip().startswith(("def ", "*"))
        lines[line - 1] = own[:column] + (f"={rest[3:]}" if is_default else rest)
    return "".join(lines)


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Piece]]:
    """Yield the pieces of an import of other modules than the suite's, one for each name."""
    module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        begin = f"from {module} import" if module else "import"
        if module != "__future__" and not module.startswith("conformance."):
            yield alias.asname or alias.name, Piece(text=f"{begin} {ast.unparse(alias)}\n")


def name_of(node: ast.stmt) -> str:
    """Return the name that a statement defines, or an empty text."""
    if isinstance(node, DEFINITION):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else ""


PIECES = read_pieces()
FREE = [name for name, piece in PIECES.items() if piece.is_free]


@cache
def needs_of(name: str) -> frozenset[str]:
    """Return the names of the pieces that one needs, itself among them."""
    found: set[str] = set()
    waiting = {name}
    while waiting:
        found |= waiting
        waiting = {other for some in waiting for other in PIECES[some].names if other in PIECES} - found
    return frozenset(found)


@cache
def parts_with(wanted: frozenset[str]) -> tuple[str, ...]:
    """Return the names of the pieces that a script needs for those that are `wanted`, in order."""
    found = frozenset().union(*map(needs_of, wanted | {HEAD}))
    found |= {name for name in FREE if needs_of(name) - {name} <= found}
    return tuple([name for name in PIECES if name in found])


@cache
def names_in_parts(parts: tuple[str, ...]) -> frozenset[str]:
    """Return the global names of some pieces, which a case must not set."""
    return frozenset().union(*[PIECES[name].names for name in parts])
