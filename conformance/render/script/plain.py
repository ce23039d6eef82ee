"""Writes a whole case as plain torch, to be read: its statements, and its expectations as assertions."""

from collections.abc import Iterator
from typing import Any

from conformance.execution.program import chosen
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.model.outcome import Failure
from conformance.render.expected import applies, raised_text, value_text
from conformance.render.script.reproduction import NotPlain, asserted, head, looked_at, near_of, raising
from conformance.render.script.script import comment
from conformance.render.script.steps import TOLERANCES

Step = dict[str, Any]
CPU = Target(device="cpu", dtype="float32")


def plain_text(case: Case, torch: str) -> str:
    """Return what a case does and expects with a release of torch.

    What only the suite can check is a comment. Functions of the suite that a case uses are named at the top.
    """
    body = body_of(case, torch)
    try:
        first = "\n".join(head(body, CPU))
    except NotPlain:
        first = comment("uses functions of the suite; the page has a script that brings them along")
    return f"{first}\n\n{body}\n"


def body_of(case: Case, torch: str) -> str:
    """Return the statements and assertions of a case alone, without the imports and functions that they need."""
    lines = [line for step in case.steps if applies(step, torch) for line in lines_of(chosen(step, torch))]
    return "\n".join(lines)


def lines_of(step: Step) -> Iterator[str]:
    if "do" in step:
        yield from statements(step)
        return
    for entry in step["expect"]:
        checks = [(name, value) for name, value, _ in entry["checks"] if name not in TOLERANCES]
        evaluated, subject = looked_at(entry["subject"], len(checks))
        yield from evaluated
        for name, value in checks:
            try:
                yield from list(asserted(subject, name, value, near_of(entry["checks"])))
            except NotPlain:
                path = entry["subject"] if name in ("value", "log") else f"{entry['subject']}.{name}"
                yield comment(f"expected: {path}: {value_text(value)}")


def statements(step: Step) -> Iterator[str]:
    expected = step.get("raises")
    if expected is not None and expected["type"] is not None:
        yield from raising(step, Failure(line=1, path="raises", expected="", observed=""))
    else:
        yield step["do"].rstrip()
    for key in ("raises", "warns"):
        if key in step and (key == "warns" or expected is None or expected["type"] is None):
            yield comment(f"{key}: {raised_text(step[key])}")
