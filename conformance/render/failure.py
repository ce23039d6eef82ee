"""Formats a failing case for a terminal: its rules, its steps with the failing one marked, expected and observed."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from conformance.language.patterns import pattern_problem
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.model.outcome import Outcome
from conformance.model.rule import Rule
from conformance.model.status import TABLE
from conformance.render.text import outcome_line
from conformance.results.fingerprint import fingerprint
from conformance.results.known_issues import KnownIssue
from conformance.results.signature import signature


def failure_text(
    case: Case, target: Target, outcome: Outcome, rules: Mapping[str, Rule], known: Iterable[KnownIssue]
) -> str:
    """Return the text that pytest prints for a failing item; `known` holds the known issues of its case."""
    lines = [
        f"{case.title}  [{target}]",
        f"{TABLE[outcome.status].headline or outcome.status}: {case.file}:{line_in_file(case, outcome)}",
    ]
    for name in case.rules:
        rule = rules[name]
        lines += [f"rule {name} ({rule.level}): {rule.text}", f"     {rule.link}"]
    lines += ["", *(["written out:"] if case.written_out else []), *marked_steps(case, outcome.line), ""]
    if outcome.failures:
        table = [("", "expected", "observed")]
        table += [(f"{each.path or 'step'}:{each.line}", each.expected, each.observed) for each in outcome.failures]
        lines += aligned(table)
    lines += pattern_notes(case, outcome)
    for line, name in outcome.traceback[1:]:
        lines.append(f"  called from {'line ' if case.written_out else case.file + ':'}{line}, {name}")
    if outcome.reason:
        lines.append(outcome.reason)
    if outcome.retry is not None:
        lines.append(f"run once more, alone in a fresh worker: {alone_text(outcome, outcome.retry.alone)}")
    if outcome.unobserved_text:
        lines.append(outcome.unobserved_text)
    for entry in known if TABLE[outcome.status].tells_of_torch else ():
        if outcome.issue is not None:
            lines += [f"known issue: {entry.reason}", *([f"     {entry.link}"] if entry.link else [])]
        else:
            this = f"{fingerprint(outcome)}" + (f": {signature(outcome)}" if entry.signature else "")
            lines.append(f"{entry.place} describes another failure: {entry.manner}; this is {this}")
    if outcome.stderr:
        lines += ["the end of the worker's output:", *(f"  {line}" for line in outcome.stderr.splitlines()[-20:])]
    return "\n".join(lines)


def alone_text(outcome: Outcome, alone: Outcome) -> str:
    """Return what came of a case `alone`, in a line."""
    if fingerprint(alone) == fingerprint(outcome):
        return "the same"
    return f"{alone.status}: {outcome_line(alone)}" if outcome_line(alone) else alone.status


def pattern_notes(case: Case, outcome: Outcome) -> Iterator[str]:
    """Yield a note for each text under `match` that isn't in the message, and that as a pattern would be."""
    expected = {
        alternative["line"]: alternative["match"]
        for step in case.steps
        for key in ("raises", "warns")
        for alternative in step.get(key, ())
    }
    for each in outcome.failures:
        for text in expected.get(each.line, ()) if each.path in ("raises", "warns") else ():
            is_pattern = isinstance(text, str) and text not in each.observed and not pattern_problem(text)
            if is_pattern and re.search(text, each.observed):
                yield f"  match is text, not a pattern; as one it would have held: write {{regex: '{text}'}}"


def line_in_file(case: Case, outcome: Outcome) -> int:
    """Return the line of its file where a case diverged; of a generated case, where its source begins."""
    return case.line if case.written_out or outcome.line is None else outcome.line


def marked_steps(case: Case, failed: int | None) -> list[str]:
    """Return the YAML of the steps with their line numbers, the failing one marked."""
    lines = case.text.splitlines()
    first = next((index for index, line in enumerate(lines) if line.strip().startswith("steps:")), 0)
    numbered = enumerate(lines[first:], case.line + first)
    return [f"{'>' if number == failed else ' '} {number:4} {line}" for number, line in numbered]


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows in columns, or where they are too wide for that, with one value below the other."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    if sum(widths) <= 110:
        return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines = []
    for row in rows[1:]:
        lines += [f"  {row[0]}", *(f"    {name}: {cell}" for name, cell in zip(rows[0][1:], row[1:], strict=True))]
    return lines
