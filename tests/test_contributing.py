"""The examples of CONTRIBUTING: those that are whole cases load, and pass."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from running import request_of, running_engine
from shipped import rules

from conformance.language.reader import parse_cases

TEXT = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = [textwrap.dedent(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL) if "- id: " in block]
HEADS = {"p": "topic: T\n", "-": "topic: T\ncases:\n"}  # by what a block begins with
WHOLE = [HEADS.get(block.lstrip()[0], "") + block for block in BLOCKS]


@pytest.mark.slow
@pytest.mark.parametrize("text", WHOLE, ids=range(len(WHOLE)))
def test_an_example_passes(text: str) -> None:
    with running_engine() as engine:
        assert {engine.run(request_of(case))["status"] for case in parse_cases(text, "t.yaml", rules())} == {"pass"}
