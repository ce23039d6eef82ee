"""Finds out which of torch's formulas for derivatives the cases use: backward ones by their nodes, and forward ones.

torch brings `derivatives.yaml`, from which its nodes were generated; they are named here as its generator names them.
The functions of lists of tensors, `_foreach_…`, have nodes of the formulas of the function of one tensor.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from conformance.execution.attempt import TARGET, Torch
from conformance.execution.program import why_unsupported
from conformance.execution.queue import generates_code
from conformance.language.operations import is_of_operation
from conformance.model.case import Case

FORWARD = "wrong['forward mode']"  # what a case of an operation looks at if it could be differentiated forward
SPECIFICATION = "torchgen/packaged/autograd/derivatives.yaml"  # beside torch
FUNCTIONS = "torchgen/packaged/ATen/native/native_functions.yaml"
NOT_INPUTS = {"name", "dispatch", "output_differentiability", "output_differentiability_conditions"}
FOREACH = re.compile(r"^- func: _foreach_(\w+?)(?:\.(\w+))?\((.*?)\) ->", re.MULTILINE)
OVERHEAD = 0.002  # seconds that each case takes beside its steps
DETAIL = 0.25  # what a detail weighs beside a formula or rule
# Why no case on the CPU goes through a node.
ELSEWHERE = {
    "cudnn|miopen|mps|cuda|^(?:efficient|flash)attentionbackward|^scaleddotproduct(?:efficient|flash)attentionbackward"
    "|^fuseddropout|^convdepthwise|^thnnfused|^maxpool2dbackward": "of kernels of other devices",
    "overrideable": "of operations that devices outside PyTorch define",
    "^pinmemory": "of memory for an accelerator",
    "^chunkbackward0$": "split() takes its place before autograd sees it",
    "^fusedrmsnorm": "on the CPU other operations take its place before autograd sees it",
    "^test": "of PyTorch's own tests, some with formulas that are wrong on purpose",
}
EACH_ELSEWHERE = {re.compile(pattern, re.IGNORECASE): why for pattern, why in ELSEWHERE.items()}


@dataclass(frozen=True)
class Share:
    """What a case uses, formulas and rules, the circumstances in which it does, and how many seconds it took.

    Of a case that `generates_code` these tell little: the first of a run takes longer than a thousand of others.
    """

    uses: frozenset[str]
    seconds: float
    details: frozenset[str] = frozenset()
    generates_code: bool = False


@dataclass
class Reached:
    """The names of torch's nodes, those that have a formula for forward mode, and which of both the cases use."""

    nodes: frozenset[str]
    with_forward: frozenset[str]
    backward: set[str] = field(default_factory=set)
    forward: set[str] = field(default_factory=set)
    by_case: dict[str, Share] = field(default_factory=dict)  # for each case that could be run, by its id

    @property
    def elsewhere(self) -> dict[str, str]:
        """The nodes that no case on the CPU can have, and why."""
        return {
            name: why for name in self.nodes - self.backward for pattern, why in EACH_ELSEWHERE.items()
            if pattern.search(name)
        }  # fmt: skip


def specified(torch: Path) -> Reached | None:
    """Return the nodes of the torch at a place, or None where it doesn't bring its specification."""
    try:
        entries = yaml.load((torch.parent / SPECIFICATION).read_bytes(), yaml.CSafeLoader)
        functions = (torch.parent / FUNCTIONS).read_text(encoding="utf-8")
    except OSError:
        return None
    nodes = {**nodes_of(entries), **nodes_of_foreach(entries, functions)}
    return Reached(frozenset(nodes), frozenset(name for name, has_forward in nodes.items() if has_forward))


def nodes_of(entries: Iterable[dict[str, Any]]) -> dict[str, bool]:
    """Return the nodes of entries in `derivatives.yaml`, and whether each has a formula for forward mode."""
    return {name: has_forward for _, name, has_forward in formulas_of(entries)}


