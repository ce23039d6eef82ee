"""Forks workers from a process that has imported torch and has run nothing, so that each costs milliseconds.

The parent asks for a worker with a line of JSON and four descriptors, for its requests, its answers, its stderr and
its notes, on the Unix socket that is this process's stdin. A line goes back with the worker's `pid`, and one with its
exit `status` when it has ended. Where a fork isn't safe this process becomes the one worker itself.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
from typing import Any, Dict, NamedTuple, Optional

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LONGEST_MESSAGE = 2**16
DESCRIPTORS = 4


class Streams(NamedTuple):
    """What a worker was started with: the parent's request for it, and descriptors."""

    wanted: Dict[str, Any]
    requests: int
    answers: int
    notes: int


def listen(may_fork: bool) -> Streams:
    """Return the streams of a worker: once in each process that is one."""
    control = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    workers: Dict[int, int] = {}  # the numbers of the workers that run, by pid

    def send(**message: int) -> None:
        with contextlib.suppress(OSError):  # the parent has ended
            control.sendall(json.dumps(message).encode("ascii") + b"\n")

    def reap(*_: Any) -> None:
        # Another that ends now must not be reaped twice.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        for pid in list(workers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                send(worker=workers.pop(pid), status=exit_status(status))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    end_with_parent()
    signal.signal(signal.SIGCHLD, reap)
    while True:
        wanted, descriptors = receive(control)
        if wanted is None:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for pid in workers:
                with contextlib.suppress(OSError):  # it has not made its own process group yet, or has ended
                    os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            os._exit(0)
        is_fork = may_fork and wanted["may_fork"] and is_safe_to_fork()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # `reap` must know the worker before it ends
        pid = os.fork() if is_fork else 0
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        else:
            workers[pid] = wanted["worker"]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        if pid == 0:
            if is_fork:
                os.setsid()
                end_with_parent()
            else:
                send(worker=wanted["worker"], pid=os.getpid())
            adopt_orphans()
            control.close()
            os.environ.update(wanted["variables"])
            os.dup2(descriptors[2], 1)  # from now on what is printed goes to the worker's stderr
            os.dup2(descriptors[2], 2)
            os.close(descriptors[2])
            return Streams(wanted, descriptors[0], descriptors[1], descriptors[3])
        for descriptor in descriptors:
            os.close(descriptor)
        send(worker=wanted["worker"], pid=pid)


def receive(control: socket.socket) -> "tuple[Optional[Dict[str, Any]], array.array[int]]":
    """Return the next request for a worker and its descriptors, or None when there will be no more."""
    descriptors = array.array("i")
    line, ancillary, *_ = control.recvmsg(LONGEST_MESSAGE, socket.CMSG_SPACE(DESCRIPTORS * descriptors.itemsize))
    for _, _, content in ancillary:
        descriptors.frombytes(content)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return json.loads(line) if line else None, descriptors


def is_safe_to_fork() -> bool:
    """Whether a fork of this process works as a fresh one: only the thread that forks lives on in it."""
    if sys.platform != "linux" or len(os.listdir("/proc/self/task")) > 1:
        return False
    try:
        accelerators = (getattr(sys.modules["torch"], name, None) for name in ("cuda", "xpu"))
        return not any(getattr(accelerator, "is_initialized", bool)() for accelerator in accelerators)
    except Exception:
        return False


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent exits, even during a case that never ends."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # else the end of the input ends it, after the case
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Have the kernel make this process the parent of what its children leave behind: so it is known to be at work."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def exit_status(status: int) -> int:
    """Return a status of `waitpid` as `subprocess` does: the exit status, or a signal's number negated."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
