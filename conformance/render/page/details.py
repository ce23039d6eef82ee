"""The details of one case as plain data: its text, its steps, its graph and its outcomes on each build."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from conformance.model.build import target_of
from conformance.model.case import Case
from conformance.model.graph import Graph
from conformance.model.report import CaseRecord
from conformance.render.page.layout import drawing_of
from conformance.render.page.matrix import Matrix
from conformance.render.script.reproduction import reproduction_of
from conformance.render.script.script import Script
from conformance.results.diff import is_fulfilled, outcome_record
from conformance.results.store import encoded

Part = TypeVar("Part")
Keeper = Callable[[str, Callable[[], Part]], Part]


def made_anew(_: str, make: Callable[[], Part]) -> Part:
    return make()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keepers:
    """What returns a drawing or a part of the page for all that it is made of, by making it or from an earlier page."""

    drawing: Keeper[Any] = made_anew
    part: Keeper[str] = made_anew


NOTHING_KEPT = Keepers()


def details_of(
    matrix: Matrix,
    record: CaseRecord,
    script: Script | None,
    case: Case | None = None,
    kept: Keepers = NOTHING_KEPT,
) -> dict[str, Any]:
    """Return the details of a case; `script` and `case` are None where the suite has none or another revision."""
    graph, origin = graph_of(matrix, record)
    drawing = kept.drawing(encoded(graph), partial(drawing_of, graph)) if graph is not None else None
    outcomes, places = distinct_outcomes(matrix, record)
    return {
        "why": record.why, "source": record.source, "yaml": record.yaml, "steps": step_lines(record),
        "left_out": left_out(matrix, record), "script": None if script is None else [script.parts, script.body],
        "graph": drawing and {**drawing, "build": origin, "target": graph.target if graph is not None else ""},
        "outcomes": outcomes, "places": places, "reproductions": reproductions_of(matrix, record, case, places),
    }  # fmt: skip


def inputs_of(matrix: Matrix, record: CaseRecord, script: Script | None) -> list[Any]:
    """Return all that the details of a case depend on, but for the builds' versions of torch."""
    return [record, script, graph_of(matrix, record), distinct_outcomes(matrix, record)]


def step_lines(record: CaseRecord) -> list[int]:
    """Return the lines of the text at which steps begin, counted from 0; none where several steps share a line."""
    lines = [step.line - record.line for step in record.steps]
    within = range(record.yaml.count("\n") + 1)
    return lines if lines == sorted(set(lines)) and all(line in within for line in lines) else []


def left_out(matrix: Matrix, record: CaseRecord) -> list[tuple[int, list[int]]]:
    """Return the lines, from 0 in the text, of steps that conditions leave out on builds, and those builds."""
    builds = [report.build for report in matrix.reports]
    lines = [
        (step.line - record.line, [at for at, build in enumerate(builds) if not is_fulfilled(step.torch, build.torch)])
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
    """Return the distinct outcomes of a case but mere passes, and the column, dtype and number of each occurrence."""
    numbers: dict[str, int] = {}
    distinct: list[dict[str, Any]] = []
    places: list[list[Any]] = []
    for number, dtype, outcome in matrix.noted.get(record.id, ()):
        own = matrix.records[matrix.columns[number].report][record.id]
        lines = record.line - own.line  # it may stand elsewhere in the file
        found = outcome_record(outcome.moved(lines) if lines else outcome)
        place = numbers.setdefault(repr(found), len(distinct))
        if place == len(distinct):
            distinct.append(found)
        places.append([number, dtype, place])
    return distinct, places


def reproductions_of(matrix: Matrix, record: CaseRecord, case: Case | None, places: list[list[Any]]) -> dict[str, str]:
    """Return by the number of an outcome what reproduces it where it was first seen, if anything does."""
    if case is None:
        return {}
    found: dict[str, str] = {}
    first = {place: (number, dtype) for number, dtype, place in reversed(places)}
    for place, (number, dtype) in first.items():
        column = matrix.columns[number]
        outcome = matrix.outcomes[column.report][record.id, column.targets[dtype]]
        try:
            target = target_of(column.targets[dtype])
        except ValueError:  # not a name of this suite
            continue
        text = reproduction_of(case, outcome, matrix.reports[column.report].build.torch, target)
        if text is not None:
            found[str(place)] = text
    return found
