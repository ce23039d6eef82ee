"""Text that is given to whatever cases are offered is taken for no path, no module and no code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

HANDING = ROOT / "tests" / "handing.py"
STEP = 1 if os.environ.get("EVERY_CASE") else 60
TAKING = """
import sys; sys.path.insert(0, sys.argv[1])
import handing
handing.hand_to({"open": lambda: open, "module": lambda: __import__, "code": lambda: eval}, sys.argv[2])
"""


def printed(*call: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, *call], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.slow
def test_no_text_is_taken_for_a_path_a_module_or_code(tmp_path: Path) -> None:
    *heard, last = printed(str(HANDING), str(tmp_path), str(STEP))
    count, _, *left = last.split()
    assert heard == []
    assert left == ["planted_for_handing.py", "secret"]
    assert int(count) * STEP > 4000


@pytest.mark.slow
def test_what_does_take_it_is_heard(tmp_path: Path) -> None:
    heard = printed("-c", TAKING, str(HANDING.parent), str(tmp_path))
    assert {line.partition("(")[0] for line in heard} == {"open", "module", "code"}
