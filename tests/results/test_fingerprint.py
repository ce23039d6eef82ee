"""Tests of fingerprints: what makes two failures the same failure."""

from __future__ import annotations

import msgspec
from samples import failed, outcome

from conformance.model.outcome import Issue
from conformance.results.fingerprint import Fingerprint, fingerprint

RAISED = failed("", "no error", "RuntimeError: some text", exception="RuntimeError", status="error")


def test_it_holds_places_and_errors_but_neither_values_nor_lines() -> None:
    assert fingerprint(failed()) == Fingerprint("fail", 2, ("a.grad",))
    raised = fingerprint(failed("raises", "RuntimeError: …", "TypeError: x", exception="TypeError"))
    assert raised == Fingerprint("fail", 2, ("raises: TypeError",))
    assert fingerprint(RAISED) == Fingerprint("error", 2, ("the step: RuntimeError",))
    assert fingerprint(failed("a", "a value", "NameError: b", exception="NameError")) == Fingerprint(
        "fail", 2, ("a: NameError",)
    )
    assert fingerprint(failed("a", "'x: 1'", "'y: 1'")) == fingerprint(failed("a", "1", "2"))


def test_nothing_is_read_out_of_sentences() -> None:
    assert fingerprint(failed("raises", "nothing", "Warning: that is no exception")).kind == ("raises",)
    assert fingerprint(outcome("crash", reason="the worker answered with what is no message: SIGSEGV")).kind == ()


def test_that_of_a_dead_worker_holds_what_ended_it() -> None:
    crashed = outcome("crash", reason="the worker was ended by SIGSEGV", signal="SIGSEGV", stderr="at 0x1234")
    assert fingerprint(crashed) == Fingerprint("crash", None, ("SIGSEGV",))
    assert fingerprint(outcome("crash", exit_status=3)).kind == ("status 3",)
    assert fingerprint(outcome("timeout", reason="not done in 60 s")) == Fingerprint("timeout")


def test_that_of_a_known_issue_is_that_of_the_failure() -> None:
    known = msgspec.structs.replace(RAISED, status="known", issue=Issue(status="error", reason="A bug."))
    assert fingerprint(known) == fingerprint(RAISED)


def test_it_reads_as_a_phrase() -> None:
    assert str(fingerprint(RAISED)) == "error at step 2 (the step: RuntimeError)"
    assert str(Fingerprint("timeout")) == "timeout"
