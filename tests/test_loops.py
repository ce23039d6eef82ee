"""A loop in place of items hides nothing: each row is tried, and each that fails is named with its cause."""

from __future__ import annotations

import pytest
from loops import each

SEEN: list[int] = []


def test_every_row_is_tried_and_all_that_fail_are_shown() -> None:
    @each("number, limit", [(1, 2), (3, 2), (4, 2), (0, 0)], ids=["one", "three", "four", "none"])
    def below(number: int, limit: int) -> None:
        SEEN.append(number)
        assert number / limit < 1, "too much"

    SEEN.clear()
    with pytest.raises(pytest.fail.Exception) as caught:
        below()
    assert SEEN == [1, 3, 4, 0]
    told = str(caught.value).splitlines()
    assert told[0] == "3 of 4 rows fail"
    assert [line for line in told if not line.startswith(" ")][1:] == ["three:", "four:", "none:"]
    assert "test_loops.py:" in told[2]
    assert "AssertionError: too much" in told[2]
    assert "ZeroDivisionError: division by zero" in told[-1]


def test_what_a_row_fails_with_by_pytest_is_shown_too() -> None:
    @each("text", ["a", "b"])
    def failing(text: str) -> None:
        pytest.fail(f"{text} is wrong")

    with pytest.raises(pytest.fail.Exception, match=r"(?s)'a':\n.*a is wrong.*'b':\n.*b is wrong"):
        failing()


def test_a_row_that_skips_ends_no_other() -> None:
    @each("number", [1, 2])
    def skipping(number: int) -> None:
        if number == 1:
            pytest.skip("not this one")
        raise ValueError(number)

    with pytest.raises(pytest.fail.Exception, match="1 of 2 rows fail"):
        skipping()


@each("number", [1, 2])
def test_a_test_of_which_all_rows_skip_is_skipped(number: int) -> None:
    @each("row", [number])
    def skipping(row: int) -> None:
        pytest.skip(f"never {row}")

    with pytest.raises(pytest.skip.Exception, match=f"never {number}"):
        skipping()


def test_there_is_no_loop_over_nothing() -> None:
    with pytest.raises(AssertionError, match="there is no row of text"):
        each("text", [])


@each("number", [1, 2])
@each("text", ["a", "b"])
def test_loops_stand_inside_one_another_beside_fixtures(number: int, text: str, tmp_path: object) -> None:
    assert (number in (1, 2), text in "ab", tmp_path is not None) == (True, True, True)
