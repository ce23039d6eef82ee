"""The matrix: many reports side by side, a row for each case and a column for each device of each build.

The page gets it as plain data, ready for JSON; messages that stand in many cells are kept once, in a list.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from conformance.model.build import DTYPES, IN_TREE
from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Pair, Report
from conformance.model.rule import Rule
from conformance.model.status import STATUSES
from conformance.render.page.builds import builds_of, release_key
from conformance.render.page.causes import PageCauses, page_causes
from conformance.render.text import LONG, shortened
from conformance.results.compact import is_bare
from conformance.results.diff import is_fulfilled, wording_of
from conformance.results.fingerprint import fingerprint

# One letter for each status, in their order from a on; a blank is for what was not planned.
MARKS = {status: chr(ord("a") + number) for number, status in enumerate(STATUSES)}


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A device of a build (an index in the reports), and its targets by dtype."""

    report: int
    device: str
    targets: dict[str, str]


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """Reports in the order of releases, their columns, and the newest record of each case."""

    reports: tuple[Report, ...]
    columns: tuple[Column, ...]
    cases: tuple[CaseRecord, ...]
    rules: dict[str, Rule]
    outcomes: tuple[dict[Pair, Outcome], ...]  # by report
    records: tuple[dict[str, CaseRecord], ...]  # by report and case
    noted: dict[str, list[tuple[int, str, Outcome]]]  # by case: other than mere passes, with column and dtype


def matrix_of(reports: Sequence[Report]) -> Matrix:
    """Return the matrix of `reports`."""
    ordered = tuple(sorted(reports, key=lambda report: release_key(report.build)))
    cases: dict[str, CaseRecord] = {}
    rules: dict[str, Rule] = {}
    for report in reversed(ordered):  # the newest first; its texts are used if it has any
        cases.update((case.id, case) for case in report.cases if case.id not in cases or is_bare(cases[case.id]))
        rules.update((name, rule) for name, rule in report.rules.items() if name not in rules)
    columns = tuple(column for index, report in enumerate(ordered) for column in columns_of(index, report))
    outcomes = tuple(report.by_pair() for report in ordered)
    noted: dict[str, list[tuple[int, str, Outcome]]] = {}
    for number, column in enumerate(columns):
        dtypes = {target: dtype for dtype, target in column.targets.items()}
        for (case, target), outcome in outcomes[column.report].items():
            if is_noted(outcome) and target in dtypes:
                noted.setdefault(case, []).append((number, dtypes[target], outcome))
    return Matrix(
        reports=ordered, columns=columns, cases=tuple(sorted(cases.values(), key=lambda case: (case.file, case.line))),
        rules=rules, outcomes=outcomes, noted=noted,
        records=tuple({case.id: case for case in report.cases} for report in ordered),
    )  # fmt: skip


def is_noted(outcome: Outcome) -> bool:
    """Whether there is more to say of an outcome than that it is a pass."""
    return outcome.status != "pass" or bool(outcome.unobserved)


def columns_of(index: int, report: Report) -> list[Column]:
    targets: dict[str, dict[str, str]] = {}
    for target in report.targets:
        device, _, dtype = target.rpartition("-")
        if not (device and dtype):  # not a name of this suite: kept whole, so that targets stay distinct
            device, dtype = target, ""
        targets.setdefault(device, {})[dtype] = target
    devices = sorted(targets, key=lambda name: (IN_TREE.index(name) if name in IN_TREE else len(IN_TREE), name))
    return [Column(report=index, device=device, targets=targets[device]) for device in devices]


