"""The parent's end of worker processes: starts them, feeds them, and outlives whatever becomes of them.

Requests are answered in order, so the oldest one without an answer is the one that a silent or dead
worker was at. That one gets the outcome; those behind it go to the next worker.
"""

from __future__ import annotations

import collections
import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from conformance.language.versions import version_of
from conformance.model.build import Build

START_SECONDS = 300.0  # importing torch from a cold disk takes minutes on some machines
STDERR_TAIL = 4000
SKETCH_SECONDS = 10.0  # the limit of what only a picture hangs on
LOST_SKETCHES = 3  # how many workers may be lost to sketches before no more are made
POLL_INTERVAL = 0.001  # seconds
LONG_QUEUE = 16
PACKAGE = Path(__file__).parent.parent
NO_SKETCH = {"status": "not-run", "reason": "too many workers were lost to sketches"}

# The package is loaded from its place alone: what lies beside it (another environment's
# site-packages, perhaps) must not become importable in the interpreter under test.
BOOTSTRAP = """\
import sys, importlib.util
sys.path[:] = [entry for entry in sys.path if entry]
place, modules, devices = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
spec = importlib.util.spec_from_file_location("conformance", place + "/__init__.py", submodule_search_locations=[place])
sys.modules["conformance"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["conformance"])
from conformance.worker.main import serve
serve(modules, devices)
"""


class Refused(Exception):
    """There is nothing to test: the interpreter, torch, a module or the device asked for is missing or broken."""


class WorkerProcess:
    """One process and the conversation with it; it may die at any time."""

    def __init__(
        self, python: str, modules: Sequence[str], devices: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the worker
        command = [python, "-c", BOOTSTRAP, str(PACKAGE), " ".join(modules), " ".join(devices)]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **variables}
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, env=environment, bufsize=0,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Refused(f"can't start {python}: {error}") from None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests = self.process.stdin
        self.answers = self.process.stdout
        self.buffer = bytearray()
        self.unsent = bytearray()
        os.set_blocking(self.requests.fileno(), False)
        os.set_blocking(self.answers.fileno(), False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.answers, selectors.EVENT_READ)

    def send(self, message: dict[str, Any]) -> None:
        """Give the worker a request; one that is dead or busy loses nothing by it."""
        self.unsent += json.dumps(message).encode("ascii") + b"\n"
        self.flush()

    def flush(self) -> None:
        while self.unsent:
            try:
                written = self.requests.write(self.unsent)
            except (BrokenPipeError, OSError):
                self.unsent.clear()  # it is dead, which reading from it will show
                return
            if not written:
                return
            del self.unsent[:written]

    def receive(self, seconds: float, is_busy: bool = False) -> dict[str, Any] | None:
        """Return the next message, or None when none comes within `seconds`; raise EOFError when none can come.

        While the worker is busy with a long queue, being woken by each of its answers would cost it more
        than letting a few of them gather.
        """
        deadline = time.monotonic() + seconds
        while True:
            end = self.buffer.find(b"\n")
            if end >= 0:
                line = bytes(self.buffer[:end])
                del self.buffer[: end + 1]
                return parse_message(line)
            self.flush()
            chunk = self.answers.read(2**16)
            if chunk:
                self.buffer += chunk
            elif chunk is not None:
                raise EOFError
            else:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                if is_busy:
                    time.sleep(POLL_INTERVAL)
                    is_busy = False
                    continue
                self.selector.select(min(left, 0.05) if self.unsent else left)

    def end(self, kill: bool = False) -> int:
        """End the worker and return its exit status (negative: the signal that ended it)."""
        with contextlib.suppress(OSError):
            self.requests.close()
        if kill:
            self.kill()
            return self.process.wait()
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.wait()

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)  # what it started goes with it

    def close(self) -> None:
        self.selector.close()
        self.answers.close()
        self.stderr.close()

    def tail(self) -> str:
        """Return the last that the worker wrote to stderr or stdout."""
        size = self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, size - STDERR_TAIL))
        return self.stderr.read().decode("utf-8", "replace").strip()


def parse_message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise EOFError(f"answered with what is no message: {line[:80]!r}")
    return message


def signal_name(status: int) -> str:
    """Return the signal that ended a process, given its exit status; "" where it exited by itself."""
    if status >= 0:
        return ""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def describe_end(status: int) -> str:
    """Say how a process ended, given its exit status."""
    return f"exited with status {status}" if status >= 0 else f"was ended by {signal_name(status)}"


