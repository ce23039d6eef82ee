"""Holds the table of who may import whom: pure core, torch's side, pytest's side; every arrow points one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "conformance"
STANDARD = frozenset(sys.stdlib_module_names)

PYTEST_SIDE = frozenset("plugin item suite feed recorder protocol arguments cli".split())
ENTRY = frozenset({"__main__"})
CORE_LIBRARIES = frozenset("grandalf jinja2 markupsafe yaml packaging msgspec conformance".split())
# Which modules of the package each module of the core may import.
CORE = {
    "__init__": "",
    "absence": "case checkout outcome report rule target",
    "badge": "outcome report visible wording",
    "bisection": "",
    "cache": "case script",
    "case": "case_reader document equivalence problem rule schema spellings",
    "case_files": "case document known_issues rule",
    "case_reader": "document language problem rule versions vocabulary",
    "checkout": "",
    "commands": "difference",
    "compact": "outcome report rule",
    "details": "case graph matrix outcome picture report script",
    "difference": "fingerprint outcome report rule",
    "difference_text": "difference markdown report visible wording",
    "document": "problem",
    "environment": "releases",
    "equivalence": "document language",
    "failure": "case fingerprint known_issues outcome rule target",
    "fingerprint": "outcome",
    "gpus": "",
    "graph": "outcome",
    "history": "case markdown program versions visible vocabulary wording",
    "journal": "graph outcome report report_file",
    "known_issues": "document fingerprint outcome problem schema target versions",
    "language": "problem vocabulary",
    "markdown": "visible wording",
    "matrix": "case compact difference fingerprint outcome report rule target versions",
    "merge": "graph outcome problem report shard target",
    "outcome": "",
    "page": "case details difference matrix outcome report report_file script visible",
    "picture": "graph",
    "problem": "",
    "process": "target versions",
    "program": "case target versions vocabulary",
    "red_entries": "fingerprint outcome report versions",
    "releases": "",
    "report": "case graph outcome rule target",
    "report_file": "compact report",
    "rule": "document problem schema",
    "schema": "document problem",
    "script": "case problem report rule script_names script_steps vocabulary",
    "script_names": "vocabulary",
    "script_steps": "case_reader",
    "shard": "",
    "sketches": "case graph outcome program report report_file target",
    "spellings": "case_reader document equivalence language problem vocabulary",
    "summary": "markdown matrix outcome report rule wording",
    "target": "",
    "trial": "bisection case case_files environment outcome process program releases script target wording",
    "versions": "",
    "visible": "",
    "vocabulary": "",
    "wording": "outcome target",
}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imports_of(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the full name of each module that `tree` imports, or imports from, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            assert node.module is not None
            whole = node.module in ("conformance", "conformance.worker")
            yield from ((f"{node.module}.{alias.name}" if whole else node.module, node) for alias in node.names)


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def roots_of(path: Path) -> set[str]:
    return {name.partition(".")[0] for name, _ in imports_of(tree_of(path))}


def inner_of(path: Path) -> set[str]:
    """Return the modules of the package that the file at `path` imports, without `conformance.` before them."""
    names = {name.partition(".")[2] for name, _ in imports_of(tree_of(path)) if name.partition(".")[0] == "conformance"}
    return names - {"__version__", ""}


MODULES = {name_of(path): path for path in sorted(PACKAGE.glob("*.py"))}
WORKER = {name_of(path): path for path in sorted((PACKAGE / "worker").glob("*.py"))}


def test_every_module_has_a_room() -> None:
    assert set(MODULES) == set(CORE) | PYTEST_SIDE | ENTRY
    assert not set(CORE) & PYTEST_SIDE


@pytest.mark.parametrize("name", sorted(CORE))
def test_the_core_imports_neither_pytest_nor_torch(name: str) -> None:
    assert roots_of(MODULES[name]) <= STANDARD | CORE_LIBRARIES


@pytest.mark.parametrize("name", sorted(CORE))
def test_the_core_imports_only_those_that_the_table_names(name: str) -> None:
    assert inner_of(MODULES[name]) <= set(CORE[name].split())


def test_the_table_of_the_core_has_no_circle() -> None:
    done: set[str] = set()
    while waiting := set(CORE) - done:
        ready = {name for name in waiting if set(CORE[name].split()) <= done}
        assert ready, f"these import one another: {sorted(waiting)}"
        done |= ready


@pytest.mark.parametrize("name", sorted(PYTEST_SIDE))
def test_the_side_of_pytest_imports_no_torch(name: str) -> None:
    assert roots_of(MODULES[name]) <= STANDARD | {"conformance", "pytest", "_pytest", "msgspec"}


@pytest.mark.parametrize("name", sorted(WORKER))
def test_the_side_of_torch_imports_only_the_standard_library_torch_and_the_vocabulary(name: str) -> None:
    assert roots_of(WORKER[name]) <= STANDARD | {"torch", "conformance"}
    inner = inner_of(WORKER[name])
    assert all(module == "vocabulary" or module.startswith("worker") for module in inner)


def test_only_the_feed_imports_the_worker_and_only_when_it_runs_in_process() -> None:
    for name, path in MODULES.items():
        tree = tree_of(path)
        imports = [node for module, node in imports_of(tree) if module.startswith("conformance.worker")]
        assert not imports or name == "feed"
        assert not [node for node in imports if node in tree.body]


def test_only_the_conftest_loads_the_plugin() -> None:
    for path in [*MODULES.values(), *WORKER.values()]:
        assert "plugin" not in inner_of(path)
    assert 'pytest_plugins = ["conformance.plugin"]' in (ROOT / "conftest.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [*WORKER.values(), MODULES["__init__"], MODULES["vocabulary"]], ids=name_of)
def test_what_the_worker_loads_is_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.mark.parametrize("name", sorted(ENTRY))
def test_an_entry_point_imports_only_the_command_line(name: str) -> None:
    assert roots_of(MODULES[name]) <= STANDARD | {"conformance"}
    assert inner_of(MODULES[name]) == {"cli"}


def test_loading_the_core_brings_neither_pytest_nor_torch() -> None:
    modules = [f"conformance.{name}" for name in CORE if name != "__init__"]
    program = f"import sys, {', '.join(modules)}; print(sorted({{'pytest', '_pytest', 'torch'}} & sys.modules.keys()))"
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"
