"""Writes what of a case did not go as expected as a few lines in plain torch, to be read, run and reported.

Unlike a script, a reproduction is of one outcome: it has the statements up to the step that diverged, and asserts only
what failed there. It says by an error what it has found. Cases that need functions of the suite have none.
"""

import ast
import builtins
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.execution.program import chosen
from conformance.language import vocabulary
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.model.outcome import Failure, Outcome
from conformance.render.expected import applies
from conformance.render.script.names import uses_of
from conformance.render.script.script import comment, import_lines
from conformance.render.script.steps import TOLERANCES, UNUSUAL, block, on_one_line

Step = dict[str, Any]

# What is asserted of an object x by checks that look at one of its facts, in the order of Python's reading.
FACTS = {
    **{name: f"{{x}}.{name}" for name in ("requires_grad", "is_leaf", "retains_grad", "output_nr")},
    "version": "{x}._version", "shape": "list({x}.shape)", "stride": "list({x}.stride())",
    "is_inference": "{x}.is_inference()", "type": "type({x}).__name__",
    "dtype": 'str({x}.dtype).removeprefix("torch.")', "layout": 'str({x}.layout).removeprefix("torch.")',
}  # fmt: skip
DEFAULT_DTYPE = 'str(torch.get_default_dtype()).removeprefix("torch.")'
OF_TWO = {
    "is": "{x} is {y}", "is_not": "{x} is not {y}", "view_of": "{x}._base is {y}",
    "shares_storage": "{x}.untyped_storage().data_ptr() == {y}.untyped_storage().data_ptr()",
    "not_shares_storage": "{x}.untyped_storage().data_ptr() != {y}.untyped_storage().data_ptr()",
}  # fmt: skip
ACTING = frozenset("backward grad step zero_grad append apply clear collect next pop remove".split())
KNOWN = vocabulary.NAMES.keys() | vocabulary.PYTHON | vocabulary.MEMBERS.keys()
OFFERED = {"log", "device", "dtype", "global_state"}  # names of the suite that a reproduction can do without
LOG = [
    "events = []",
    "def _now(x):  # what tensors hold now, and not later",
    "    return x.tolist() if isinstance(x, torch.Tensor) else [_now(y) for y in x] if isinstance(x, list) else x",
    "def log(*event):",
    "    events.append(_now(event[0]) if len(event) == 1 else [_now(each) for each in event])",
]
# What is in force, in part: what fails of it has no reproduction.
STATE = [
    "def global_state():",
    "    switches = (torch.is_grad_enabled, torch.is_inference_mode_enabled, torch.is_anomaly_enabled)",
    "    return {each.__name__: str(each()) for each in switches}",
]
# How far numbers may be apart, relative to theirs if these are above 1, unless a case says so.
NEAR = {"float64": "1e-7", "float32": "1e-5", "float16": "1e-2", "bfloat16": "8e-2"}
# Compares what is near: a number with each element, too. No case has a name that begins so.
SAME = [
    "def _same(x, y, near={near}):",
    "    x, y = (each.to_dense() if 'sparse' in str(getattr(each, 'layout', '')) else each for each in (x, y))",
    "    if getattr(x, 'dtype', 0) in (torch.float16, torch.bfloat16): near = max(near, 8 * torch.finfo(x.dtype).eps)",
    "    x, y = (each.tolist() if isinstance(each, torch.Tensor) else each for each in (x, y))",
    "    if isinstance(y, str) and not isinstance(x, str):",
    "        x = str(x)[6:] if isinstance(x, torch.dtype) else type(x).__name__",
    "    if isinstance(x, dict):",
    "        return x.keys() == y.keys() and all(_same(x[key], y[key], near) for key in x)",
    "    if isinstance(x, (list, tuple)):",
    "        y = y if isinstance(y, (list, tuple)) else [y] * len(x)",
    "        return len(x) == len(y) and all(_same(*pair, near) for pair in zip(x, y))",
    "    if isinstance(x, (float, complex)) and type(y) in (int, float, complex):",
    "        return x == y or abs(x - y) <= near * (1 + abs(y)) or (x != x and y != y)",
    "    return x == y and isinstance(x, bool) == isinstance(y, bool)",
]
SIMPLE = re.compile(r"[A-Za-z_][\w.]*(\[\w+\])*")  # what needs no brackets before a dot
LONGEST = 100  # characters of what was observed


