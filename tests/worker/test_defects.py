"""What the suite raises by itself is its own defect; what torch or a case raises is theirs, whoever called them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from running import FIRST, case_of, outcome_of_steps, request_of, running_engine

from conformance.worker import case_run, checks, failures, reference, sandbox, values
from conformance.worker.engine import Engine


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def broken(*_: Any, **__: Any) -> Any:
    raise AssertionError("this must not be")


LEAF = "- a = tensor([1.0], requires_grad=True)\n"


def own(module: Any) -> Any:
    """Return a function of a module of the suite's, with a mistake in it."""
    names: dict[str, Any] = {}
    exec(compile("def mistaken(*args, **kwargs):\n    return {}['nothing']", module.__file__, "exec"), names)
    return names["mistaken"]


@pytest.mark.parametrize(
    ("module", "name", "steps"),
    [
        (checks, "check_grad", "- expect: {a: {grad: {grad: null}}}"),
        (checks, "agree", "- expect: {a: {is_leaf: true}}"),
        (checks, "described", "- expect: {a: {grad: 1}}"),
        (checks, "plain", "- expect: {a: 1}"),
        (values, "one_line", "- log(ValueError())\n- expect: {log: []}"),
        (reference, "names_in", "- expect: {a: {value: a * 1}}"),
        (reference, "reference_of", "- expect: {a: {value: a * 1}}"),
        (sandbox, "relocate", "- b = a\n- expect: {b: 1}"),
        (failures, "matches", "- do: a.add_(1)\n  raises: {type: RuntimeError, match: leaf}"),
        (case_run, "failures_of_warnings", "- do: a.grad\n  warns: none"),
    ],
)
def test_a_mistake_in_the_suite_is_an_internal_error(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, steps: str
) -> None:
    mistaken = own(module)
    if name == "check_grad":
        monkeypatch.setitem(checks.CHECKS, "grad", mistaken)
    else:
        monkeypatch.setattr(module, name, mistaken)
    outcome = outcome_of_steps(engine, LEAF + steps)
    assert outcome["status"] == "internal-error"
    assert outcome["reason"] == "the suite itself raised KeyError: 'nothing'"
    assert outcome["stderr"].startswith("Traceback (most recent call last):")
    assert "conformance/worker/" in outcome["stderr"]
    assert outcome["step"] in (0, 1, 2)
    assert outcome["line"] >= FIRST
    assert "failures" not in outcome


def test_a_check_that_the_worker_does_not_know_is_an_internal_error(engine: Engine) -> None:
    request = request_of(case_of(LEAF + "- expect: {a: {is_leaf: true}}"))
    request["steps"][1]["expect"][0]["checks"][0][0] = "is_nice"
    outcome = engine.run(request)
    line = FIRST + 1
    assert (outcome["status"], outcome["step"], outcome["line"]) == ("internal-error", 1, line)
    assert outcome["reason"] == "the suite itself raised KeyError: 'is_nice'"


@pytest.mark.parametrize(
    "expectation", ["{grad: null}", "{grad: 1}", "{grad_fn: null}", "{value: a * 1}", "{shape: [1]}"]
)
def test_what_torch_raises_while_somebody_looks_is_no_defect_of_the_suite(
    monkeypatch: pytest.MonkeyPatch, expectation: str
) -> None:
    for name in ("grad", "grad_fn", "shape"):
        monkeypatch.setattr(torch.Tensor, name, property(broken), raising=False)
    with running_engine() as engine:  # begun now: attributes that come to a class later are deleted after a case
        outcome = outcome_of_steps(engine, f"{LEAF}- expect: {{a: {expectation}}}")
    assert outcome["status"] == "fail"
    (failure,) = outcome["failures"]
    assert (failure["expected"], failure["observed"]) == ("no error", "AssertionError: this must not be")


RECURSION = """
- |
  def f(x):
      log(x)
      f([x])
- f(1)
"""
OWN_ERROR = """
- |
  def f():
      raise KeyError("x")
"""


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        ("- tensor(1, 2, 3)", "error"),
        ("- rand(2, dtype=3)", "error"),
        ("- in_threads(*[len] * 65)", "error"),
        ("- compiled(len)", "error"),
        ("- 'pickled(lambda: 1)'", "error"),
        ("- a.grad.shape", "error"),
        ("- type(Exception)", "error"),
        ("- log(ones(1, device='meta'))", "error"),
        (RECURSION, "error"),
        (f"{OWN_ERROR}- expect: {{f(): 1}}", "fail"),
        (f"{OWN_ERROR}- expect: {{a: {{value: f()}}}}", "fail"),
        ("- expect: {a: {next_functions: []}}", "fail"),
        ("- m = zeros(2, device='meta')\n- expect: {m: 0}", "fail"),
    ],
)
def test_what_a_case_asks_for_is_no_defect_of_the_suite(engine: Engine, steps: str, status: str) -> None:
    assert outcome_of_steps(engine, f"{LEAF}{steps.lstrip()}\n- expect: {{a: 1}}")["status"] == status
