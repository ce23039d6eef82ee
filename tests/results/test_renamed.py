"""Tests that what a case found under an earlier id stays joined to what it is now."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from samples import CPU, CUDA, GRAPH, any_report, failed, outcome, report

from conformance.language.renames import Renames
from conformance.model.outcome import Outcome
from conformance.model.report import Report
from conformance.render.diff import difference_text
from conformance.results.diff import Difference, compare, notes_of, record_of
from conformance.results.renamed import earlier_ids, joined, renamed
from conformance.results.store import problem_within

GOOD = outcome("pass")
LACKS = outcome("unsupported", reason="no such operation")
SPLIT: Renames = {"whole": ("one", "two")}
WHOLE = report({("whole", CPU): GOOD, ("b", CPU): GOOD, ("whole", CUDA): failed()})


def statuses(made: Report) -> dict[tuple[str, str], str]:
    return {pair: each.status for pair, each in made.by_pair().items()}


def compared(before: Report, after: Report) -> Difference:
    earlier = earlier_ids(before, SPLIT)
    before, after = joined([before, after], SPLIT)
    return compare(before, after, earlier)


def difference(old: Outcome, new: Outcome) -> list[tuple[str, str, bool]]:
    """Return the kind and case of each change, and whether it gates, from a case to two of which the first passes."""
    before, after = report({("whole", CPU): old}), report({("one", CPU): GOOD, ("two", CPU): new})
    found = compared(before, after)
    return [(change.kind, change.case.id, change.gates) for change in found.changes]


def test_each_case_that_an_earlier_one_became_has_its_outcomes_and_digest() -> None:
    made = renamed(msgspec.structs.replace(WHOLE, graphs={"whole": GRAPH}), SPLIT)
    assert statuses(made) == {
        ("one", CPU): "pass", ("two", CPU): "pass", ("b", CPU): "pass", ("one", CUDA): "fail", ("two", CUDA): "fail",
    }  # fmt: skip
    assert [(record.id, record.digest) for record in made.cases] == [
        ("one", "digest-whole"), ("two", "digest-whole"), ("b", "digest-b"),
    ]  # fmt: skip
    assert list(made.graphs) == ["one", "two"]
    assert made.footer is not None
    assert made.footer.counts == {"fail": 2, "pass": 3}
    assert made.header == WHOLE.header


def test_a_case_that_a_report_has_under_both_ids_is_what_it_says_under_the_new_one() -> None:
    made = renamed(report({("whole", CPU): failed(), ("one", CPU): GOOD}), SPLIT)
    assert statuses(made) == {("two", CPU): "fail", ("one", CPU): "pass"}


@each("others", [("a", "b"), ("b", "a")])
def test_of_cases_that_became_one_the_one_that_did_not_pass_counts(others: tuple[str, str]) -> None:
    good, bad = others
    made = renamed(report({(good, CPU): GOOD, (bad, CPU): failed()}), {"a": ("c",), "b": ("c",)})
    assert statuses(made) == {("c", CPU): "fail"}
    assert [record.digest for record in made.cases] == [f"digest-{bad}"]


def test_where_no_report_has_a_case_of_today_the_earlier_id_stays() -> None:
    assert joined([WHOLE, WHOLE], SPLIT) == [WHOLE, WHOLE]
    today = report({("two", CPU): GOOD})
    assert joined([WHOLE, today], SPLIT) == [renamed(WHOLE, SPLIT), today]


@given(
    any_report(), st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from("defg"), min_size=1, unique=True))
)
def test_any_report_holds_together_with_other_ids(made: Report, renames: dict[str, list[str]]) -> None:
    result = renamed(made, {earlier: tuple(now) for earlier, now in renames.items()})
    assert problem_within(result) == ""
    assert not renames.keys() & {record.id for record in result.cases}


@each(
    "old, new, changes",
    [
        (GOOD, GOOD, []),
        (GOOD, failed(), [("regressed", "two", True)]),
        (GOOD, outcome("not-run", reason="deselected"), [("newly-not-run", "two", True)]),
        (GOOD, LACKS, [("edited", "two", False)]),
        (failed(), GOOD, [("edited", "one", False), ("edited", "two", False)]),
        (failed(), failed("b"), [("edited", "one", False), ("edited", "two", False)]),
        (LACKS, failed(), [("edited", "one", False), ("edited", "two", True)]),
    ],
)
def test_a_pass_of_an_earlier_case_is_compared_with_each_part_and_nothing_else_is(
    old: Outcome, new: Outcome, changes: list[tuple[str, str, bool]]
) -> None:
    assert difference(old, new) == changes


def test_a_difference_names_both_ids() -> None:
    before, after = report({("whole", CPU): GOOD}), report({("one", CPU): GOOD, ("two", CPU): failed()})
    found = compared(before, after)
    assert "  two (was whole) [cpu-float32]  pass → fail  cases/x.yaml" in difference_text(found)
    assert record_of(found)["changes"][0]["earlier"] == "whole"
    assert "the old report's case whole is joined to the 2 that it is now" in notes_of(found)
    assert found.unchanged == 1
