"""Tests that the page decides what changed as `diff` does: by the same table, for all that two reports can say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from itertools import product
from typing import Any

import pytest
from samples import CPU, CUDA, case, failed, outcome, report

from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Pair, Report
from conformance.model.status import STATUSES, TABLE, Status
from conformance.render.page.matrix import index_of, matrix_of
from conformance.render.page.page import TEMPLATES
from conformance.render.page.tables import EXPECTATION, tables
from conformance.results.diff import DEGREES, KINDS, MEANINGS, compare
from conformance.results.store import encoded

NODE = shutil.which("node")
PROGRAM = """
model = modelOf(JSON.parse(require("fs").readFileSync(0, "utf-8")));
const [from, to] = model.index.builds.map((build) => model.columns.filter((column) => column.build === build));
const found = from.flatMap((column, number) => changesBetween(column, to[number])
  .map(({ kind, item }) => [kind, model.cases[item].id, `${column.device}-float32`]));
console.log(JSON.stringify(found));
"""
OLD, NEW, OTHER = failed(), failed(observed="3"), failed(path="a.is_leaf")
SECOND = {"nothing": OLD, "wording": NEW, "failure": OTHER, "revision": OLD}


def sides() -> tuple[Report, Report]:
    """Return reports between which each case changes in another way: all statuses, and all ways of having none."""
    plans: tuple[dict[Pair, Outcome | None], ...] = ({}, {})
    cases: tuple[list[CaseRecord], ...] = ([], [])
    stands: list[Any] = [*STATUSES, "off-target", "absent"]
    for number, (was, now, degree) in enumerate(product(stands, stands, DEGREES)):
        name = f"{was}/{now}/{degree}"
        for place, status in enumerate((was, now)):
            if status == "absent":
                continue
            digest = f"{degree == 'revision' and place}"
            cases[place].append(case(name, line=number + 1, digest=digest))
            target = CUDA if status == "off-target" else CPU
            stated: Status = "pass" if status == "off-target" else status
            facts = SECOND[degree] if place else OLD
            failures = facts.failures if stated != "pass" else ()
            plans[place][name, target] = outcome(stated, failures=failures, step=facts.step)
    old, new = (report(plan, cases=own) for plan, own in zip(plans, cases, strict=True))
    return old, new


@pytest.mark.skipif(
    NODE is None and not os.environ.get("CI"), reason="there is no node; continuous integration has one"
)
def test_the_page_tells_the_same_change_as_the_command_line_for_whatever_two_reports_say() -> None:
    assert NODE is not None
    old, new = sides()
    index = {**index_of(matrix_of([old, new])), **tables()}
    names = "dom view data find matrix form changes".split()
    script = "\n".join((TEMPLATES / f"{name}.js").read_text(encoding="utf-8") for name in names)
    done = subprocess.run(
        [NODE, "-e", script + PROGRAM], input=encoded(index), capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    found = sorted(map(tuple, json.loads(done.stdout)))
    expected = sorted((change.kind, change.case.id, change.target) for change in compare(old, new).changes)
    assert found == expected
    assert {kind for kind, *_ in found} == set(KINDS)


def test_the_page_has_all_statuses_with_what_it_needs_of_them() -> None:
    shipped: list[dict[str, Any]] = tables()["statuses"]
    assert [(each["name"], each["sign"], each["explanation"]) for each in shipped] == [
        (status, row.sign, row.explanation) for status, row in TABLE.items()
    ]
    assert len({each["mark"] for each in shipped}) == len(STATUSES)


def test_every_kind_that_the_page_can_tell_has_a_meaning() -> None:
    shipped = tables()
    told = {kind for row in shipped["decisions"].values() for each in row.values() for kind in each.values()}
    assert told - {None} == {kind for kind, _ in shipped["kinds"]} == {*MEANINGS, EXPECTATION}
    assert shipped["decisions"]["held"]["held"]["expectation"] == EXPECTATION
