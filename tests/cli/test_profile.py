"""A profile is drafted from what a device lacks, as found by trying."""

from __future__ import annotations

import sys
from pathlib import Path

import forks
import pytest

from conformance.cli.main import main
from conformance.execution.features import FEATURES
from conformance.language.profile import GROUPS, SCHEMA, find_profile
from conformance.language.schema import load_schema

LACKING = """\
import torch
def begin():
    def fails(*_, **__):
        raise NotImplementedError("no sparse tensors: here")
    torch.Tensor.to_sparse = fails
    torch.cpu.get_rng_state = lambda: 1
    torch.cpu.current_stream = lambda: None
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_every_feature_that_a_profile_may_call_absent_is_tried() -> None:
    assert {*FEATURES, *GROUPS} == set(load_schema(SCHEMA)["$defs"]["feature"]["enum"])


def test_a_draft_says_what_was_found_and_can_be_used(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "lacking.py").write_text(LACKING)
    options = ["--python", forks.python(), "--device-module", "lacking", "--setup", "lacking:begin"]
    assert main(["profile", "cpu", *options, "-o", "mine.yaml"]) == 0
    text = (here / "mine.yaml").read_text(encoding="utf-8")
    assert text.startswith("# Drafted on torch 2.")
    assert "with lacking" in text.splitlines()[0]
    assert "  - sparse  # NotImplementedError: no sparse tensors: here\n" in text
    assert "\n# - streams  # gives other results: a fault, unless by design\n" in text
    profile = find_profile("mine.yaml", here)
    assert (profile.device, profile.modules, profile.setup) == ("cpu", ("lacking",), "lacking:begin")
    assert profile.absent == ("sparse",)
    assert main(["profile", "cpu", "--python", forks.python()]) == 0
    assert "\nabsent:\n  - random-state  # " in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_what_can_not_be_used_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "nowhere", "--python", forks.python()]) == 2
    assert "error: nowhere can't be used: no device 'nowhere'" in capsys.readouterr().err
    assert main(["profile", "npu", "--python", sys.executable]) == 2  # whose module the suite knows
    assert "No module named 'torch_npu'" in capsys.readouterr().err
