"""Runs pytest on the case files of a test, in a process and a directory of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forks

RULES = """\
rules:
  - id: test.rule
    text: What the tests of the suite check.
    topic: Tests
    level: documented
    link: https://docs.pytorch.org/docs/stable/notes/autograd.html#tests
    since: "1.13"
  - id: test.observed
    text: What the tests of the suite see.
    topic: Tests
    level: observed
    link: https://docs.pytorch.org/docs/stable/notes/autograd.html#seen
    since: "1.13"
"""

PROGRAM = """\
  - id: times-{0}
    title: a product with {0}
    features: [reuse]
    inputs: {{a: [1.5]}}
    result: a * {0}
    g: [2.0]
    gradients: {{a: "{0} * g"}}
"""
WAY = """\
cases:
  - id: way
    title: Both agree
    why: They do the same
    rules: [test.rule]
    spellings:
      one: ["found = autograd.grad(f(*inputs), inputs, g)"]
      other: ["found = autograd.grad(f(*inputs), inputs, g * 2)"]
"""
# A case of two spellings on two programs with the same features, of which one is covered by the other.
PAIRS = f"topic: T\nprograms:\n{PROGRAM.format(2)}{PROGRAM.format(3)}{WAY}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run printed, its exit status, and its report (None when it wrote none)."""

    status: int
    output: str
    report: dict[str, Any] | None

    @property
    def outcomes(self) -> dict[str, dict[str, Any]]:
        """The outcomes by the case's id, for runs on one target."""
        assert self.report is not None, self.output
        return {outcome["case"]: outcome for outcome in self.report["outcomes"]}

    @property
    def statuses(self) -> dict[str, str]:
        return {case: outcome["status"] for case, outcome in self.outcomes.items()}


class Session:
    """A directory with the plugin, rules and case files, in which pytest can be run.

    Its processes are forks; `real` gives it the interpreter itself, for tests of how processes start and end.
    """

    def __init__(self, directory: Path, *, real: bool = False) -> None:
        self.directory = directory
        self.python = sys.executable if real else forks.python()
        directory.mkdir(exist_ok=True)
        # Importing hypothesis takes longer than all else that pytest does before the first case.
        options = "-p conformance.pytest_plugin.plugin -p no:hypothesispytest --trust"
        self.write("pytest.ini", f"[pytest]\naddopts = {options}\n")
        self.write("rules.yaml", RULES)

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def cases(self, name: str = "first.yaml", topic: str = "Tests", **steps: str) -> Path:
        """Write a case file; each keyword is a case's id (with _ for -) and its steps as YAML."""
        text = f"topic: {topic}\ncases:\n"
        for key, value in steps.items():
            text += (
                f"  - id: {key.replace('_', '-')}\n    title: The case {key}\n    why: To test the suite.\n"
                f"    rules: [test.rule]\n    steps:\n{textwrap.indent(textwrap.dedent(value), '      ')}"
            )
        return self.write(name, text)

    def command(self, *arguments: str, python: str = sys.executable) -> list[str]:
        return [python, "-m", "pytest", *arguments]

    def environment(self) -> dict[str, str]:
        # pytest's short summary is longer where CI is set.
        own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "CI"))}
        return {**own, "PYTHONPATH": str(self.directory)}

    def run(self, *arguments: str) -> Result:
        done = subprocess.run(
            self.command(*arguments, python=self.python), cwd=self.directory, env=self.environment(), check=False,
            text=True, timeout=300, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return Result(status=done.returncode, output=done.stdout, report=self.report())

    def report(self) -> dict[str, Any] | None:
        """Return the finished report, or the unfinished one where there is no other."""
        found = sorted((self.directory / "reports").glob("*.json"), key=lambda path: ".partial." in path.name)
        if not found:
            return None
        report: dict[str, Any] = json.loads(found[0].read_text(encoding="utf-8"))
        return report
