"""Tests of what changed between two reports: each kind, and whether it gates."""

from __future__ import annotations

import json
from collections import Counter

import msgspec
from hypothesis import given
from loops import each
from samples import CPU, CUDA, HOSTILE, any_report, build, case, device, failed, outcome, report

from conformance.model.build import BackEnd
from conformance.model.outcome import Outcome
from conformance.model.report import Report
from conformance.model.status import RED, TABLE
from conformance.results.diff import (
    DECISIONS,
    EXPECTED,
    GATES,
    KINDS,
    MEANINGS,
    Difference,
    compare,
    notes_of,
    record_of,
    why_incomparable,
)


def raised(exception: str, text: str) -> Outcome:
    return failed("", "no error", f"{exception}: {text}", exception=exception, status="error")


GOOD = outcome("pass")
RAISED = raised("RuntimeError", "some text")
LACKS = outcome("unsupported", reason="no such dtype")
IDLE = outcome("not-run", reason="device cuda is absent")
KNOWN = failed(status="known", reason="issue 1")
NO_LONGER = outcome("fixed", reason="issue 1")
CRASHED = outcome("crash", reason="the worker was ended by SIGSEGV", signal="SIGSEGV", stderr="at 0x1234")
DEFECT = outcome("internal-error", reason="the suite raised KeyError")
PAIR = ("a", CPU)


def kinds(difference: Difference) -> list[str]:
    return [change.kind for change in difference.changes]


def between(old: Outcome, new: Outcome) -> Difference:
    return compare(report({PAIR: old}), report({PAIR: new}))


@each(
    "old, new, kind",
    [
        (GOOD, failed(), "regressed"),
        (GOOD, RAISED, "regressed"),
        (GOOD, CRASHED, "regressed"),
        (GOOD, outcome("timeout"), "regressed"),
        (KNOWN, failed(), "regressed"),
        (NO_LONGER, failed(), "regressed"),
        (IDLE, failed(), "regressed"),
        (LACKS, failed(), "regressed"),
        (failed(), RAISED, "changed-failure"),
        (failed(), failed(step=3), "changed-failure"),
        (failed(), failed(path="a.is_leaf"), "changed-failure"),
        (RAISED, raised("TypeError", "some text"), "changed-failure"),
        (CRASHED, outcome("crash", reason="the worker was ended by SIGABRT", signal="SIGABRT"), "changed-failure"),
        (CRASHED, outcome("crash", reason="the worker exited with status 3", exit_status=3), "changed-failure"),
        (GOOD, IDLE, "newly-not-run"),
        (GOOD, LACKS, "newly-not-run"),
        (failed(), IDLE, "newly-not-run"),
        (KNOWN, LACKS, "newly-not-run"),
        (GOOD, KNOWN, "expected-failure"),
        (failed(), KNOWN, "expected-failure"),
        (IDLE, KNOWN, "expected-failure"),
        (failed(), GOOD, "fixed"),
        (CRASHED, GOOD, "fixed"),
        (KNOWN, GOOD, "fixed"),
        (KNOWN, NO_LONGER, "fixed"),
        (NO_LONGER, GOOD, "fixed"),
        (GOOD, NO_LONGER, "fixed"),
        (IDLE, GOOD, "newly-run"),
        (LACKS, GOOD, "newly-run"),
        (failed(), failed(observed="3"), "wording-changed"),
        (RAISED, raised("RuntimeError", "another text"), "wording-changed"),
        (KNOWN, failed(status="known", reason="issue 2"), "wording-changed"),
        (IDLE, outcome("not-run", reason="deselected"), "wording-changed"),
        (LACKS, IDLE, "wording-changed"),
        (GOOD, DEFECT, "suite-defect"),
        (failed(), DEFECT, "suite-defect"),
        (DEFECT, failed(), "suite-defect"),
        (DEFECT, GOOD, "suite-defect"),
        (DEFECT, IDLE, "suite-defect"),
        (DEFECT, DEFECT, "suite-defect"),
    ],
)
def test_each_change_of_an_outcome_has_its_kind(old: Outcome, new: Outcome, kind: str) -> None:
    difference = between(old, new)
    assert kinds(difference) == [kind]
    assert difference.unchanged == 0
    assert difference.gates == (kind in ("regressed", "changed-failure", "newly-not-run", "suite-defect"))


@each(
    "old, new",
    [
        (GOOD, outcome("pass", seconds=3.0)),
        (failed(), failed(line=99, stderr="other")),
        (CRASHED, outcome("crash", reason=CRASHED.reason, signal="SIGSEGV", stderr="at 0xffff", seconds=1.0)),
        (IDLE, IDLE),
        (KNOWN, KNOWN),
        (NO_LONGER, NO_LONGER),
    ],
)
def test_times_lines_and_last_words_are_no_change(old: Outcome, new: Outcome) -> None:
    difference = between(old, new)
    assert (kinds(difference), difference.unchanged, difference.gates) == ([], 1, False)


