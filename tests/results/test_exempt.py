"""Failures in a mode that are none."""

from __future__ import annotations

from conformance.language.modes import Exemption
from conformance.model.build import target_of
from conformance.model.outcome import Failure, Outcome
from conformance.results.exempt import exempted

PLAIN, IN_MODE = target_of("cpu-float32"), target_of("cpu+anomaly-float32")
SAYS = Exemption(modes=("anomaly",), why="NaN is an error.", link="https://example.org", says="returned nan")
NAMES = Exemption(modes=("anomaly",), why="It is about the mode.", link="https://example.org", cases=("about-it",))
NAN = Failure(line=3, path="x.grad", expected="nan", observed="RuntimeError: 'F' returned nan values")
OTHER = Failure(line=4, path="y", expected="1.0", observed="2.0")


def outcome_with(*failures: Failure) -> Outcome:
    return Outcome(status="fail", step=1, line=3, failures=failures)


def test_a_failure_that_the_mode_explains_is_unsupported_with_the_reason() -> None:
    found = exempted(outcome_with(NAN), "a-case", IN_MODE, [NAMES, SAYS])
    assert (found.status, found.reason) == ("unsupported", "in the mode anomaly: NaN is an error.")
    assert not found.failures
    assert exempted(outcome_with(OTHER), "about-it", IN_MODE, [NAMES, SAYS]).status == "unsupported"


def test_each_failure_has_to_be_explained() -> None:
    outcome = outcome_with(NAN, OTHER)
    assert exempted(outcome, "a-case", IN_MODE, [NAMES, SAYS]) is outcome


def test_no_other_target_and_no_crash_is_exempted() -> None:
    assert exempted(outcome_with(NAN), "a-case", PLAIN, [SAYS]).status == "fail"
    assert exempted(outcome_with(NAN), "a-case", target_of("cpu+profiler-float32"), [SAYS]).status == "fail"
    crash = Outcome(status="crash", signal="SIGSEGV", reason="returned nan")
    assert exempted(crash, "about-it", IN_MODE, [NAMES, SAYS]) is crash
