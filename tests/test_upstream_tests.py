"""The list of upstream's tests and their counterparts: what it names exists, and what it counts is so."""

from __future__ import annotations

import re
from pathlib import Path

from shipped import all_ids

PAGE = (Path(__file__).parent.parent / "docs" / "upstream-tests.md").read_text(encoding="utf-8")
ROWS = re.findall(r"(?m)^\| `(\w+)` \| (.+) \|$", PAGE)


def test_every_counterpart_is_a_case() -> None:
    named = {name for _, cases in ROWS if not cases.startswith("none: ") for name in cases.split(", ")}
    assert named <= all_ids()


def test_the_counts_are_those_of_the_rows() -> None:
    without = sum(cases.startswith("none: ") for _, cases in ROWS)
    assert re.search(r"these\s+(\d+) can be said", PAGE)[1] == str(len(ROWS))  # type: ignore[index]
    assert re.search(r"(\d+) have such cases, (\d+) have none", PAGE).groups() == (  # type: ignore[union-attr]
        str(len(ROWS) - without), str(without),
    )  # fmt: skip


def test_nine_in_ten_have_a_counterpart() -> None:
    assert sum(not cases.startswith("none: ") for _, cases in ROWS) >= 0.9 * len(ROWS)
