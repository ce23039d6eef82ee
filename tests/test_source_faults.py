"""Faults in torch's Python sources are planted where they are said to be, and told from what cases see."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from campaigns import in_forks
from source_faults import Campaign, Fault, changed_tree, changes, faults_in, is_tried, plant, tree_of

from conformance.language.files import load_cases, shipped_cases

SOURCE = '''
"""A module."""

LIMIT = 3


class Own:
    factor = 2

    def scaled(self, x: int, *, plain: bool = False) -> int:
        """Return a number."""
        if plain and x < LIMIT:
            return -x
        self.seen = x
        print("text")
        return self.times(x, 1, by=self.factor + 1)

    def times(self, x, y, by=1):
        return x * by - y

    def __repr__(self):
        return "Own" + str(1)
'''


@pytest.fixture
def module(tmp_path: Path) -> Any:
    path = tmp_path / "own.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("own", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_faults_lie_in_what_functions_do(module: Any) -> None:
    found = [(fault.line, fault.kind) for fault in faults_in(module.__file__)]
    assert found == [
        (12, "condition"), (12, "operator"), (12, "comparison"), (13, "nothing returned"), (13, "sign"),
        (14, "left out"), (16, "nothing returned"), (16, "keyword left out"), (16, "arguments"), (16, "constant"),
        (16, "operator"), (16, "constant"), (19, "nothing returned"), (19, "operator"), (19, "operator"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "kind", "results"),
    [
        (12, "condition", (-4, 5)), (12, "operator", (11, -2)), (13, "sign", (11, 2)), (14, "left out", (11, -2)),
        (16, "nothing returned", (None, -2)), (16, "keyword left out", (3, -2)), (16, "arguments", (-1, -2)),
        (16, "operator", (3, -2)), (19, "operator", (13, -2)), (19, "nothing returned", (None, -2)),
    ],
)  # fmt: skip
def test_a_planted_fault_changes_what_its_function_does(module: Any, line: int, kind: str, results: Any) -> None:
    own = module.Own()
    assert (own.scaled(4), own.scaled(2, plain=True), own.seen) == (11, -2, 4)
    faults = [fault for fault in faults_in(module.__file__) if (fault.line, fault.kind) == (line, kind)]
    assert plant(faults[0]) == 1
    own = module.Own()
    assert (own.scaled(4), own.scaled(2, plain=True)) == results
    assert hasattr(own, "seen") == (kind != "left out")


def test_the_text_of_a_fault_shows_the_changed_code(module: Any) -> None:
    shown = [fault.text for fault in faults_in(module.__file__) if fault.line == 12]
    assert [text.partition(", ")[2] for text in shown] == [
        "condition: if not (plain and x < LIMIT):", "operator: plain or x < LIMIT", "comparison: x <= LIMIT",
    ]  # fmt: skip


def test_each_change_of_torch_s_optimizers_can_be_compiled() -> None:
    path = str(importlib.import_module("torch.optim.sgd").__file__)
    faults = list(faults_in(path))
    assert len(faults) > 100
    for fault in faults[::7]:
        compile(changed_tree(fault)[0], path, "exec", dont_inherit=True)
    assert not changes(tree_of(path))


@pytest.mark.slow
def test_a_fault_in_an_optimizer_is_caught_by_a_case_that_runs_its_line() -> None:
    path = str(importlib.import_module("torch.optim.sgd").__file__)
    cases = [case for case in load_cases([shipped_cases() / "steps_that_are_told_more.yaml"]) if is_tried(case)]
    campaign = Campaign([case for case in cases if "a-step-sgd" in case.id], {path})
    campaign.explore()
    faults = campaign.draw(10**6, 1)
    returned = [fault for fault in faults if fault.kind == "nothing returned" and "return" in line_of(fault)]
    assert len(faults) > 50
    assert [campaign_says(campaign, fault) for fault in returned if "loss" in line_of(fault)] == ["caught"]


def line_of(fault: Fault) -> str:
    return Path(fault.path).read_text().split("\n")[fault.line - 1]


def campaign_says(campaign: Campaign, fault: Fault) -> str:
    (said,) = in_forks([fault], campaign.caught_by)
    return str(said).partition(" ")[0]
