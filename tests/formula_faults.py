"""Faults in torch's formulas for derivatives, drawn by chance from torch's own list and planted from outside.

A fault is a kind (a sign, a factor, a lane, …) in one formula of `derivatives.yaml`. One in a backward formula changes
what the node returns; one in a forward formula changes the tangents that the function of that name gives. Nothing is
chosen by looking at the cases. Each fault is tried in a fork, on the cases that go through its formula;
it is caught if one of those that pass without it doesn't pass with it. What is said of the others: that no case goes
through the formula, that the fault changed no number in any case (it may be none, or need a point that the cases lack),
that it changed some and no case saw it, or that its fork came to no answer.

    python tests/formula_faults.py --count 300 --seed 1

With `--blind` it says for each kind the formulas in which it would change no number in any case.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
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
from conformance.worker.reach import is_readable, nodes_below
from conformance.worker.watched import Watched

TARGET = Target(device="cpu", dtype="float32")
MOST_CASES = 24  # in which a fault changes a number and that are tried for it, those with the fewest formulas first
EXPLORERS = 64  # forks that explore the cases
SECONDS = 180.0  # that a fork may take
CHANGED: list[bool] = []  # not empty if a planted fault has changed a number in this process

Gradients = tuple[Any, ...]
Kept = dict[str, Any]  # what a node has saved, by name
Traits = dict[str, dict[str, bool]]  # by the name of a formula: what kinds of faults its nodes can have
Effects = dict[str, dict[str, bool]]  # by the name of a formula: the kinds that change a number in some case


def first_part(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Kept, Gradients, Gradients], Gradients]:
    """Return a kind that changes one of the gradients that a node returns, whatever the node has saved."""

    def kind(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:  # noqa: ARG001 - as all kinds
        place = next(telling(gradients), None)
        return gradients if place is None else replaced(gradients, place, change(gradients[place]))

    return kind


def telling(gradients: Gradients) -> Iterator[int]:
    """Yield the places of gradients that are not 0, as some always are, from the last to the first."""
    for place, each in reversed([*enumerate(gradients)]):
        if each is not None and (not is_readable(each) or bool(each.any())):
            yield place


def replaced(gradients: Gradients, place: int, new: torch.Tensor) -> Gradients:
    return (*gradients[:place], new, *gradients[place + 1 :])


def one_lane(gradient: torch.Tensor) -> torch.Tensor:
    weights = torch.ones(gradient.numel(), dtype=gradient.dtype, device=gradient.device)
    weights[-1:] = 1.125
    return gradient * weights.reshape(gradient.shape)


def where_saved(chosen: Callable[[torch.Tensor], torch.Tensor], factor: float) -> Any:
    """Return a kind that is wrong where numbers that the node has saved are so."""

    def kind(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:  # noqa: ARG001 - as all kinds
        tensors = [each for each in kept.values() if isinstance(each, torch.Tensor)]
        for place in telling(gradients):
            alike = [tensor for tensor in tensors if gradients[place].shape == tensor.shape]
            for tensor in alike[-1:]:  # `_saved_self` behind `_saved_grad_output`
                wrong = torch.where(chosen(tensor.detach().abs()), factor, 1.0).to(gradients[place].dtype)
                return replaced(gradients, place, gradients[place] * wrong)
        return gradients

    return kind


def saved(node: Any) -> Kept:
    """Return what a node has saved and not yet freed, by name."""
    found = {}
    for name in dir(node):
        if name.startswith("_saved_"):
            with contextlib.suppress(RuntimeError):
                found[name] = getattr(node, name)
    return found


def is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def keywords(kept: Kept) -> Kept:
    """Return what a node has saved beside tensors."""
    return {
        name: value for name, value in kept.items()
        if isinstance(value, (bool, int, float, str)) and "sizes" not in name and "size" not in name
    }  # fmt: skip


def for_keyword(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:
    """Be wrong where the last argument that the node has saved is true, or not 0."""
    values = list(keywords(kept).values())
    return first_part(lambda each: each * 2)(kept, gradients, given) if values and bool(values[-1]) else gradients


def for_layout(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:
    is_odd = any(each is not None and not each.is_contiguous() for each in given)
    return first_part(lambda each: each * 2)(kept, gradients, given) if is_odd else gradients


def for_subset(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:
    return first_part(lambda each: each * 2)(kept, gradients, given) if None in gradients else gradients


def without_second(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.detach() if torch.is_grad_enabled() else gradient


def added(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:  # noqa: ARG001 - as all kinds
    """Add to a gradient, which may be 0 everywhere."""
    places = [place for place, each in enumerate(gradients) if each is not None]
    return replaced(gradients, places[-1], gradients[places[-1]] + 0.125) if places else gradients


def unreduced(kept: Kept, gradients: Gradients, given: Gradients) -> Gradients:  # noqa: ARG001 - as all kinds
    """Take the first of what should be summed over."""
    whole = next((each for each in given if each is not None), None)
    for place, each in enumerate(gradients):
        if whole is not None and each is not None and each.numel() < whole.numel():
            return replaced(gradients, place, each * (each.numel() / whole.numel()))
    return gradients


ANY, READ = "any node", ("saved", "keywords")
UNREACHED, UNCHANGED, UNSEEN, LOST = "no case goes through it", "it changed no number", "unseen", "no answer"
NOT_CAUGHT = (UNREACHED, UNCHANGED, UNSEEN, LOST)  # what is said of a fault in place of the case that caught it
KINDS: dict[str, tuple[str, Any]] = {  # what a node must have for it, and what it does
    "sign": (ANY, first_part(lambda each: -each)),
    "factor": (ANY, first_part(lambda each: each * 1.01)),
    "missing term": (ANY, first_part(torch.zeros_like)),
    "one lane": (ANY, first_part(one_lane)),
    "size one": (ANY, first_part(lambda each: each * 2 if 1 in each.shape else each)),
    "float32": (ANY, first_part(lambda each: each * 1.01 if each.dtype is torch.float32 else each)),
    "second order": (ANY, first_part(without_second)),
    "added": (ANY, added),
    "layout": (ANY, for_layout),
    "not reduced": ("broadcast", unreduced),
    "at zero": ("saved", where_saved(lambda size: size == 0, float("nan"))),
    "near zero": ("saved", where_saved(lambda size: size < 0.2, 2.0)),
    "large": ("saved", where_saved(lambda size: size > 2.5, 0.0)),
    "subset": ("several", for_subset),
    "keyword": ("keywords", for_keyword),
}
FORWARD_KINDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "tangent: sign": lambda each: -each,
    "tangent: factor": lambda each: each * 1.01,
    "tangent: zero": torch.zeros_like,
    "tangent: one lane": one_lane,
}


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


def watch(look: Callable[[Any], None]) -> None:
    variable = torch.autograd.Variable
    variable._execution_engine = Watched(variable._execution_engine, look)


def plant(fault: Fault) -> None:
    """Break a formula in this process, for good."""
    if fault.kind in FORWARD_KINDS:
        plant_forward(fault)
        return
    needed, change = KINDS[fault.kind]

    def look(roots: Any) -> None:
        for node in nodes_below(roots):
            if node.name() == fault.node and "fault" not in node.metadata:
                node.metadata["fault"] = True
                kept = saved(node) if needed in READ else {}  # now, as it may be freed before hooks are called
                node.register_hook(lambda gradients, given, kept=kept: noted(gradients, change(kept, gradients, given)))

    watch(look)


def noted(before: Gradients, after: Gradients) -> Gradients:
    """Return gradients, and note whether they are others than before, or have no graph where those have one."""
    CHANGED.extend([True] * are_changed(before, after))
    return after


def are_changed(before: Gradients, after: Gradients) -> bool:
    pairs = [(old, new) for old, new in zip(before, after, strict=True) if old is not None and old is not new]
    return any(differ(old, new) for old, new in pairs)


def differ(old: torch.Tensor, new: torch.Tensor) -> bool:
    if not is_readable(old):  # the same fault shows in plain tensors too
        return False
    return old.requires_grad != new.requires_grad or not torch.allclose(old, new, rtol=0, atol=0, equal_nan=True)


def functions_of(node: str) -> list[tuple[Any, str]]:
    """Return where torch has the functions of a formula, by its name: SinBackward0 is of sin."""
    words = re.sub(r"Backward(?:Autograd[A-Za-z]+)?\d+\w*$", "", node)
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", words).lower()
    spaces = [torch, torch.Tensor, torch.nn.functional, torch.special, torch.linalg, torch.fft]
    names = [name, f"_{name}", f"{name}_", f"__{name}__", *re.findall(r"^(?:linalg|special|fft)_(\w+)", name)]
    return [(space, each) for space in spaces for each in names if callable(getattr(space, each, None))]


def plant_forward(fault: Fault) -> None:
    forward, change = torch.autograd.forward_ad, FORWARD_KINDS[fault.kind]

    def mistaken(each: Any) -> Any:
        if not isinstance(each, torch.Tensor):
            return each
        primal, tangent = forward.unpack_dual(each)
        return each if tangent is None else forward.make_dual(primal, *noted((tangent,), (change(tangent),)))

    def wrapped(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            found = function(*args, **kwargs)
            if forward._current_level < 0:
                return found
            return tuple(map(mistaken, found)) if isinstance(found, (tuple, list)) else mistaken(found)

        return call

    for space, name in functions_of(fault.node):
        setattr(space, name, wrapped(getattr(space, name)))


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
        plant(fault)
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
