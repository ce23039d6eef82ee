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
import json
import os
import random
import select
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from running import judged, running_engine

from conformance.execution.program import program_of, why_unsupported
from conformance.execution.reach import Reached, specified
from conformance.language.files import LEFT_OUT_FILE, case_files, load_cases, read_left_out, shipped_cases
from conformance.model.build import Target
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

TARGET = Target(device="cpu", dtype="float32")
MOST_CASES = 24  # in which a fault changes a number and that are tried for it, those with the fewest formulas first
EXPLORERS = 64  # forks that explore the cases
SECONDS = 180.0  # that a fork may take

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
        for told in self.explored(list(self.cases)):
            self.nodes.update(told["nodes"])
            for name, found in told["traits"].items():
                join(self.traits.setdefault(name, {}), found)
            for name, found in told["effects"].items():
                join(self.effects.setdefault(name, {}), found)

    def leave_out(self, ids: Set[str]) -> None:
        """Try these cases no more; what is drawn stays the same."""
        self.nodes = {case: nodes for case, nodes in self.nodes.items() if case not in ids}

    def explored(self, ids: Sequence[str]) -> Iterator[Any]:
        """Yield what forks find out about cases; those with a case that crashes are halved until it is alone."""
        parts = [list(ids[place::EXPLORERS]) for place in range(min(EXPLORERS, len(ids)))]
        for part, told in zip(parts, in_forks(parts, self.explore), strict=True):
            if told is not None:
                yield told
            elif len(part) > 1:
                yield from self.explored(part)

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
                if self.status(engine, self.cases[case]) in ("pass", "known"):  # a fault makes it fail otherwise
                    nodes[case] = sorted(current)
        return {"nodes": nodes, "traits": found, "effects": effects}

    def status(self, engine: Engine, case: Case) -> str:
        answer = engine.run({"n": 0, **program_of(case, TARGET, torch.__version__)})
        return judged(case, answer, TARGET).status

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
        return self.status(engine, self.cases[case]) in ("fail", "error", "crash", "timeout")

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


def in_forks(arguments: Sequence[Any], call: Callable[[Any], Any], most: int = 2) -> Iterator[Any]:
    """Yield what a call returns for each argument, or None if it crashes or takes too long, each in a fork."""
    running: dict[int, tuple[int, int, float, list[bytes]]] = {}  # by descriptor: place, process, start, what came
    found: dict[int, Any] = {}
    waiting, told = list(enumerate(arguments)), 0
    while told < len(arguments):
        while waiting and len(running) < most:
            place, argument = waiting.pop(0)
            reading, writing = os.pipe()
            process = os.fork()
            if not process:
                os.close(reading)
                try:
                    with os.fdopen(writing, "w") as answer:
                        json.dump(call(argument), answer)
                finally:  # also after an error: what the parent has to do is not for a fork
                    os._exit(0)
            os.close(writing)
            running[reading] = (place, process, time.monotonic(), [])
        for reading in select.select(list(running), [], [], 0.5)[0]:
            running[reading][3].append(os.read(reading, 1 << 16))
        for reading, (place, process, start, parts) in list(running.items()):
            is_late = time.monotonic() - start > SECONDS
            if is_late or (parts and not parts[-1]):
                if is_late:
                    os.kill(process, 9)
                os.waitpid(process, 0)
                os.close(reading)
                del running[reading]
                try:
                    found[place] = json.loads(b"".join(parts))
                except ValueError:
                    found[place] = None
        while told in found:
            yield found[told]
            told += 1


def runnable(files: Iterable[Path]) -> list[Case]:
    """Return the cases of these files that a run has with the installed torch."""
    cases = [case for case in load_cases(files) if not case.is_covered]
    return [case for case in cases if not why_unsupported(case, TARGET, torch.__version__)]


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


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
