"""Tests of what options take: what is wrong is told with what is expected."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest
from loops import each

from conformance.model.shard import Shard
from conformance.pytest_plugin.options import part, positive, positive_count

WRONG = [(positive, "0"), (positive, "x"), (positive, "nan"), (positive_count, "0"), (positive_count, "1.5")]


@each("convert, text", [*WRONG, (part, "9/8"), (part, "x")])
def test_what_an_option_does_not_take_is_told_with_what_is_expected(
    convert: Callable[[str], object], text: str
) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"expected a .*, got {text!r}"):
        convert(text)


def test_what_an_option_takes_is_a_number_or_a_part() -> None:
    assert (positive("0.5"), positive_count("2"), part("2/8")) == (0.5, 2, Shard(2, 8))