def test_a_case_that_only_one_report_has_is_added_or_removed_and_does_not_gate() -> None:
    old, new = report({PAIR: GOOD, ("b", CPU): GOOD}), report({PAIR: GOOD, ("c", CPU): failed()})
    difference = compare(old, new)
    assert [(change.kind, change.case.id) for change in difference.changes] == [("added", "c"), ("removed", "b")]
    assert not difference.gates


def test_a_target_that_is_new_is_added() -> None:
    difference = compare(report({PAIR: GOOD}), report({PAIR: GOOD, ("a", CUDA): failed()}))
    assert kinds(difference) == ["added"]
    assert not difference.gates


@each("before, kind", [(GOOD, "newly-not-run"), (failed(), "newly-not-run"), (IDLE, "removed"), (LACKS, "removed")])
def test_a_target_that_is_gone_gates_where_the_case_is_still_there(before: Outcome, kind: str) -> None:
    difference = compare(report({PAIR: GOOD, ("a", CUDA): before}), report({PAIR: GOOD}))
    assert kinds(difference) == [kind]
    assert difference.changes[0].new is None
    assert difference.gates == (kind == "newly-not-run")


def edited(outcomes: dict[tuple[str, str], Outcome | None], finished: bool = True) -> Report:
    return report(outcomes, cases=[case("a", digest="another")], finished=finished)


@each("new", [GOOD, failed(), LACKS, KNOWN])
def test_an_edited_case_is_not_compared_but_may_not_hide_that_it_turned_red(new: Outcome) -> None:
    difference = compare(report({PAIR: GOOD}), edited({PAIR: new}))
    assert kinds(difference) == ["edited"]
    assert difference.gates == (new.status == "fail")
    assert not compare(report({PAIR: failed("another")}), edited({PAIR: new})).gates


def test_where_the_suite_failed_neither_an_edit_nor_a_new_case_is_an_excuse() -> None:
    assert kinds(compare(report({PAIR: GOOD}), edited({PAIR: DEFECT}))) == ["suite-defect"]
    assert kinds(compare(report({}), report({PAIR: DEFECT}))) == ["suite-defect"]
    assert kinds(compare(report({PAIR: GOOD, ("a", CUDA): DEFECT}), report({PAIR: GOOD}))) == ["suite-defect"]


def test_an_edit_is_no_excuse_for_not_running_any_more() -> None:
    old = report({PAIR: GOOD, ("a", CUDA): GOOD})
    assert kinds(compare(old, edited({PAIR: GOOD, ("a", CUDA): IDLE}))) == ["newly-not-run", "edited"]
    assert kinds(compare(old, edited({PAIR: GOOD}))) == ["newly-not-run", "edited"]


def test_what_an_unfinished_report_has_not_come_to_is_newly_not_run() -> None:
    old = report({PAIR: GOOD, ("b", CPU): LACKS, ("c", CPU): GOOD})
    new = report({PAIR: GOOD, ("b", CPU): None, ("c", CPU): None, ("d", CPU): None}, finished=False)
    difference = compare(old, new)
    assert kinds(difference) == ["newly-not-run", "wording-changed", "added"]
    assert notes_of(difference) == [
        "the new report is incomplete: 3 of 4 planned have no outcome",
        f"the suites differ: cases {old.header.suite.cases} and {new.header.suite.cases}",
    ]
    assert difference.gates


def test_changes_stand_by_kind_and_then_in_the_order_of_the_plan() -> None:
    pairs = [("d", CPU), ("c", CPU), ("b", CPU), ("a", CPU)]
    old = report(dict.fromkeys(pairs, GOOD))
    new = report({pairs[0]: IDLE, pairs[1]: failed(), pairs[2]: IDLE, pairs[3]: failed()})
    assert [(change.kind, change.case.id) for change in compare(old, new).changes] == [
        ("regressed", "c"), ("regressed", "a"), ("newly-not-run", "d"), ("newly-not-run", "b"),
    ]  # fmt: skip


def test_a_note_says_how_the_suites_differ() -> None:
    old = report({PAIR: GOOD})
    suite = msgspec.structs.replace(old.header.suite, version="0.2.0", commit=None)
    new = msgspec.structs.replace(old, header=msgspec.structs.replace(old.header, suite=suite))
    assert notes_of(compare(old, new)) == ["the suites differ: version 0.1.0 and 0.2.0; commit c0ffee and none"]
    assert notes_of(compare(old, old)) == []


def test_reports_without_a_common_case_tell_nothing() -> None:
    one, other, none = report({PAIR: GOOD}), report({("b", CPU): GOOD}), report({})
    assert why_incomparable(one, other) == why_incomparable(one, none) == "they have no case in common"
    assert why_incomparable(one, one) == why_incomparable(none, none) == ""
    assert why_incomparable(one, report({("a", CUDA): GOOD})) == ""