class Workers:
    """A queue of requests and the worker that serves it; a new one takes over when it dies or is killed."""

    def __init__(
        self,
        python: str,
        modules: Sequence[str] = (),
        devices: Sequence[str] = (),
        case_seconds: float = 60.0,
        *,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.arguments = (python, tuple(modules), tuple(devices), variables or {})
        self.case_seconds = case_seconds
        self.waiting: collections.deque[dict[str, Any]] = collections.deque()
        self.answered: dict[int, dict[str, Any]] = {}
        self.started = time.monotonic()
        self.worker: WorkerProcess | None = WorkerProcess(*self.arguments)
        self.build: Build | None = None
        self.since = self.started  # when the oldest waiting request can have been begun at the earliest
        self.lost_sketches = 0

    def handshake(self) -> Build:
        """Wait until the first worker has imported torch, and return what it says of it."""
        if self.build is None:
            build = msgspec.convert(self.receive_handshake(), Build)
            try:
                version_of(build.torch)
            except ValueError as error:
                raise Refused(f"torch.__version__: {error}") from None
            self.build = build
        return self.build

    def receive_handshake(self) -> dict[str, Any]:
        worker = self.worker
        assert worker is not None
        python = self.arguments[0]
        try:
            message = worker.receive(START_SECONDS)
        except EOFError:
            why = f"the worker ({python}) {describe_end(worker.end())} at once\n{worker.tail()}"
        else:
            if message is not None and "handshake" in message:
                facts: dict[str, Any] = message["handshake"]
                return facts
            silent = f"the worker ({python}) did not import torch in {START_SECONDS:.0f} s\n{worker.tail()}"
            why = silent if message is None else f"{python}: {message.get('refused', 'no greeting')}"
            worker.end(kill=True)
        worker.close()
        self.worker = None
        raise Refused(why)

    def request(self, number: int, program: dict[str, Any]) -> None:
        """Queue a program under a number of the caller's; its answer is `outcome(number)`."""
        if program.get("sketch") and self.lost_sketches >= LOST_SKETCHES:
            self.answered[number] = NO_SKETCH
            return
        self.waiting.append({"n": number, **program})
        if self.worker is None:
            self.replace()
            return
        if len(self.waiting) == 1:
            self.since = time.monotonic()
        self.worker.send(self.waiting[-1])

    def is_queued(self, number: int) -> bool:
        return number in self.answered or any(message["n"] == number for message in self.waiting)

    def outcome(self, number: int) -> dict[str, Any]:
        """Return the answer to the request `number`, waiting for it as long as its turn and its time limit take."""
        while number not in self.answered:
            self.receive()
        return self.answered.pop(number)

    def answer(self, number: int, seconds: float) -> dict[str, Any] | None:
        """Return the answer to the request `number`, or None when it isn't there within `seconds`."""
        deadline = time.monotonic() + seconds
        while number not in self.answered:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self.receive(left)
        return self.answered.pop(number)

    def receive(self, patience: float = math.inf) -> None:
        """Take one answer, or find out that none will come, or none while the caller has patience."""
        assert self.worker is not None
        limit = min(self.case_seconds, SKETCH_SECONDS) if self.waiting[0].get("sketch") else self.case_seconds
        left = max(limit - (time.monotonic() - self.since), 0.0)
        try:
            message = self.worker.receive(min(left, patience), is_busy=len(self.waiting) > LONG_QUEUE)
            if message is not None and message.get("n") != self.waiting[0]["n"]:
                raise EOFError("answered a request that it was not at")
        except EOFError as error:
            self.lose_worker("crash", str(error), limit)
            return
        if message is None:
            if left <= patience:
                self.lose_worker("timeout", "", limit)
            return
        self.since = time.monotonic()
        self.waiting.popleft()
        self.answered[message.pop("n")] = message
        why_restarted = message.pop("must_restart", "")
        if why_restarted:
            if message["status"] != "pass":
                message["reason"] = f"{why_restarted}; the worker was replaced"
            self.end_worker()
            if self.waiting:
                self.replace()

    def lose_worker(self, status: str, why: str, limit: float) -> None:
        """Give the request that the worker was at its outcome, and the rest to a new worker."""
        worker = self.worker
        assert worker is not None
        ended = worker.end(kill=status == "timeout" or bool(why))
        tail = worker.tail()
        worker.close()
        self.worker = None
        facts: dict[str, Any] = {}
        if status == "timeout":
            reason = f"no answer within {limit:g} s; the worker was killed"
        else:
            reason = f"the worker {why or describe_end(ended)}"
            if not why:  # nobody but itself ended it
                facts = {"exit_status": ended} if ended >= 0 else {"signal": signal_name(ended)}
        culprit = self.waiting.popleft()
        seconds = round(time.monotonic() - self.since, 6)
        self.answered[culprit["n"]] = {
            "status": status, "seconds": seconds, "reason": reason, "stderr": tail, **facts,
        }  # fmt: skip
        if culprit.get("sketch"):
            self.lost_sketches += 1
            if self.lost_sketches == LOST_SKETCHES:
                self.drop_sketches()
        if self.waiting:
            self.replace()

    def drop_sketches(self) -> None:
        """Take back the sketches that are still to be made."""
        self.answered.update((message["n"], NO_SKETCH) for message in self.waiting if message.get("sketch"))
        self.waiting = collections.deque(message for message in self.waiting if not message.get("sketch"))

    def replace(self) -> None:
        try:
            self.worker = WorkerProcess(*self.arguments)
            self.receive_handshake()
        except Refused as error:
            self.worker = None
            for message in self.waiting:
                self.answered[message["n"]] = {"status": "crash", "reason": f"no new worker could be started: {error}"}
            self.waiting.clear()
            return
        self.since = time.monotonic()
        for message in self.waiting:
            self.worker.send(message)

    def end_worker(self) -> None:
        if self.worker is not None:
            self.worker.end(kill=True)  # all that it has to say is said, and unloading torch takes its time
            self.worker.close()
            self.worker = None

    def close(self) -> None:
        """End the worker; what is still queued stays without an answer."""
        self.end_worker()
