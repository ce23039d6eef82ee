"""Faults that show only where two features of autograd meet, planted into torch from outside of the suite.

Each is silent where only one of the two is used. What is run are the cases of one way that a run has without
`--pairs all`.
"""

from __future__ import annotations

import pytest
import torch
from meeting_faults import FAULTS, TOOLS, Fault
from planting import TARGET, red_among
from running import known_issues
from samples import build
from shipped import all_cases

from conformance.model.case import Case

pytestmark = pytest.mark.slow


def cases_of(ways: set[str]) -> list[Case]:
    """Return the cases of ways that a run has, without those that are known to fail: some end the process."""
    here = build(torch=torch.__version__.partition("+")[0])
    return [
        case for case in all_cases()
        if case.id.partition("-on-")[0] in ways
        and not known_issues().about(case.id, TARGET, here)
    ]  # fmt: skip


@pytest.mark.parametrize("planted", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_caught_where_two_features_meet(planted: Fault) -> None:
    assert red_among(cases_of({planted.way}), TOOLS + planted.code)


def test_without_a_fault_these_cases_hold() -> None:
    assert red_among(cases_of({planted.way for planted in FAULTS.values()}), TOOLS) == {}
