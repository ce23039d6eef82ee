"""Writes what must hold after each spelling on a program beside the gradients: that it does nothing else.

A spelling

- leaves inputs, their versions, the weights and, but for those that the program draws, random numbers alone;
- gives each gradient the dtype and layout of its input, and `.grad` the strides of it, too;
- writes to `.grad` only where it says `backward`, and records the gradient only where it says `create_graph`;
- finds the result of the program where it sets `y`;
- calls the hooks of a program with `events` as often as it says there, in that order;
- gives no warning, and changes no mode;
- keeps nothing alive once its names are gone, but for garbage that can be collected.

A case that can't keep to one of `SUSPENDED` says why, with a link to where PyTorch says so.
"""

from collections.abc import Sequence, Set
from typing import Any

from conformance.language.yaml import Node

SUSPENDED = ("grad", "result", "random", "state", "warnings", "freed")
NAMES = frozenset("values random plain drawn state leaves events".split())  # that are set beside `f`, `g` and `inputs`
FOUND, RESULT = "found", "y"  # the names of the gradients, and of the result

SAME_KIND = "[(u.dtype, u.layout) for u in found] == [(x.dtype, x.layout) for x in inputs]"
WRITTEN = "[x.grad for x in inputs if x.grad is not None]"
OTHER_STRIDES = "[x.grad for x in inputs if x.grad is not None and not x.grad.is_contiguous()]"
RECORDED = "[x.grad for x in inputs if x.grad is not None and x.grad.requires_grad]"
SAME_RESULT = "(y.dtype, y.layout) == (plain.dtype, plain.layout)"
DRAWN = "torch.equal(torch.get_rng_state(), drawn)"
CHANGED = "sorted(global_state().items() - state.items())"
ALIVE = "sorted({way for way, leaf in leaves if leaf() is not None})"


def before(program: Node, values: str) -> str:
    """Return the statements before the first spelling, of which `values` is one."""
    events = ["events = []"] if "events" in program.value else []
    return "\n".join([
        values, *events, "leaves, state, random = [], global_state(), torch.get_rng_state()", "plain = f(*values)",
        "drawn = torch.get_rng_state()",
    ])  # fmt: skip


def fresh(program: Node, way: str) -> str:
    """Return the statements before each spelling, which make new leaves, under their own names and as `inputs`."""
    names = list(program.value["inputs"].value)
    targets = ", ".join(names) if len(names) > 1 else f"{names[0]},"
    events = ["events.clear()"] if "events" in program.value else []
    return "\n".join([
        f"{targets} = inputs = [x.clone().requires_grad_() for x in values]",
        f"leaves += [({way!r}, weakref.ref(x)) for x in inputs]", "torch.set_rng_state(random)", *events,
    ])  # fmt: skip


def after(program: Node, suspended: Set[str], said: str, bound: Set[str]) -> dict[str, Any]:
    """Return what holds after a spelling that says so much and sets these names."""
    gradients = program.value["gradients"].value
    inputs = list(program.value["inputs"].value)
    expected: dict[str, Any] = {"len(found)": len(inputs)}
    expected.update({f"found[{index}]": gradients[name] for index, name in enumerate(inputs)})
    expected[SAME_KIND] = True
    for index, name in enumerate(inputs):
        expected[name] = {"is_leaf": True, "requires_grad": True, "version": 0, "value": f"values[{index}]"}
    expected["g"] = {"version": 0}
    if "grad" not in suspended:
        if "backward" not in said:
            expected[WRITTEN] = []
        else:
            expected[OTHER_STRIDES] = []
            expected.update({} if "create_graph" in said else {RECORDED: []})
    if RESULT in bound and "result" not in suspended:
        expected[RESULT] = {"value": "plain", "requires_grad": True}
        expected[SAME_RESULT] = True
    if "events" in program.value:
        expected["events"] = {"value": {"text": program.value["events"]}}
    expected.update({} if "random" in suspended else {DRAWN: True})
    expected.update({} if "state" in suspended else {CHANGED: []})
    return expected


def at_the_end(program: Node, bound: Set[str]) -> Sequence[Any]:
    """Return the steps after the last spelling, for the names that spellings have set."""
    names = sorted({*program.value["inputs"].value, "inputs", *bound})
    return [
        f"{' = '.join(names)} = None\nif {ALIVE}:\n    collected = gc.collect()",
        {"expect": {ALIVE: []}},
    ]
