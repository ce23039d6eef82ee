"""The details of one case as plain data: its text, its steps, its graph and its outcomes on each build."""

from __future__ import annotations

from typing import Any

from conformance.model.graph import Graph
from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord
from conformance.render.page.layout import drawing_of
from conformance.render.page.matrix import Matrix, is_fulfilled
from conformance.render.script.script import Script


def details_of(matrix: Matrix, record: CaseRecord, script: Script | None) -> dict[str, Any]:
    """Return the details of a case; `script` is None where the suite has no such case or another revision."""
    graph, origin = graph_of(matrix, record)
    drawing = drawing_of(graph) if graph is not None else None
    outcomes, places = distinct_outcomes(matrix, record)
    return {
        "why": record.why,
        "source": record.source,
        "yaml": record.yaml,
        "steps": step_lines(record),
        "left_out": left_out(matrix, record),
        "script": None if script is None else [script.parts, script.body],
        "graph": None
        if drawing is None
        else {**drawing, "build": origin, "target": graph.target if graph is not None else ""},
        "outcomes": outcomes,
        "places": places,
    }


def step_lines(record: CaseRecord) -> list[int]:
    """Return the lines of the text at which steps begin, counted from 0; none where several steps share a line."""
    lines = [step.line - record.line for step in record.steps]
    within = range(record.yaml.count("\n") + 1)
    return lines if lines == sorted(set(lines)) and all(line in within for line in lines) else []


def left_out(matrix: Matrix, record: CaseRecord) -> list[tuple[int, list[int]]]:
    """Return the lines, from 0 in the text, of steps that conditions leave out on builds, and those builds."""
    builds = [report.build for report in matrix.reports]
    lines = [
        (step.line - record.line, [at for at, build in enumerate(builds) if not is_fulfilled(step.torch, build)])
        for step in record.steps
        if step.torch
    ]
    return [(line, without) for line, without in lines if without]


def graph_of(matrix: Matrix, record: CaseRecord) -> tuple[Graph | None, int]:
    """Return the graph of a case as the newest build saw it that ran this revision of it, and that build."""
    for index in range(len(matrix.reports) - 1, -1, -1):
        report = matrix.reports[index]
        graph = report.graphs.get(record.id)
        own = matrix.records[index].get(record.id)
        if graph is not None and own is not None and own.digest == record.digest:
            return graph, index
    return None, -1


def distinct_outcomes(matrix: Matrix, record: CaseRecord) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """Return the distinct outcomes of a case other than pass, and the column, dtype and number of each occurrence."""
    numbers: dict[str, int] = {}
    distinct: list[dict[str, Any]] = []
    places: list[list[Any]] = []
    for number, column in enumerate(matrix.columns):
        for dtype, target in column.targets.items():
            outcome = matrix.outcomes[column.report].get((record.id, target))
            if outcome is None or outcome.status == "pass":
                continue
            found = outcome_record(outcome, record.line - matrix.records[column.report][record.id].line)
            place = numbers.setdefault(repr(found), len(distinct))
            if place == len(distinct):
                distinct.append(found)
            places.append([number, dtype, place])
    return distinct, places


def outcome_record(outcome: Outcome, lines: int) -> dict[str, Any]:
    """Return an outcome with its lines moved by `lines`, since they differ between suites."""
    record = (outcome.moved(lines) if lines else outcome).record()
    return {name: value for name, value in record.items() if name not in ("case", "target", "seconds", "run")}
