"""Tests of how several processes share graphics cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.execution.gpus import share_of_gpus


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    for name in ("0000:17:00.0", "0000:65:00.0", "0000:ca:00.0"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_each_process_gets_a_card_and_the_fourth_shares_the_first(cards: Path) -> None:
    shares = [share_of_gpus(number, {}, cards)["CUDA_VISIBLE_DEVICES"] for number in range(4)]
    assert shares == ["0", "1", "2", "0"]


def test_cards_that_the_environment_leaves_are_the_ones_to_share(cards: Path) -> None:
    given = {"CUDA_VISIBLE_DEVICES": "2, MIG-4f1,GPU-8a"}
    assert [share_of_gpus(number, given, cards)["CUDA_VISIBLE_DEVICES"] for number in (0, 1, 2, 3)] == [
        "2", "MIG-4f1", "GPU-8a", "2",
    ]  # fmt: skip
    assert share_of_gpus(1, {"HIP_VISIBLE_DEVICES": "4,6"}, cards) == {"HIP_VISIBLE_DEVICES": "6"}


def test_nothing_is_changed_where_there_is_one_card_or_none(cards: Path) -> None:
    assert share_of_gpus(1, {"CUDA_VISIBLE_DEVICES": "2"}, cards) == {}
    assert share_of_gpus(1, {}, cards / "absent") == {}
    assert share_of_gpus(1, {"CUDA_VISIBLE_DEVICES": ""}, cards) == {}  # somebody has hidden them
