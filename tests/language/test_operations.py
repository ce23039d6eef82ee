"""Entries of `ops` become ordinary cases; what is wrong with one is said at its place."""

from __future__ import annotations

import pytest
from running import request_of, running_engine
from shipped import rules

from conformance.language.errors import CaseFileError
from conformance.language.reader import parse_cases
from conformance.model.case import Case

HEAD = "topic: Operators\nops:\n"
CUMPROD = """\
  - id: cumprod
    op: [x.cumprod(dim), "torch.cumprod(x, dim=dim)"]
    inputs: {x: [n, m]}
    rows: [{dim: 0}, {dim: -1}]
"""


def read(text: str) -> list[Case]:
    return parse_cases(HEAD + text, "ops.yaml", rules())


def problems_in(text: str) -> list[str]:
    with pytest.raises(CaseFileError) as raised:
        read(text)
    return [f"{each.line}: {each.path}: {each.message} ({each.hint})" for each in raised.value.problems]


def test_an_entry_becomes_a_case_that_expects_that_no_way_disagrees() -> None:
    (case,) = read(CUMPROD)
    assert case.id == "derivatives-of-cumprod"
    assert case.title == "Derivatives of x.cumprod(dim)"
    assert case.rules == ("ops.against-differences",)
    assert case.written_out
    made, expected = case.steps
    assert made["do"] == (
        "f = [\n    lambda x, dim: x.cumprod(dim),\n    lambda x, dim: torch.cumprod(x, dim=dim),\n]\n"
        "rows = [\n    {'dim': 0},\n    {'dim': -1},\n]\n"
        "wrong = derivatives(f, {'x': ['n', 'm']}, rows, device=device, dtype=dtype)\n"
    )
    assert "wrong['backward twice']" in [entry["subject"] for entry in expected["expect"]]
    assert all(entry["checks"][0][:2] == ["value", []] for entry in expected["expect"])


def test_kinds_complex_numbers_conditions_and_a_reason_are_kept() -> None:
    (case,) = read(
        "  - {id: pow, op: 'pow(x, y)', elementwise: {x: positive, y: any}, complex: true, torch: '>=2.1', why: Two.}"
    )
    assert "derivatives(f, {'x': 'positive', 'y': 'any'}, complex_too=True," in case.steps[0]["do"]
    assert (case.torch, case.why) == (">=2.1", "Two.")
    assert "wrong['some inputs']" in [entry["subject"] for entry in case.steps[1]["expect"]]
    (single,) = read("  - {id: exp, op: exp(x), elementwise: {x: any}}")
    assert "wrong['some inputs']" not in [entry["subject"] for entry in single.steps[1]["expect"]]


def test_a_file_has_cases_or_operations() -> None:
    with pytest.raises(CaseFileError, match="the key 'cases' or 'ops' is missing"):
        parse_cases("topic: Operators\n", "ops.yaml", rules())


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{id: a, op: x +, inputs: {x: [n]}}", "op: expected an expression, and this is not Python"),
        ("{id: a, op: [atan2(x, y)], elementwise: {x: any}}", "quote an expression that has a comma in a list"),
        ("{id: a, op: x * 2, inputs: {x: [n], y: [n]}}", "op: 'y' is not used"),
        ("{id: a, op: 'x[dim]', inputs: {x: [n]}, rows: [{dim: 0}, {d: 1}]}", "rows[1]: expected the keys dim"),
        (
            "{id: a, op: 'x * tensor([2.0])', inputs: {x: [n]}}",
            "op: tensor() makes a tensor (give it as an argument in rows)",
        ),
        ("{id: a, op: x.foo_bar(), inputs: {x: [n]}}", "unknown attribute 'foo_bar'"),
        ("{id: a, op: exp(x)}", "the key 'elementwise' or 'inputs' is missing"),
        ("{id: a, op: exp(x), elementwise: {x: any}, inputs: {x: [n]}}", "can't stand beside 'elementwise'"),
        ("{id: a, op: exp(x), elementwise: {x: negative}}", "expected one of any, positive, unit, beyond"),
        ("{id: a, op: exp(x), inputs: {x: {positve: [n]}}}", "did you mean 'positive'?"),
        ("{id: a, op: exp(x), inputs: {x: [1.5]}}", "expected a size or its name, got 1.5"),
        ("{id: a, ops: exp(x), inputs: {x: [n]}}", "unknown key 'ops'"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(entry: str, problem: str) -> None:
    found = problems_in(f"  - {entry}\n")
    assert any(problem in each for each in found), found
    assert all(each.startswith("3: ") for each in found), found


def test_an_id_stands_once() -> None:
    assert any("stands twice" in each for each in problems_in(CUMPROD + CUMPROD))


def test_the_case_runs_and_what_is_left_out_is_said() -> None:
    (case,) = read("  - {id: zeta, op: 'special.zeta(s, x)', inputs: {x: {positive: [n]}}, rows: [{s: 2.0}]}")
    with running_engine() as engine:
        outcome = engine.run(request_of(case))
    assert outcome["status"] == "pass", outcome
    assert "wrong['forward mode']" in [each["path"] for each in outcome["unobserved"]]
    (wrong,) = read("  - {id: lost, op: x.detach() * 2, inputs: {x: [n]}}")
    with running_engine() as engine:
        outcome = engine.run(request_of(wrong))
    assert outcome["status"] == "fail"
    assert outcome["failures"][0]["path"] == "wrong['backward']"
