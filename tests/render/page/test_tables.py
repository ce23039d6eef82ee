"""Tests that the page decides what changed as `diff` does: by the same table, for all that two reports can say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace as replaced
from itertools import product
from typing import Any

import msgspec
import pytest
from running import RULES, case_of
from samples import CPU, CUDA, case, failed, outcome, report

from conformance.model.case import Case
from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Pair, Report, case_record
from conformance.model.status import STATUSES, TABLE, Status
from conformance.render.expected import expectation_by
from conformance.render.page.expected import expected_of
from conformance.render.page.matrix import index_of, matrix_of
from conformance.render.page.page import TEMPLATES
from conformance.render.page.tables import EXPECTATION, tables
from conformance.results.diff import DEGREES, EXPECTED, KINDS, MEANINGS, compare
from conformance.results.store import encoded

NODE = shutil.which("node")
PROGRAM = """
const [index, expected] = JSON.parse(require("fs").readFileSync(0, "utf-8"));
model = modelOf(index);
const [from, to] = model.index.builds.map((build) => model.columns.filter((column) => column.build === build));
const found = from.flatMap((column, number) => changesBetween(column, to[number], expected)
  .map(({ kind, item, words }) => [kind, model.cases[item].id, `${column.device}-float32`, words]));
console.log(JSON.stringify(found));
"""
OLD, NEW, OTHER = failed(), failed(observed="3"), failed(path="a.is_leaf")
TWO_ERRORS = """
- do: 1 / 0
  raises:
    - {{type: {}, match: {}, torch: '<2.1'}}
    - {{type: {}, match: {}, torch: '>=2.1'}}
"""
EXPECTED_OTHERWISE = [
    "- expect: {int(2): {torch: {'<2.1': 1, '>=2.1': 2}}}\n",
    TWO_ERRORS.format("TypeError", "one", "RuntimeError", "one"),
    TWO_ERRORS.format("TypeError", "one", "TypeError", "two"),
    "- when: {torch: '>=2.1', steps: [x = 1]}\n- expect: {int(2): 2}\n",
]
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


WITH_NODE = pytest.mark.skipif(
    NODE is None and not os.environ.get("CI"), reason="there is no node; continuous integration has one"
)


@WITH_NODE
def test_the_page_tells_the_same_change_as_the_command_line_for_whatever_two_reports_say() -> None:
    old, new = sides()
    assert told_by_page(old, new, []) == told_by_command(old, new, [])
    assert {kind for kind, *_ in told_by_page(old, new, [])} == {*KINDS} - {*EXPECTED}


@WITH_NODE
def test_the_page_tells_what_is_expected_otherwise_as_the_command_line_does() -> None:
    cases = [replaced(case_of(steps), id=f"case-{number}") for number, steps in enumerate(EXPECTED_OTHERWISE)]
    records = [case_record(each, RULES) for each in cases]
    records.append(msgspec.structs.replace(records[0], id="unknown", digest="another"))
    older, newer = (
        report({(each.id, CPU): outcome("pass") for each in records}, cases=records, torch=torch)
        for torch in ("2.0.1", "2.6.0")
    )
    found = told_by_page(older, newer, cases)
    assert found == told_by_command(older, newer, cases)
    assert {kind for kind, *_ in found} == {*EXPECTED}
    back = told_by_page(older, newer, cases, backwards=True)
    assert back == [(kind, *pair, [[place, now, was] for place, was, now in words]) for kind, *pair, words in found]


def told_by_command(old: Report, new: Report, cases: list[Case]) -> list[Any]:
    changes = compare(old, new, expectation=expectation_by(lambda: cases)).changes
    return sorted(
        (change.kind, change.case.id, change.target, [list(words) for words in change.expected]) for change in changes
    )


def told_by_page(old: Report, new: Report, cases: list[Case], *, backwards: bool = False) -> list[Any]:
    """Return what the page says of each change, from the older report to the newer, or the other way."""
    assert NODE is not None
    matrix = matrix_of([old, new])
    known = {(each.id, each.digest): each for each in cases}
    index = {**index_of(matrix), **tables()}
    given = [index, expected_of(matrix, lambda record: known.get((record.id, record.digest)))]
    program = PROGRAM.replace("[from, to]", "[to, from]") if backwards else PROGRAM
    names = "dom view data search find matrix form changes".split()
    script = "\n".join((TEMPLATES / f"{name}.js").read_text(encoding="utf-8") for name in names)
    done = subprocess.run(
        [NODE, "-e", script + program], input=encoded(given), capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    return sorted(map(tuple, json.loads(done.stdout)))


def test_the_page_has_all_statuses_with_what_it_needs_of_them() -> None:
    shipped: list[dict[str, Any]] = tables()["statuses"]
    assert [(each["name"], each["sign"], each["explanation"]) for each in shipped] == [
        (status, row.sign, row.explanation) for status, row in TABLE.items()
    ]
    assert len({each["mark"] for each in shipped}) == len(STATUSES)


def test_every_kind_that_the_page_can_tell_has_a_meaning() -> None:
    shipped = tables()
    told = {kind for row in shipped["decisions"].values() for each in row.values() for kind in each.values()}
    assert told - {None} == {*KINDS} - {*EXPECTED} | {EXPECTATION}
    assert dict(shipped["kinds"]) == MEANINGS
    assert {*shipped["first"]} <= {*KINDS}
    assert shipped["decisions"]["held"]["held"]["expectation"] == EXPECTATION
