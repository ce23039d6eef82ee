"""What changed from release to release, as cases hold it: every kind of condition, and both of its sides."""

from __future__ import annotations

import pytest
from loops import each
from running import FIRST, RULES, case_of
from shipped import all_cases

from conformance.language.reader import parse_cases
from conformance.model.case import Case
from conformance.render.history import BehaviourChange, behaviour_changes_of, history_markdown, history_text

Told = tuple[str, str, str, str]  # release, place, before, after


def told(case: Case) -> list[Told]:
    return [(change.release, change.place, change.before, change.after) for change in behaviour_changes_of([case])]


def test_without_conditions_there_is_nothing_to_tell() -> None:
    assert told(case_of("- x = ones(1)\n- expect: {x: 1}\n")) == []


VALUES = {
    "a value": ("- expect: {int(2): {torch: {'<2.1': 1, '>=2.1': 2.5}}}\n", ("2.1", "int(2)", "1", "2.5")),
    "an expression": (
        "- x = 1\n- expect: {x: {value: {torch: {'<2.1': x + 1, '>=2.1': null}}}}\n", ("2.1", "x", "x + 1", "null")
    ),
    "a check": (
        "- x = ones(1)\n- expect: {x: {is_leaf: {torch: {'<2.10': true, '>=2.10': false}}}}\n",
        ("2.10", "x.is_leaf", "true", "false"),
    ),
    "a check of a gradient": (
        "- x = ones(1)\n- expect: {x: {grad: {stride: {torch: {'<2.3.1': [1, 2], '>=2.3.1': [3]}}}}}\n",
        ("2.3.1", "x.grad", "stride [1, 2]", "stride [3]"),
    ),
    "the log": ("- expect: {log: {torch: {'<=2.4': [a], '>2.4': []}}}\n", ("2.4.1", "log", "[a]", "[]")),
    "an error": (
        "- do: 1 / 0\n  raises:\n"
        "    - {type: RuntimeError, match: one, torch: '<2.1'}\n    - {type: none, torch: '>=2.1'}\n",
        ("2.1", "raises", "RuntimeError: one", "nothing"),
    ),
    "a warning": (
        "- do: warnings.warn('x')\n  warns:\n"
        "    - {type: none, torch: '<2.1'}\n    - {type: UserWarning, match: [one, two], torch: '>=2.1'}\n",
        ("2.1", "warns", "nothing", "UserWarning: one … two"),
    ),
    "a step that came": (
        "- when: {torch: '>=2.1', steps: [x = 1]}\n- expect: {int(2): 2}\n", ("2.1", "step", "nothing", "x = 1")
    ),
    "a step that went": (
        "- when: {torch: '<2.1', steps: [x = 1]}\n- expect: {int(2): 2}\n", ("2.1", "step", "x = 1", "nothing")
    ),
    "a step for another": (
        "- when: {torch: '<2.1', steps: [x = 1]}\n- {torch: '>=2.1', expect: {int(2): 2, int(4): 4}}\n",
        ("2.1", "step", "x = 1", "int(2): 2; int(4): 4"),
    ),
    "a name": ("- x = func.vmap\n- expect: {int(2): 2}\n", ("2.0", "", "no func, func.vmap", "holds")),
}  # fmt: skip


@each("steps, change", VALUES.values(), ids=VALUES)
def test_each_kind_of_condition_has_two_sides(steps: str, change: Told) -> None:
    assert told(case_of(steps)) == [change]


def test_a_condition_on_the_case_is_told_once() -> None:
    text = """\
topic: T
cases:
  - id: c
    title: It holds
    why: w
    rules: [a.b]
    torch: ">=2.1,<2.13"
    steps:
      - expect: {int(2): {torch: {'<2.1': 1, '>=2.1': 2}}}
"""
    cases = parse_cases(text.replace("{torch: {'<2.1': 1, '>=2.1': 2}}", "2"), "t.yaml", RULES)
    assert [told(case) for case in cases] == [
        [("2.1", "", "not expected", "holds"), ("2.13", "", "holds", "not expected")]
    ]


def test_three_ranges_make_two_behaviour_changes() -> None:
    steps = "- expect: {int(2): {torch: {'<2.1': 1, '>=2.1,<2.10': 2, '>=2.10': 3}}}\n"
    assert told(case_of(steps)) == [("2.1", "int(2)", "1", "2"), ("2.10", "int(2)", "2", "3")]


def changes() -> list[BehaviourChange]:
    early = case_of("- expect: {int(2): {torch: {'<2.1': 1, '>=2.1': '2 | 3'}}}\n")
    late = case_of("- expect: {int(4): {torch: {'<2.10': 1, '>=2.10': 4}}}\n")
    return behaviour_changes_of([late, early])


def test_text_goes_release_by_release() -> None:
    assert (
        history_text(changes())
        == f"""\
torch 2.1
  t  (t.yaml:{FIRST}, int(2))
      before: 1
      since:  2 | 3

torch 2.10
  t  (t.yaml:{FIRST}, int(4))
      before: 1
      since:  4
"""
    )


def test_markdown_is_a_table_that_no_value_breaks() -> None:
    assert history_markdown(changes()).splitlines()[2:] == [
        "| 2.1 | `t` | `int(2)` | `1` | `2 ⟨U+007C⟩ 3` |",
        "| 2.10 | `t` | `int(4)` | `1` | `4` |",
    ]


def test_the_record_says_where_it_stands() -> None:
    assert changes()[0].record() == {
        "release": "2.1", "case": "c", "title": "t", "rules": ["a.b"], "file": "t.yaml", "line": FIRST,
        "place": "int(2)", "before": "1", "after": "2 | 3",
    }  # fmt: skip


@pytest.mark.slow
def test_the_shipped_cases_tell_of_known_behaviour_changes() -> None:
    found = [
        (change.release, change.place, change.before, change.after)
        for change in behaviour_changes_of(all_cases())
        if change.case.id == "detached-alias-zeroed-after-sigmoid"
    ]
    assert found == [
        (
            "2.13", "raises",
            "RuntimeError: modified by an inplace operation … which is output 0 of SigmoidBackward0, is at version 1; "
            "expected version 0 instead",
            "RuntimeError: modified by an inplace operation … which is output 0 of Sigmoid, is at version 1; "
            "expected version 0 instead",
        )
    ]  # fmt: skip