def index_of(matrix: Matrix, own: Report | None = None) -> dict[str, Any]:
    """Return the index of the page: all that is needed before a case is opened."""
    topics = {name: number for number, name in enumerate(dict.fromkeys(case.topic for case in matrix.cases))}
    files = {name: number for number, name in enumerate(dict.fromkeys(case.file for case in matrix.cases))}
    rules = {name: number for number, name in enumerate(matrix.rules)}
    dtypes = sorted(
        {dtype for column in matrix.columns for dtype in column.targets},
        key=lambda name: (DTYPES.index(name) if name in DTYPES else len(DTYPES), name),
    )
    notes = Notes(page_causes(matrix.outcomes, matrix.records))
    return {
        "builds": builds_of(matrix.reports, matrix.outcomes, own, notes.causes),
        "causes": notes.causes.listed,
        "columns": [
            {"build": column.report, "device": column.device, "cells": {
                str(dtypes.index(dtype)): cells(matrix, column, target, notes)
                for dtype, target in column.targets.items()
            }}
            for column in matrix.columns
        ],
        "dtypes": dtypes, "messages": list(notes.messages), "topics": list(topics), "files": list(files),
        "rules": [[name, rule.text] for name, rule in matrix.rules.items()],
        "cases": [
            [case.id, case.title, topics[case.topic], int(case.level == "observed"),
             [rules[rule] for rule in case.rules], files[case.file], case.line]
            for case in matrix.cases
        ],
        "revisions": revisions_of(matrix), "variants": variants_of(matrix),
    }  # fmt: skip


def backgrounds_of(matrix: Matrix) -> list[list[str]]:
    """Return what else there is to say of each rule, once a case is opened."""
    return [[rule.level, rule.link, rule.since, rule.upgrade] for rule in matrix.rules.values()]


class Notes:
    """The messages, fingerprints, wordings and causes of cells, each with a number."""

    def __init__(self, causes: PageCauses) -> None:
        self.causes = causes
        self.messages: dict[str, int] = {}
        self.fingerprints: dict[Any, int] = {}
        self.wordings: dict[Any, int] = {}

    def of(self, outcome: Outcome, report: int) -> tuple[int, int, int, int]:
        return (
            self.messages.setdefault(shortened(outcome.summary, LONG), len(self.messages)),
            self.fingerprints.setdefault(fingerprint(outcome), len(self.fingerprints)),
            self.wordings.setdefault(repr(wording_of(outcome)), len(self.wordings)),
            self.causes.numbers[report].get(outcome.pair, -1),
        )


def cells(matrix: Matrix, column: Column, target: str, notes: Notes) -> dict[str, Any]:
    """Return the cells of a column for one dtype: a letter for each case, and notes.

    A note is five numbers: the case, its message, its fingerprint, its wording and its cause, or -1 for none.
    """
    outcomes = matrix.outcomes[column.report]
    letters = []
    noted: list[int] = []
    for number, case in enumerate(matrix.cases):
        outcome = outcomes.get((case.id, target))
        letters.append(" " if outcome is None else MARKS[outcome.status])
        if outcome is not None and is_noted(outcome):
            noted += [number, *notes.of(outcome, column.report)]
    return {"marks": "".join(letters), "notes": noted}


def revisions_of(matrix: Matrix) -> dict[str, dict[str, int | None]]:
    """Return, by case and build, which revision of a case a build has, where it is not 0, the displayed one.

    None stands for a build whose report doesn't have the case.
    """
    revisions: dict[str, dict[str, int | None]] = {}
    for number, case in enumerate(matrix.cases):
        digests = {case.digest: 0}
        for index, records in enumerate(matrix.records):
            record = records.get(case.id)
            revision = None if record is None else digests.setdefault(record.digest, len(digests))
            if revision != 0:
                revisions.setdefault(str(number), {})[str(index)] = revision
    return revisions


def variants_of(matrix: Matrix) -> dict[str, tuple[list[str], list[int]]]:
    """Return the conditions on torch in each case: the sets of them that hold on builds, and which set holds on which.

    The sets are texts, in the order of the builds.
    """
    variants = {}
    for number, case in enumerate(matrix.cases):
        stated = [text for step in case.steps for text in (step.torch, *step.variants)]
        conditions = list(dict.fromkeys(filter(None, stated)))
        if conditions:
            held = [
                " and ".join(text for text in conditions if is_fulfilled(text, report.build.torch))
                for report in matrix.reports
            ]
            places = {text: place for place, text in enumerate(dict.fromkeys(held))}
            variants[str(number)] = list(places), [places[text] for text in held]
    return variants
