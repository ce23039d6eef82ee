"""Each check of an expectation holds where it should, and says what it saw where it should not."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from loops import each
from running import FIRST, outcome_of_steps, running_engine

from conformance.language.schema import load_schema
from conformance.render.script.carried import PIECES, entry
from conformance.worker import checks, storage
from conformance.worker.checks import CHECKS as REGISTRY
from conformance.worker.checks import class_of, is_node_of, limits_of
from conformance.worker.engine import Engine
from conformance.worker.runner import synchronizer
from conformance.worker.sandbox import MODULE

GRAD = """
- a = tensor([1.0, 2.0], requires_grad=True)
- (a * a).sum().backward()
"""
LEAF = "- a = tensor([1.0, 2.0], requires_grad=True)"
RESULT = f"{LEAF}\n- b = a * a"
SPECIAL = "- a = tensor([1.0, inf, -inf, nan])"
COMPLEX = "- a = tensor([1 + 2j])"
SPARSE = "- a = tensor([[0.0, 2.0]]).to_sparse()"
ALIAS = "- a = zeros(2, 3)\n- b = a\n- c = a.view(6)\n- d = a * 1"
MAPPING = """
- 'a = {"x": 1, "y": [True, None, "q", 2.5, (1, 2)]}'
"""

# The steps before; the expectation that holds; the one that does not; where that is said; expected; observed.
CHECKS = {
    "is_leaf": (LEAF, "a: {is_leaf: true}", "a: {is_leaf: false}", "a.is_leaf", "false", "true"),
    "is_leaf of a result": (RESULT, "b: {is_leaf: false}", "b: {is_leaf: true}", "b.is_leaf", "true", "false"),
    "requires_grad": (
        LEAF, "a: {requires_grad: true}", "a: {requires_grad: false}", "a.requires_grad", "false", "true",
    ),
    "retains_grad": (
        f"{RESULT}\n- b.retain_grad()", "b: {retains_grad: true}", "b: {retains_grad: false}", "b.retains_grad",
        "false", "true",
    ),
    "retains_grad of a leaf": (
        LEAF, "a: {retains_grad: false}", "a: {retains_grad: true}", "a.retains_grad", "true", "false",
    ),
    "is_inference": (
        "- 'with torch.inference_mode(): a = ones(2)'", "a: {is_inference: true}", "a: {is_inference: false}",
        "a.is_inference", "false", "true",
    ),
    "grad null, one is there": (
        f"{GRAD}\n- b = ones(1, requires_grad=True)", "b: {grad: null}", "a: {grad: null}", "a.grad", "null",
        "[2.0, 4.0]",
    ),
    "grad a value": (GRAD, "a: {grad: [2, 4]}", "a: {grad: [2.0, 5]}", "a.grad", "[2.0, 5]", "[2.0, 4.0]"),
    "grad one number": (
        f"{LEAF}\n- a.sum().backward()", "a: {grad: 1}", "a: {grad: 2}", "a.grad", "2", "[1.0, 1.0]",
    ),
    "grad an expression": (
        GRAD, "a: {grad: 2 * a}", "a: {grad: 3 * a}", "a.grad", "[3.0, 6.0] (3 * a)", "[2.0, 4.0]",
    ),
    "grad a value, none is there": (LEAF, "a: {grad: null}", "a: {grad: [2.0]}", "a.grad", "[2.0]", "null"),
    "grad an expression, none is there": (LEAF, "a: {grad: null}", "a: {grad: 3 * a}", "a.grad", "3 * a", "null"),
    "grad a mapping": (
        GRAD, "a: {grad: {value: [2, 4], dtype: target}}", "a: {grad: {value: [2, 5], dtype: target}}", "a.grad",
        "value [2, 5]", "[2.0, 4.0]",
    ),
    "grad a mapping, none is there": (
        LEAF, "a: {grad: null}", "a: {grad: {value: 3 * a, requires_grad: true}}", "a.grad",
        "a gradient with value 3 * a, requires_grad true", "null",
    ),
    "grad requires_grad": (
        GRAD, "a: {grad: {requires_grad: false}}", "a: {grad: {requires_grad: true}}", "a.grad", "requires_grad true",
        "false",
    ),
    "grad dtype": (
        GRAD, "a: {grad: {dtype: float32}}", "a: {grad: {dtype: float64}}", "a.grad", "dtype float64", "float32",
    ),
    "grad is": (
        f"{GRAD}\n- b = a.grad", "a: {grad: {is: b}}", "a: {grad: {is: a}}", "a.grad", "is the same object as a",
        "another object, [2.0, 4.0]",
    ),
    "grad of a grad": (
        GRAD, "a: {grad: {grad: null}}", "a: {grad: {grad: 1}}", "a.grad", "grad 1", "null",
    ),
    "grad with a tolerance of its own": (
        GRAD, "a: {grad: {value: [2.1, 4], atol: 0.2}}", "a: {grad: {value: [2.1, 4], atol: 0.01}}", "a.grad",
        "value [2.1, 4]", "[2.0, 4.0]",
    ),
    "grad with the tolerance beside it": (
        GRAD, "a: {grad: [2.1, 4], atol: 0.2}", "a: {grad: [2.1, 4], atol: 0.01}", "a.grad", "[2.1, 4]", "[2.0, 4.0]",
    ),
    "grad of another shape": (
        f"{GRAD}\n- a.data = zeros(3)", "a: {grad: {shape: [2], value: [2, 4]}}", "a: {grad: [2, 4]}", "a.grad",
        "shape [3], the tensor's own", "shape [2]",
    ),
    "grad of another dtype": (
        f"{GRAD}\n- a.data = zeros(2, dtype=torch.float64)", "a: {grad: {dtype: float32, value: [2, 4]}}",
        "a: {grad: {value: [2, 4]}}", "a.grad", "dtype float64, the tensor's own", "dtype float32",
    ),
    "grad_fn": (RESULT, "b: {grad_fn: MulBackward0}", "b: {grad_fn: SinBackward0}", "b.grad_fn", "SinBackward0",
                "MulBackward0"),
    "grad_fn null": (RESULT, "a: {grad_fn: null}", "b: {grad_fn: null}", "b.grad_fn", "null", "MulBackward0"),
    "grad_fn with its namespace": (
        f"{LEAF}\n- b = a.view(2).clone()", "b: {grad_fn: 'torch::autograd::CloneBackward0'}",
        "a: {grad_fn: 'torch::autograd::AccumulateGrad'}", "a.grad_fn", "AccumulateGrad", "null",
    ),
    "next_functions": (
        f"{LEAF}\n- b = a * 2", "b: {next_functions: [AccumulateGrad, null]}", "b: {next_functions: [AccumulateGrad]}",
        "b.next_functions", "[AccumulateGrad]", "[AccumulateGrad, null]",
    ),
    "next_functions of a leaf": (
        RESULT, "b: {next_functions: [AccumulateGrad, AccumulateGrad]}", "a: {next_functions: []}", "a.next_functions",
        "no error", "AttributeError: 'NoneType' object has no attribute 'next_functions'",
    ),
    "value a number": (LEAF, "a * 0: 0", "a: 1", "a", "1", "[1.0, 2.0]"),
    "value a list": (LEAF, "a: {value: [1, 2]}", "a: {value: [1, 3]}", "a", "[1, 3]", "[1.0, 2.0]"),
    "value a shorter list": (LEAF, "a: [1, 2]", "a: [1]", "a", "[1]", "[1.0, 2.0]"),
    "value a deeper list": (LEAF, "a: [1, 2]", "a: [[1, 2]]", "a", "[[1, 2]]", "[1.0, 2.0]"),
    "value an expression": (
        RESULT, "b: {value: a ** 2}", "b: {value: a ** 3}", "b", "[1.0, 8.0] (a ** 3)", "[1.0, 4.0]",
    ),
    "value a list of expressions": (LEAF, "a: ['a[0]', 'sqrt(tensor(4.0))']", "a: ['a[0]', 'a[0]']", "a",
                                    "[1.0, 1.0]", "[1.0, 2.0]"),
    "value an expression of another shape": (
        LEAF, "a: {value: ones(2) + arange(2)}", "a: {value: zeros(3)}", "a", "[0.0, 0.0, 0.0] of shape [3]",
        "[1.0, 2.0] of shape [2]",
    ),
    "value an expression that raises": (
        LEAF, "a: {value: a.view(2)}", "a: {value: a.view(7)}", "a", "no error",
        "RuntimeError: shape '[7]' is invalid for input of size 2",
    ),
    "value nan": (SPECIAL, "'a[3]': .nan", "'a[0]': .nan", "a[0]", "nan", "1.0"),
    "value nan everywhere": ("- a = tensor([nan, 1.0])", "'a[:1]': .nan", "a: .nan", "a", "nan", "[nan, 1.0]"),
    "value inf": (
        SPECIAL, "a: [1, .inf, -.inf, .nan]", "a: [1, .inf, .inf, .nan]", "a", "[1, inf, inf, nan]",
        "[1.0, inf, -inf, nan]",
    ),
    "value inf as an expression": (
        SPECIAL, "a: [1, inf, -inf, nan]", "a: [1, inf, -inf, inf]", "a", "[1, inf, -inf, inf]",
        "[1.0, inf, -inf, nan]",
    ),
    "value complex": (COMPLEX, "a: [1 + 2j]", "a: [1 + 3j]", "a", "[1+3j]", "[1+2j]"),
    "value complex, a real one expected": (COMPLEX, "a.real: [1]", "a: [1]", "a", "[1]", "[1+2j]"),
    "value sparse": (SPARSE, "a: [[0, 2]]", "a: [[0, 3]]", "a", "[[0, 3]]", "[[0.0, 2.0]]"),
    "value sparse, an expression": (
        SPARSE, "a: {value: a * 1}", "a: {value: a * 2}", "a", "[[0.0, 4.0]] (a * 2)", "[[0.0, 2.0]]",
    ),
    "value empty": ("- a = zeros(0)", "a: []", "a: [1]", "a", "[1]", "[]"),
    "value empty is no number": ("- a = zeros(0)", "a: []", "a: 0", "a", "0", "[]"),
    "value empty has a shape": (
        "- a = zeros(2, 0)", "a: [[], []]", "a: {value: zeros(0)}", "a", "[] of shape [0]", "[[], []] of shape [2, 0]",
    ),
    "value bool": (
        "- a = tensor([True, False])", "a: [true, false]", "a: [1, 0]", "a", "[1, 0]", "[true, false]",
    ),
    "value int": ("- a = tensor([1, 2])", "a: [1, 2]", "a: [1, 3]", "a", "[1, 3]", "[1, 2]"),
    "value of many elements": (
        "- a = ones(17)", "a: 1", "a: 2", "a", "2", "[" + "1.0, " * 16 + "…]",
    ),
    "value without data": (
        "- a = zeros(2, device='meta')", "a: {shape: [2]}", "a: 0", "a", "no error",
        "NotImplementedError: Cannot copy out of meta tensor; no data!",
    ),
    "rtol": (
        LEAF, "a: {value: [1.1, 2], rtol: 0.1}", "a: {value: [1.1, 2], rtol: 0.01}", "a", "[1.1, 2]", "[1.0, 2.0]",
    ),
    "atol": (
        LEAF, "a: {value: [1.1, 2], atol: 0.2}", "a: {value: [1.1, 2], atol: 0.01}", "a", "[1.1, 2]", "[1.0, 2.0]",
    ),
    "atol and rtol of nothing": (
        LEAF, "a: {value: [1.000001, 2]}", "a: {value: [1.000001, 2], atol: 0, rtol: 0}", "a", "[1.000001, 2]",
        "[1.0, 2.0]",
    ),
    "version": (f"{LEAF}\n- a.detach().add_(1)", "a: {version: 1}", "a: {version: 0}", "a.version", "0", "1"),
    "output_nr": (
        f"{LEAF}\n- b, c = a.unbind()", "c: {output_nr: 1}", "c: {output_nr: 0}", "c.output_nr", "0", "1",
    ),
    "dtype": (LEAF, "a: {dtype: float32}", "a: {dtype: float64}", "a.dtype", "float64", "float32"),
    "dtype target": (
        "- a = ones(2)\n- b = ones(2, dtype=torch.float64)", "a: {dtype: target}", "b: {dtype: target}", "b.dtype",
        "float32", "float64",
    ),
    "shape": ("- a = zeros(2, 3)", "a: {shape: [2, 3]}", "a: {shape: [3, 2]}", "a.shape", "[3, 2]", "[2, 3]"),
    "shape of a scalar": ("- a = zeros(())", "a: {shape: []}", "a: {shape: [1]}", "a.shape", "[1]", "[]"),
    "stride": ("- a = zeros(2, 3)", "a: {stride: [3, 1]}", "a: {stride: [1, 2]}", "a.stride", "[1, 2]", "[3, 1]"),
    "is_contiguous": (
        "- a = zeros(2, 3)\n- b = a.t()", "a: {is_contiguous: true}", "b: {is_contiguous: true}", "b.is_contiguous",
        "true", "false",
    ),
    "layout": (SPARSE, "a: {layout: sparse_coo}", "a: {layout: strided}", "a.layout", "strided", "sparse_coo"),
    "device": (LEAF, "a: {device: cpu}", "a: {device: cuda}", "a.device", "cuda", "cpu"),
    "device target": (
        "- a = ones(2)\n- b = ones(2, device='meta')", "a: {device: target}", "b: {device: target}", "b.device", "cpu",
        "meta",
    ),
    "type": (LEAF, "a: {type: Tensor}", "a: {type: Parameter}", "a.type", "Parameter", "Tensor"),
    "type of no tensor": ("- a = nn.Linear(1, 1)", "a: {type: Linear}", "a: {type: Tensor}", "a.type", "Tensor",
                          "Linear"),
    "is": (
        ALIAS, "a: {is: b}", "a: {is: d}", "a.is", "the same object as d",
        "another object, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]",
    ),
    "is_not": (ALIAS, "a: {is_not: d}", "a: {is_not: b}", "a.is_not", "another object than b", "the same object"),
    "shares_storage": (
        ALIAS, "a: {shares_storage: c}", "a: {shares_storage: d}", "a.shares_storage", "to share memory with d",
        "memory of its own",
    ),
    "not_shares_storage": (
        ALIAS, "a: {not_shares_storage: d}", "a: {not_shares_storage: c}", "a.not_shares_storage",
        "not to share memory with c", "the same memory",
    ),
    "shares_storage with no tensor": (
        ALIAS, "a: {shares_storage: c}", "a: {shares_storage: '[1]'}", "a.shares_storage", "[1] to be a tensor", "[1]",
    ),
    "view_of": (ALIAS, "c: {view_of: a}", "c: {view_of: d}", "c.view_of", "a view of d", "a view of another tensor"),
    "view_of, no view": (ALIAS, "c: {view_of: a}", "a: {view_of: c}", "a.view_of", "a view of c", "no view"),
    "view_of null": (
        ALIAS, "a: {view_of: null}", "c: {view_of: null}", "c.view_of", "null: no view",
        "a view of a tensor of shape [2, 3]",
    ),
    "log": (
        "- log('x', zeros(2))\n- log(1)", "log: [[x, [0, 0]], 1]", "log: [[x, [0, 0]], 2]", "log",
        "[[x, [0, 0]], 2]", "[[x, [0.0, 0.0]], 1]",
    ),
    "log empty": ("- x = 1", "log: []", "log: [x]", "log", "[x]", "[]"),
    "log text is text": ("- log('x')", "log: [x]", "log: []", "log", "[]", "[x]"),
    "a number": ("- a = 1.5", "a: 1.5", "a: 1.6", "a", "1.6", "1.5"),
    "a bool is no int": ("- a = True", "a: true", "a: 1", "a", "1", "true"),
    "an int is no bool": ("- a = 1", "a: 1", "a: true", "a", "true", "1"),
    "None": ("- a = None", "a: null", "a: 1", "a", "1", "null"),
    "text": ("- a = 'q'", "a: {text: q}", "a: {text: r}", "a", "r ('r')", "q"),
    "a tuple": ("- a = (1, 'q')", "a: [1, {text: q}]", "a: [1]", "a", "[1]", "[1, q]"),
    "a dict": (
        MAPPING, "a: '{\"x\": 1, \"y\": [True, None, \"q\", 2.5, (1, 2)]}'", "a: '{\"x\": 1}'", "a",
        '{x: 1} ({"x": 1})', "{x: 1, y: [true, null, q, 2.5, [1, 2]]}",
    ),
    "a dtype": ("- a = torch.float32", "a: torch.float32", "a: torch.float64", "a", "float64 (torch.float64)",
                "float32"),
    "an expression as subject": (LEAF, "len(a): 2", "len(a): 3", "len(a)", "3", "2"),
    "a subject that raises": (
        "- a = 1", "a: 1", "a.grad: 1", "a.grad", "a value", "AttributeError: 'int' object has no attribute 'grad'",
    ),
    "a check of tensors on something else": (
        "- a = 1", "a: 1", "a: {is_leaf: true}", "a.is_leaf", "a tensor, to look at its is_leaf", "1",
    ),
}  # fmt: skip


TOLERANCES = {"rtol", "atol"}  # they stand among the checks, and say how `value` and `grad` compare


def test_a_check_is_known_everywhere() -> None:
    listed = load_schema("case.schema.json")["$defs"]["checks"]["properties"].keys()
    assert listed - TOLERANCES == REGISTRY.keys() - {"log"}
    assert {entry(name) for name in REGISTRY} <= PIECES.keys()
    assert {name for name in REGISTRY if not any(key.partition(" ")[0] == name for key in CHECKS)} == set()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def steps_with(before: str, expectation: str) -> tuple[str, int, int]:
    """Return the steps that end with `expectation`, the number of its step and its line."""
    steps = before.strip("\n") + f"\n- expect:\n    {expectation}\n"
    return steps, steps.count("\n- "), FIRST + steps.count("\n") - 1


@each("row", CHECKS.values(), ids=CHECKS)
def test_an_expectation_that_holds_passes(engine: Engine, row: tuple[str, ...]) -> None:
    steps, _, _ = steps_with(row[0], row[1])
    outcome = outcome_of_steps(engine, steps)
    assert outcome.pop("seconds") > 0
    assert outcome == {"n": 1, "status": "pass"}


@each("row", CHECKS.values(), ids=CHECKS)
def test_an_expectation_that_does_not_hold_fails_with_its_line_and_both_sides(
    engine: Engine, row: tuple[str, ...]
) -> None:
    before, _, wrong, path, expected, observed = row
    steps, step, line = steps_with(before, wrong)
    failures = [failing(line, path, expected, observed)]
    assert problem(engine, steps) == {"status": "fail", "step": step, "line": line, "failures": failures}


def problem(engine: Engine, steps: str) -> dict[str, Any]:
    """Return the outcome of steps as the parent gets it, without what differs from run to run."""
    outcome: dict[str, Any] = json.loads(json.dumps(outcome_of_steps(engine, steps)))
    del outcome["seconds"], outcome["n"]
    for failure in outcome.get("failures", ()):
        failure.pop("exception", None)  # the type of what was raised, which the text says too
    return outcome


def failing(line: int, path: str, expected: str, observed: str) -> dict[str, Any]:
    return {"line": line, "path": path, "expected": expected, "observed": observed}


def test_all_checks_of_one_step_are_made_even_after_one_has_failed(engine: Engine) -> None:
    steps = """
    - a = zeros(2)
    - expect:
        a:
          is_leaf: false
          version: 3
          shape: [2]
        a + 1: 4
    """
    assert problem(engine, steps) == {
        "status": "fail", "step": 1, "line": FIRST + 3,
        "failures": [
            failing(FIRST + 3, "a.is_leaf", "false", "true"),
            failing(FIRST + 4, "a.version", "3", "0"),
            failing(FIRST + 6, "a + 1", "4", "[1.0, 1.0]"),
        ],
    }  # fmt: skip


def test_a_failing_step_stops_the_case(engine: Engine) -> None:
    steps = """
    - a = zeros(2)
    - expect: {a: 1}
    - a.view(3)
    - expect: {a: 2}
    """
    assert problem(engine, steps) == {
        "status": "fail", "step": 1, "line": FIRST + 1,
        "failures": [failing(FIRST + 1, "a", "1", "[0.0, 0.0]")],
    }  # fmt: skip


def test_what_must_be_a_gradient_of_expressions_is_said_in_their_words(engine: Engine) -> None:
    steps = """
    - a = tensor([1.0, 2.0], requires_grad=True)
    - expect: {a: {grad: ['2 * a[0]', 4]}}
    """
    assert problem(engine, steps)["failures"] == [failing(FIRST + 1, "a.grad", "[2 * a[0], 4]", "null")]


SHAPE = "RuntimeError: shape '[3]' is invalid for input of size 2"
RAISES = {
    "the right error": ("zeros(2).view(3)", "{type: RuntimeError, match: invalid for input of size 2}", None),
    "white space is one blank": ("zeros(2).view(3)", '{type: RuntimeError, match: "invalid  for\\ninput"}', None),
    "all parts of a message": ("zeros(2).view(3)", "{type: RuntimeError, match: [invalid, size 2]}", None),
    "a class above it": ("zeros(2).view(3)", "{type: Exception, match: invalid}", None),
    "nothing, as expected": ("zeros(2).view(2)", "none", None),
    "another type": (
        "zeros(2).view(3)", "{type: ValueError, match: invalid}", ("ValueError: … invalid …", SHAPE),
    ),
    "a class that is no exception's": (
        "zeros(2).view(3)", "{type: UserWarning, match: invalid}", ("UserWarning: … invalid …", SHAPE),
    ),
    "another message": (
        "zeros(2).view(3)", "{type: RuntimeError, match: leaf}", ("RuntimeError: … leaf …", SHAPE),
    ),
    "one part of the message is missing": (
        "zeros(2).view(3)", "{type: RuntimeError, match: [invalid, leaf]}", ("RuntimeError: … invalid … leaf …", SHAPE),
    ),
    "a message is no pattern": (
        "zeros(2).view(3)", "{type: RuntimeError, match: in.*d}", ("RuntimeError: … in.*d …", SHAPE),
    ),
    "a message in which a pattern is found": (
        "zeros(2).view(3)", "{type: RuntimeError, match: [invalid, {regex: 'input of size \\d$'}]}", None,
    ),
    "a message in which a pattern isn't found": (
        "zeros(2).view(3)", "{type: RuntimeError, match: {regex: ^invalid}}", ("RuntimeError: … /^invalid/ …", SHAPE),
    ),
    "nothing was raised": (
        "zeros(2).view(2)", "{type: RuntimeError, match: invalid}", ("RuntimeError: … invalid …", "nothing was raised"),
    ),
    "nothing was to be raised": ("zeros(2).view(3)", "none", ("nothing", SHAPE)),
}  # fmt: skip


@each("row", RAISES.values(), ids=RAISES)
def test_an_expected_error_must_come_with_its_type_and_message(engine: Engine, row: Any) -> None:
    statement, expected, texts = row
    outcome = problem(engine, f"- x = 1\n- do: {statement}\n  raises: {expected}\n- expect: {{x: 1}}\n")
    if texts is None:
        assert outcome == {"status": "pass"}
    else:
        failures = [failing(FIRST + 2, "raises", *texts)]
        assert outcome == {"status": "fail", "step": 1, "line": FIRST + 1, "failures": failures}


WARNS = {
    "the right warning": ("warnings.warn('one two')", "{type: UserWarning, match: one two}", None),
    "a class above it": ("warnings.warn('one two')", "{type: Warning, match: one}", None),
    "the right one among others": (
        "warnings.warn('one'); warnings.warn('two', FutureWarning)", "{type: FutureWarning, match: two}", None,
    ),
    "the same warning again": (
        "warnings.warn('one'); warnings.warn('one')", "{type: UserWarning, match: one}", None,
    ),
    "no warning, as expected": ("y = 1", "none", None),
    "another message": (
        "warnings.warn('one two')", "{type: UserWarning, match: three}",
        ("UserWarning: … three …", "UserWarning: one two"),
    ),
    "another type": (
        "warnings.warn('one two')", "{type: FutureWarning, match: one}",
        ("FutureWarning: … one …", "UserWarning: one two"),
    ),
    "no warning": ("y = 1", "{type: UserWarning, match: one}", ("UserWarning: … one …", "no warning")),
    "no warning was to come": (
        "warnings.warn('one'); warnings.warn('two', FutureWarning)", "none",
        ("nothing", "UserWarning: one; FutureWarning: two"),
    ),
    "one of torch": (
        "(ones(1, requires_grad=True) * 2).grad", "{type: UserWarning, match: .grad attribute of a Tensor}", None,
    ),
}  # fmt: skip


@each("row", WARNS.values(), ids=WARNS)
def test_an_expected_warning_must_come_with_its_type_and_message(engine: Engine, row: Any) -> None:
    statement, expected, texts = row
    outcome = problem(engine, f"- x = 1\n- do: {statement}\n  warns: {expected}\n- expect: {{x: 1}}\n")
    if texts is None:
        assert outcome == {"status": "pass"}
    else:
        failures = [failing(FIRST + 2, "warns", *texts)]
        assert outcome == {"status": "fail", "step": 1, "line": FIRST + 1, "failures": failures}


def test_a_warning_counts_for_the_step_in_which_it_came(engine: Engine) -> None:
    steps = """
    - warnings.warn("one")
    - do: y = 1
      warns: {type: UserWarning, match: one}
    """
    failures = [failing(FIRST + 2, "warns", "UserWarning: … one …", "no warning")]
    assert problem(engine, steps) == {"status": "fail", "step": 1, "line": FIRST + 1, "failures": failures}


def test_a_step_can_have_to_warn_and_to_raise(engine: Engine) -> None:
    steps = """
    - do: |
        warnings.warn("one")
        zeros(2).view(3)
      warns: {type: UserWarning, match: MATCH}
      raises: {type: RuntimeError, match: MATCH}
    """
    assert problem(engine, steps.replace("MATCH", "''").replace("''", "o", 1).replace("''", "size")) == {
        "status": "pass"
    }
    assert problem(engine, steps.replace("MATCH", "leaf"))["failures"] == [
        failing(FIRST + 4, "raises", "RuntimeError: … leaf …", SHAPE),
        failing(FIRST + 3, "warns", "UserWarning: … leaf …", "UserWarning: one"),
    ]


def test_a_step_that_only_has_to_warn_must_not_raise(engine: Engine) -> None:
    steps = """
    - do: |
        warnings.warn("one")
        zeros(2).view(3)
      warns: {type: UserWarning, match: one}
    """
    assert problem(engine, steps) == {
        "status": "error", "step": 0, "line": FIRST + 2, "traceback": [[FIRST + 2, "<module>"]],
        "failures": [failing(FIRST + 2, "", "no error", SHAPE)],
    }  # fmt: skip


def test_an_unexpected_error_names_the_lines_that_led_to_it(engine: Engine) -> None:
    steps = """
    - |
      def f(x):
          y = x * 2
          return y.view(3)

      class Layer(nn.Module):
          def forward(self, x):
              return f(x)
    - a = zeros(2)
    - Layer()(a)
    - expect: {a: 0}
    """
    assert problem(engine, steps) == {
        "status": "error", "step": 2, "line": FIRST + 9,
        "traceback": [[FIRST + 9, "<module>"], [FIRST + 7, "forward"], [FIRST + 3, "f"]],
        "failures": [failing(FIRST + 9, "", "no error", SHAPE)],
    }  # fmt: skip


def test_the_traceback_of_a_backward_names_the_line_of_the_hook(engine: Engine) -> None:
    steps = """
    - |
      def hook(grad):
          raise ValueError("no")
    - a = ones(1, requires_grad=True)
    - a.register_hook(hook)
    - a.sum().backward()
    - expect: {a: 1}
    """
    assert problem(engine, steps) == {
        "status": "error", "step": 3, "line": FIRST + 5,
        "traceback": [[FIRST + 5, "<module>"], [FIRST + 2, "hook"]],
        "failures": [failing(FIRST + 5, "", "no error", "ValueError: no")],
    }  # fmt: skip


@each("name", ["GeneratorExit", "StopIteration", "RecursionError", "Warning"])
def test_every_exception_that_a_case_can_raise_is_an_outcome(engine: Engine, name: str) -> None:
    steps = f"""
    - |
      def f():
          raise {name}("gone")
    - do: f()
      raises: {{type: {name}, match: gone}}
    - f()
    """
    outcome = problem(engine, steps)
    assert (outcome["status"], outcome["step"]) == ("error", 2)
    assert outcome["failures"] == [failing(FIRST + 5, "", "no error", f"{name}: gone")]


def test_a_failure_names_the_type_of_what_was_raised(engine: Engine) -> None:
    begin = "- a = ones(2)\n"
    for steps, exception in (
        ("- do: a.view(3)\n  raises: {type: ValueError, match: x}", "RuntimeError"),
        ("- do: warnings.warn('x')\n  warns: none", "UserWarning"),
        ("- a.view(3)\n- expect: {a: 1}", "RuntimeError"),
        ("- expect: {a.grad.shape: 1}", "AttributeError"),
        ("- expect: {a: {next_functions: []}}", "AttributeError"),
    ):
        (failure,) = outcome_of_steps(engine, begin + steps)["failures"]
        assert failure["exception"] == exception, steps


def test_a_message_is_cut_where_it_grows_long(engine: Engine) -> None:
    steps = """
    - |
      def f():
          raise ValueError("x" * 3000)
    - do: f()
      raises: {type: ValueError, match: y}
    """
    (failure,) = problem(engine, steps)["failures"]
    assert failure["observed"] == "ValueError: " + "x" * (2000 - len("ValueError: "))


def test_target_stands_for_the_dtype_that_the_case_runs_with(engine: Engine) -> None:
    steps = """
    - a = ones(2)
    - expect: {a: {dtype: target}, dtype: torch.float64}
    """
    assert outcome_of_steps(engine, steps, dtype="float64")["status"] == "pass"
    assert outcome_of_steps(engine, steps, dtype="float32")["failures"] == [
        failing(FIRST + 1, "dtype", "float64 (torch.float64)", "float32")
    ]


def test_what_a_device_can_not_show_is_left_out_and_the_rest_is_judged(engine: Engine) -> None:
    steps = """
    - a = ones(2)
    - b = a.view(2, 1)
    - expect:
        a: {shape: [2], shares_storage: b, stride: [1]}
        a.data_ptr(): 0
    """
    hidden = [{"line": FIRST + 4, "path": "a.data_ptr()", "reason": "meta shows no addresses"}]
    outcome = outcome_of_steps(engine, steps, "meta")
    assert (outcome["status"], outcome["unobserved"]) == ("pass", hidden)
    outcome = outcome_of_steps(engine, steps.replace("shape: [2]", "shape: [3]"), "meta")
    assert (outcome["status"], outcome["unobserved"]) == ("fail", hidden)
    assert [failure["path"] for failure in outcome["failures"]] == ["a.shape"]
    assert problem(engine, steps.replace("a.data_ptr(): 0", "a.data_ptr(): -1"))["status"] == "fail"


def test_a_case_of_which_nothing_can_be_seen_is_unsupported(engine: Engine) -> None:
    steps = "- a = ones(2)\n- expect: {a.data_ptr(): 0}"
    outcome = outcome_of_steps(engine, steps, "meta")
    assert outcome["status"] == "unsupported"
    assert outcome["reason"] == "nothing can be observed: a.data_ptr(): meta shows no addresses"
    assert outcome_of_steps(engine, f"{steps}\n- {{do: a + 1, raises: none}}", "meta")["status"] == "pass"


def test_a_device_without_strides_is_not_asked_for_them(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (checks, storage):
        monkeypatch.setattr(place, "keeps_strides", lambda kind: kind != "meta")
    steps = """
    - a = ones(2, 3, requires_grad=True)
    - a.grad = ones(2, 3)
    - log(a.stride())
    - expect:
        a: {stride: [1, 2], is_contiguous: false, grad: {stride: [1, 2], shape: [2, 3]}}
        a.storage_offset(): 5
        log: [[1, 2]]
    """
    outcome = outcome_of_steps(engine, steps, "meta")
    assert outcome["status"] == "pass"
    hidden = ["a.stride", "a.is_contiguous", "a.grad.stride", "a.storage_offset()", "log"]
    assert [each["path"] for each in outcome["unobserved"]] == hidden
    assert {each["reason"] for each in outcome["unobserved"]} == {"meta keeps no strides"}
    assert outcome_of_steps(engine, steps.replace("shape: [2, 3]", "shape: [3]"), "meta")["status"] == "fail"
    only = "- a = ones(2, requires_grad=True)\n- a.grad = ones(2)\n- expect: {a: {grad: {stride: [1]}}}"
    assert outcome_of_steps(engine, only, "meta")["status"] == "pass"  # that there is a gradient was seen


def test_kernels_of_other_devices_may_round_as_the_dtype_allows() -> None:
    usual = (1.3e-6, 1e-5)
    assert limits_of({"rtol": 1e-9, "atol": 1e-2}, usual, "cpu") == (1e-9, 1e-2)
    assert limits_of({"rtol": 1e-9, "atol": 1e-2}, usual, "xla:0") == (1.3e-6, 1e-2)
    assert limits_of({"atol": 0.0}, usual, "xla") == (1.3e-6, 0.0)
    assert limits_of({}, usual, "cpu") == limits_of({}, usual, "xla") == usual
    assert limits_of({}, (0.0, 0.0), "xla") == (0.0, 0.0)


def test_what_a_step_has_read_of_strides_that_a_device_does_not_keep_fails_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = """
    - |
      def places(t):
          return list(t.stride())
    - a = ones(2, 3)
    - seen = [places(a), 1]
    - again = seen
    - expect: {again: [[1, 2], 1]}
    - expect: {a: {shape: [2, 3]}}
    """
    assert outcome_of_steps(engine, steps, "meta")["status"] == "fail"
    monkeypatch.setattr(storage, "keeps_strides", lambda kind: kind != "meta")
    outcome = outcome_of_steps(engine, steps, "meta")
    assert outcome["status"] == "pass"
    assert [(each["path"], each["reason"]) for each in outcome["unobserved"]] == [("again", "meta keeps no strides")]
    assert outcome_of_steps(engine, steps.replace("{a: {shape: [2, 3]", "{a: {shape: [3]"), "meta")["status"] == "fail"
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "fail"


def test_nor_does_what_is_missing_for_what_a_step_has_read_of_strides(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = """
    - a = ones(2, 3)
    - kept = a if a.stride() == (1, 2) else None
    - expect: {a.shape: [2, 3], kept.dtype: dtype}
    """
    assert outcome_of_steps(engine, steps, "meta")["status"] == "fail"
    monkeypatch.setattr(storage, "keeps_strides", lambda kind: kind != "meta")
    outcome = outcome_of_steps(engine, steps, "meta")
    assert outcome["status"] == "pass"
    assert [each["path"] for each in outcome["unobserved"]] == ["kept.dtype"]
    of_torch = steps.replace("kept.dtype", '"a.view(7) if kept is None else kept"')
    assert outcome_of_steps(engine, of_torch, "meta")["status"] == "fail"


def test_an_error_of_looking_is_an_error_on_the_cpu_only(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: torch.Tensor) -> None:
        raise RuntimeError("no storage")

    look = checks.looks_at_memory(refuse)
    with pytest.raises(RuntimeError, match="no storage"):
        look(torch.ones(2))
    monkeypatch.setitem(REGISTRY, "layout", checks.sees(look))
    monkeypatch.setitem(REGISTRY, "is_leaf", checks.sees(refuse))
    steps = "- a = ones(2)\n- expect: {a: {layout: strided, shape: [2]}}"
    outcome = outcome_of_steps(engine, steps, "meta")
    assert outcome["status"] == "pass"
    assert outcome["unobserved"][0]["reason"] == "RuntimeError: no storage"
    outcome = outcome_of_steps(engine, steps.replace("layout: strided", "is_leaf: true"), "meta")
    assert outcome["status"] not in ("pass", "unsupported")  # autograd keeps that itself


KERNEL = "- do: ones(2, 3) @ ones(2, 3)\n  raises: {type: ValueError, match: [{kernel: other words}, x]}"


def test_the_words_of_a_kernel_are_those_of_the_cpu(engine: Engine) -> None:
    observed = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"
    failures = [failing(FIRST + 1, "raises", "ValueError: … other words … x …", observed)]
    assert problem(engine, KERNEL)["failures"] == failures
    right = KERNEL.replace("ValueError", "RuntimeError").replace("other words", "mat1 and  mat2")
    assert problem(engine, right)["status"] == "pass"
    assert outcome_of_steps(engine, KERNEL, "meta")["status"] == "pass"
    assert outcome_of_steps(engine, KERNEL.replace("@", "+"), "meta")["status"] == "fail"  # nothing was raised
    lacks = outcome_of_steps(engine, KERNEL.replace("ones(2, 3) @ ones(2, 3)", "ones(2).to_sparse()"), "meta")
    assert lacks["status"] == "unsupported"  # an operation that is missing refuses nothing


class OfDevice(torch.Tensor):  # type: ignore[misc]  # torch has no types for it
    """A class that all tensors of a device have, as torchax's."""

    device = torch.device("meta")


