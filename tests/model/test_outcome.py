"""Tests of the record of one case on one target."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from loops import each

from conformance.model.outcome import Failure, Outcome, Retry, Unobserved, outcome_of
from conformance.model.status import RED, STATUSES, Status

FAILURE = Failure(line=9, path="a.is_leaf", expected="true", observed="false")


def test_fields_at_their_default_are_left_out_of_a_record() -> None:
    assert Outcome(status="pass").record() == {"status": "pass"}


def test_the_first_step_is_no_default() -> None:
    assert Outcome(status="error", step=0, line=1).record() == {"status": "error", "step": 0, "line": 1}


def test_a_record_holds_all_that_is_known() -> None:
    outcome = Outcome(
        status="fail", seconds=0.5, step=2, line=9, failures=(FAILURE,), traceback=((9, "<step>"),),
        reason="why", stderr="text",
    )  # fmt: skip
    assert json.loads(json.dumps(outcome.record())) == {
        "status": "fail", "seconds": 0.5, "step": 2, "line": 9, "traceback": [[9, "<step>"]],
        "reason": "why", "stderr": "text",
        "failures": [{"line": 9, "path": "a.is_leaf", "expected": "true", "observed": "false"}],
    }  # fmt: skip


def test_a_summary_is_the_first_failure_and_the_number_of_others() -> None:
    assert Outcome(status="fail", failures=(FAILURE,)).summary == "a.is_leaf: expected true, observed false"
    assert (
        Outcome(status="fail", failures=(FAILURE,) * 3).summary
        == "a.is_leaf: expected true, observed false (and 2 more)"
    )


def test_a_failure_without_a_path_has_a_summary_without_one() -> None:
    failure = Failure(line=1, path="", expected="RuntimeError", observed="nothing")
    assert Outcome(status="fail", failures=(failure,)).summary == "expected RuntimeError, observed nothing"


def test_without_failures_the_summary_is_the_reason() -> None:
    assert Outcome(status="not-run", reason="no device cuda").summary == "no device cuda"
    assert Outcome(status="pass").summary == ""


def test_the_summary_of_a_flaky_outcome_begins_with_what_came_of_it_in_either_run() -> None:
    retry = Retry(status="fail", alone=Outcome(status="pass"))
    summary = Outcome(status="flaky", failures=(FAILURE,), retry=retry).summary
    assert summary == "fail among other cases; alone pass: a.is_leaf: expected true, observed false"
    retry = Retry(status="crash", alone=Outcome(status="unsupported"))
    summary = Outcome(status="flaky", reason="the worker was ended by SIGSEGV", retry=retry).summary
    assert summary == "crash among other cases; alone unsupported: the worker was ended by SIGSEGV"


def test_a_case_that_has_moved_takes_both_runs_along() -> None:
    alone = Outcome(status="fail", line=9, failures=(FAILURE,))
    moved = Outcome(status="fail", line=9, failures=(FAILURE,), retry=Retry(status="fail", alone=alone)).moved(3)
    assert moved.retry is not None
    assert [(each.line, each.failures[0].line) for each in (moved, moved.retry.alone)] == [(12, 12)] * 2


def test_the_statuses_that_fail_a_run_are_among_the_statuses() -> None:
    assert set(STATUSES) >= RED
    assert not {"pass", "known", "unsupported", "not-run"} & RED


@each("status", STATUSES)
def test_every_status_goes_through_a_record(status: Status) -> None:
    assert outcome_of(Outcome(status=status).record()) == Outcome(status=status)


TEXTS = st.text(max_size=20)
FAILURES = st.builds(Failure, line=st.integers(1, 99), path=TEXTS, expected=TEXTS, observed=TEXTS)


@given(
    st.builds(
        Outcome,
        status=st.sampled_from(STATUSES),
        seconds=st.floats(0, 100),
        step=st.none() | st.integers(0, 9),
        line=st.none() | st.integers(1, 99),
        failures=st.lists(FAILURES, max_size=3).map(tuple),
        traceback=st.lists(st.tuples(st.integers(1, 99), TEXTS), max_size=3).map(tuple),
        reason=TEXTS,
        stderr=TEXTS,
    )
)
def test_an_outcome_comes_back_from_its_record(outcome: Outcome) -> None:
    assert outcome_of(json.loads(json.dumps(outcome.record()))) == outcome


HIDDEN = (
    Unobserved(line=9, path="a.stride", reason="npu keeps no strides"),
    Unobserved(line=9, path="b.stride", reason="npu keeps no strides"),
    Unobserved(line=12, path="a.stride", reason="npu keeps no strides"),
    Unobserved(line=12, path="a.data_ptr()", reason="npu shows no addresses"),
)
HIDDEN_TEXT = "not observed: a.stride, b.stride (npu keeps no strides); a.data_ptr() (npu shows no addresses)"


def test_what_was_left_out_is_said_by_reason() -> None:
    assert Outcome(status="pass", unobserved=HIDDEN).unobserved_text == HIDDEN_TEXT
    assert Outcome(status="pass", unobserved=HIDDEN).summary == HIDDEN_TEXT
    assert Outcome(status="pass").unobserved_text == ""
    assert Outcome(status="unsupported", reason="why", unobserved=HIDDEN).summary == "why"


def test_what_was_left_out_moves_with_its_case() -> None:
    moved = Outcome(status="pass", unobserved=HIDDEN).moved(3)
    assert [each.line for each in moved.unobserved] == [12, 12, 15, 15]
    assert moved.moved(-3) == Outcome(status="pass", unobserved=HIDDEN)


def test_a_record_without_what_was_left_out_is_read() -> None:
    assert outcome_of({"status": "pass"}).unobserved == ()
    outcome = Outcome(status="pass", unobserved=HIDDEN)
    assert outcome_of(json.loads(json.dumps(outcome.record()))) == outcome
