"""What the page of one case shows: its text, its steps, its graph and what each build made of it. Plain data."""

from __future__ import annotations

from typing import Any

from conformance.model.case import Case
from conformance.model.graph import Graph
from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord
from conformance.render.page import layout as picture
from conformance.render.page.matrix import Matrix, is_fulfilled
from conformance.render.script.script import Script


def details_of(matrix: Matrix, record: CaseRecord, parsed: Case | None, script: Script | None) -> dict[str, Any]:
    """Return the details of a case; one that isn't valid is not `parsed`, and has no script."""
    graph, origin = graph_of(matrix, record)
    drawing = picture.drawing_of(graph) if graph is not None else None
    outcomes, places = outcomes_of(matrix, record)
    return {
        "why": record.why,
        "source": record.source,
        "yaml": record.yaml,
        "left_out": left_out(matrix, parsed),
        "script": None if script is None else [script.parts, script.body],
        "graph": None
        if drawing is None
        else {**drawing, "build": origin, "target": graph.target if graph is not None else ""},
        "outcomes": outcomes,
        "places": places,
    }


def left_out(matrix: Matrix, parsed: Case | None) -> list[tuple[int, list[int]]]:
    """Return the lines of steps that a condition leaves out, counted from 0 in the text, and the builds that do so."""
    if parsed is None:
        return []
    result = []
    for step in parsed.steps:
        if "torch" in step:
            without = [i for i, report in enumerate(matrix.reports) if not is_fulfilled(step["torch"], report.build)]
            if without:
                result.append((step["line"] - parsed.line, without))
    return result


def graph_of(matrix: Matrix, record: CaseRecord) -> tuple[Graph | None, int]:
    """Return the graph of a case as the newest build saw it that ran this revision of it, and that build."""
    for index in range(len(matrix.reports) - 1, -1, -1):
        report = matrix.reports[index]
        graph = report.graphs.get(record.id)
        own = matrix.records[index].get(record.id)
        if graph is not None and own is not None and own.digest == record.digest:
            return graph, index
    return None, -1


def outcomes_of(matrix: Matrix, record: CaseRecord) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """Return the different outcomes of a case that say more than their status, and where each came about."""
    different: dict[str, int] = {}
    shown: list[dict[str, Any]] = []
    places: list[list[Any]] = []
    for number, column in enumerate(matrix.columns):
        for dtype, target in column.targets.items():
            outcome = matrix.outcomes[column.report].get((record.id, target))
            if outcome is None or outcome.status == "pass":
                continue
            said = outcome_shown(outcome, record.line - matrix.records[column.report][record.id].line)
            place = different.setdefault(repr(said), len(shown))
            if place == len(shown):
                shown.append(said)
            places.append([number, dtype, place])
    return shown, places


def outcome_shown(outcome: Outcome, lines: int) -> dict[str, Any]:
    """Return what an outcome says, its lines moved by `lines`, since another suite may have the case elsewhere."""
    said = outcome.record()
    for key in ("case", "target", "seconds"):
        said.pop(key, None)
    if lines:
        if outcome.line is not None:
            said["line"] = outcome.line + lines
        for failure in said.get("failures", ()):
            failure["line"] += lines
        if outcome.traceback:
            said["traceback"] = [(line + lines, name) for line, name in outcome.traceback]
    return said
