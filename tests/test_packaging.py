"""Tests of the package as a whole: what it needs is declared."""

from __future__ import annotations

import re
import sys
from importlib.metadata import packages_distributions

import pytest
from places import ROOT
from test_rooms import MODULES, imports_of, tree_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
UNDER_TEST = {"torch"}  # it is whatever is there


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def test_what_the_package_imports_is_declared_and_what_is_declared_is_imported() -> None:
    roots = {found.partition(".")[0] for path in MODULES.values() for found, _ in imports_of(tree_of(path))}
    others = roots - sys.stdlib_module_names - UNDER_TEST - {"conformance"}
    distributions = packages_distributions()
    imported = {name_of(distribution) for root in others for distribution in distributions[root]}
    declared = {name_of(requirement) for requirement in PROJECT["dependencies"]}
    assert imported <= declared
    # pytest itself loads pytest-xdist, for `-n`; nothing else is declared without being imported.
    assert declared - imported == {"pytest-xdist"}
