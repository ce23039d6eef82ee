"""A reproduction asserts what failed and nothing else: it holds where torch is right, and fails where it isn't."""

from __future__ import annotations

import json
import subprocess
import sys

import torch
from loops import each
from running import FIRST, case_of, known_issues
from samples import build
from shipped import spread, telling

from conformance.execution.program import chosen
from conformance.language import versions
from conformance.language.operations import is_of_operation
from conformance.model.build import target_of
from conformance.model.case import Case
from conformance.model.mode import MODES, needed_for
from conformance.model.outcome import Failure, Outcome
from conformance.render.expected import applies, lacking
from conformance.render.script.reproduction import reproduction_of

RELEASE = torch.__version__
CPU = target_of("cpu-float32")
MOST = 80  # reproductions that are run
RUNNER = """
import contextlib, io, json, os, sys, warnings
import torch
warnings.simplefilter("ignore")
for name, text in json.load(sys.stdin):
    process = os.fork()
    if process == 0:
        status = 0
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, name, "exec"), {"__name__": "__main__"})
        except BaseException as error:
            print(name, type(error).__name__, str(error)[:200].replace(chr(10), " "), flush=True)
        os._exit(0)
    os.waitpid(process, 0)
"""


def failing(case: Case, number: int) -> Outcome | None:
    """Return the outcome of a case as if all that a step of it expects had failed, or None where that is nothing."""
    step = chosen(case.steps[number], RELEASE)
    if "expect" in step:
        paths = [
            {"value": entry["subject"], "log": "log"}.get(name, f"{entry['subject']}.{name}")
            for entry in step["expect"]
            for name, *_ in entry["checks"]
        ]
    elif (step.get("raises") or {"type": None})["type"] is not None:
        paths = ["raises"]
    else:
        return None
    return Outcome(status="fail", step=number, failures=tuple(map(failure_at, paths)))


def failure_at(path: str) -> Failure:
    return Failure(line=1, path=path, expected="e", observed="o")


def reproductions() -> list[tuple[str, str]]:
    """Return a reproduction of each step of the shipped cases that can be run and that expects something."""
    found = []
    for case in telling():
        if is_of_operation(case) or lacking(case, RELEASE) or case.devices or case.dtypes:
            continue
        if known_issues().about(case.id, CPU, build(torch=RELEASE)):
            continue
        for number, step in enumerate(case.steps):
            outcome = failing(case, number) if applies(step, RELEASE) else None
            text = outcome and reproduction_of(case, outcome, RELEASE, CPU)
            if text:
                found.append((f"{case.id}, step {number}", text))
    return found


