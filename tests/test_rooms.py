"""Holds the table of who may import whom: nine rooms, and every arrow between them points one way."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT

from conformance.render.script.carried import MODULES as MODULES_OF_SCRIPTS

PACKAGE = ROOT / "conformance"
STANDARD = frozenset(sys.stdlib_module_names)

# The rooms from the innermost to the outermost; each may import from those named, and nothing else of the package.
ROOMS = {
    "model": "",
    "language": "model",
    "worker": "language",
    "results": "language model",
    "execution": "language model results worker",
    "render": "execution language model results",
    "releases": "execution language model render",
    "pytest_plugin": "execution language model render results",
    "cli": "execution language model pytest_plugin releases render results",
}
WORKER_MAY_IMPORT = {"conformance.language.vocabulary"}  # of the other rooms
# Modules that scripts carry along: render reads them as text, and they need nothing of ours but one another.
CARRIED = {f"conformance.worker.{name}" for name in MODULES_OF_SCRIPTS}
CORE_LIBRARIES = {"jinja2", "markupsafe", "yaml", "packaging", "msgspec"}
LIBRARIES = {
    "language": CORE_LIBRARIES | {"nbformat"},  # where it is installed, to read notebooks
    "worker": {"torch"},
    "pytest_plugin": {"pytest", "_pytest", "msgspec"},
    "cli": {"pytest", "pygls", "lsprotocol", "argcomplete"},  # the last three where they are installed
}
MOST_LAYERS = 9


def imports_of(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the full name of each module that `tree` imports, or imports from, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module, node


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """Return the room that a module of the package stands in; `__init__` and `__main__` stand in none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else ""


WRITTEN = {PACKAGE / "_version.py"}  # when the package is built
MODULES = {name_of(path): path for path in sorted(set(PACKAGE.rglob("*.py")) - WRITTEN)}
INNER = {
    name: {found for found, _ in imports_of(tree_of(path)) if found.partition(".")[0] == "conformance"} - {name}
    for name, path in MODULES.items()
}
in_rooms = pytest.mark.parametrize("name", [name for name in MODULES if room_of(name)])


def test_every_module_stands_in_a_room() -> None:
    assert [name for name in MODULES if not room_of(name)] == ["conformance", "conformance.__main__"]
    assert {room_of(name) for name in MODULES} - {""} == set(ROOMS)
    assert all((PACKAGE / room / "__init__.py").read_text(encoding="utf-8").startswith('"""') for room in ROOMS)


def test_arrows_point_one_way() -> None:
    known: set[str] = set()
    for room, others in ROOMS.items():
        assert set(others.split()) <= known, room
        known.add(room)


@in_rooms
def test_a_module_imports_only_from_rooms_that_the_table_names(name: str) -> None:
    room = room_of(name)
    others = {inner for inner in INNER[name] if room_of(inner) not in ("", room)}
    assert {room_of(inner) for inner in others} <= set(ROOMS[room].split())
    if room == "worker":
        assert others <= WORKER_MAY_IMPORT


def test_every_arrow_of_the_table_is_used() -> None:
    used = {(room_of(name), room_of(inner)) for name, found in INNER.items() for inner in found}
    assert {(room, other) for room, others in ROOMS.items() for other in others.split()} <= used


def test_no_modules_import_one_another_and_there_are_few_layers() -> None:
    layers: list[set[str]] = []
    waiting = {name for name in MODULES if room_of(name)}
    while waiting:
        rooms = {name for name in waiting if not (INNER[name] & waiting)}
        assert rooms, f"these import one another: {sorted(waiting)}"
        layers.append(rooms)
        waiting -= rooms


def test_rooms_stand_on_few_floors() -> None:
    floors: dict[str, int] = {}
    for room, others in ROOMS.items():
        floors[room] = 1 + max((floors[other] for other in others.split()), default=0)
    assert max(floors.values()) <= MOST_LAYERS


@in_rooms
def test_a_room_imports_only_its_libraries(name: str) -> None:
    roots = {found.partition(".")[0] for found, _ in imports_of(tree_of(MODULES[name]))}
    room = room_of(name)
    allowed = LIBRARIES.get(room, CORE_LIBRARIES) | (CORE_LIBRARIES if room == "cli" else set())
    assert roots <= STANDARD | allowed | {"conformance"}


def test_only_the_in_process_executor_imports_the_worker_and_only_when_it_runs() -> None:
    for name, path in MODULES.items():
        tree = tree_of(path)
        nodes = [node for found, node in imports_of(tree) if room_of(found) == "worker"]
        if nodes and room_of(name) != "worker":
            assert name == "conformance.execution.in_process"
            assert not [node for node in nodes if node in tree.body]


def test_what_scripts_carry_along_needs_nothing_else_of_ours() -> None:
    assert {name: INNER[name] - CARRIED for name in CARRIED if INNER[name] - CARRIED} == {}
    assert not {name for name, found in INNER.items() if "conformance.worker.standalone" in found}
    readers = [name for name, path in MODULES.items() if '/ "worker"' in path.read_text(encoding="utf-8")]
    assert readers == ["conformance.render.script.carried"]


def test_what_the_worker_loads_is_python_3_8() -> None:  # of annotations ruff tells (FA102)
    loaded = [
        "conformance",
        "conformance.language",
        *WORKER_MAY_IMPORT,
        *(n for n in MODULES if room_of(n) == "worker"),
    ]
    files = [str(MODULES[name]) for name in loaded]
    long = ("--exclude", "long")  # a function of ours, not that of Python 2
    command = [f"{sysconfig.get_path('scripts')}/vermin", "-t=3.8-", *long, "--no-tips", "--violations", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_loading_the_core_brings_neither_pytest_nor_torch() -> None:
    core = [name for name in MODULES if room_of(name) not in ("", "worker", "pytest_plugin")]
    program = f"import sys, {', '.join(core)}; print(sorted({{'pytest', '_pytest', 'torch'}} & sys.modules.keys()))"
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"


def test_the_documents_name_the_rooms_with_their_arrows_and_modules_that_are_there() -> None:
    architecture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([\w, ]*)\|$", architecture, re.MULTILINE)
    assert {room: set(re.findall(r"\w+", others)) for room, others in rows} == {
        room: set(others.split()) for room, others in ROOMS.items()
    }
    for document in (architecture, (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        named = re.findall(rf"(?<![\w/])((?:{'|'.join(ROOMS)})/[a-z_0-9/]+)(?![\w./])", document)
        assert len(named) > 15
        assert [name for name in named if not list((PACKAGE / name).parent.glob(f"{Path(name).name}*"))] == []
