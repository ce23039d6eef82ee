"""Runs stand-alone scripts, each in a process of its own."""

from __future__ import annotations

import atexit
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

# Importing torch takes a second, and what optimizers and checkpoints import at their first use takes longer. A fork of
# a process that has done so is a process of its own in milliseconds.
DRIVER = """
import gc, json, os, runpy, sys
import torch
import torch._dynamo

torch.set_num_threads(1)  # a process with threads can't be forked
gc.collect()
gc.freeze()  # else a collection in a child writes to, and so copies, every page that it shares
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        output = os.open(job["path"] + ".out", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(os.path.dirname(job["path"]))
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
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
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
    jobs, statuses = driver()
    ran = []
    with tempfile.TemporaryDirectory() as directory:
        for number, text in enumerate(texts):
            path = Path(directory) / f"{number}.py"
            path.write_text(text, encoding="utf-8")
            print(json.dumps({"path": str(path), "arguments": arguments, "before": before}), file=jobs, flush=True)
            status = int(statuses.readline())
            ran.append(Ran(status=status, output=path.with_suffix(".py.out").read_text(encoding="utf-8")))
    return ran


@cache
def driver() -> tuple[IO[str], IO[str]]:
    """Start the process that scripts are forks of, which ends with this one; return its input and its output."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    atexit.register(process.communicate)
    return process.stdin, process.stdout
