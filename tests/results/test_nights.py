"""The records of build lines: which case had which status in which of the last nights, and how small they stay."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from samples import CPU, outcome, report

from conformance.model.report import Report
from conformance.model.status import STATUSES, Status
from conformance.results.nights import MOST_NIGHTS, NOT_PLANNED, Nights, load_nights, nights_text, with_night
from conformance.results.store import ReportError

Statuses = dict[str, Status]


def night(number: int, statuses: Statuses) -> Report:
    made = report({(case, CPU): outcome(status) for case, status in statuses.items()}, torch=f"2.14.0.dev{number}")
    run = msgspec.structs.replace(made.header.run, started=f"2026-01-01T00:00:00.{number:06}+00:00")
    return msgspec.structs.replace(made, header=msgspec.structs.replace(made.header, run=run))


def after(*all_statuses: Statuses) -> Nights:
    nights = None
    for number, statuses in enumerate(all_statuses):
        nights = with_night(nights, night(number, statuses))
    assert nights is not None
    return nights


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from(STATUSES), min_size=1), min_size=1, max_size=70)
)
def test_a_record_has_the_statuses_of_the_last_nights(all_statuses: list[Statuses]) -> None:
    record = after(*all_statuses)
    kept = all_statuses[-MOST_NIGHTS:]
    expected = {case: [statuses.get(case, NOT_PLANNED) for statuses in kept] for statuses in kept for case in statuses}
    found = {
        case: [status for status, count in stretches for _ in range(count)]
        for (case, _), stretches in record.stretches().items()
    }
    assert found == expected
    assert len(record.nights) == len(kept)


def test_a_run_counts_once_and_the_record_is_of_the_last() -> None:
    again = with_night(after({"a": "pass"}, {"a": "fail"}), night(1, {"a": "pass"}))
    assert again.stretches() == {("a", CPU): [("pass", 1), ("fail", 1)]}
    assert again.is_of(night(1, {}))
    assert not again.is_of(night(0, {}))


def test_cases_that_went_through_the_same_are_named_together(tmp_path: Path) -> None:
    record = after({"a": "pass", "b": "pass", "c": "known"}, {"a": "pass", "b": "pass", "c": "fixed"})
    assert record.targets == {CPU: {"2 pass": ("a", "b"), "1 known, 1 fixed": ("c",)}}
    path = tmp_path / "line.json"
    path.write_text(nights_text(record), encoding="utf-8")
    assert load_nights(path) == record


@each(
    "old, new, told",
    [
        ("1 pass", "2 pass", "expected 1 nights, got 2 in '2 pass'"),
        ("1 pass", "1 passed", "as in `57 pass, 3 fail`, got '1 passed'"),
        ("1 pass", "1 pass,", "got '1 pass,'"),
        ("1 pass", "01 pass", "got '01 pass'"),
        ('"format": 1', '"format": 2', "no record of nights: Expected `int` <= 1"),
        ("{", "x{", "no record of nights: JSON is malformed"),
    ],
)
def test_what_is_no_record_is_refused_with_what_is_wrong(old: str, new: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "line.json"
    path.write_text(nights_text(after({"a": "pass"})).replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ReportError) as caught:
        load_nights(path)
    assert told in str(caught.value)
    assert str(path) in str(caught.value)
