"""Tests of what a loaded case holds."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from conformance.language.errors import CaseFileError, Problem
from conformance.language.reader import parse_cases
from conformance.language.yaml import MAX_BYTES, read_text
from conformance.model.case import Case
from conformance.model.rule import Rule

RULES = {
    name: Rule(id=name, text="A rule.", topic="Rules", level="documented", link="https://example.org", since="1.13")
    for name in ("a.b", "a.c")
}
TEXT = """\
# a comment
topic: Leaves
cases:
  - id: first-case
    title: The first
    why: Because
    rules: [a.b, a.c]
    source: [somewhere, elsewhere]
    torch: ">=2.0"
    dtypes: [float32, float64]
    devices: [cpu]
    steps:
      - a = tensor([1.0], requires_grad=True)
      - |
        b = a * 2
        c = b.exp()
      - expect:
          a: {is_leaf: true, grad: null}
          c:
            value: (a * 2).exp()
            grad_fn: ExpBackward0

  - id: second-case
    title: The second
    why: Because
    rules: [a.b]
    steps:
      - a = tensor([1.0])
      - do: a.backward()
        raises: {type: RuntimeError, match: does not require grad}
"""


def cases_in(text: str) -> list[Case]:
    return parse_cases(text, "x.yaml", RULES)


def case_with(*steps: str, head: str = "") -> Case:
    listed = "".join(textwrap.indent(f"- {step}\n", "      ") for step in steps)
    text = f"topic: T\ncases:\n  - id: one\n    title: A\n    why: W\n    rules: [a.b]\n{head}    steps:\n{listed}"
    (case,) = cases_in(text)
    return case


def problems_in(*steps: str, head: str = "") -> list[str]:
    with pytest.raises(CaseFileError) as caught:
        case_with(*steps, head=head)
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def checks_of(case: Case, step: int = -1) -> dict[str, dict[str, Any]]:
    return {
        entry["subject"]: {name: value for name, value, _ in entry["checks"]} for entry in case.steps[step]["expect"]
    }


A = "a = tensor([1.0], requires_grad=True)"


def test_a_case_holds_what_the_file_says() -> None:
    first, second = cases_in(TEXT)
    assert (first.file, first.topic, first.id, first.title, first.why) == (
        "x.yaml",
        "Leaves",
        "first-case",
        "The first",
        "Because",
    )
    assert first.rules == ("a.b", "a.c")
    assert first.source == ("somewhere", "elsewhere")
    assert (first.torch, first.dtypes, first.devices) == (">=2.0", ("float32", "float64"), ("cpu",))
    assert (second.source, second.torch, second.dtypes, second.devices) == ((), None, (), ())


def test_a_source_may_be_one_text() -> None:
    assert case_with(A, "expect: {a: 1}", head="    source: a page\n").source == ("a page",)


def test_a_case_its_steps_and_its_checks_know_their_lines() -> None:
    first, second = cases_in(TEXT)
    assert (first.line, second.line) == (4, 23)
    assert [step["line"] for step in first.steps] == [13, 15, 17]
    assert [step["line"] for step in second.steps] == [28, 29]
    entries = first.steps[2]["expect"]
    assert [(entry["subject"], entry["line"]) for entry in entries] == [("a", 18), ("c", 19)]
    assert [(name, line) for name, _, line in entries[1]["checks"]] == [("value", 20), ("grad_fn", 21)]
    assert second.steps[1]["raises"][0]["line"] == 30


def test_the_text_of_a_case_is_its_own_lines() -> None:
    first, second = cases_in(TEXT)
    lines = TEXT.splitlines(keepends=True)
    assert first.text == "".join(lines[3:21])
    assert second.text == "".join(lines[22:])


def test_a_block_of_statements_is_kept_as_it_stands() -> None:
    assert cases_in(TEXT)[0].steps[1] == {"begins": 14, "line": 15, "do": "b = a * 2\nc = b.exp()\n"}


def test_text_becomes_an_expression_where_a_check_takes_one_and_stays_text_elsewhere() -> None:
    case = case_with(
        A, "b = a * 2",
        "expect: {b: {value: a + a, dtype: float32, grad_fn: MulBackward0, is_not: a, view_of: null, "
        "next_functions: [AccumulateGrad]}}",
        "expect: {a: b / 2}",
    )  # fmt: skip
    assert checks_of(case, 2)["b"] == {
        "value": {"expr": "a + a"}, "dtype": "float32", "grad_fn": "MulBackward0", "is_not": {"expr": "a"},
        "view_of": None, "next_functions": ["AccumulateGrad"],
    }  # fmt: skip
    assert checks_of(case)["a"] == {"value": {"expr": "b / 2"}}


def test_an_expression_may_stand_inside_a_list() -> None:
    case = case_with(A, "expect: {a: {value: [1.0, a.sum()], grad: [null, a]}}")
    assert checks_of(case)["a"] == {"value": [1.0, {"expr": "a.sum()"}], "grad": [None, {"expr": "a"}]}


def test_a_plain_value_is_a_check_of_the_value() -> None:
    case = case_with(A, "expect: {a: [1.0], a.shape: [1], len(a): 1, a.is_leaf: true}")
    assert checks_of(case) == {
        "a": {"value": [1.0]}, "a.shape": {"value": [1]}, "len(a)": {"value": 1}, "a.is_leaf": {"value": True},
    }  # fmt: skip


def test_the_log_holds_text_as_text() -> None:
    case = case_with(A, "log('a', a)", "expect: {log: [[a, 1.0], unknown(name), null]}")
    assert checks_of(case) == {"log": {"log": [["a", 1.0], "unknown(name)", None]}}


def test_grad_may_hold_checks_of_its_own() -> None:
    case = case_with(A, "expect: {a: {grad: {value: a, shape: [1]}}}")
    checks = checks_of(case)["a"]["grad"]["checks"]
    assert [(name, value) for name, value, _ in checks] == [("value", {"expr": "a"}), ("shape", [1])]


def test_a_value_may_depend_on_the_version() -> None:
    case = case_with(
        A, 'expect: {a: {version: {torch: {"<2.1": 0, ">=2.1": 1}}, value: {torch: {"<2.1": -a, ">=2.1": [1.0]}}}}'
    )
    assert checks_of(case)["a"] == {
        "version": {"torch": {"<2.1": 0, ">=2.1": 1}},
        "value": {"torch": {"<2.1": {"expr": "-a"}, ">=2.1": [1.0]}},
    }


def test_a_subject_may_depend_on_the_version_as_a_whole() -> None:
    case = case_with(A, 'expect: {a: {torch: {"<2.1": 0, ">=2.1": 1}}}')
    assert checks_of(case)["a"] == {"value": {"torch": {"<2.1": 0, ">=2.1": 1}}}


def test_what_must_be_raised_is_a_list_of_alternatives() -> None:
    case = case_with(
        A,
        'do: a.backward()\n  torch: ">=2.0"\n  raises:\n'
        '    - {type: RuntimeError, match: [x, y], torch: "<2.1"}\n    - {type: none, torch: ">=2.1"}\n'
        "  warns: {type: UserWarning, match: slow}",
    )
    step = case.steps[1]
    assert step["torch"] == ">=2.0"
    assert [(entry["type"], entry["match"], entry["torch"]) for entry in step["raises"]] == [
        ("RuntimeError", ["x", "y"], "<2.1"),
        (None, [], ">=2.1"),
    ]
    assert [(entry["type"], entry["match"], entry["torch"]) for entry in step["warns"]] == [
        ("UserWarning", ["slow"], None)
    ]


def test_alternatives_need_to_cover_each_torch_once_only_where_the_case_and_the_step_run() -> None:
    old = (
        'do: a.sum()\n  torch: "<2.4"\n  raises:\n'
        '    - {type: RuntimeError, match: x, torch: ">=2.1,<2.2"}\n'
        '    - {type: ValueError, match: y, torch: ">=2.2,<2.4"}'
    )
    assert case_with(A, old, head='    torch: ">=2.1"\n').steps[1]["torch"] == "<2.4"
    assert problems_in(A, old) == [
        "raises: the alternatives are not exhaustive and disjoint: torch 1.13.0 has no alternative"
    ]


def test_a_step_names_what_it_needs_of_a_newer_torch() -> None:
    case = case_with(A, "f = torch.func.grad(torch.sum)", "expect: {torch.func.vmap(torch.sum)(a): 1, a: {value: -a}}")
    assert case.steps[1]["needs"] == ["func.grad"]
    assert case.steps[2]["needs"] == ["func.vmap"]
    assert "needs" not in case.steps[0]


def test_steps_are_data_that_json_can_hold() -> None:
    for case in cases_in(TEXT):
        assert json.loads(json.dumps(case.steps)) == list(case.steps)


@each(
    "old, new",
    [
        ("a = tensor([1.0], requires_grad=True)", "a = tensor([2.0], requires_grad=True)"),
        ("is_leaf: true", "is_leaf: false"),
        ("ExpBackward0", "ExpBackward1"),
        ('torch: ">=2.0"', 'torch: ">=2.1"'),
        ("dtypes: [float32, float64]", "dtypes: [float32]"),
        ("devices: [cpu]", "devices: [cuda]"),
        ("value: (a * 2).exp()", "value: (a * 3).exp()"),
        ("id: first-case", "id: another-case"),
    ],
)
def test_the_digest_changes_with_the_meaning(old: str, new: str) -> None:
    before, after = cases_in(TEXT), cases_in(TEXT.replace(old, new, 1))
    assert before[0].digest != after[0].digest
    assert before[1].digest == after[1].digest


@each(
    "old, new",
    [
        ("cases:", "# a comment\n\ncases:"),
        ("    steps:", "    # a comment\n    steps:"),
        ("rules: [a.b, a.c]", "rules: [a.b]"),
        ("title: ", "title: Not "),
        ("why: ", "why: Not "),
    ],
)
def test_the_digest_does_not_change_with_the_words_or_the_place(old: str, new: str) -> None:
    before, after = cases_in(TEXT)[0], cases_in(TEXT.replace(old, new, 1))[0]
    assert before != after
    assert before.digest == after.digest


@each(
    "old, new",
    [
        ("title: The second", "title: Another title"),
        ("topic: Leaves", "topic: Roots"),
        ("match: does not require grad", "match: something else"),
        ("does not require grad}\n", "does not require grad}\n# a comment\n"),
    ],
)
def test_the_digest_does_not_change_with_a_sibling(old: str, new: str) -> None:
    assert cases_in(TEXT)[0].digest == cases_in(TEXT.replace(old, new, 1))[0].digest


def test_the_digest_does_not_depend_on_how_the_file_is_called() -> None:
    assert parse_cases(TEXT, "y.yaml", RULES)[0].digest == cases_in(TEXT)[0].digest


def test_every_name_that_a_step_sets_is_known_to_those_after_it() -> None:
    assert case_with(
        A, "do: b = a * 2\n  warns: {type: UserWarning, match: x}", "c = b * 2", "expect: {c: {is_leaf: false}}"
    )
    assert problems_in(A, "c = b * 2", "b = a", "expect: {c: 1}") == [": 'b' isn't set at this step"]


def test_a_step_of_a_wrong_shape_still_lends_the_names_that_it_sets() -> None:
    assert problems_in(A, "do: b = a * 2\n  rises: {}", "expect: {b: 1}") == ["rises: unknown key 'rises'"]


def test_each_case_has_names_of_its_own() -> None:
    with pytest.raises(CaseFileError, match=r"unknown name 'b'"):
        cases_in(TEXT.replace("- do: a.backward()", "- do: b.backward()"))


def test_a_case_without_an_expectation_is_refused_however_it_is_spelt() -> None:
    message = ["steps: nothing is expected: this case can't fail"]
    assert problems_in(A) == message
    assert problems_in(A, "when: {torch: '>=2.0', steps: [a.sum()]}") == message
    assert case_with(A, "do: a.sum()\n  warns: none")


def test_text_is_utf_8_with_or_without_a_mark() -> None:
    assert read_text("topic: ö".encode(), "x") == "topic: ö"
    assert read_text("topic: ö".encode("utf-8-sig"), "x") == "topic: ö"


def test_bytes_that_are_not_utf_8_are_refused_with_their_place() -> None:
    with pytest.raises(CaseFileError) as caught:
        read_text(b"a: 1\nb: \xff\n", "x")
    assert str(caught.value) == "x:2:4: expected UTF-8 text, got the byte 0xff"


def test_a_file_has_a_greatest_size() -> None:
    with pytest.raises(CaseFileError, match="split the file"):
        read_text(b" " * (MAX_BYTES + 1), "x")


def test_windows_line_ends_change_no_place_and_no_digest() -> None:
    unix, windows = cases_in(TEXT), cases_in(TEXT.replace("\n", "\r\n"))
    assert [case.line for case in windows] == [case.line for case in unix]
    assert [case.digest for case in windows] == [case.digest for case in unix]


@given(st.text(max_size=40))
def test_any_step_loads_or_is_refused_with_a_place(step: str) -> None:
    text = TEXT.replace("- a = tensor([1.0])", f"- {json.dumps(step)}\n      - a = 1")
    found: tuple[Problem, ...] = ()
    cases: list[Case] = []
    try:
        cases = cases_in(text)
    except CaseFileError as error:
        found = error.problems
    assert bool(found) is (len(cases) != 2)
    assert all(problem.line >= 1 and problem.column >= 1 and problem.message for problem in found)
