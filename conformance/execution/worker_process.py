"""One worker process and the messages exchanged with it: a line of JSON for each request and each answer."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

START_SECONDS = 300.0  # importing torch from a cold disk takes minutes on some machines
STDERR_TAIL = 4000  # bytes
POLL_INTERVAL = 0.001  # seconds
PACKAGE = Path(__file__).parent.parent

# The package is imported from its own directory, and the directory above it is not put on sys.path: that one may be
# the site-packages of another environment, which must not become importable in the interpreter under test.
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
    """The interpreter, torch, a module or a device that was asked for is missing or can't be used."""


class WorkerProcess:
    """A worker process, which may end at any time."""

    def __init__(
        self, python: str, modules: Sequence[str], devices: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        self.python = python
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed when the worker ends
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
        """Send the worker a request; what its pipe doesn't take now is sent later."""
        self.unsent += json.dumps(message).encode("ascii") + b"\n"
        self.flush()

    def flush(self) -> None:
        while self.unsent:
            try:
                written = self.requests.write(self.unsent)
            except (BrokenPipeError, OSError):
                self.unsent.clear()  # the worker has ended; the next read raises EOFError
                return
            if not written:
                return
            del self.unsent[:written]

    def receive(self, seconds: float, is_busy: bool = False) -> dict[str, Any] | None:
        """Return the next message, or None when none comes within `seconds`; raise EOFError when none can come.

        While the worker is busy with a long queue, this process sleeps for a poll interval and then reads several
        answers at once: waking up for each would take the worker's CPU time.
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

    def handshake(self) -> dict[str, Any]:
        """Wait until the worker has imported torch, and return the facts of its build; raise Refused if it can't."""
        try:
            message = self.receive(START_SECONDS)
        except EOFError:
            status, tail = self.end()
            raise Refused(f"the worker ({self.python}) {describe_end(status)} at once\n{tail}") from None
        if message is not None and "handshake" in message:
            facts: dict[str, Any] = message["handshake"]
            return facts
        _, tail = self.end(kill=True)
        if message is None:
            raise Refused(f"the worker ({self.python}) did not import torch in {START_SECONDS:.0f} s\n{tail}")
        raise Refused(f"{self.python}: {message.get('refused', 'the first message is not a handshake')}")

    def end(self, kill: bool = False) -> tuple[int, str]:
        """End the process; return its exit status (negative: a signal's number) and the end of stderr and stdout."""
        with contextlib.suppress(OSError):
            self.requests.close()
        if kill:
            self.kill()
        try:
            status = self.process.wait(None if kill else 10)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self.process.wait()
        size = self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, size - STDERR_TAIL))
        tail = self.stderr.read().decode("utf-8", "replace").strip()
        for resource in (self.selector, self.answers, self.stderr):
            resource.close()
        return status, tail

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)  # with the processes that it has started


def parse_message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise EOFError(f"sent a line that is not a message: {line[:80]!r}")
    return message


def signal_name(status: int) -> str:
    """Return the signal that ended a process with this exit status; "" if it exited by itself."""
    if status >= 0:
        return ""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def describe_end(status: int) -> str:
    """Return how a process with this exit status ended, in words."""
    return f"exited with status {status}" if status >= 0 else f"was ended by {signal_name(status)}"
