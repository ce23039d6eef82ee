"""Each row of the table of faults names a test that there is."""

from __future__ import annotations

import re

from loops import each
from places import ROOT

TEXT = (ROOT / "docs" / "robustness.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| fault ")]
NAMED = re.compile(r"\| `(tests/[\w/]+\.py)::(test_\w+)` \|$")


def test_there_is_a_row_for_each_kind_of_fault() -> None:
    assert len(ROWS) > 30
    assert len(set(ROWS)) == len(ROWS)


@each("row", ROWS)
def test_a_row_names_a_test_that_there_is(row: str) -> None:
    named = NAMED.search(row)
    assert named is not None
    assert f"\ndef {named[2]}(" in (ROOT / named[1]).read_text(encoding="utf-8")