def complaints(given: list[tuple[str, str]]) -> list[str]:
    """Run texts, each in a process of its own, and return what those say that end with an error."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER], input=json.dumps(given), capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_reproductions_hold_where_torch_does_what_cases_expect() -> None:
    every = reproductions()
    assert len(every) > 2000
    assert complaints(list(spread(MOST, every))) == []


def test_what_an_earlier_expectation_has_done_is_done_too() -> None:
    case = case_of("- x = ones(2)\n- expect: {x.add_(1): 2, x.sum(): 4}\n- expect: {x: 2}\n")
    outcome = failing(case, 2)
    text = outcome and reproduction_of(case, outcome, RELEASE, CPU)
    assert text
    assert "\nx.add_(1)\n" in text
    assert "sum" not in text
    assert complaints([("a case", text)]) == []


RAISES = "- do: ones(2){}\n  raises: {{type: RuntimeError, match: nothing}}\n"
# Steps of which the last but one, or else the last, is at fault, the path of the failure, and what is told.
WRONG = {
    "a value": ("- x = ones(2)\n- expect: {x: 3}\n", "x", "AssertionError"),
    "a gradient": (
        "- x = ones(2, requires_grad=True)\n- x.sum().backward()\n- expect: {x: {grad: [1, 2]}}\n",
        "x.grad", "AssertionError",
    ),
    "no gradient": ("- x = ones(2)\n- expect: {x: {grad: 1}}\n", "x.grad", "AssertionError"),
    "a flag": ("- x = ones(2)\n- expect: {x: {is_leaf: false}}\n", "x.is_leaf", "AssertionError"),
    "a node": ("- x = ones(2)\n- expect: {x: {grad_fn: SinBackward0}}\n", "x.grad_fn", "AssertionError"),
    "an object": ("- x = ones(2)\n- y = x * 1\n- expect: {y: {is: x}}\n", "y.is", "AssertionError"),
    "a number that is not true": ("- x = ones(1)\n- expect: {x.numel(): true}\n", "x.numel()", "AssertionError"),
    "a tensor of zeros that is not false": ("- x = zeros(2)\n- expect: {x: false}\n", "x", "AssertionError"),
    "a tensor that is not true": ("- x = zeros(2)\n- expect: {x > 0: true}\n", "x > 0", "AssertionError"),
    "the log": ("- log(1, 2)\n- expect: {log: [[1, 3]]}\n", "log", "AssertionError"),
    "an error that is not raised": (RAISES.format(""), "raises", "nothing was raised"),
    "an error in other words": (RAISES.format(".view(3)"), "raises", "invalid for input"),
    "an error": ("- ones(2).view(3)\n- expect: {int(2): 2}\n", "", "invalid for input"),
}  # fmt: skip


@each("steps, path, told", WRONG.values(), ids=WRONG)
def test_a_reproduction_ends_with_an_error_where_torch_does_something_else(steps: str, path: str, told: str) -> None:
    case = case_of(steps)
    step = len(case.steps) - 1 if path else 0
    text = reproduction_of(case, Outcome(status="fail", step=step, failures=(failure_at(path),)), RELEASE, CPU)
    assert text is not None
    assert len(text.splitlines()) <= 25
    (complaint,) = complaints([("it", text)])
    assert told in complaint


def test_a_reproduction_has_what_the_target_needs() -> None:
    case = case_of("- x = randn(2, device=device)\n- expect: {x: {is_leaf: false}}\n")
    failure = Failure(line=FIRST + 1, path="x.is_leaf", expected="false", observed="true")
    outcome = Outcome(status="fail", step=1, failures=(failure,))
    assert reproduction_of(case, outcome, RELEASE, target_of("cuda-float64")) == (
        "# t\n"
        "import torch\n"
        "from torch import randn\n"
        "torch.manual_seed(0)\n"
        "torch.set_default_dtype(torch.float64)\n"
        'torch.set_default_device("cuda")\n'
        'device = "cuda"\n'
        "\n"
        "x = randn(2, device=device)\n"
        "assert x.is_leaf == False, x.is_leaf\n"
        "# observed: x.is_leaf: true\n"
    )


@each(
    "expected, near",
    {
        "as in the dtype": ("2", ""),
        "as the case says": ("{value: 2, rtol: 0.01, atol: 0.02}", ", near=0.02"),
        "as it says of the gradient": ("{grad: {value: 2, atol: 0}}", ", near=0"),
        "as it says of everything": ("{grad: {value: 2}, atol: 0.5}", ", near=0.5"),
    }.values(),
)
def test_a_reproduction_compares_numbers_as_the_case_does(expected: str, near: str) -> None:
    case = case_of(f"- x = ones(2, requires_grad=True)\n- x.sum().backward()\n- expect: {{x: {expected}}}\n")
    failures = (failure_at("x"), failure_at("x.grad"))
    text = reproduction_of(case, Outcome(status="fail", step=2, failures=failures), RELEASE, target_of("cpu-bfloat16"))
    assert text is not None
    assert "def _same(x, y, near=8e-2):\n" in text
    assert f", 2{near})\n" in text


def test_what_a_case_looks_at_is_evaluated_once() -> None:
    case = case_of("- x = ones(2)\n- expect: {x.mul_(2): {is: x, version: 1, value: [2, 2]}}\n")
    failures = tuple(failure_at(f"x.mul_(2){check}") for check in (".is", ".version", ""))
    text = reproduction_of(case, Outcome(status="fail", step=1, failures=failures), RELEASE, CPU)
    assert text is not None
    assert text.count("x.mul_(2)") == 1 + text.count("observed: x.mul_(2)")
    assert complaints([("all", text)]) == []


def test_a_reproduction_brings_the_mode_of_the_target_into_force() -> None:
    case = case_of("- x = ones(2, requires_grad=True)\n- (x * x).sum().backward()\n- expect: {x.grad: [2, 2]}\n")
    outcome = Outcome(status="fail", step=2, failures=(failure_at("x.grad"),))
    texts = [
        (mode, reproduction_of(case, outcome, RELEASE, target_of(f"cpu+{mode}-float32")) or "")
        for mode in MODES if versions.holds(needed_for(mode), RELEASE)
    ]  # fmt: skip
    assert len({text for _, text in texts}) == len(texts)
    assert complaints(texts) == []
    own = reproduction_of(case, outcome, RELEASE, target_of("cpu+a.b:c-float32"))
    assert own is not None
    assert "import a.b\nmode = a.b.c()\nmode.__enter__()\n" in own


def test_what_needs_the_suite_or_says_nothing_of_a_step_has_no_reproduction() -> None:
    case = case_of("- x = pickled(ones(2))\n- expect: {x: 3}\n")
    failures = (failure_at("x"),)
    outcomes = [
        Outcome(status="fail", step=1, failures=failures), Outcome(status="crash"), Outcome(status="fail", step=1),
        Outcome(status="fail", step=7, failures=failures), Outcome(status="fail", failures=failures),
    ]  # fmt: skip
    assert [reproduction_of(case, outcome, RELEASE, CPU) for outcome in outcomes] == [None] * 5


def test_a_list_with_expressions_and_what_16_bits_can_hold_are_asserted() -> None:
    case = case_of(
        "- b = 3.0\n- x = tensor([3.0, 1 / 6], dtype=torch.float16)\n- expect: {x: {value: [b, 0.16666666]}}\n"
    )
    text = reproduction_of(case, Outcome(status="fail", step=2, failures=(failure_at("x"),)), RELEASE, CPU)
    assert text is not None
    assert "assert _same(x, [b, 0.16666666])" in text
    assert complaints([("right", text)]) == []
    (complaint,) = complaints([("wrong", text.replace("1 / 6", "1 / 5"))])
    assert complaint.startswith("wrong AssertionError")