# What brings a mode into force until the end, in lines of plain torch.
ENTERED = {
    "anomaly": ["torch.autograd.set_detect_anomaly(True)"],
    "saved-tensor-hooks": [
        "mode = torch.autograd.graph.saved_tensors_hooks(lambda tensor: [tensor], lambda packed: packed[0])",
    ],
    "one-thread": ["torch.autograd.set_multithreading_enabled(False)"],
    "function-mode": ["from torch.overrides import BaseTorchFunctionMode", "mode = BaseTorchFunctionMode()"],
    "dispatch-mode": [
        "from torch.utils._python_dispatch import TorchDispatchMode",
        "class PassThrough(TorchDispatchMode):",
        "    def __torch_dispatch__(self, func, types, args=(), kwargs=None):",
        "        return func(*args, **(kwargs or {}))",
        "mode = PassThrough()",
    ],
    "profiler": ["mode = torch.autograd.profiler.profile(use_kineto=False)"],
    "deterministic": ["torch.use_deterministic_algorithms(True)"],
    "default-device": ["torch.set_default_device({device})"],
    "no-autocast": ["mode = torch.autocast({device}, enabled=False)"],
    "sparse-checks": ["mode = torch.sparse.check_sparse_tensor_invariants()"],
    "module-hooks": [
        "torch.nn.modules.module.register_module_forward_pre_hook(lambda *seen: None)",
        "torch.nn.modules.module.register_module_forward_hook(lambda *seen: None)",
    ],
    "dual-level": ["mode = torch.autograd.forward_ad.dual_level()"],
}


class NotPlain(Exception):
    """A case needs more of the suite than a reproduction has."""


def reproduction_of(case: Case, outcome: Outcome, torch: str, target: Target) -> str | None:
    """Return a reproduction of what diverged on a release of torch and a target, or None where there can be none."""
    failures = tuple(each for each in outcome.failures if "global_state" not in each.path)
    if outcome.step is None or outcome.step >= len(case.steps) or not failures:
        return None
    *before, last = (chosen(step, torch) for step in case.steps[: outcome.step + 1] if applies(step, torch))
    try:
        lines = [line for step in before for line in passed(step)]
        lines += diverged(last, failures)
        body = "\n".join(lines)
        return "\n".join([comment(case.title), *head(body, target), "", body, ""])
    except NotPlain:
        return None


def head(body: str, target: Target) -> Iterator[str]:
    """Yield the lines that import, set up and define what the others use."""
    device, dtype = target.device, target.dtype
    uses = uses_of([(None, body)])
    suite = {fact[1] for fact in uses.facts if fact[0] == "suite"}
    if uses.leads_out or not suite <= OFFERED or UNUSUAL.search(body):
        raise NotPlain
    yield "import torch"
    yield from (line for line in import_lines(uses.facts) if line != "import torch")
    random = sorted({fact[2] for fact in uses.facts if fact[0] == "random"})
    if random:
        yield f"from torch import {', '.join(random)}"
        yield "torch.manual_seed(0)"
    if dtype != "float32":
        yield f"torch.set_default_dtype(torch.{dtype})"
    if device != "cpu":
        yield f"torch.set_default_device({json.dumps(device)})"
    if "device" in suite:
        yield f"device = {json.dumps(device)}"
    if "dtype" in suite:
        yield f"dtype = torch.{dtype}"
    if "log" in suite or "events" in body:
        yield from LOG
    if "global_state" in suite:
        yield from STATE
    if "_same(" in body:
        yield from (line.replace("{near}", NEAR[dtype]) for line in SAME)
    yield from entered(target)


def entered(target: Target) -> Iterator[str]:
    """Yield the lines that bring the mode of a target into force."""
    if not target.mode:
        return
    module, _, name = target.mode.partition(":")
    own = [f"import {module}", f"mode = {target.mode.replace(':', '.')}()"] if name else []
    for line in own or ENTERED[target.mode]:
        yield line.replace("{device}", json.dumps(target.device))
    if own or ENTERED[target.mode][-1].startswith("mode = "):
        yield "mode.__enter__()"


def passed(step: Step) -> Iterator[str]:
    """Yield what is left of a step that went as expected: its statements, and what it looked at only if that acts."""
    if "do" not in step:
        yield from (entry["subject"] for entry in step["expect"] if acts(entry["subject"]))
        return
    expected = step.get("raises")
    if expected is None or expected["type"] is None:
        yield step["do"].rstrip()
    else:
        yield from block("try:", [step["do"].rstrip()])
        yield from block(f"except {error_type(expected)}:", ["pass  # as expected"])


def acts(subject: str) -> bool:
    """Whether an expression calls what may change something: in place, for what it does, or a function of the case."""
    for node in ast.walk(ast.parse(subject, mode="eval")):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            is_own = isinstance(node.func, ast.Name) and name not in KNOWN
            if is_own or name in ACTING or (name.endswith("_") and not name.endswith("__")):
                return True
    return False


