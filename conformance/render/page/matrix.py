"""The matrix: many reports side by side, a row for each case and a column for each device of each build.

It is plain data, ready for JSON, and as small as the page needs it: what stands in many cells stands once in a list.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Any

import msgspec
from packaging.version import Version

from conformance.language import versions
from conformance.model.build import DTYPES, IN_TREE, Build
from conformance.model.case import Case
from conformance.model.outcome import STATUSES, Outcome
from conformance.model.report import CaseRecord, Pair, Report
from conformance.model.rule import Rule
from conformance.results.compact import is_bare
from conformance.results.diff import words_of
from conformance.results.fingerprint import fingerprint

MARKS = dict(zip(STATUSES, "pfectkxuni", strict=True))  # one letter for each; a blank is for what was not planned
LONGEST_MESSAGE = 300
CONDITION = re.compile(r"""torch['"]?\s*:""")  # what a case with a condition on torch has somewhere in its text


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A device of a build (an index in the reports), and its targets by dtype."""

    report: int
    device: str
    targets: dict[str, str]


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """Reports in the order of releases, their columns, and the newest record of each case that any of them has."""

    reports: tuple[Report, ...]
    columns: tuple[Column, ...]
    cases: tuple[CaseRecord, ...]
    rules: dict[str, Rule]
    outcomes: tuple[dict[Pair, Outcome], ...]  # by report
    records: tuple[dict[str, CaseRecord], ...]  # by report and case


def matrix_of(reports: Sequence[Report]) -> Matrix:
    """Return the matrix of `reports`."""
    ordered = tuple(sorted(reports, key=lambda report: release_key(report.build)))
    cases: dict[str, CaseRecord] = {}
    rules: dict[str, Rule] = {}
    for report in reversed(ordered):  # the newest first, whose words count if it has any
        cases.update((case.id, case) for case in report.cases if case.id not in cases or is_bare(cases[case.id]))
        rules.update((name, rule) for name, rule in report.rules.items() if name not in rules)
    columns = tuple(column for index, report in enumerate(ordered) for column in columns_of(index, report))
    return Matrix(
        reports=ordered, columns=columns, cases=tuple(sorted(cases.values(), key=lambda case: (case.file, case.line))),
        rules=rules, outcomes=tuple(report.by_pair() for report in ordered),
        records=tuple({case.id: case for case in report.cases} for report in ordered),
    )  # fmt: skip


def release_key(build: Build) -> tuple[Version, str, tuple[int, ...], str]:
    """Return what sorts builds by release; one whose version nobody understands comes first."""
    try:
        version = versions.version_of(build.torch)
    except ValueError:
        version = Version("0")
    python = tuple(int(part) for part in build.python.split(".") if part.isdecimal() and len(part) < 9)
    return version, build.torch, python, build.system


def columns_of(index: int, report: Report) -> list[Column]:
    targets: dict[str, dict[str, str]] = {}
    for target in report.targets:
        device, _, dtype = target.rpartition("-")
        if not (device and dtype):  # not as this suite names targets, but whole, so that no two become one
            device, dtype = target, ""
        targets.setdefault(device, {})[dtype] = target
    devices = sorted(targets, key=lambda name: (IN_TREE.index(name) if name in IN_TREE else len(IN_TREE), name))
    return [Column(report=index, device=device, targets=targets[device]) for device in devices]


def index_of(matrix: Matrix, parsed: Mapping[str, Case], own: Report | None = None) -> dict[str, Any]:
    """Return what the page must know before anything is opened; `parsed` holds the cases that are valid, by id."""
    topics = list(dict.fromkeys(case.topic for case in matrix.cases))
    files = list(dict.fromkeys(case.file for case in matrix.cases))
    place = {name: number for number, name in enumerate(matrix.rules)}
    topic_place = {name: number for number, name in enumerate(topics)}
    file_place = {name: number for number, name in enumerate(files)}
    dtypes = sorted(
        {dtype for column in matrix.columns for dtype in column.targets},
        key=lambda name: (DTYPES.index(name) if name in DTYPES else len(DTYPES), name),
    )
    notes = Notes()
    return {
        "statuses": STATUSES,
        "marks": "".join(MARKS.values()),
        "builds": builds_of(matrix, own),
        "columns": [
            {
                "build": column.report,
                "device": column.device,
                "cells": {
                    str(dtypes.index(dtype)): cells(matrix, column, target, notes)
                    for dtype, target in column.targets.items()
                },
            }
            for column in matrix.columns
        ],
        "dtypes": dtypes,
        "messages": list(notes.messages),
        "topics": topics,
        "files": files,
        "rules": [
            [name, rule.text, rule.level, rule.link, rule.topic, rule.since] for name, rule in matrix.rules.items()
        ],
        "cases": [
            [
                case.id,
                case.title,
                topic_place[case.topic],
                int(case.level == "observed"),
                [place[rule] for rule in case.rules],
                file_place[case.file],
                case.line,
            ]
            for case in matrix.cases
        ],
        "editions": editions_of(matrix),
        "variants": variants_of(matrix, parsed),
    }


class Notes:
    """What cells say beyond their status: each message and each fingerprint once."""

    def __init__(self) -> None:
        self.messages: dict[str, int] = {}
        self.fingerprints: dict[Any, int] = {}
        self.words: dict[Any, int] = {}

    def of(self, outcome: Outcome) -> tuple[int, int, int]:
        summary = outcome.summary
        cut = summary if len(summary) <= LONGEST_MESSAGE else summary[:LONGEST_MESSAGE] + "…"
        message = self.messages.setdefault(cut, len(self.messages))
        return (
            message,
            self.fingerprints.setdefault(fingerprint(outcome), len(self.fingerprints)),
            self.words.setdefault(repr(words_of(outcome)), len(self.words)),
        )


def cells(matrix: Matrix, column: Column, target: str, notes: Notes) -> dict[str, Any]:
    """Return the cells of a column for one dtype: a letter for each case, and notes.

    A note is four numbers: the case, its message, its fingerprint and its words.
    """
    outcomes = matrix.outcomes[column.report]
    letters = []
    noted: list[int] = []
    for number, case in enumerate(matrix.cases):
        outcome = outcomes.get((case.id, target))
        letters.append(" " if outcome is None else MARKS[outcome.status])
        if outcome is not None and outcome.status != "pass":
            noted += [number, *notes.of(outcome)]
    return {"marks": "".join(letters), "notes": noted}


def builds_of(matrix: Matrix, own: Report | None) -> list[dict[str, Any]]:
    """Return what the page says of each build; `own` is the one that has just been tested."""
    taken: set[str] = set()
    builds = []
    for report, outcomes in zip(matrix.reports, matrix.outcomes, strict=True):
        name = free_name(report.build.slug, taken)
        taken.add(name)
        why: Counter[tuple[str, str, str]] = Counter(
            (outcome.target, outcome.status, outcome.reason)
            for outcome in outcomes.values()
            if outcome.status in ("not-run", "unsupported")
        )
        builds.append(
            {
                "id": name,
                "release": release_of(report.build),
                "facts": msgspec.to_builtins(report.build),
                "suite": msgspec.to_builtins(report.header.suite),
                "run": msgspec.to_builtins(report.header.run),
                "footer": msgspec.to_builtins(report.footer),
                "own": report is own,
                "counts": {target: dict(counts) for target, counts in report.counts().items()},
                "why": [[*key, count] for key, count in why.most_common()],
            }
        )
    label(builds)
    return builds


def free_name(slug: str, taken: Container[str]) -> str:
    """Return a name that no other build has, since two reports may be of one build."""
    names = itertools.chain([slug], (f"{slug}~{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


def release_of(build: Build) -> str:
    """Return the release that a build is of, or leads to; of one whose version nobody understands, that version."""
    try:
        return ".".join(map(str, versions.version_of(build.torch).release))
    except ValueError:
        return build.torch


def label(builds: Sequence[dict[str, Any]]) -> None:
    """Give each build the shortest label that tells it from the others of its release."""
    facts = ("stage", "python", "local", "system", "implementation", "git", "started")
    shown = {
        build["id"]: {
            "stage": build["facts"]["torch"].partition("+")[0].removeprefix(build["release"]).lstrip("."),
            "python": "py" + ".".join(build["facts"]["python"].split(".")[:2]),
            "local": build["facts"]["torch"].partition("+")[2],
            "system": build["facts"]["system"],
            "implementation": build["facts"]["implementation"],
            "git": build["facts"]["git"][:8],
            "started": build["run"]["started"],
        }
        for build in builds
    }
    alike: Counter[tuple[str, ...]] = Counter()
    for build in builds:
        own = shown[build["id"]]
        others = [shown[other["id"]] for other in builds if other["release"] == build["release"]]
        telling = {name for name in facts if len({other[name] for other in others}) > 1}
        build["label"] = [own[name] for name in facts if name in telling | {"stage", "python"} and own[name]]
        name = (build["release"], *build["label"])
        alike[name] += 1
        if alike[name] > 1:
            build["label"].append(f"~{alike[name]}")
        if build["own"]:
            build["label"].append("this run")


def editions_of(matrix: Matrix) -> dict[str, dict[str, int]]:
    """Return, by case and build, which edition of a case a build ran, where that isn't the one that is shown."""
    editions: dict[str, dict[str, int]] = {}
    numbers = {case.id: (number, {case.digest: 0}) for number, case in enumerate(matrix.cases)}
    for index in range(len(matrix.reports)):
        for case, record in matrix.records[index].items():
            number, digests = numbers[case]
            edition = digests.setdefault(record.digest, len(digests))
            if edition:
                editions.setdefault(str(number), {})[str(index)] = edition
    return editions


def variants_of(matrix: Matrix, parsed: Mapping[str, Case]) -> dict[str, Any]:
    """Return what cases expect by version: their conditions, and which of them hold for each build."""
    variants = {}
    for number, case in enumerate(matrix.cases):
        known = parsed.get(case.id) if CONDITION.search(case.yaml) else None
        conditions = list(dict.fromkeys(conditions_in(known.steps))) if known is not None else []
        if conditions:
            held = ["".join(str(int(holds(text, report.build))) for text in conditions) for report in matrix.reports]
            variants[str(number)] = [conditions, held]
    return variants


def conditions_in(steps: Any) -> list[str]:
    """Return the conditions on torch that stand anywhere in the steps of a case."""
    if isinstance(steps, (list, tuple)):
        return [condition for entry in steps for condition in conditions_in(entry)]
    if not isinstance(steps, dict):
        return []
    own = steps.get("torch")
    stated = [own] if isinstance(own, str) else list(own) if isinstance(own, dict) else []
    return stated + [condition for value in steps.values() for condition in conditions_in(value)]


def holds(condition: str, build: Build) -> bool:
    try:
        return versions.holds(condition, build.torch)
    except ValueError:
        return False
