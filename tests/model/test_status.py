"""Tests of the table of statuses: it is whole, and what lists the statuses elsewhere agrees with it."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pytest
from places import ROOT

from conformance.language.schema import load_schema
from conformance.model.status import BROKEN, RED, STATUSES, TABLE, WORST_FIRST

PAGE = ROOT / "conformance" / "render" / "page" / "templates"
STYLE = (PAGE / "page.css").read_text(encoding="utf-8")


def test_every_status_has_a_row_of_its_own() -> None:
    assert tuple(TABLE) == STATUSES
    for fact in ("sign", "severity", "explanation"):
        assert len({getattr(row, fact) for row in TABLE.values()}) == len(STATUSES), fact


def test_what_is_red_is_worse_than_the_rest_and_says_so_below_a_failing_item() -> None:
    assert {"fail", "error", "crash", "timeout", "fixed", "internal-error"} <= RED
    assert not {"pass", "known", "unsupported", "not-run"} & RED
    assert set(WORST_FIRST[: len(RED)]) == RED
    assert all(TABLE[status].headline and TABLE[status].badge for status in RED)


def test_a_defect_of_the_suite_is_no_failure_of_torch() -> None:
    assert {"fail", "error", "crash", "timeout"} <= BROKEN < RED
    row = TABLE["internal-error"]
    assert (row.is_red, row.tells_of_torch, row.verdict) == (True, False, "defect")


@pytest.mark.parametrize("name", ["report", "compact"])
def test_published_schemas_of_reports_know_all_statuses(name: str) -> None:
    assert statuses_in(load_schema(f"{name}.schema.json")) == {frozenset(STATUSES)}


def test_known_issues_are_of_failures_of_torch() -> None:
    assert statuses_in(load_schema("known-issues.schema.json")) == {BROKEN}


def statuses_in(schema: Any) -> set[frozenset[str]]:
    """Return the enumerations of statuses that stand anywhere in a schema."""
    lists = re.findall(r'"enum": (\[[^\]]*\])', json.dumps(schema))
    return {found for found in map(frozenset, map(json.loads, lists)) if "crash" in found}


def test_the_style_of_the_page_has_each_role() -> None:
    assert {row.role for row in TABLE.values()} == set(re.findall(r"^\.sign\.(\w+) {", STYLE, re.MULTILINE))


def test_the_page_knows_statuses_from_the_table_alone() -> None:
    scripts = "".join(path.read_text(encoding="utf-8") for path in sorted(PAGE.glob("*.js")))
    assert [status for status in STATUSES if re.search(rf"""["'`.]{status}["'`]""", scripts)] == ["pass"]  # of a step


def test_statuses_are_grouped_in_the_table_alone() -> None:
    """The worker has no table: it answers with what happened to a case."""
    package = ROOT / "conformance"
    for path in sorted(set(package.rglob("*.py")) - {package / "model" / "status.py"}):
        if path.parent.name != "worker":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
                    entries = node.keys if isinstance(node, ast.Dict) else node.elts
                    named = {each.value for each in entries if isinstance(each, ast.Constant)} & set(STATUSES)
                    assert len(named) < 2, f"{path}:{node.lineno}: {named}"
