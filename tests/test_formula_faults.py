"""Faults drawn by chance in torch's own formulas are caught by the cases of operations; and the campaign can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from campaigns import in_forks, runnable
from formula_faults import (
    LOST,
    NOT_CAUGHT,
    UNCHANGED,
    UNREACHED,
    Campaign,
    Fault,
    told,
)
from shipped import spread

from conformance.execution.reach import specified
from conformance.language.files import shipped_cases
from conformance.worker.formulas import FORWARD_KINDS, KINDS

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]

FILES = ("elementwise.yaml", "sorting.yaml", "indexing.yaml")  # whose cases are explored
MOST = 45  # cases that are explored
COUNT, SEED = 12, 11
GROSS = ("sign", "factor", "missing term", "one lane")  # which show wherever a gradient is not 0


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    return Campaign(list(spread(MOST, runnable(shipped_cases() / "ops" / name for name in FILES))))


def test_faults_of_all_kinds_are_drawn_from_all_formulas(campaign: Campaign) -> None:
    reached = specified(Path(torch.__file__).parent)
    assert reached is not None
    drawn = campaign.draw(reached, 2000, SEED)
    assert {fault.kind for fault in drawn} == {*KINDS, *FORWARD_KINDS}
    assert {fault.node for fault in drawn} <= reached.nodes - reached.elsewhere.keys()
    assert len({fault.node for fault in drawn}) > 400
    assert drawn[:50] == campaign.draw(reached, 50, SEED)
    assert drawn[:50] != campaign.draw(reached, 50, SEED + 1)


def test_faults_in_formulas_that_cases_go_through_are_caught(campaign: Campaign) -> None:
    reached = specified(Path(torch.__file__).parent)
    assert reached is not None
    gross = [fault for fault in campaign.draw(reached, 900, SEED) if fault.kind in GROSS]
    drawn = [fault for fault in gross if campaign.candidates(fault)][:COUNT]
    survivors = {fault: said for fault, said in told(campaign, drawn) if said in NOT_CAUGHT}
    assert len(drawn) == COUNT
    assert set(survivors.values()) <= {UNCHANGED}, survivors  # some gradients are 0, and so is theirs of another sign
    assert len(survivors) <= COUNT // 6, survivors


def test_no_fault_is_no_finding(campaign: Campaign) -> None:
    nothing = Fault("SinBackward0", "subset")  # sin has one input: there is no subset
    nowhere = Fault("LstmMpsBackward0", "sign")
    assert list(in_forks([nothing, nowhere], campaign.caught_by)) == [UNCHANGED, UNREACHED]


def test_a_fork_that_ends_without_an_answer_catches_nothing(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(fault: Fault) -> str:
        raise ValueError(fault.kind)

    monkeypatch.setattr(campaign, "caught_by", fails)
    fault = Fault("SinBackward0", "sign")
    assert list(told(campaign, [fault])) == [(fault, LOST)]
