"""Tests of what options take: what is wrong is told with what is expected."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest
from loops import each

from conformance.model.shard import Shard
from conformance.pytest_plugin.options import gibibytes, part, positive_count, seconds

WRONG = [(convert, text) for convert in (seconds, gibibytes) for text in ("0", "x", "nan", "-1", "inf", "1e300")]
WRONG += [(positive_count, "0"), (positive_count, "1.5")]


@each("convert, text", [*WRONG, (part, "9/8"), (part, "x")])
def test_what_an_option_does_not_take_is_told_with_what_is_expected(
    convert: Callable[[str], object], text: str
) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"expected a .*, got {text!r}"):
        convert(text)


def test_what_an_option_takes_is_a_number_or_a_part() -> None:
    assert (seconds("0.5"), seconds("86400"), gibibytes("0.5")) == (0.5, 86400, 0.5)
    assert (positive_count("2"), part("2/8")) == (2, Shard(2, 8))
