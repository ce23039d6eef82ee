"""Runs many rows in one test and shows all that fail: `parametrize` would make each an item, which takes longer."""

from __future__ import annotations

import functools
import inspect
import textwrap
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., None]


def each(names: str, rows: Collection[Any], ids: Collection[str] = ()) -> Callable[[Test], Test]:
    """Call a test for every row; it takes the arguments of `parametrize`. Fixtures are set up once for all rows."""
    arguments = [name.strip() for name in names.split(",")]
    values = [row if len(arguments) > 1 else (row,) for row in rows]
    assert values, f"there is no row of {names}"
    assert not ids or len(ids) == len(values)
    shown = list(ids) or [", ".join(map(repr, row)) for row in values]

    def loop(test: Test) -> Test:
        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        assert len(signature.parameters) == len(left) + len(arguments), f"not all of {names} are parameters"

        @functools.wraps(test)
        def try_all(**fixtures: Any) -> None:
            told = []
            skipped = []
            for name, row in zip(shown, values, strict=True):
                try:
                    test(**fixtures, **dict(zip(arguments, row, strict=True)))
                except pytest.skip.Exception as skip:
                    skipped.append(str(skip))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all rows are to be seen
                    told.append(f"{name}:\n{textwrap.indent(cause_of(error), '    ')}")
            if told:
                pytest.fail(f"{len(told)} of {len(values)} rows fail\n" + "\n".join(told), pytrace=False)
            if len(skipped) == len(values):
                pytest.skip(skipped[0])

        try_all.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return try_all

    return loop


def cause_of(error: BaseException) -> str:
    """Return where a row failed, and why."""
    steps = traceback.extract_tb(error.__traceback__)
    place = next((step for step in reversed(steps) if "/tests/" in Path(step.filename).as_posix()), steps[-1])
    return f"{Path(place.filename).name}:{place.lineno}: {type(error).__name__}: {error}"
