"""Each benchmark runs, on little work, and prints what it has measured."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from places import ROOT

SECONDS = r"\d+\.\d\d"
RUNS = {
    "overhead.py": (
        ["--count", "20", "--rounds", "1"],
        [r"20 checks, 1 rounds", rf"cases +{SECONDS}", rf"hand-written +{SECONDS}", rf"bare loop +{SECONDS}",
         rf"cases / hand-written: {SECONDS}"],
    ),
    "collection.py": (["--counts", "20", "40"], [rf"^ +{count} +{SECONDS} s, .* {SECONDS} s," for count in (20, 40)]),
    "page.py": (
        ["--builds", "2", "--items", "200", "--times", "1"],
        [r"1 builds of 200: made in", r"2 builds of 200: made in", r"^open +\d+ ms", r"^search a word +\d+ ms"],
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_benchmark_runs_and_prints_what_it_measured(name: str) -> None:
    if name == "page.py" and shutil.which("chromium") is None:
        pytest.skip("there is no chromium here")
    arguments, printed = RUNS[name]
    command = [sys.executable, str(ROOT / "benchmarks" / name), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    for pattern in printed:
        assert re.search(pattern, done.stdout, re.MULTILINE), (pattern, done.stdout)


def test_every_benchmark_is_run() -> None:
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text("utf-8")}
    assert scripts == set(RUNS)