def test_a_parameter_of_a_class_of_a_device_is_one() -> None:
    assert class_of(torch.nn.Parameter(torch.ones(2).as_subclass(OfDevice))) == "Parameter"
    assert class_of(torch.ones(2).as_subclass(OfDevice)) == "OfDevice"
    assert class_of(torch.nn.parameter.UninitializedParameter()) == "UninitializedParameter"


def test_a_parameter_of_a_class_of_the_case_keeps_its_class() -> None:
    of_case = type("Labelled", (OfDevice,), {"__module__": MODULE})
    assert class_of(torch.nn.Parameter(torch.ones(2).as_subclass(of_case))) == "Labelled"


def test_nodes_of_composed_functions_may_have_other_names_on_other_devices() -> None:
    assert not is_node_of("NormBackward1", "LinalgVectorNormBackward0", "cpu")
    assert is_node_of("NormBackward1", "LinalgVectorNormBackward0", "mps")
    assert is_node_of([None, "LinearBackward0"], [None, "AddmmBackward0"], "mps")
    for observed in (None, "MulBackward0", "NormBackward"):
        assert not is_node_of(observed, "LinalgVectorNormBackward0", "mps")
    assert not is_node_of(["AddBackward0"], [None, "AddBackward0"], "mps")
    assert not is_node_of("NormBackward1", None, "mps")


def test_waiting_asks_the_module_of_a_device_and_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def synchronize() -> None:
        calls.append("waited")
        raise RuntimeError("no queue")

    monkeypatch.setattr(torch, "toy", types.SimpleNamespace(synchronize=synchronize), raising=False)
    synchronizer("toy:0", "")()
    synchronizer("unknown", "")()
    synchronizer("cpu", "")()
    assert calls == ["waited"]
