"""Tests that shards divide the cases: each case is in one of them, wherever and whenever one asks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from conformance.model.shard import Shard, shard

CASES = st.text() | st.text(st.characters(categories=["Cs"]))


@given(CASES, st.integers(1, 40))
def test_each_case_is_in_exactly_one_shard(case: str, count: int) -> None:
    assert sum(Shard(number, count).includes(case) for number in range(1, count + 1)) == 1


def test_the_only_shard_holds_every_case() -> None:
    assert all(Shard(1, 1).includes(case) for case in ("a", "b", "ö"))


def test_a_case_stays_in_its_shard_from_release_to_release() -> None:
    held = [next(number for number in range(1, 9) if Shard(number, 8).includes(case)) for case in ("a", "b", "hooks")]
    assert held == [3, 3, 5]


def test_shards_are_about_equal() -> None:
    sizes = [sum(Shard(number, 4).includes(f"case-{index}") for index in range(1000)) for number in (1, 2, 3, 4)]
    assert all(200 < size < 300 for size in sizes)


@each("text, expected", [("1/1", Shard(1, 1)), ("2/8", Shard(2, 8)), ("8/8", Shard(8, 8))])
def test_a_shard_is_written_as_a_number_and_a_count(text: str, expected: Shard) -> None:
    assert shard(text) == expected


@each("text", ["", "2", "/", "2/", "/8", "0/8", "9/8", "-1/8", "1/0", "1.5/8", "a/b", "1/8/2", "²/8"])
def test_what_names_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a shard such as 2/8, got"):
        shard(text)
