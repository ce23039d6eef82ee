"""Words a failing case for a terminal: what it is about, where it diverged, how to run it alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from conformance.model.build import Target
from conformance.model.case import Case
from conformance.model.outcome import Outcome
from conformance.model.rule import Rule
from conformance.model.status import TABLE
from conformance.results.fingerprint import fingerprint
from conformance.results.known_issues import KnownIssue


def failure_text(
    case: Case, target: Target, outcome: Outcome, rules: Mapping[str, Rule], known: Iterable[KnownIssue]
) -> str:
    """Return the text that stands below a failing item; `known` holds the known issues that are about it."""
    lines = [
        f"{case.title}  [{target}]",
        f"{TABLE[outcome.status].headline or outcome.status}: {case.file}:{line_in_file(case, outcome)}",
    ]
    for name in case.rules:
        rule = rules[name]
        lines += [f"rule {name} ({rule.level}): {rule.text}", f"     {rule.link}"]
    lines += ["", *(["written out:"] if case.written_out else []), *steps_shown(case, outcome.line), ""]
    if outcome.failures:
        table = [("", "expected", "observed")]
        table += [
            (f"{failure.path or 'step'}:{failure.line}", failure.expected, failure.observed)
            for failure in outcome.failures
        ]
        lines += columns(table)
    for line, name in outcome.traceback[1:]:
        lines.append(f"  called in {'line ' if case.written_out else case.file + ':'}{line}, {name}")
    if outcome.reason:
        lines.append(outcome.reason)
    for entry in known if TABLE[outcome.status].tells_of_torch else ():
        if outcome.issue is not None:
            lines += [f"known issue: {entry.reason}", *([f"     {entry.link}"] if entry.link else [])]
        else:
            lines.append(f"{entry.place} knows of another failure: {entry.failure}, and this is {fingerprint(outcome)}")
    if outcome.stderr:
        lines += ["the last that the worker wrote:", *(f"  {line}" for line in outcome.stderr.splitlines()[-20:])]
    return "\n".join(lines)


def line_in_file(case: Case, outcome: Outcome) -> int:
    """Return the line of its file where a case diverged; of one that is written out, where it begins."""
    return case.line if case.written_out or outcome.line is None else outcome.line


def steps_shown(case: Case, failed: int | None) -> list[str]:
    """Return the YAML of the steps with their line numbers, the failing one marked."""
    lines = case.text.splitlines()
    first = next((index for index, line in enumerate(lines) if line.strip().startswith("steps:")), 0)
    shown = []
    for index in range(first, len(lines)):
        number = case.line + index
        shown.append(f"{'>' if number == failed else ' '} {number:4} {lines[index]}")
    return shown


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lay rows out side by side; where they are too wide for that, one value below the other."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    if sum(widths) <= 110:
        return [
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
    lines = []
    for row in rows[1:]:
        lines += [f"  {row[0]}", *(f"    {name}: {cell}" for name, cell in zip(rows[0][1:], row[1:], strict=True))]
    return lines