def diverged(step: Step, failures: tuple[Failure, ...]) -> Iterator[str]:
    """Yield the lines of a step that did not go as expected, with what was observed."""
    if "do" in step:
        yield from raising(step, failures[0])
        return
    found = False
    for entry in step["expect"]:
        failed = [
            (name, value, told)
            for name, value, _ in entry["checks"]
            for told in [next((each for each in failures if is_of(each.path, entry["subject"], name)), None)]
            if told is not None
        ]
        found = found or bool(failed)
        evaluated, subject = looked_at(entry["subject"], len(failed))
        yield from evaluated
        for name, value, told in failed:
            yield from asserted(subject, name, value, near_of(entry["checks"]))
            yield comment(f"observed: {told.path}: {told.observed[:LONGEST]}")
    if not found:
        raise NotPlain


def looked_at(subject: str, number: int) -> tuple[list[str], str]:
    """Return the lines before so many checks of a subject, and by what they call it.

    One that calls something may change what it looks at: it is evaluated once, as a case does.
    """
    text = on_one_line(subject)
    return ([f"_it = {text}"], "_it") if number > 1 and "(" in text else ([], text)


def is_of(path: str, subject: str, check: str) -> bool:
    """Whether a failure at `path` is of a check of a subject."""
    if check in ("value", "log"):
        return path == (subject if check == "value" else check)
    return path == f"{subject}.{check}" or path.startswith(f"{subject}.{check}.")


def raising(step: Step, failure: Failure) -> Iterator[str]:
    text = step["do"].rstrip()
    expected = step.get("raises")
    if failure.path == "warns":
        lines = ['warnings.simplefilter("always")', text]
        yield from block("with warnings.catch_warnings(record=True) as caught:", lines)
        yield "print([str(each.message) for each in caught])"
        yield comment(f"expected: {failure.expected}; observed: {failure.observed[:LONGEST]}")
    elif failure.path == "raises" and expected is not None and expected["type"] is not None:
        parts = [part for part in expected["match"] if isinstance(part, str)]
        yield from block("try:", [text])
        yield from block(f"except {error_type(expected)} as error:",
                         [f"assert {part!r} in str(error), error" for part in parts] or ["pass"])  # fmt: skip
        yield from block("else:", ['raise AssertionError("nothing was raised")'])
    else:
        yield text
        yield comment(f"observed: {failure.observed[:LONGEST]}")


def error_type(expected: Mapping[str, Any]) -> str:
    name = str(expected["type"])
    return name if name.endswith("Error") and name.isidentifier() and hasattr(builtins, name) else "Exception"


def near_of(checks: Sequence[Sequence[Any]]) -> float | None:
    """Return how far apart the larger of the tolerances among some checks lets numbers be, or None without any."""
    return max((value for name, value, _ in checks if name in TOLERANCES), default=None)


def asserted(subject: str, name: str, value: Any, near: float | None = None) -> Iterator[str]:
    """Yield the lines that assert one check of a subject, in which numbers may be `near`, as in `near_of`."""
    x = subject if SIMPLE.fullmatch(subject) else f"({subject})"
    if name == "log":
        yield f"assert _same(events, {literal(value)}), events"
    elif name in FACTS and not isinstance(value, dict):
        fact = FACTS[name].format(x=x)
        wanted = DEFAULT_DTYPE if name == "dtype" and value == "target" else literal(value)
        yield f"assert {fact} == {wanted}, {fact}"
    elif name in OF_TWO and isinstance(value, dict) and "expr" in value:
        yield f"assert {OF_TWO[name].format(x=x, y=on_one_line(value['expr']))}"
    elif name == "grad_fn" and not isinstance(value, dict):
        fact = f"{x}.grad_fn" if value is None else f"type({x}.grad_fn).__name__"
        yield f"assert {fact} {'is' if value is None else '=='} {literal(value)}, {fact}"
    elif name == "grad" and isinstance(value, dict) and "checks" in value:
        own = near_of(value["checks"])
        for inner, each, _ in value["checks"]:
            if inner not in TOLERANCES:
                yield from asserted(f"{x}.grad", inner, each, near if own is None else own)
    elif name in ("value", "grad"):
        yield equal(x if name == "value" else f"{x}.grad", value, near)
    else:
        raise NotPlain


def equal(subject: str, value: Any, near: float | None) -> str:
    """Return an assertion that an object is, or holds, a value."""
    if value is None:
        return f"assert {subject} is None, {subject}"
    return f"assert _same({subject}, {literal(value)}{'' if near is None else f', near={near}'})"


def literal(value: Any) -> str:
    """Return a value of a case file as an expression."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, dict) and "expr" in value:
        return on_one_line(value["expr"])
    if isinstance(value, dict):
        raise NotPlain
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)
