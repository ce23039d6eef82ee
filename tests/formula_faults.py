"""Faults in torch's formulas for derivatives, drawn by chance from torch's own list and planted from outside.

`conformance/worker/formulas` plants them. Nothing is chosen by looking at the cases. Each fault is tried in a fork, on
the cases that go through its formula; it is caught if one of those that pass without it doesn't pass with it. What is
said of the others: that no case goes through the formula, that the fault changed no number in any case (it may be none,
or need a point that the cases lack), that it changed some and no case saw it, or that its fork came to no answer.

    python tests/formula_faults.py --count 300 --seed 1

With `--blind` it says for each kind the formulas in which it would change no number in any case.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from campaigns import explored, in_forks, runnable, say, status_of
from planting import RED
from running import running_engine

from conformance.execution.reach import Reached, specified
from conformance.language.files import LEFT_OUT_FILE, case_files, read_left_out, shipped_cases
from conformance.model.case import Case
from conformance.worker.engine import Engine
from conformance.worker.formulas import (
    ANY,
    CHANGED,
    FORWARD_KINDS,
    KINDS,
    Gradients,
    Kept,
    are_changed,
    functions_of,
    is_floating,
    keywords,
    plant,
    saved,
    watch,
)
from conformance.worker.reach import is_readable, nodes_below

MOST_CASES = 24  # in which a fault changes a number and that are tried for it, those with the fewest formulas first

Traits = dict[str, dict[str, bool]]  # by the name of a formula: what kinds of faults its nodes can have
Effects = dict[str, dict[str, bool]]  # by the name of a formula: the kinds that change a number in some case

UNREACHED, UNCHANGED, UNSEEN, LOST = "no case goes through it", "it changed no number", "unseen", "no answer"
NOT_CAUGHT = (UNREACHED, UNCHANGED, UNSEEN, LOST)  # what is said of a fault in place of the case that caught it


@dataclass(frozen=True)
class Fault:
    node: str  # the name of the formula
    kind: str


def traits(node: Any) -> dict[str, bool]:
    """Return what kinds of faults a node can have."""
    kept = saved(node)
    return {
        ANY: True, "saved": any(map(is_floating, kept.values())), "keywords": bool(keywords(kept)),
        "several": len(node.next_functions) > 1, "broadcast": len(node.next_functions) > 1,
    }  # fmt: skip


def join(known: dict[str, bool], found: dict[str, bool]) -> None:
    known.update({name: known.get(name, False) or there for name, there in found.items()})


def effects_in(kept: Kept, gradients: Gradients, given: Gradients) -> dict[str, bool]:
    """Return the kinds of faults that would change a number here."""
    if not all(each is None or is_readable(each) for each in (*gradients, *given)):
        return {}
    return {name: True for name, (_, change) in KINDS.items() if are_changed(gradients, change(kept, gradients, given))}


class Campaign:
    """The cases that pass, and the formulas that each goes through."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = {case.id: case for case in cases}
        self.traits: Traits = {}
        self.effects: Effects = {}
        self.nodes: dict[str, list[str]] = {}
        for told in explored(list(self.cases), self.explore):
            self.nodes.update(told["nodes"])
            for name, found in told["traits"].items():
                join(self.traits.setdefault(name, {}), found)
            for name, found in told["effects"].items():
                join(self.effects.setdefault(name, {}), found)

    def leave_out(self, ids: Set[str]) -> None:
        """Try these cases no more; what is drawn stays the same."""
        self.nodes = {case: nodes for case, nodes in self.nodes.items() if case not in ids}

    def explore(self, ids: Sequence[str]) -> Any:
        """Run cases, and return the nodes of each that passes, what these can have, and what would change a number."""
        current: set[str] = set()
        found: Traits = {}
        effects: Effects = {}

        def look(roots: Any) -> None:
            for node in nodes_below(roots):
                name = node.name()
                current.add(name)
                join(found.setdefault(name, {}), traits(node))
                own = effects.setdefault(name, dict.fromkeys(KINDS, False))
                if not all(own.values()) and "fault" not in node.metadata:
                    node.metadata["fault"] = True
                    kept = saved(node)
                    node.register_hook(lambda *gradients, kept=kept, own=own: join(own, effects_in(kept, *gradients)))

        watch(look)
        nodes = {}
        with running_engine() as engine:
            for case in ids:
                current.clear()
                if status_of(engine, self.cases[case]) in ("pass", "known"):  # a fault makes it fail otherwise
                    nodes[case] = sorted(current)
        return {"nodes": nodes, "traits": found, "effects": effects}

    def candidates(self, fault: Fault) -> list[str]:
        """Return the cases to try, those with the fewest formulas first."""
        through = [case for case, nodes in self.nodes.items() if fault.node in nodes]
        return sorted(through, key=lambda case: len(self.nodes[case]))

    def caught_by(self, fault: Fault) -> str:
        """Plant a fault and return the first case that is red, or what else is to be said. For a fork."""
        plant(fault.node, fault.kind)
        candidates = self.candidates(fault)
        if not candidates:
            return UNREACHED
        changing = 0
        with running_engine() as engine:
            for case in candidates:
                CHANGED.clear()
                if self.is_red(engine, case):
                    return case
                changing += bool(CHANGED)
                if changing == MOST_CASES:
                    break
        return UNSEEN if changing else UNCHANGED

    def is_red(self, engine: Engine, case: str) -> bool:
        return status_of(engine, self.cases[case]) in RED

    def draw(self, reached: Reached, count: int, seed: int) -> list[Fault]:
        """Draw faults by chance: each formula that the CPU has is as likely, and each kind that it can have."""
        chance = random.Random(seed)
        nodes = sorted(reached.nodes - reached.elsewhere.keys())
        drawn: dict[Fault, None] = {}
        while len(drawn) < count:
            node = chance.choice(nodes)
            has = self.traits.get(node, {ANY: True})
            kinds = [kind for kind, (needed, _) in KINDS.items() if has.get(needed)]
            effects = self.effects.get(node, {})
            if effects.get("added") and not effects["sign"]:
                kinds = ["added"]  # what is 0 everywhere has no sign
            elif "BackwardBackward" in node:
                kinds.remove("second order")  # that of the formula would be the third, which nothing asks for
            elif node in reached.with_forward and functions_of(node):
                kinds += FORWARD_KINDS
            drawn[Fault(node, chance.choice(kinds))] = None
        return list(drawn)


