"""Tests of a case as one torch runs it."""

from __future__ import annotations

import json
from typing import Any

from loops import each

from conformance.execution.program import (
    encoded_program,
    encoded_steps_of,
    line_of,
    program_of,
    why_unsupported,
)
from conformance.language.reader import parse_cases
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.model.rule import Rule

RULES = {
    "a.b": Rule(id="a.b", text="A rule.", topic="Rules", level="documented", link="https://example.org", since="1.13")
}
CPU = Target(device="cpu", dtype="float32")
TEXT = """\
topic: T
cases:
  - id: one
    title: A
    why: W
    rules: [a.b]
HEAD    steps:
      - a = tensor([1.0], requires_grad=True)
      - when: {torch: ">=2.1", steps: [b = a.exp()]}
      - when: {torch: "<2.1", steps: [b = a.sin()]}
      - do: b.backward()
        raises:
          - {type: RuntimeError, match: old, torch: "<2.13"}
          - {type: ValueError, match: new, torch: ">=2.13"}
        warns:
          - {type: UserWarning, match: slow, torch: "<2.13"}
          - {type: none, torch: ">=2.13"}
      - expect:
          a:
            version: {torch: {"<2.13": 0, ">=2.13": 1}}
            grad: {value: {torch: {"<2.13": a, ">=2.13": [2.0]}}, shape: [1]}
            is_leaf: true
          b: {torch: {"<2.13": 3, ">=2.13": b * 1}}
      - {expect: {a: {is_leaf: true}}, torch: ">=2.13"}
"""
NEEDS = """\
topic: T
cases:
  - id: one
    title: A
    why: W
    rules: [a.b]
HEAD    steps:
      - a = tensor([1.0])
      - STEP
      - expect: {a: [1.0]}
"""
ON_THE_WAY_TO_2_13 = [
    "2.13.0",
    "2.13.0+cu130",
    "2.13.0.dev20260101",
    "2.13.0.dev20260101+cpu",
    "2.13.0a0+git123",
    "2.13.0rc1",
    "2.13.1",
    "2.14.0",
]
BEFORE_2_13 = ["2.12.1", "2.12.1+cpu", "2.12.0.dev20251101", "2.12.0a0+git123", "2.1.0"]


def case_of(head: str = "", text: str = TEXT) -> Case:
    (case,) = parse_cases(text.replace("HEAD", head), "x.yaml", RULES)
    return case


