"""What campaigns of planted faults share: the cases that they try, and forks in which a fault does no harm."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from running import judged

from conformance.execution.program import program_of, why_unsupported
from conformance.language.files import load_cases
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.worker.engine import Engine

TARGET = Target(device="cpu", dtype="float32")
EXPLORERS = 64  # forks that explore the cases
SECONDS = 180.0  # that a fork may take


def runnable(files: Iterable[Path]) -> list[Case]:
    """Return the cases of these files that a run has with the installed torch."""
    cases = [case for case in load_cases(files) if not case.is_covered]
    return [case for case in cases if not why_unsupported(case, TARGET, torch.__version__)]


def status_of(engine: Engine, case: Case) -> str:
    answer = engine.run({"n": 0, **program_of(case, TARGET, torch.__version__)})
    return judged(case, answer, TARGET).status


def explored(ids: Sequence[str], explore: Callable[[Sequence[str]], Any]) -> Iterator[Any]:
    """Yield what forks find out about cases; those with a case that crashes are halved until it is alone."""
    parts = [list(ids[place::EXPLORERS]) for place in range(min(EXPLORERS, len(ids)))]
    for part, told in zip(parts, in_forks(parts, explore), strict=True):
        if told is not None:
            yield told
        elif len(part) > 1:
            yield from explored(part, explore)


def in_forks(arguments: Sequence[Any], call: Callable[[Any], Any], most: int = 2) -> Iterator[Any]:
    """Yield what a call returns for each argument, or None if it crashes or takes too long, each in a fork."""
    running: dict[int, tuple[int, int, float, list[bytes]]] = {}  # by descriptor: place, process, start, what came
    found: dict[int, Any] = {}
    waiting, told = list(enumerate(arguments)), 0
    while told < len(arguments):
        while waiting and len(running) < most:
            place, argument = waiting.pop(0)
            reading, writing = os.pipe()
            process = os.fork()
            if not process:
                os.close(reading)
                try:
                    with os.fdopen(writing, "w") as answer:
                        json.dump(call(argument), answer)
                finally:  # also after an error: what the parent has to do is not for a fork
                    os._exit(0)
            os.close(writing)
            running[reading] = (place, process, time.monotonic(), [])
        for reading in select.select(list(running), [], [], 0.5)[0]:
            running[reading][3].append(os.read(reading, 1 << 16))
        for reading, (place, process, start, parts) in list(running.items()):
            is_late = time.monotonic() - start > SECONDS
            if is_late or (parts and not parts[-1]):
                if is_late:
                    os.kill(process, 9)
                os.waitpid(process, 0)
                os.close(reading)
                del running[reading]
                try:
                    found[place] = json.loads(b"".join(parts))
                except ValueError:
                    found[place] = None
        while told in found:
            yield found[told]
            told += 1


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
