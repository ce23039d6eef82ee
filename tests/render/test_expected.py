"""What a case expects otherwise on another release: the kind of change, the weightiest first, and the words of it."""

from __future__ import annotations

import msgspec
from loops import each
from running import RULES, case_of
from samples import CPU, outcome, report

from conformance.model.case import Case
from conformance.model.report import CaseRecord, case_record
from conformance.render.diff import difference_markdown, difference_text
from conformance.render.expected import expectation, expectation_by
from conformance.results.diff import EXPECTED, Expectation, compare
from conformance.results.diff import record_of as record_of_difference

RAISES = "- do: 1 / 0\n  raises:\n    - {{{}, torch: '<2.1'}}\n    - {{{}, torch: '>=2.1'}}\n"
ONE, TWO, ANOTHER = (
    f"type: {kind}, match: {words}"
    for kind, words in (("RuntimeError", "one"), ("RuntimeError", "two"), ("TypeError", "one"))
)
OTHER_VALUE = "- expect: {int(2): {torch: {'<2.1': 1, '>=2.1': 2}}}\n"
KINDS = {
    "a value": (OTHER_VALUE, "behaviour-changed"),
    "an error that came": (RAISES.format("type: none", ONE), "behaviour-changed"),
    "an error that went": (RAISES.format(ONE, "type: none"), "behaviour-changed"),
    "a step for another": (
        "- when: {torch: '<2.1', steps: [x = 1]}\n- {torch: '>=2.1', expect: {int(2): 2}}\n", "behaviour-changed"
    ),
    "an error of another type": (RAISES.format(ONE, ANOTHER), "error-type-changed"),
    "another message": (RAISES.format(ONE, TWO), "message-changed"),
    "a step that came": ("- when: {torch: '>=2.1', steps: [x = 1]}\n- expect: {int(2): 2}\n", "newly-asked"),
    "a step that went": ("- when: {torch: '<2.1', steps: [x = 1]}\n- expect: {int(2): 2}\n", "newly-asked"),
    "another message and another value": (RAISES.format(ONE, TWO) + OTHER_VALUE, "behaviour-changed"),
}  # fmt: skip


@each("steps, kind", KINDS.values(), ids=KINDS)
def test_a_change_has_the_kind_of_the_weightiest_of_what_is_expected_otherwise(steps: str, kind: str) -> None:
    found = expectation(case_of(steps), "2.0.1", "2.6.0")
    assert found is not None
    assert found[0] == kind
    assert expectation(case_of(steps), "2.1.2", "2.6.0") is None


def test_what_weighs_more_is_told_first() -> None:
    found = expectation(case_of(RAISES.format(ONE, TWO) + OTHER_VALUE), "2.0.1", "2.6.0")
    assert found == (
        "behaviour-changed", (("int(2)", "1", "2"), ("raises", "RuntimeError: one", "RuntimeError: two"))
    )  # fmt: skip


def test_every_kind_is_of_some_case() -> None:
    assert {kind for _, kind in KINDS.values()} == {*EXPECTED} - {"expectation-changed"}


def record_of(case: Case) -> CaseRecord:
    return case_record(case, RULES)


def test_a_case_is_looked_up_only_where_its_conditions_differ_between_the_releases() -> None:
    case = case_of(OTHER_VALUE)
    asked: list[str] = []

    def cases() -> list[Case]:
        asked.append("once")
        return [case]

    find = expectation_by(cases)
    assert find(record_of(case), "2.1.2", "2.6.0") is None
    assert asked == []
    told: Expectation = ("behaviour-changed", (("int(2)", "1", "2"),))
    assert find(record_of(case), "2.0.1", "2.6.0") == find(record_of(case), "2.0.1", "2.1.0") == told
    assert asked == ["once"]


def test_of_a_case_that_the_suite_has_otherwise_it_is_said_that_something_is_expected_otherwise() -> None:
    case = case_of(OTHER_VALUE)
    edited = msgspec.structs.replace(record_of(case), digest="another")
    assert expectation_by(lambda: [case])(edited, "2.0.1", "2.6.0") == ("expectation-changed", ())


def test_two_reports_differ_in_what_is_expected_where_a_case_holds_in_both() -> None:
    case = case_of(OTHER_VALUE)
    old, new = (
        report({(case.id, CPU): outcome("pass")}, cases=[record_of(case)], torch=torch) for torch in ("2.0.1", "2.6.0")
    )
    found = compare(old, new, expectation=expectation_by(lambda: [case]))
    assert [(change.kind, change.gates, change.expected) for change in found.changes] == [
        ("behaviour-changed", False, (("int(2)", "1", "2"),))
    ]
    assert compare(old, new).counts == {"expectation-changed": 1}
    assert compare(new, new).counts == {}


def test_what_is_expected_otherwise_is_told_with_both_sides_and_with_what_to_do_about_it() -> None:
    case = case_of(OTHER_VALUE)
    advice = msgspec.structs.replace(RULES["a.b"], upgrade="Expect 2.")
    old, new = (
        msgspec.structs.replace(
            report({(case.id, CPU): outcome("pass")}, cases=[record_of(case)], torch=torch), rules={"a.b": advice}
        )
        for torch in ("2.0.1", "2.6.0")
    )
    found = compare(old, new, expectation=expectation_by(lambda: [case]))
    assert record_of_difference(found)["changes"][0]["expected"] == [{"place": "int(2)", "before": "1", "after": "2"}]
    for text in (difference_text(found), difference_markdown(found).replace("`", "")):
        for part in ("ehaviour changed", "before: int(2): 1", "since: int(2): 2", "upgrading: Expect 2."):
            assert part in text