def checks(step: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {entry["subject"]: {name: value for name, value, _ in entry["checks"]} for entry in step["expect"]}


@each("torch", ON_THE_WAY_TO_2_13)
def test_a_build_of_or_on_the_way_to_the_release_gets_its_alternatives(torch: str) -> None:
    program = program_of(case_of(), CPU, torch)
    _, _, does, expects, last = program["steps"]
    assert (does["raises"]["type"], does["raises"]["match"]) == ("ValueError", ["new"])
    assert does["warns"]["type"] is None
    found = checks(expects)
    assert found["a"]["version"] == 1
    assert [value for _, value, _ in found["a"]["grad"]["checks"]] == [[2.0], [1]]
    assert found["b"]["value"] == {"expr": "b * 1"}
    assert checks(last) == {"a": {"is_leaf": True}}


@each("torch", BEFORE_2_13)
def test_a_build_before_the_release_gets_the_others(torch: str) -> None:
    program = program_of(case_of(), CPU, torch)
    _, _, does, expects = program["steps"]
    assert (does["raises"]["type"], does["raises"]["match"]) == ("RuntimeError", ["old"])
    assert (does["warns"]["type"], does["warns"]["match"]) == ("UserWarning", ["slow"])
    found = checks(expects)
    assert found["a"]["version"] == 0
    assert [value for _, value, _ in found["a"]["grad"]["checks"]] == [{"expr": "a"}, [1]]
    assert found["b"]["value"] == 3


@each("torch, text", [("2.1.0", "b = a.exp()"), ("2.0.1", "b = a.sin()"), ("2.1.0a0+git1", "b = a.exp()")])
def test_a_step_of_other_versions_is_left_out(torch: str, text: str) -> None:
    program = program_of(case_of(), CPU, torch)
    assert [step.get("do") for step in program["steps"]][:2] == ["a = tensor([1.0], requires_grad=True)", text]


def test_a_program_names_its_target_and_file_and_keeps_the_lines() -> None:
    program = program_of(case_of(), Target(device="cuda", dtype="float64"), "2.13.0")
    assert (program["device"], program["dtype"], program["file"]) == ("cuda", "float64", "x.yaml")
    assert [step["line"] for step in program["steps"]] == [8, 9, 11, 18, 24]


@each("torch", ["1.13.1", "2.12.0", "2.13.0"])
def test_steps_that_are_encoded_before_make_the_same_request(torch: str) -> None:
    case = case_of(text=TEXT.replace('{"<2.13": 3,', '{"<2.13": .inf,'))
    request = {"n": 7, **program_of(case, CPU, torch)}
    encoded = encoded_program(case, CPU, *encoded_steps_of([case], torch))
    assert "steps" not in encoded
    assert json.loads(line_of({"n": 7, **encoded})) == json.loads(line_of(request)) == json.loads(json.dumps(request))


def test_a_case_that_a_torch_cannot_run_has_no_encoded_steps() -> None:
    assert encoded_steps_of([case_of('    torch: ">=2.13"\n', NEEDS.replace("STEP", "b = a + 1"))], "2.12.0") == [""]


@each("torch", ["1.13.1", "2.12.0", "2.13.0"])
def test_no_condition_is_left_in_a_program(torch: str) -> None:
    program = json.loads(json.dumps(program_of(case_of(), CPU, torch)))

    def conditions(value: Any) -> list[Any]:
        if isinstance(value, dict):
            own = [value["torch"]] if isinstance(value.get("torch"), dict) else []
            return own + [found for inner in value.values() for found in conditions(inner)]
        return [found for inner in value for found in conditions(inner)] if isinstance(value, list) else []

    assert conditions(program) == []
    assert all("torch" not in step for step in program["steps"])


def test_choosing_leaves_the_case_as_it_was() -> None:
    case = case_of()
    before = json.dumps(case.steps)
    program_of(case, CPU, "2.13.0")
    assert json.dumps(case.steps) == before


@each(
    "head, target, torch, reason",
    [
        ("", CPU, "2.13.0", ""),
        ('    torch: ">=2.14"\n', CPU, "2.13.0", "needs torch >=2.14"),
        ('    torch: ">=2.14"\n', CPU, "2.14.0.dev20260101", ""),
        ('    torch: ">=2.14"\n', CPU, "2.14.0a0+git123", ""),
        ('    torch: ">=2.14"\n', CPU, "2.14.0+cu130", ""),
        ('    torch: "<2.13"\n', CPU, "2.13.0.dev20260101", "needs torch <2.13"),
        ("    devices: [cuda, xpu]\n", CPU, "2.13.0", "needs a device of cuda, xpu"),
        ("    devices: [cpu]\n", CPU, "2.13.0", ""),
        ("    dtypes: [float64]\n", CPU, "2.13.0", "needs a dtype of float64"),
        ("    dtypes: [float32, float64]\n", CPU, "2.13.0", ""),
    ],
)
def test_why_a_case_is_unsupported_is_said(head: str, target: Target, torch: str, reason: str) -> None:
    assert why_unsupported(case_of(head, NEEDS.replace("STEP", "b = a * 2")), target, torch) == reason


@each(
    "torch, reason",
    [
        ("1.13.1", "needs torch >=2.0 for func.vmap"),
        ("2.0.0", ""),
        ("2.0.0a0+git123", ""),
        ("2.13.0.dev20260101", ""),
    ],
)
def test_a_name_that_a_torch_lacks_makes_a_case_unsupported(torch: str, reason: str) -> None:
    case = case_of(text=NEEDS.replace("STEP", "b = torch.func.vmap(torch.sum)(a)"))
    assert why_unsupported(case, CPU, torch) == reason


def test_a_name_in_an_expectation_counts_as_well() -> None:
    case = case_of(text=NEEDS.replace("STEP", "expect: {torch.func.vmap(torch.sum)(a): [1.0]}"))
    assert why_unsupported(case, CPU, "1.13.1") == "needs torch >=2.0 for func.vmap"


def test_a_name_in_a_step_that_is_left_out_does_not_count() -> None:
    case = case_of(text=NEEDS.replace("STEP", 'when: {torch: ">=2.0", steps: [b = torch.func.vmap(torch.sum)(a)]}'))
    assert why_unsupported(case, CPU, "1.13.1") == ""
    assert [step.get("do") for step in program_of(case, CPU, "1.13.1")["steps"]] == ["a = tensor([1.0])", None]
