"""Faults planted into torch, one at a time, from outside of the suite: a case that names the broken rule is red.

What runs is one file of the shipped cases, which without the fault is green.
"""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest
from planting import RED, red_among
from sessions import Session

from conformance.execution.faults import BEFORE, FAULTS, Fault, fault
from conformance.language.files import load_cases, shipped_cases

pytestmark = pytest.mark.slow


def red_cases(planted: Fault) -> dict[str, frozenset[str]]:
    """Return the red cases of the files of a fault with it, and the rules that each cites."""
    cases = load_cases([shipped_cases() / name for name in planted.file.split()], shipped_cases().parent)
    return red_among(cases, planted.code)


@pytest.mark.parametrize("planted", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_caught_by_a_case_that_names_the_rule(planted: Fault) -> None:
    red = red_cases(planted)
    assert red
    assert any(planted.rules & rules for rules in red.values()), red


@pytest.mark.parametrize("file", sorted({name for planted in FAULTS.values() for name in planted.file.split()}))
def test_what_is_planted_is_what_is_red(file: str) -> None:
    assert red_cases(fault(file, "", "Tensor.detach = Tensor.detach")) == {}


def test_a_fault_that_is_planted_in_the_worker_of_a_run_is_red_there(tmp_path: Path) -> None:
    planted = FAULTS["detach() copies"]
    session = Session(tmp_path)
    for name in ("rules.yaml", planted.file):
        shutil.copy(shipped_cases() / name, tmp_path)
    code = textwrap.indent(BEFORE + planted.code, "    ")
    session.write("sitecustomize.py", f'import sys\nif "conformance.worker" in " ".join(sys.orig_argv):\n{code}\n')
    result = session.run("-q")
    assert {case for case, status in result.statuses.items() if status in RED} == set(red_cases(planted))
