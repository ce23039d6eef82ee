"""Holds that pytest is strict here: what nobody registered is an error, and what is registered is so once."""

from __future__ import annotations

import pytest


def test_a_marker_that_nobody_registered_is_an_error() -> None:
    with pytest.raises(pytest.fail.Exception, match="'slwo' not found in `markers` configuration option"):
        _ = pytest.mark.slwo


def test_each_marker_is_registered_once(pytestconfig: pytest.Config) -> None:
    names = [line.partition(":")[0].partition("(")[0] for line in pytestconfig.getini("markers")]
    assert "slow" in names
    assert sorted(names) == sorted(set(names))


def test_a_test_without_rows_is_an_error(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getini("empty_parameter_set_mark") == "fail_at_collect"
