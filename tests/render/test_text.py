"""Tests of the short lines in which builds, counts and outcomes are told."""

from __future__ import annotations

import msgspec
from samples import CPU, CUDA, build, failed, outcome, report

from conformance.model.build import BackEnd
from conformance.model.outcome import Unobserved
from conformance.render.text import build_name, count_words, outcome_line, run_lines, unobserved_line
from conformance.results.update import updated


def test_a_build_is_named_by_what_tells_it_from_others() -> None:
    assert build_name(build()) == "torch 2.13.0+cpu (01234567), Python 3.11.7, linux-x86_64"
    assert build_name(build(debug=True)) == "torch 2.13.0+cpu (01234567, debug), Python 3.11.7, linux-x86_64"
    own = BackEnd(device="xla", modules=("torch_xla",), name="torch-xla", version="2.9.0")
    assert build_name(build(backends=(own,))) == (
        "torch 2.13.0+cpu (01234567) with torch-xla 2.9.0, Python 3.11.7, linux-x86_64"
    )


def test_counts_are_worded_in_the_order_of_the_statuses_without_zeros() -> None:
    assert count_words({"not-run": 3, "fail": 0, "pass": 2}) == "2 pass, 3 not run"
    assert count_words({"fail": 1, "pass": 2}, ["fail", "pass"]) == "1 fail, 2 pass"
    assert count_words({}) == ""


def test_an_outcome_is_its_first_failure_or_its_reason() -> None:
    assert outcome_line(failed()) == "a.grad: expected 1, observed 2"
    twice = msgspec.structs.replace(failed(path=""), failures=failed(path="").failures * 2)
    assert outcome_line(twice) == "expected 1, observed 2 (and 1 more)"
    assert outcome_line(outcome("not-run", reason="no device cuda")) == "no device cuda"
    assert outcome_line(outcome("pass")) == ""


def test_a_long_value_does_not_hide_the_next() -> None:
    line = outcome_line(failed(path="p" * 999, expected="e" * 999, observed="o" * 999))
    assert len(line) < 450
    assert "observed ooo" in line
    assert len(outcome_line(outcome("crash", reason="r" * 9999))) == 300


def test_what_could_not_be_observed_is_counted() -> None:
    hidden = Unobserved(line=1, path="a.stride", reason="npu keeps no strides")
    outcomes = [outcome("pass"), outcome("pass", unobserved=(hidden, hidden)), failed(unobserved=(hidden,))]
    assert unobserved_line(outcomes) == "3 expectations of 2 cases could not be observed"
    assert unobserved_line(outcomes[:1]) == ""


def test_a_run_none_of_whose_outcomes_count_is_not_told() -> None:
    none = report({("a", CUDA): outcome("not-run", reason="no device")}, arguments=("--device", "cuda"))
    one = report({("a", CPU): outcome("pass")}, arguments=("-k", "a"))
    both = report({("a", CPU): outcome("pass"), ("b", CPU): outcome("pass")})
    after_none = updated(both, none, ())
    assert run_lines(after_none) == []
    assert run_lines(updated(after_none, one, ())) == [
        "1 of 2 outcomes are of the run of 2026-01-02T03:04:05+00:00 (pytest)",
        "the others are of the run of 2026-01-02T03:04:05+00:00 (pytest -k a)",
    ]