@given(any_report())
def test_a_report_does_not_differ_from_itself_except_where_the_suite_failed(made: Report) -> None:
    whole = msgspec.structs.replace(made, outcomes=tuple(made.by_pair().values()))
    difference = compare(whole, whole)
    defects = [each for each in whole.outcomes if each.status == "internal-error"]
    assert kinds(difference) == ["suite-defect"] * len(defects)
    assert difference.unchanged == len(made.plan) - len(defects)
    assert difference.gates == bool(defects)
    assert why_incomparable(made, made) == ""


@given(any_report(), any_report())
def test_every_pair_of_both_plans_is_counted_once(old: Report, new: Report) -> None:
    difference = compare(old, new)
    changed = [(change.case.id, change.target) for change in difference.changes]
    assert len(changed) == len(set(changed))
    assert set(changed) <= {*old.pairs, *new.pairs}
    assert len(changed) + difference.unchanged == len({*old.pairs, *new.pairs})
    assert sum(difference.counts.values()) == len(changed)


@given(any_report(), any_report())
def test_nothing_that_turns_red_or_is_lost_goes_unnoticed(old: Report, new: Report) -> None:
    gating = {(change.case.id, change.target) for change in compare(old, new).changes if change.gates}
    before, after = old.by_pair(), new.by_pair()
    digests = [{record.id: record.digest for record in report.cases} for report in (old, new)]
    for pair, was in before.items():
        if was.status == "pass" and pair[0] in digests[1]:
            now = after.get(pair)
            same = digests[0][pair[0]] == digests[1][pair[0]]
            worse = (
                now is None or now.status in (RED - {"fixed"}) | {"not-run"} or (same and now.status == "unsupported")
            )
            assert (pair in gating) == worse


@given(any_report(), any_report())
def test_the_record_is_json_with_a_number_and_counts_that_add_up(old: Report, new: Report) -> None:
    record = json.loads(json.dumps(record_of(compare(old, new))))
    assert list(record) == ["format", "gates", "old", "new", "notes", "counts", "changes"]
    assert record["format"] == 3
    assert list(record["counts"]) == [*KINDS, "unchanged"]
    kinds = Counter(change["kind"] for change in record["changes"])
    assert {kind: count for kind, count in record["counts"].items() if count and kind != "unchanged"} == kinds
    assert record["gates"] == any(change["gates"] for change in record["changes"])


def test_the_record_says_all_that_is_known_of_a_change() -> None:
    record = json.loads(json.dumps(record_of(between(GOOD, failed(seconds=1.0)))))
    assert record["changes"] == [
        {
            "kind": "regressed", "gates": True, "case": "a", "target": CPU, "file": "cases/x.yaml", "line": 10,
            "rules": ["r.one"], "earlier": None, "expected": [], "old": {"status": "pass"},
            "new": {
                "status": "fail", "step": 2, "line": 12,
                "failures": [{"line": 11, "path": "a.grad", "expected": "1", "observed": "2"}],
            },
        }
    ]  # fmt: skip
    assert record["new"] == {
        "build": {
            "torch": "2.13.0+cpu", "git": build().git, "python": "3.11.7", "system": "linux-x86_64", "backends": [],
        },
        "suite": {"version": "0.1.0", "commit": "c0ffee", "cases": record["old"]["suite"]["cases"]},
        "complete": True, "counts": {CPU: {"fail": 1}},
    }  # fmt: skip


def test_the_record_names_back_ends_with_their_hardware() -> None:
    own = BackEnd(device="xla", modules=("torch_xla",), name="torch-xla", version="2.9.0", commit="c0ffee")
    made = report({("a", CPU): GOOD}, backends=(own,), devices=(device("cpu"), device("xla", name="TPU")))
    known = {"device": "xla", "name": "torch-xla", "version": "2.9.0", "commit": "c0ffee", "hardware": "TPU"}
    assert record_of(compare(made, made))["new"]["build"]["backends"] == [known]


def test_every_kind_has_a_meaning_and_those_that_gate_come_first() -> None:
    assert tuple(MEANINGS) == KINDS
    assert KINDS[: len(GATES)] == GATES


def test_the_table_decides_for_all_that_reports_can_say_and_uses_every_kind() -> None:
    standings = {row.verdict for row in TABLE.values()} | {"off-target", "absent"}
    assert set(DECISIONS) == standings
    assert all(set(row) == standings for row in DECISIONS.values())
    used = {kind for row in DECISIONS.values() for each in row.values() for kind in each.values()}
    assert used == {*KINDS, None} - {*EXPECTED}


def test_hostile_text_does_not_keep_reports_from_being_compared() -> None:
    made = report({("a", HOSTILE): failed(HOSTILE, HOSTILE, HOSTILE, reason=HOSTILE)})
    assert compare(made, made).unchanged == 1
