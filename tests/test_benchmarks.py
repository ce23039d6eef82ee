"""Each benchmark runs, on little work, and prints what it has measured; no time is asserted."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

BENCHMARKS = ROOT / "benchmarks"
ONCE = ["--rounds", "1", "--warm-ups", "0"]
SPREAD = r"\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)"
PEAK = r"[1-9]\d* \(\d+ to \d+\)"
RUNS = {
    "overhead.py": (
        ["--count", "5", "--without", "default-threads", "--delay", "1", *ONCE],
        [r"5 checks, 1 rounds, 1 ms for each operation: median",
         rf"^  cases +({SPREAD} +){{4}}{PEAK} +{PEAK}$", rf"^  floor +{SPREAD}",
         rf"cases / hand-written, wall: {SPREAD}", rf"cases / hand-written, CPU: {SPREAD}",
         rf"cases / bare loop, wall: {SPREAD}", rf"cases / floor, CPU of pytest: {SPREAD}"],
    ),
    "scaling.py": (
        ["--count", "5", "--workers", "2", "--wait", "1", *ONCE],
        [r"5 cases that wait 1 ms", rf"^  2 workers +{SPREAD} +{SPREAD} +{SPREAD} +{SPREAD}$"],
    ),
    "waiting.py": (
        ["--count", "5", *ONCE],
        [rf"^  import torch +- +{SPREAD}", rf"^  now +{SPREAD} +{SPREAD}", rf"first outcome / import torch: {SPREAD}"],
    ),
    "crash_storm.py": (
        ["--count", "4", "--every", "4", *ONCE],
        [rf"crashes / no crashes, wall: {SPREAD}", r"each run: 4 outcomes, 1 of them crash"],
    ),
    "sandbox.py": (["--count", "5", *ONCE], [rf"^  wall, confined / not: {SPREAD}"]),
    "collection.py": (["--counts", "20"], [r"^ +20 +\d+\.\d\d s, .* \d+\.\d\d s,"]),
    "page.py": (
        ["--builds", "2", "--cases", "200", "--times", "1"],
        [r"1 builds of 200 outcomes", r"2 builds of 200 outcomes", r"^open +\d+ ms", r"^search a word +\d+ ms"],
    ),
}  # fmt: skip
NEEDED = {"page.py": "chromium", "overhead.py": "g++"}

# Its child is orphaned before it takes memory and more CPU time than this process.
FAMILY = """\
import os, time

def spin(seconds):
    while time.process_time() < seconds:
        pass

if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        taken = bytearray(100 * 2**20)
        spin(0.4)
        time.sleep(0.2)
    os._exit(0)
os.wait()
spin(0.2)
print("cases/first.yaml .", flush=True)
"""
MEASURE = """\
import dataclasses, json, pathlib, sys
import turns
command = turns.Command(words=[sys.executable, "-c", sys.argv[1]], directory=pathlib.Path(sys.argv[2]))
print(json.dumps(dataclasses.asdict(turns.run(command))))
"""


def python(directory: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    environment = {**os.environ, **variables}
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_benchmark_runs_and_prints_what_it_measured(name: str, pytestconfig: pytest.Config) -> None:
    if shutil.which(NEEDED.get(name, "true")) is None:
        pytest.skip(f"there is no {NEEDED[name]} here")
    arguments, printed = RUNS[name]
    cache = getattr(pytestconfig, "cache", None)
    kept = "" if cache is None else str(cache.mkdir("toy_backend"))  # compiling it takes longer than all else
    done = python(ROOT, str(BENCHMARKS / name), *arguments, TOY_BUILD=kept)
    assert done.returncode == 0, done.stdout + done.stderr
    for pattern in printed:
        assert re.search(pattern, done.stdout, re.MULTILINE), (pattern, done.stdout)


def test_every_benchmark_is_run() -> None:
    scripts = {path.name for path in BENCHMARKS.glob("*.py") if "__main__" in path.read_text("utf-8")}
    assert scripts == set(RUNS)


def test_an_interpreter_of_before_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = python(tmp_path, str(BENCHMARKS / "waiting.py"), "--before", "nowhere/bin/python")
    assert done.returncode == 2
    assert f"there is no {tmp_path / 'nowhere/bin/python'}" in done.stderr


def measured(tmp_path: Path, program: str) -> subprocess.CompletedProcess[str]:
    return python(BENCHMARKS, "-c", MEASURE, program, str(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="CPU times and memory are read from /proc")
def test_what_processes_take_that_a_command_started_is_told_from_its_own(tmp_path: Path) -> None:
    spent = json.loads(measured(tmp_path, FAMILY).stdout)
    assert spent["workers_cpu"] >= 0.4
    assert spent["workers_cpu"] > spent["own_cpu"] >= 0.1
    assert spent["worker_peak"] > 100 > spent["own_peak"] > 1
    assert 0 < spent["first"] < spent["wall"]


@pytest.mark.skipif(sys.platform != "linux", reason="CPU times and memory are read from /proc")
def test_a_command_that_fails_is_no_measurement(tmp_path: Path) -> None:
    done = measured(tmp_path, "print('why'); raise SystemExit(3)")
    assert done.returncode == 1
    assert "exited with status 3:\nwhy" in done.stderr


def test_ratios_are_taken_round_by_round(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    from turns import Spent, print_ratio

    def spent(wall: float) -> Spent:
        return Spent(wall=wall, first=0, cpu=0, own_cpu=0, workers_cpu=0, own_peak=0, worker_peak=0)

    print_ratio("one / other", [*map(spent, (1, 20, 3))], [*map(spent, (2, 10, 3))], "wall")
    assert capsys.readouterr().out == "  one / other: 1.00 (0.50 to 2.00)\n"


def test_a_lost_or_wrong_outcome_of_a_crash_storm_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    from crash_storm import lost

    def write(**statuses: str) -> None:
        report: dict[str, Any] = {
            "plan": [{"case": "a"}, {"case": "b"}],
            "outcomes": [{"case": case, "status": status} for case, status in statuses.items()],
        }
        (tmp_path / "reports").mkdir(exist_ok=True)
        (tmp_path / "reports" / "torch-1.json").write_text(json.dumps(report), encoding="utf-8")

    write(a="crash", b="pass")
    assert lost(tmp_path, 2, {"a"}) == ""
    assert lost(tmp_path, 3, {"a"}) == "3 cases, 2 planned, 2 outcomes"
    write(a="crash")
    assert lost(tmp_path, 2, {"a"}) == "2 cases, 2 planned, 1 outcomes"
    write(a="crash", b="crash")
    assert lost(tmp_path, 2, {"a"}) == "1 other outcomes than expected, such as b: crash"
