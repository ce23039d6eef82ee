"""The badge of a report, as JSON for an endpoint badge of shields.io: counts, never a percentage."""

from collections import Counter
from typing import Any

from conformance.model.report import Report
from conformance.model.status import RED, STATUSES, TABLE, WORST_FIRST
from conformance.render.text import count_words
from conformance.render.visible import line_of

RED_FIRST = sorted(STATUSES, key=lambda status: status not in RED)
LABEL, MESSAGE = 60, 200  # characters; a badge is one line of an image


def badge_of(report: Report, label: str | None = None) -> dict[str, Any]:
    """Return the badge of `report`, ready for JSON."""
    counts = report.counts()
    statuses: Counter[str] = sum(counts.values(), Counter())
    is_red = any(statuses[status] for status in RED)
    build = report.build
    own = [" ".join(filter(None, (each.name, each.version))) for each in build.backends]
    wanted = label if label is not None else f"autograd on {' + '.join([f'torch {build.torch}', *own])}"
    message = line_of(message_of(report, counts), MESSAGE)
    color = color_of(report, statuses)
    return {"schemaVersion": 1, "label": line_of(wanted, LABEL), "message": message, "color": color, "isError": is_red}


def message_of(report: Report, counts: dict[str, Counter[str]]) -> str:
    if report.footer is None:
        return "incomplete"
    if not counts:
        return "no cases"
    runs = f" ({len(report.runs)} runs)" if report.header.partial_runs else ""
    words = [count_words(counted, RED_FIRST) for counted in counts.values()]
    if len(words) == 1:
        return words[0] + runs
    return " · ".join(f"{name} {text}" for name, text in zip(short_names(list(counts)), words, strict=True)) + runs


def short_names(targets: list[str]) -> list[str]:
    """Return the devices of some targets, or the whole targets where their dtypes differ."""
    devices = [target.rpartition("-")[0] for target in targets]
    dtypes = {target.rpartition("-")[2] for target in targets}
    return devices if len(dtypes) == 1 and all(devices) else targets


def color_of(report: Report, statuses: Counter[str]) -> str:
    colors = [TABLE[status].badge for status in WORST_FIRST if statuses[status]]
    if not any(statuses[status] for status in RED) and (report.footer is None or not statuses["pass"]):
        return "lightgrey"
    return next(filter(None, colors))
