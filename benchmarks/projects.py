"""Writes the projects that the benchmarks run: the same checks as cases, as pytest functions and as a bare loop."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from checks import KINDS

PER_FILE = 500
TOY_BACKEND = Path(__file__).parent.parent / "tests" / "toy_backend"
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
  - id: check-{}
    title: A check of the benchmark
    why: To measure what surrounds it.
    rules: [bench.rule]
    steps:
"""
CALLS = "- a = tensor([0.0])\n- b = torch.sinh(a)\n- expect: {b: [0.0]}\n"  # for modules that replace torch.sinh
IMPORTS = "import warnings\n\nimport pytest\nimport torch\nfrom torch import nn\n"
# What pytest itself needs for as many items from files that aren't Python.
FLOOR = """\
import pytest


class Nothing(pytest.Item):
    def runtest(self):
        pass


class Names(pytest.File):
    def collect(self):
        return [Nothing.from_parent(self, name=name) for name in self.path.read_text().split()]


def pytest_collect_file(file_path, parent):
    return Names.from_parent(parent, path=file_path) if file_path.suffix == ".names" else None
"""


def checks(count: int) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each check, its steps and its body."""
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        k = number % 97 + 1
        values = {"k": k, "l1": (6 * k + 9) / 4}
        yield number, kind.steps.format(**values), kind.body.format(**values)


def write_files(directory: Path, name: str, start: str, texts: Iterable[str], per_file: int = PER_FILE) -> Path:
    """Write texts to files of `per_file` each; `{}` in `name` is the number of the first."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "pytest.ini").write_text("[pytest]\n")
    several = list(texts)
    for first in range(0, len(several), per_file):
        (directory / name.format(first)).write_text(start + "".join(several[first : first + per_file]))
    return directory


def write_cases(directory: Path, count: int, instead: Mapping[int, str] | None = None) -> Path:
    """Write the checks as cases; `instead` has other steps for some of them, by number."""
    texts = (
        CASE.format(number) + textwrap.indent((instead or {}).get(number, steps), " " * 6)
        for number, steps, _ in checks(count)
    )
    write_files(directory, "checks-{}.yaml", "topic: Benchmark\ncases:\n", texts)
    (directory / "rules.yaml").write_text(RULES)
    return directory


def write_functions(directory: Path, count: int, start: str = "") -> Path:
    """Write the checks as functions of pytest; `start` follows the imports."""
    texts = (f"\n\ndef test_{number}():\n{textwrap.indent(body, '    ')}" for number, _, body in checks(count))
    return write_files(directory, "test_checks_{}.py", IMPORTS + start, texts)


def write_floor(directory: Path, count: int) -> Path:
    """Write as many items of pytest that do nothing."""
    write_files(directory, "checks-{}.names", "", (f"check-{number}\n" for number in range(count)))
    (directory / "conftest.py").write_text(FLOOR)
    return directory


def write_loop(directory: Path, count: int, start: str = "") -> Path:
    """Write the checks one after the other into loop-0.py; `start` follows the imports."""
    texts = (
        f"\n\ndef check_{number}():\n{textwrap.indent(body, '    ')}\n\ncheck_{number}()\n"
        for number, _, body in checks(count)
    )
    return write_files(directory, "loop-{}.py", IMPORTS + start, texts, per_file=count)


def run_cases(python: str, *arguments: str, places: Sequence[str] = (".",)) -> list[str]:
    """Return the words that run cases, by default those of the current directory, with any state of the suite."""
    return [python, "-m", "conformance", "run", *arguments, *places]


def remove_caches(directory: Path) -> None:
    for name in ("__pycache__", ".pytest_cache"):
        for path in list(directory.rglob(name)):
            shutil.rmtree(path)
