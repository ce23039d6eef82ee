"""Finds out which of torch's formulas for derivatives the cases use: backward ones by their nodes, and forward ones.

torch brings `derivatives.yaml`, from which its nodes were generated; they are named here as its generator names them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from conformance.execution.program import program_of, why_unsupported
from conformance.execution.workers import Workers
from conformance.language.operations import is_of_operation
from conformance.model.build import Target
from conformance.model.case import Case

FORWARD = "wrong['forward mode']"  # what a case of an operation looks at if it could be differentiated forward
SPECIFICATION = "torchgen/packaged/autograd/derivatives.yaml"  # beside torch
NOT_INPUTS = {"name", "dispatch", "output_differentiability", "output_differentiability_conditions"}
ELSEWHERE = re.compile(
    "cudnn|miopen|mps|mkldnn|cuda|fusedmoving|^(?:efficient|flash)attentionbackward|testautograd", re.IGNORECASE
)  # nodes of kernels that only another device has, and of PyTorch's own tests


@dataclass
class Reached:
    """The names of torch's nodes, those that have a formula for forward mode, and which of both the cases use."""

    nodes: frozenset[str]
    with_forward: frozenset[str]
    backward: set[str] = field(default_factory=set)
    forward: set[str] = field(default_factory=set)

    @property
    def elsewhere(self) -> frozenset[str]:
        """The nodes that no case on the CPU can have."""
        return frozenset(name for name in self.nodes - self.backward if ELSEWHERE.search(name))


def specified(torch: Path) -> Reached | None:
    """Return the nodes of the torch at a place, or None where it doesn't bring its specification."""
    try:
        entries = yaml.load((torch.parent / SPECIFICATION).read_bytes(), yaml.CSafeLoader)
    except OSError:
        return None
    nodes = nodes_of(entries)
    return Reached(frozenset(nodes), frozenset(name for name, has_forward in nodes.items() if has_forward))


def nodes_of(entries: Iterable[dict[str, Any]]) -> dict[str, bool]:
    """Return the nodes of entries in `derivatives.yaml`, and whether each has a formula for forward mode."""
    counts: Counter[str] = Counter()
    found = {}
    for entry in entries:
        operation = re.split(r"[.(]", entry["name"], maxsplit=1)[0].removesuffix("_forward")
        for key, formulas in entry.get("dispatch", {"Default": entry}).items():
            own = {name: formula for name, formula in formulas.items() if name not in NOT_INPUTS}
            backward = [formula for name, formula in own.items() if not name.startswith("result")]
            if all(formula == "non_differentiable" for formula in backward):
                continue
            words = "".join(word.title() for word in operation.split("_"))
            prefix = f"{words}Backward{'' if key == 'Default' else key}"
            found[f"{prefix}{counts[prefix]}"] = len(own) > len(backward)
            counts[prefix] += 1
    return found


def add_reached(reached: Reached, cases: Sequence[Case], target: Target, workers: Workers, torch: str) -> None:
    """Run cases on the CPU, and add what they reach."""
    runnable = [case for case in cases if not why_unsupported(case, target, torch)]
    for number, case in enumerate(runnable):
        workers.request(number, {**program_of(case, target, torch), "reach": True})
    for number, case in enumerate(runnable):
        answer = workers.outcome(number)
        nodes = reached.nodes.intersection(answer.get("nodes", ()))
        reached.backward |= nodes
        hidden = [each["path"] for each in answer.get("unobserved", ())]
        if is_of_operation(case) and FORWARD not in hidden:
            reached.forward |= nodes & reached.with_forward
