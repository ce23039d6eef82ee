"""Runs stand-alone scripts, each in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# Importing torch takes a second; a fork of a process that has done so is a process of its own in milliseconds. What
# optimizers and checkpoints import at their first use takes longer.
DRIVER = """
import gc, json, os, runpy, sys
import torch

torch.set_num_threads(1)  # a process with threads can't be forked
jobs = [json.loads(line) for line in sys.stdin]
if len(jobs) > 20:
    import torch._dynamo
gc.collect()
gc.freeze()  # else a collection in a child writes to, and so copies, every page that it shares
for job in jobs:
    child = os.fork()
    if child == 0:
        output = os.open(job["path"] + ".out", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = [job["path"], *job["arguments"]]
        status = 0
        try:
            exec(job["before"])
            try:
                runpy.run_path(job["path"], run_name="__main__")
            except Exception:
                sys.excepthook(*sys.exc_info())
                status = 1
        except SystemExit as end:
            status = end.code or 0
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    print(os.WEXITSTATUS(os.waitpid(child, 0)[1]), flush=True)
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


def run_scripts(texts: Sequence[str], *arguments: str, before: str = "", python: str = sys.executable) -> list[Ran]:
    """Run scripts after `before`, in two processes at a time, and return what came of each."""
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(2) as pool:
        paths = [Path(directory) / f"{number}.py" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        halves = [paths[::2], paths[1::2]]
        ran: dict[Path, Ran] = {}
        for results in pool.map(lambda half: run_in_one(half, arguments, before, python), halves):
            ran.update(results)
        return [ran[path] for path in paths]


def run_in_one(paths: Sequence[Path], arguments: Sequence[str], before: str, python: str) -> dict[Path, Ran]:
    if not paths:
        return {}
    jobs = [json.dumps({"path": str(path), "arguments": arguments, "before": before}) for path in paths]
    answer = subprocess.run(
        [python, "-I", "-c", DRIVER], input="\n".join(jobs), cwd=paths[0].parent, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    statuses = [int(status) for status in answer.stdout.split()]
    outputs = [path.with_suffix(".py.out").read_text(encoding="utf-8") for path in paths]
    return {
        path: Ran(status=status, output=output) for path, status, output in zip(paths, statuses, outputs, strict=True)
    }
