"""The worker's protocol: one line of JSON for each request and answer, on file descriptors that no print writes to.

The first line is `{"handshake": build}`, or `{"refused": why}` when torch can't be imported. Then each request
`{"n": 7, "device": "cpu", "dtype": "float32", "file": …, "steps": […]}` is answered by `{"n": 7, "status": …}`, in
order. The worker exits at the end of its input, and after an answer with `must_restart`.
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
    """Return descriptors for requests and answers; from then on stdin is empty and stdout is stderr."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return requests, answers


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent exits, even during a case that never ends."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # else the end of the input ends it, after the case
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def limit_files() -> None:
    """Limit the size of files that this process writes, so that output of a case can't fill the disk."""
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LONGEST_FILE, hard))


def shorten_stderr() -> None:
    """Truncate the file that stderr is redirected to when the output of cases has grown too large."""
    try:
        if os.fstat(2).st_size > LONGEST_STDERR:
            sys.stderr.flush()
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
    except OSError:
        pass  # a pipe or terminal


def serve(modules: List[str], devices: List[str]) -> None:
    """Serve requests until the input ends."""
    requests, answers = take_over_streams()
    end_with_parent()
    limit_files()

    def answer(message: Dict[str, Any]) -> None:
        line = memoryview((json.dumps(message) + "\n").encode("ascii"))
        while line:
            line = line[os.write(answers, line) :]

    gc.disable()  # importing torch is faster without, and its objects are never freed
    try:
        from conformance.worker import build  # noqa: PLC0415 - importing torch may fail or print

        build.import_modules(modules)
        from conformance.worker.engine import Engine  # noqa: PLC0415 - after the modules that register devices

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