def main() -> None:
    parser = argparse.ArgumentParser(description="Plants faults in formulas, and says which are caught.")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="try only the cases that `pytest --quick` runs")
    parser.add_argument("--blind", action="store_true", help="say which kinds would change no number")
    options = parser.parse_args()
    reached = specified(Path(torch.__file__).parent)
    if reached is None:
        sys.exit("this torch does not bring derivatives.yaml")
    campaign = Campaign(runnable(case_files([shipped_cases()])))
    if options.quick:
        campaign.leave_out(read_left_out(shipped_cases() / LEFT_OUT_FILE, LEFT_OUT_FILE))
    if options.blind:
        for kind, (needed, _) in KINDS.items():
            named = [node for node, own in campaign.effects.items() if campaign.traits[node][needed] and not own[kind]]
            say(f"{kind}: {', '.join(sorted(named))}")
        return
    faults = campaign.draw(reached, options.count, options.seed)
    found = Counter((fault.kind, said) for fault, said in told(campaign, faults))
    for kind in sorted({kind for kind, _ in found}):
        own = {said: count for (each, said), count in found.items() if each == kind}
        say(f"{kind}: {', '.join(f'{said} {count}' for said, count in sorted(own.items()))}")
    total = Counter(said for _, said in found.elements())
    say(f"of {sum(total.values())}: {', '.join(f'{said} {count}' for said, count in total.most_common())}")


def told(campaign: Campaign, faults: Sequence[Fault]) -> Iterator[tuple[Fault, str]]:
    """Try faults, say what becomes of each, and yield it, all cases as "caught"."""
    for fault, answer in zip(faults, in_forks(faults, campaign.caught_by), strict=True):
        said = LOST if answer is None else answer if answer in NOT_CAUGHT else "caught"
        say(f"{said}: {fault.node}, {fault.kind}" + (f"; by {answer}" if said == "caught" else ""))
        yield fault, said


if __name__ == "__main__":
    main()
