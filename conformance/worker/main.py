"""The worker's protocol: one line of JSON for each request and answer, on file descriptors that no print writes to.

The first line is `{"handshake": build}`, or `{"refused": why}` when torch can't be imported. Only the first worker of a
run describes the build; before it touches a device, which may end or block it, it says `{"asks": device}`. Then each
request `{"n": 7, "device": "cpu", "dtype": "float32", "file": …, "steps": […]}` is answered by `{"n": 7, "status": …}`,
in order. The worker exits at the end of its input, and after an answer with `must_restart` or `has_grown`.
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
from typing import Any, Callable, Dict, List, Optional

from conformance.worker import confinement
from conformance.worker.fork_server import listen
from conformance.worker.messages import message_line

LONGEST_STDERR = 2**20
LONGEST_FILE = 2**28
MOST_GROWTH = 2**30  # bytes that what torch keeps may make this process grow by, before another goes on


def limit_files() -> None:
    """Limit the size of files that this process writes: output of a case can't fill the disk, nor can a core dump."""
    confinement.limit(resource.RLIMIT_FSIZE, LONGEST_FILE)
    confinement.limit(resource.RLIMIT_CORE, 0)


def limit_memory(size: int) -> None:
    """Let allocations fail, as errors of their case, when this process would have more than `size` bytes.

    What is limited is private writable memory, and with all else that is mapped what there is now and as much again:
    drivers of accelerators reserve far more addresses than they use. Where memory is short, this process goes first.
    """
    confinement.limit(resource.RLIMIT_DATA, size)
    with contextlib.suppress(OSError):  # this is not Linux
        with open("/proc/self/statm", encoding="ascii") as sizes:
            mapped = int(sizes.read().split()[0]) * resource.getpagesize()
        confinement.limit(resource.RLIMIT_AS, mapped + size)
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("1000")


def memory_reader() -> Callable[[], int]:
    """Return a function that tells how many bytes this process has in memory, 0 where that can't be known.

    What it reads is opened now: it can't be once the process is confined.
    """
    try:
        sizes = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # this is not Linux
        return int

    def memory() -> int:
        try:
            return int(os.pread(sizes, 100, 0).split()[1]) * resource.getpagesize()
        except (OSError, ValueError, IndexError):  # torch has closed the descriptor, or put another in its place
            return 0

    return memory


def shorten_stderr() -> None:
    """Truncate the file that stderr is redirected to when the output of cases has grown too large."""
    try:
        if os.fstat(2).st_size > LONGEST_STDERR:
            sys.stderr.flush()
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
    except OSError:
        pass  # a pipe or terminal


def present_of(facts: Dict[str, Any]) -> List[str]:
    """Return the types of the devices of a described build that can be used."""
    return [each["type"] for each in facts["devices"] if each["absent"] is None]


def restrict(
    wanted: Dict[str, Any], present: List[str], uses_others: bool, profile: Dict[str, Any], readable: List[str]
) -> Optional[Dict[str, Any]]:
    """Limit the memory of this process and confine it, as `wanted`; return what the kernel then keeps it from."""
    if wanted["memory"] and present == ["cpu"]:
        limit_memory(wanted["memory"])
    return confinement.confine_to(profile["sandbox"], uses_others, readable) if wanted["sandbox"] else None


def renew_thread_pool() -> None:
    """Replace torch's thread pool, which is not usable after a fork.

    torch does so at the first use, but not safely when several threads are the first.
    """
    import torch  # noqa: PLC0415 - by now it is imported

    torch.set_num_threads(torch.get_num_threads())


def answer_requests(
    engine: Any, requests: int, answer: Callable[[Dict[str, Any]], None], memory: Callable[[], int]
) -> None:
    """Answer each line of the descriptor `requests`, until there are no more or the process must not go on.

    It `has_grown` when it has gathered so much memory that a case might be the first to find none: torch never frees
    what it has traced, for example.
    """
    process = os.getpid()
    most = memory() + MOST_GROWTH
    with os.fdopen(requests, "r", encoding="ascii") as lines:
        for line in lines:
            answered = engine.run(json.loads(line))
            if os.getpid() != process:  # a copy that a case has made by a fork: two must not answer
                os._exit(0)
            if "must_restart" not in answered and memory() > most:
                answered["has_grown"] = True
            answer(answered)
            if "must_restart" in answered or "has_grown" in answered:
                return
            shorten_stderr()


def serve(modules: List[str], devices: List[str], profile: Dict[str, Any]) -> None:
    """Import torch, and serve requests in each worker until its input ends.

    Back-ends are imported and set up in each worker: what they open must not be shared by several processes.
    """
    limit_files()
    faulthandler.register(signal.SIGUSR1, 2)  # when the parent gives up waiting
    gc.disable()  # importing torch is faster without, and its objects are never freed
    engine: Any = None
    failed: Optional[BaseException] = None
    readable: List[str] = []
    try:
        from conformance.worker import backend, beside, build  # noqa: PLC0415 - importing torch may fail or print

        if not modules and not profile["setup"]:
            backend.prepare(modules, profile)
            from conformance.worker.engine import Engine  # noqa: PLC0415 - imports torch, too

            engine = Engine(profile)
            readable = confinement.readable_places()
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
            other = beside.beside(wanted["sandbox"])
            backend.prepare(modules, profile)
            from conformance.worker.engine import Engine  # noqa: PLC0415 - after the modules that register devices

            engine = Engine(profile, other)
            readable = confinement.readable_places()
        else:
            renew_thread_pool()
        engine.notes.descriptor = notes
        facts = None
        if wanted["describes"]:
            facts = build.describe(devices, modules, profile, wanted["absent"], lambda name: answer({"asks": name}))
        present = wanted["present"] if facts is None else present_of(facts)
        memory = memory_reader()
        uses_others = bool(modules or profile["setup"]) or any(each != "cpu" for each in devices or present)
        answer({"handshake": facts, "sandbox": restrict(wanted, present, uses_others, profile, readable)})
    except BaseException as error:
        answer({"refused": message_line(error)})
        raise
    answer_requests(engine, requests, answer, memory)
