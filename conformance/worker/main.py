"""The worker's protocol: one line of JSON for each request and answer, on file descriptors that no print writes to.

The first line is `{"handshake": build}`, or `{"refused": why}` when torch can't be imported. Only the first worker of a
run describes the build; before it touches a device, which may end or block it, it says `{"asks": device}`. Then each
request `{"n": 7, "device": "cpu", "dtype": "float32", "file": …, "steps": […]}` is answered by `{"n": 7, "status": …}`,
in order. The worker exits at the end of its input, and after an answer with `must_restart`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import os
import resource
import signal
import sys
from typing import Any, Dict, List, Optional

from conformance.worker.fork_server import listen
from conformance.worker.messages import message_line

LONGEST_STDERR = 2**20
LONGEST_FILE = 2**28


def limit_files() -> None:
    """Limit the size of files that this process writes: output of a case can't fill the disk, nor can a core dump."""
    for kind, most in ((resource.RLIMIT_FSIZE, LONGEST_FILE), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def limit_memory(size: int) -> None:
    """Let allocations fail, as errors of their case, when this process would have more than `size` bytes.

    What is limited is private writable memory: drivers of accelerators reserve far more addresses than they use.
    """
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (size, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def shorten_stderr() -> None:
    """Truncate the file that stderr is redirected to when the output of cases has grown too large."""
    try:
        if os.fstat(2).st_size > LONGEST_STDERR:
            sys.stderr.flush()
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
    except OSError:
        pass  # a pipe or terminal


def renew_thread_pool() -> None:
    """Replace torch's thread pool, which is not usable after a fork.

    torch does so at the first use, but not safely when several threads are the first.
    """
    import torch  # noqa: PLC0415 - by now it is imported

    torch.set_num_threads(torch.get_num_threads())


def serve(modules: List[str], devices: List[str], profile: Dict[str, Any]) -> None:
    """Import torch, and serve requests in each worker until its input ends.

    Back-ends are imported and set up in each worker: what they open must not be shared by several processes.
    """
    limit_files()
    faulthandler.register(signal.SIGUSR1, 2)  # when the parent gives up waiting
    gc.disable()  # importing torch is faster without, and its objects are never freed
    engine: Any = None
    failed: Optional[BaseException] = None
    try:
        from conformance.worker import backend, beside, build  # noqa: PLC0415 - importing torch may fail or print

        if not modules and not profile["setup"]:
            backend.prepare(modules, profile)
            from conformance.worker.engine import Engine  # noqa: PLC0415 - imports torch, too

            engine = Engine(profile)
    except BaseException as error:  # the first worker says so
        failed = error
    wanted, requests, answers, notes = listen(may_fork=failed is None)
    faulthandler.enable(2)  # a stack of Python, and from 3.14 on of C, when a signal ends this process
    faulthandler.register(signal.SIGUSR1, 2)  # as above, and into the file of this worker

    def answer(message: Dict[str, Any]) -> None:
        line = memoryview((json.dumps(message) + "\n").encode("ascii"))
        while line:
            line = line[os.write(answers, line) :]

    try:
        if failed is not None:
            raise failed
        if engine is None:
            other = beside.beside()
            backend.prepare(modules, profile)
            from conformance.worker.engine import Engine  # noqa: PLC0415 - after the modules that register devices

            engine = Engine(profile, other)
        else:
            renew_thread_pool()
        engine.notes.descriptor = notes
        facts = None
        if wanted["describes"]:
            facts = build.describe(devices, modules, profile, wanted["absent"], lambda name: answer({"asks": name}))
        answer({"handshake": facts})
        uses_accelerator = facts is not None and any(each["absent"] is None for each in facts["devices"][1:])
        if wanted["memory"] and not uses_accelerator:
            limit_memory(wanted["memory"])
    except BaseException as error:
        answer({"refused": message_line(error)})
        raise
    process = os.getpid()
    with os.fdopen(requests, "r", encoding="ascii") as lines:
        for line in lines:
            answered = engine.run(json.loads(line))
            if os.getpid() != process:  # a copy that a case has made by a fork: two must not answer
                os._exit(0)
            answer(answered)
            if "must_restart" in answered:
                return
            shorten_stderr()
