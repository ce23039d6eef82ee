"""Runs stand-alone scripts, each in a process of its own."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import forks

RUN = """
import runpy, sys, torch
torch.set_num_threads(1)
path, before, *sys.argv[1:] = sys.argv[1:]
exec(before)
runpy.run_path(path, run_name="__main__")
"""
FAILURE = re.compile(r"fail: line (\d+), (.*?): expected ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of a script: its exit status and all that it printed."""

    status: int
    output: str

    @property
    def verdicts(self) -> list[str]:
        """The last line, and those before it that begin with the same word."""
        lines = self.output.splitlines()
        return [line for line in lines if line.partition(":")[0] == lines[-1].partition(":")[0]]

    @property
    def outcome(self) -> tuple[str, list[tuple[int, str]]]:
        """The last word, and for each failure its line in the case file and its path."""
        word = self.verdicts[-1].partition(":")[0]
        assert self.status == {"pass": 0, "fail": 1, "error": 1, "unsupported": 3}[word], self.output
        places = [FAILURE.match(line) for line in self.verdicts if word == "fail"]
        return word, [(int(place[1]), place[2]) for place in places if place]


def run_script(text: str, *arguments: str, before: str = "") -> Ran:
    return run_scripts([text], *arguments, before=before)[0]


def run_scripts(texts: Sequence[str], *arguments: str, before: str = "") -> list[Ran]:
    """Run scripts after `before`, each in a process of its own, and return what came of each."""
    ran = []
    with tempfile.TemporaryDirectory() as directory:
        for number, text in enumerate(texts):
            path = Path(directory) / f"{number}.py"
            path.write_text(text, encoding="utf-8")
            with path.with_suffix(".out").open("wb") as output:
                descriptors = (0, output.fileno(), output.fileno())
                status = forks.ask(
                    forks.python(), "torch", ["-c", RUN, str(path), before, *arguments], directory, descriptors
                )
            ran.append(Ran(status=status, output=path.with_suffix(".out").read_text(encoding="utf-8")))
    return ran
