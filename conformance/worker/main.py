"""The worker's conversation: one line of JSON in, one line out, on descriptors that no print can reach.

First comes `{"handshake": build}`, or `{"refused": why}` when torch can't be had. Then each request
`{"n": 7, "device": "cpu", "dtype": "float32", "file": …, "steps": […]}` is answered with
`{"n": 7, "status": …}` in the order in which they came. The end of the input ends the worker.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import signal
import sys
from typing import Any, Dict, List

LONGEST_STDERR = 2**20
LONGEST_FILE = 2**28
PR_SET_PDEATHSIG = 1


def take_over_streams() -> "tuple[int, int]":
    """Return descriptors for requests and answers; 0 becomes empty and 1 becomes stderr for all that follows."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return requests, answers


def end_with_parent() -> None:
    """Have the kernel end this process when its parent is gone, even in the middle of a case that never ends."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # without it, the end of the input does it after the case
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def limit_files() -> None:
    """Let no case fill the disk by printing: a file of this process can grow to `LONGEST_FILE` and no further."""
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LONGEST_FILE, hard))


def shorten_stderr() -> None:
    """Empty the file behind stderr when cases have printed it full."""
    try:
        if os.fstat(2).st_size > LONGEST_STDERR:
            sys.stderr.flush()
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
    except OSError:
        pass  # not a file: somebody reads it as it comes


def serve(modules: List[str], devices: List[str]) -> None:
    """Serve requests until the input ends."""
    requests, answers = take_over_streams()
    end_with_parent()
    limit_files()

    def answer(message: Dict[str, Any]) -> None:
        line = memoryview((json.dumps(message) + "\n").encode("ascii"))
        while line:
            line = line[os.write(answers, line) :]

    gc.disable()  # for as long as it takes to import torch, whose modules are here to stay
    try:
        from conformance.worker import build  # noqa: PLC0415 - importing torch may fail, print and take its time

        build.import_modules(modules)
        from conformance.worker.engine import Engine  # noqa: PLC0415 - after the modules that bring devices

        engine = Engine()
        answer({"handshake": build.describe(devices)})
    except BaseException as error:
        answer({"refused": f"{type(error).__name__}: {error}"})
        raise
    with os.fdopen(requests, "r", encoding="ascii") as lines:
        for line in lines:
            answered = engine.run(json.loads(line))
            answer(answered)
            if "must_restart" in answered:
                return
            shorten_stderr()
