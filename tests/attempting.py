"""Makes attempts to leave the case language, each in a fork of a process that has imported torch; see `walls.py`.

The forks are confined, or run what they are given by the rules of the language, or both, or neither. What they print
goes to a file for each, which `walls.py` reads.
"""

# ruff: noqa: T201

from __future__ import annotations

import builtins
import gc
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import torch
import yaml
from running import RULES, case_of, request_of

from conformance.language import vocabulary
from conformance.language.errors import CaseFileError
from conformance.language.reader import parse_cases
from conformance.worker import confinement, main, namespace
from conformance.worker.engine import Engine

SECONDS = 60
LARGEST = 2**32
# Of Python's audit: what writes, starts, connects or reaches beside the interpreter. Reading is looked at by its path.
ACTS = ("os.", "subprocess.", "socket.", "shutil.", "ctypes.dlopen", "pty.", "webbrowser.", "urllib.", "ftplib.")
HARMLESS = ("os.listdir", "os.scandir", "os.putenv", "os.unsetenv", "os.fork")


def log(*words: object) -> None:
    print(*words, flush=True)


def plain_names() -> dict[str, Any]:
    """Return the names of the vocabulary and all of Python's, for text that no rule is applied to."""
    offered = namespace.offer("cpu", torch.Generator())
    names = {name: value for name, value in offered.items() if not name.startswith("_")}
    names |= {name: namespace.real_module(path) for name, path in vocabulary.ROOTS.items()}
    # A dict of its own, as steps have; what torch imports meanwhile finds Python's.
    return {"__builtins__": {**vars(builtins), **names, "type": type, "log": log}, "__name__": "__case__", "log": log}


class Attempts:
    """Runs the text of attempts, each as its kind of walls has it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.readable = confinement.readable_places()
        self.events: list[str] = []
        self.names = plain_names()
        self.engine: Engine | None = None

    def begin(self, walls: str) -> None:
        """Close in this process what the language has closed, if it is one of the walls, and for good."""
        if self.engine is None and walls in ("language", "both"):
            self.engine = Engine()
            self.engine.run(request_of(case_of("- a = ones(1)\n- expect: {a: 1}\n")))

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note what an attempt does to the machine, as Python's audit tells it."""
        if event == "open":
            path, mode, flags = arguments
            is_written = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            place = path if isinstance(path, str) else ""
            if (is_written and place not in ("/dev/null", "")) or place.startswith(f"{self.directory}/"):
                self.events.append(f"open {place} {mode}")
        elif event.startswith(ACTS) and event not in HARMLESS:
            self.events.append(event)

    def status(self, task: dict[str, str]) -> str:
        """Make one attempt, and return how its case ends, or `refused`."""
        if task["walls"] in ("kernel", "none"):
            return self.freely(task)
        assert self.engine is not None
        try:
            if task["file"]:
                cases = parse_cases(task["file"], "t.yaml", RULES)
            else:
                cases = [case_of(f"- {json.dumps(task['text'])}\n- expect: {{int(2): 2}}\n")]
        except CaseFileError:
            return "refused"
        ends = {self.engine.run(request_of(case))["status"] for case in cases}
        return "+".join(sorted(ends))

    def freely(self, task: dict[str, str]) -> str:
        """Run the text of an attempt as Python, or have the tags of a file do what they say."""
        try:
            if task["file"] and "!!python" in task["file"]:
                yaml.unsafe_load(task["file"])
            else:
                exec(compile(task["text"], "<attempt>", "exec", dont_inherit=True), self.names)
        except Exception as error:  # noqa: BLE001 - whatever an attempt comes to
            return type(error).__name__
        return "pass"

    def child(self, task: dict[str, str], answers: int) -> None:
        """Make one attempt in this process, which ends with it."""
        descriptor = os.open(task["output"], os.O_WRONLY | os.O_CREAT)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        main.limit_memory(LARGEST)
        if task["walls"] in ("kernel", "both"):
            lacks = confinement.confine((), self.readable)["lacks"]
            assert not lacks, lacks
        sys.addaudithook(self.hear)
        try:
            status = self.status(task)
            gc.collect()
        except BaseException as error:  # noqa: BLE001 - it says so
            traceback.print_exc()
            status = f"ended by {type(error).__name__}"
        events = list(dict.fromkeys(self.events))[:5]
        sys.stdout.flush()
        os.write(answers, json.dumps({"status": status, "events": events}).encode())
        os._exit(0)

    def make(self, task: dict[str, str]) -> dict[str, Any]:
        """Make one attempt in a fork, and return what it tells of itself, if it lives to."""
        self.begin(task["walls"])
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            self.child(task, writing)
        os.close(writing)
        has_answer = select.select([reading], [], [], SECONDS)[0]
        answer = os.read(reading, 2**16) if has_answer else b""
        os.close(reading)
        if not has_answer:
            os.killpg(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if answer:
            found: dict[str, Any] = json.loads(answer)
            return found
        return {"status": "timeout" if not has_answer else f"crash {status}", "events": []}


def run() -> None:
    tasks = json.load(sys.stdin)
    # Else each fork that needs these would import them, which makes temporary files.
    if any("compile" in task["text"] for task in tasks):
        importlib.import_module("torch._dynamo.backends.debugging")
    if any("symbolic" in task["text"] for task in tasks):
        for name in ("torch._dynamo", "torch._inductor.compiler_bisector", "torch.fx.experimental.symbolic_shapes"):
            importlib.import_module(name)
    tempfile.gettempdir()  # it is found by writing a file there
    torch.set_num_threads(1)
    attempts = Attempts(Path(sys.argv[1]))
    (attempts.directory / "readable").write_text(json.dumps([*attempts.readable, "/proc"]))
    gc.freeze()  # else each fork would go through all that is imported
    without_language_first = sorted(
        range(len(tasks)), key=lambda number: tasks[number]["walls"] in ("language", "both")
    )
    found = {number: attempts.make(tasks[number]) for number in without_language_first}
    print(json.dumps([found[number] for number in range(len(tasks))]))


if __name__ == "__main__":
    run()
