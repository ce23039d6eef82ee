"""Cases with rows, blocks of one condition, and text that is compared as it stands: what they are read as."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from running import RULES, request_of, running_engine
from samples import parse_at

from conformance.language.errors import CaseFileError
from conformance.language.reader import parse_cases
from conformance.model.case import Case
from conformance.worker.engine import Engine

HEAD = """\
topic: T
cases:
  - id: slopes
    title: A slope is a formula
    why: W
    rules: [a.b]
"""
ROWS = """\
    torch: "<2.19"
    dtypes: [float32, float64]
    parametrize:
      exp: {op: "lambda t: t.exp()", slope: "lambda t: t.exp()", node: {text: ExpBackward0}, at: [0.5, 2]}
      sin-twice:
        op: |
          lambda t: (t * 2).sin()
        slope: 'lambda t: 2 * (2 * t).cos()'
        node: {text: SinBackward0}
        at: [1.0]
        torch: ">=2.0"
        dtypes: [float64]
    steps:
      - x = tensor(at, requires_grad=True)
      - y = op(x)
      - y.sum().backward()
      - expect: {x: {grad: slope(x)}, y.grad_fn.name(): node}
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def read(text: str) -> list[Case]:
    return parse_cases(HEAD + text, "t.yaml", RULES)


def test_there_is_a_case_for_each_row() -> None:
    exp, twice = read(ROWS)
    assert (exp.id, twice.id) == ("slopes-exp", "slopes-sin-twice")
    assert twice.title == "A slope is a formula: sin-twice"
    assert (exp.torch, exp.dtypes) == ("<2.19", ("float32", "float64"))
    assert (twice.torch, twice.dtypes) == ("<2.19,>=2.0", ("float64",))
    assert (exp.line, twice.line) == (10, 11)  # those of the rows
    assert exp.written_out


def test_a_row_is_set_before_the_first_step() -> None:
    first, *others = read(ROWS)[0].steps
    assert first["do"] == "op = lambda t: t.exp()\nslope = lambda t: t.exp()\nnode = 'ExpBackward0'\nat = [0.5, 2]"
    assert [step.get("do") for step in others] == [
        "x = tensor(at, requires_grad=True)", "y = op(x)", "y.sum().backward()", None,
    ]  # fmt: skip


def test_each_row_is_judged_alone(engine: Engine) -> None:
    assert [engine.run(request_of(case))["status"] for case in read(ROWS)] == ["pass", "pass"]
    wrong = read(ROWS.replace("2 * (2 * t).cos()", "(2 * t).cos()"))
    assert [engine.run(request_of(case))["status"] for case in wrong] == ["pass", "fail"]


def test_what_is_shown_of_a_row_is_a_case_by_itself() -> None:
    for case in read(ROWS):
        again = parse_at(case.text, case.line, "t.yaml", RULES)
        assert (again.id, again.steps, again.digest) == (case.id, case.steps, case.digest)


def test_a_row_changes_the_digest_of_its_own_case_alone() -> None:
    changed = read(ROWS.replace("[0.5, 2]", "[0.5, 3]"))
    assert [case.digest == old.digest for case, old in zip(changed, read(ROWS), strict=True)] == [False, True]


def test_an_id_of_a_row_may_stand_nowhere_else() -> None:
    other = "  - {id: slopes-exp, title: T, why: W, rules: [a.b], steps: [{expect: {len('a'): 1}}]}\n"
    with pytest.raises(CaseFileError, match=r"t.yaml:24:10: id: 'slopes-exp' stands twice \(first in line 3\)"):
        read(ROWS + other)


BLOCK = """\
    steps:
      - a = tensor([1.0], requires_grad=True)
      - when:
          torch: ">=2.0"
          steps:
            - do: a.view(3)
              raises: {type: RuntimeError, match: invalid}
            - expect: {a: {version: 0}}
            - when: {torch: "<2.4", steps: [{expect: {a: {is_leaf: true}}}]}
            - {torch: ">=2.4", expect: {a: 1}}
"""
REPEATED = """\
    steps:
      - a = tensor([1.0], requires_grad=True)
      - do: a.view(3)
        torch: ">=2.0"
        raises: {type: RuntimeError, match: invalid}
      - {torch: ">=2.0", expect: {a: {version: 0}}}
      - {torch: ">=2.0,<2.4", expect: {a: {is_leaf: true}}}
      - {torch: ">=2.0,>=2.4", expect: {a: 1}}
"""


def test_a_block_is_its_steps_under_one_condition() -> None:
    (block,), (repeated,) = read(BLOCK), read(REPEATED)
    assert block.digest == repeated.digest
    assert [step["line"] for step in block.steps] == [8, 12, 14, 15, 16]


def test_text_is_said_to_be_text() -> None:
    def checks(steps: str) -> object:
        return [[name, value] for name, value, _ in read(f"    steps: [{steps}]")[0].steps[0]["expect"][0]["checks"]]

    assert checks("{expect: {str(1): {text: a}}}") == [["value", {"expr": "'a'"}]]
    assert checks("{expect: {str(1): {value: {text: [a, b c]}}}}") == [["value", [{"expr": "'a'"}, {"expr": "'b c'"}]]]
    assert checks("{expect: {str(1): [1, {text: a}]}}") == [["value", [1, {"expr": "'a'"}]]]
    assert checks("{expect: {str(1): {torch: {'<2.1': {text: a}, '>=2.1': 12 ** 3}}}}") == [
        ["value", {"torch": {"<2.1": {"expr": "'a'"}, ">=2.1": {"expr": "12 ** 3"}}}]
    ]
    assert checks("{expect: {str(1): {type: str}}}") == [["type", "str"]]


def test_a_pattern_and_what_must_not_come_are_data() -> None:
    steps = "    steps: [{do: x = 1, warns: none, raises: {type: RuntimeError, match: [a, {regex: '\\d+'}]}}]"
    (step,) = read(steps)[0].steps
    assert [alternative["match"] for alternative in step["raises"]] == [["a", {"regex": "\\d+"}]]
    assert [(alternative["type"], alternative["match"], alternative["torch"]) for alternative in step["warns"]] == [
        (None, [], None)
    ]


def test_words_of_a_kernel_are_a_part_of_an_error_alone() -> None:
    steps = "    steps: [{do: x = 1, KEY: {type: KIND, match: [a, {kernel: b}]}}]"
    (step,) = read(steps.replace("KEY", "raises").replace("KIND", "RuntimeError"))[0].steps
    assert [alternative["match"] for alternative in step["raises"]] == [["a", {"kernel": "b"}]]
    with pytest.raises(CaseFileError, match="match"):
        read(steps.replace("KEY", "warns").replace("KIND", "UserWarning"))
