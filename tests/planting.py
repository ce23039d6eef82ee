"""Plants a fault into torch from outside of the suite, and runs cases with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch
from places import ROOT
from running import judged
from scripts import run_script

from conformance.execution.faults import BEFORE
from conformance.execution.program import program_of, why_unsupported
from conformance.model.build import Target
from conformance.model.case import Case

RED = ("fail", "error", "crash", "timeout")
# What a worker does, without what it needs to be one: it is replaced where a case leaves something behind.
WORKER = """\
import json, sys
sys.path.insert(0, {root!r})
from conformance.worker.engine import Engine

engine, answers = Engine(), []
for program in json.loads({programs!r}):
    answers.append(engine.run(program))
    if "spent" in answers[-1]:
        break
print("\\nanswers", json.dumps(answers))
"""
TARGET = Target(device="cpu", dtype="float32")


def red_among(cases: Sequence[Case], planted: str) -> dict[str, frozenset[str]]:
    """Return those of cases that are red with a fault, and the rules that each cites.

    The fault is planted in a process of its own before the suite sees torch, as `sitecustomize` does it in a worker.
    """
    here = [case for case in cases if not why_unsupported(case, TARGET, torch.__version__)]
    answers: list[dict[str, Any]] = []
    while len(answers) < len(here):
        programs = json.dumps(
            [{"n": 0, **program_of(case, TARGET, torch.__version__)} for case in here[len(answers) :]]
        )
        ran = run_script(WORKER.format(root=str(ROOT), programs=programs), before=BEFORE + planted)
        assert ran.status == 0, ran.output
        answers += json.loads(ran.output.rpartition("\nanswers ")[2])
    red = [judged(case, found, TARGET).status in RED for case, found in zip(here, answers, strict=True)]
    return {case.id: frozenset(case.rules) for case, is_red in zip(here, red, strict=True) if is_red}
