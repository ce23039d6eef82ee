"""Compares the same checks as YAML cases, as hand-written pytest functions and as a bare loop.

    python benchmarks/overhead.py                     # 2,000 checks, five rounds
    python benchmarks/overhead.py --count 10000

The three run in turn, and the ratios are computed round by round, so that a machine whose speed drifts doesn't favour
one of them. The first round is a warm-up, which writes the `.pyc` files of the hand-written functions and the suite's
cache. `--cold` removes both before every round.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from checks import KINDS

PER_FILE = 500
RULES = """\
rules:
  - id: bench.rule
    text: The checks of the benchmark.
    topic: Benchmark
    level: observed
    link: https://docs.pytorch.org/docs/stable/notes/autograd.html
    since: "1.13"
"""
CASE = """\
  - id: {name}-{number}
    title: A check of the benchmark
    why: To measure what surrounds it.
    rules: [bench.rule]
    steps:
"""


def write_checks(directory: Path, count: int) -> None:
    """Write `count` checks in each of the three spellings."""
    for name in ("cases", "hand"):
        (directory / name).mkdir(parents=True)
    (directory / "cases" / "rules.yaml").write_text(RULES)
    (directory / "cases" / "conftest.py").write_text('pytest_plugins = ["conformance.pytest_plugin.plugin"]\n')
    for name in ("cases", "hand"):
        (directory / name / "pytest.ini").write_text("[pytest]\n")
    loop = ["import warnings\n\nimport pytest\nimport torch\nfrom torch import nn\n"]
    for first in range(0, count, PER_FILE):
        cases = ["topic: Benchmark\ncases:\n"]
        hand = ["import warnings\n\nimport pytest\nimport torch\nfrom torch import nn\n"]
        for number in range(first, min(first + PER_FILE, count)):
            kind = KINDS[number % len(KINDS)]
            k = number % 97 + 1
            steps = kind.steps.format(k=k, l1=(6 * k + 9) / 4)
            body = kind.body.format(k=k, l1=(6 * k + 9) / 4)
            cases.append(CASE.format(name=kind.name, number=number) + textwrap.indent(steps, " " * 6))
            name = kind.name.replace("-", "_")
            hand.append(f"\n\ndef test_{name}_{number}():\n{textwrap.indent(body, '    ')}")
            loop.append(f"\n\ndef check_{number}():\n{textwrap.indent(body, '    ')}\n\ncheck_{number}()\n")
        (directory / "cases" / f"checks-{first}.yaml").write_text("".join(cases))
        (directory / "hand" / f"test_checks_{first}.py").write_text("".join(hand))
    (directory / "loop.py").write_text("".join(loop))


def seconds(command: list[str], directory: Path) -> float:
    """Return the wall time of a command that must succeed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - begin
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return taken


def remove_caches(directory: Path) -> None:
    for name in ("__pycache__", ".pytest_cache"):
        for path in list(directory.rglob(name)):
            shutil.rmtree(path)


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):7.2f}  ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="how many checks (default: 2000)")
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds are counted (default: 5)")
    parser.add_argument("--cold", action="store_true", help="remove the caches before each round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_checks(directory, options.count)
        commands = {
            "cases": ([sys.executable, "-m", "pytest", "-q"], directory / "cases"),
            "hand-written": ([sys.executable, "-m", "pytest", "-q"], directory / "hand"),
            "bare loop": ([sys.executable, "loop.py"], directory),
        }
        times: dict[str, list[float]] = {label: [] for label in commands}
        for round_number in range(options.rounds + 1):
            for label, (command, place) in commands.items():
                if options.cold:
                    remove_caches(place)
                taken = seconds(command, place)
                if round_number:
                    times[label].append(taken)
    ratios = [ours / theirs for ours, theirs in zip(times["cases"], times["hand-written"], strict=True)]
    print(f"{options.count} checks, {options.rounds} rounds{', cold' if options.cold else ''}: median (least to most)")
    for label, values in times.items():
        print(f"  {label:13} {spread(values)} s")
    print(f"  cases / hand-written: {spread(ratios).strip()}")


if __name__ == "__main__":
    main()
