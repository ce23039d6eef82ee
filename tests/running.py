"""Runs the text of cases in the current process, for the tests of the case language."""

from __future__ import annotations

import gc
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from samples import build

from conformance.execution.program import program_of
from conformance.language import operations
from conformance.language.files import shipped_cases
from conformance.language.reader import parse_cases
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.model.outcome import Outcome, outcome_of
from conformance.model.rule import Rule
from conformance.results.known_issues import KnownIssues, load_known_issues
from conformance.worker.engine import Engine

RULES = {
    name: Rule(id=name, text="A rule.", topic="T", level="observed", link="https://example.org", since="1.13")
    for name in ("a.b", *operations.RULES)
}
HEAD = "topic: T\ncases:\n  - id: c\n    title: t\n    why: w\n    rules: [a.b]\n    steps:\n"
FIRST = HEAD.count("\n") + 1  # the line of a case's first step


@cache
def known_issues() -> KnownIssues:
    """Return the known issues of the shipped cases."""
    place = shipped_cases()
    return load_known_issues(place / "known-issues.yaml", "known-issues.yaml", place)


def judged(case: Case, found: dict[str, Any], target: Target) -> Outcome:
    """Return what a worker's answer about a shipped case counts as with the torch that is installed."""
    answer = {key: value for key, value in found.items() if key not in ("n", "must_restart")}
    return known_issues().judge(case.id, target, build(torch=str(torch.__version__)), outcome_of(answer))


def spoils_its_process(case: Case, target: Target) -> bool:
    """Whether a shipped case is known to crash or to hang with the torch that is installed, or to fail when traced.

    A compiled or exported function that fails may leave modes in force, after which a worker is not used again.
    """
    entries = known_issues().about(case.id, target, build(torch=str(torch.__version__)))
    needs = {name for name, _ in case.needs}
    is_traced = any(name in ("compiled", "exported") or "_higher_order_ops" in name for name in needs)
    return any(is_traced or entry.status in ("crash", "timeout") for entry in entries)


@contextmanager
def running_engine() -> Iterator[Engine]:
    """Give an engine of this process, and put back what it changes in the process when it is done with."""
    threads, warn_always, collects = torch.get_num_threads(), torch.is_warn_always_enabled(), gc.isenabled()
    dtype, generator = torch.get_default_dtype(), torch.get_rng_state()
    precise = (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)
    try:
        yield Engine()
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = precise
        torch.set_num_threads(threads)
        torch.set_warn_always(warn_always)
        torch.set_default_dtype(dtype)
        torch.set_rng_state(generator)
        gc.unfreeze()
        if collects:
            gc.enable()


def case_of(steps: str) -> Case:
    """Return the case with these steps, which are YAML; the first stands in the line FIRST of `t.yaml`."""
    text = HEAD + textwrap.indent(textwrap.dedent(steps).strip("\n") + "\n", " " * 6)
    return parse_cases(text, "t.yaml", RULES)[0]


def request_of(case: Case, device: str = "cpu", dtype: str = "float32") -> dict[str, Any]:
    return {"n": 1, **program_of(case, Target(device=device, dtype=dtype), torch.__version__)}


def outcome_of_steps(engine: Engine, steps: str, device: str = "cpu", dtype: str = "float32") -> dict[str, Any]:
    """Run the case with these steps, and return its outcome."""
    return engine.run(request_of(case_of(steps), device, dtype))