def formulas_of(entries: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str, bool]]:
    """Yield the signature, the node and whether there is a formula for forward mode, of each entry's formulas."""
    counts: Counter[str] = Counter()
    for entry in entries:
        operation = re.split(r"[.(]", entry["name"], maxsplit=1)[0].removesuffix("_forward")
        for key, formulas in entry.get("dispatch", {"Default": entry}).items():
            own = {name: formula for name, formula in formulas.items() if name not in NOT_INPUTS}
            backward = [formula for name, formula in own.items() if not name.startswith("result")]
            if all(formula == "non_differentiable" for formula in backward):
                continue
            prefix = f"{camel_case(operation)}Backward{'' if key == 'Default' else key}"
            yield entry["name"], f"{prefix}{counts[prefix]}", len(own) > len(backward)
            counts[prefix] += 1


def camel_case(operation: str) -> str:
    return "".join(word.title() for word in operation.split("_"))


def nodes_of_foreach(entries: Sequence[dict[str, Any]], functions: str) -> dict[str, bool]:
    """Return the nodes of functions of lists that have the formulas of a function of what is in the lists.

    That function has the same name and the same arguments, and possibly more.
    """
    own = {re.split(r"\(", entry["name"], maxsplit=1)[0] for entry in entries}
    found = {}
    for name, overload, arguments in FOREACH.findall(functions):
        if f"_foreach_{name}{'.' * bool(overload)}{overload}" in own or "(a!)" in arguments:
            continue
        types = [each.replace("[]", "") for each in types_of(arguments)]
        fitting = [
            (len(taken), node, has_forward)
            for signature, node, has_forward in formulas_of(entries)
            if re.match(rf"{name}[.(]", signature) and "Nested" not in node
            for taken in [types_of(signature.partition("(")[2].rpartition(") ->")[0])]
            if taken[: len(types)] == types
        ]
        if fitting:
            _, node, has_forward = min(fitting)
            found[f"Foreach{node}{overload}"] = has_forward
    return found


def types_of(arguments: str) -> list[str]:
    return [each.split()[0] for each in arguments.split(", ") if each != "*"]


def add_reached(
    reached: Reached, cases: Sequence[Case], torch: Torch, follow: Callable[[Sequence[Case]], Iterable[Case]] = iter
) -> None:
    """Run cases on the CPU, and add what they reach; `follow` is called with those that are run."""
    runnable = [case for case in cases if not why_unsupported(case, TARGET, torch.build.torch)]
    for number, case in enumerate(runnable):
        torch.workers.request(number, {**torch.program(case), "reach": True})
    for number, case in enumerate(follow(runnable)):
        answer = torch.workers.outcome(number)
        found = answer.get("uses", ())
        nodes = reached.nodes.intersection(found)
        reached.backward |= nodes
        hidden = [each["path"] for each in answer.get("unobserved", ())]
        forward = nodes & reached.with_forward if is_of_operation(case) and FORWARD not in hidden else set()
        reached.forward |= forward
        uses = frozenset([*nodes, *(f"{name}, forward" for name in forward), *case.rules])
        details = frozenset(each for each in found if each.partition(" ")[0] in nodes) - nodes
        is_built = generates_code(torch.program(case))
        reached.by_case[case.id] = Share(uses, answer.get("seconds", 0.0), details, generates_code=is_built)


def left_out(shares: Mapping[str, Share], part: float) -> list[str]:
    """Return the ids of cases without which the others take this part of the time, and use as much as can be had.

    Chosen is, again and again, the case that adds most for its time; the first one whatever it takes. None generates
    code.
    """
    kept: set[str] = set()
    missing = set().union(*(share.uses for share in shares.values()))
    details = set().union(*(share.details for share in shares.values()))
    seconds = part * sum(share.seconds for share in shares.values())

    def worth(name: str) -> float:
        share = shares[name]
        return (len(share.uses & missing) + DETAIL * len(share.details & details)) / (share.seconds + OVERHEAD)

    waiting = [(-worth(name), name) for name, share in shares.items() if not share.generates_code]
    heapq.heapify(waiting)
    while waiting:
        before, name = heapq.heappop(waiting)
        now = -worth(name)
        if now > before:  # others have added some of it since
            heapq.heappush(waiting, (now, name))
        elif now < 0 and (shares[name].seconds <= seconds or not kept):
            kept.add(name)
            missing -= shares[name].uses
            details -= shares[name].details
            seconds -= shares[name].seconds
    return sorted(shares.keys() - kept)
