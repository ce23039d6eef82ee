"""The process in the interpreter under test that imports torch once, and from which workers are forked."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from conformance.execution.orphans import MARK, beginning_of, end_orphans
from conformance.execution.variables import handed_on
from conformance.language.profile import NO_PROFILE, Profile

STACK_SECONDS = 0.1  # for a worker to print its stack
END_SECONDS = 1.0  # for the process to end its workers
LONGEST_MESSAGE = 2**16  # bytes of a line of the process
GONE = 0  # in place of the number of a worker that has ended before its parent was found
PACKAGE = Path(__file__).parent.parent

# The package is imported from its own directory, and the directory above it is not put on sys.path: that one may be
# the site-packages of another environment, which must not become importable in the interpreter under test.
IMPORT_PACKAGE = """\
import sys, json, importlib.util
sys.path[:] = [entry for entry in sys.path if entry]
place, told = sys.argv[1], json.loads(sys.argv[2])
spec = importlib.util.spec_from_file_location("conformance", place + "/__init__.py", submodule_search_locations=[place])
sys.modules["conformance"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["conformance"])
"""
BOOTSTRAP = f"""\
{IMPORT_PACKAGE}
from conformance.worker.main import serve
serve(**told)
"""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What the process says of a worker: its number as a process, or how it has ended."""

    worker: int
    pid: Annotated[int, Meta(gt=1)] | None = None
    status: int | None = None


class Refused(Exception):
    """The interpreter, torch, a module or a device that was asked for is missing or can't be used."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python whose torch is tested, with the modules that register its back-ends and the devices to describe.

    The modules and devices count, not those of the profile, from which the rest is known of a back-end.
    """

    path: str
    modules: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    profile: Profile = NO_PROFILE


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedWorker:
    """What a worker shall be: with these environment variables, and with at most `memory` bytes (0: any number).

    `describes` asks for a description of the build, in which the devices of `absent` are so for the reason given there;
    `present` are those that can be used, once that is known. With `sandbox` it has the kernel confine it. Without
    `may_fork` the process becomes the worker itself.
    """

    variables: dict[str, str]
    absent: dict[str, str] = field(default_factory=dict)
    memory: int = 0
    describes: bool = False
    present: tuple[str, ...] = ()
    sandbox: bool = True
    may_fork: bool = True


class ForkServer:
    """A process that may end at any time, and its workers with it; a worker is known by its number, from 0."""

    def __init__(self, python: Interpreter) -> None:
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the process
        self.scratch = tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True)
        self.control, theirs = socket.socketpair()
        told = {"modules": python.modules, "devices": python.devices, "profile": python.profile.told()}
        command = [python.path, "-c", BOOTSTRAP, str(PACKAGE), json.dumps(told)]
        # OpenBLAS starts threads when it is imported, and a process with threads can't be forked.
        self.mark = uuid.uuid4().hex
        # torch takes the names of files for UTF-8 whatever the locale is.
        own = {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "TMPDIR": self.scratch.name, MARK: self.mark}
        environment = {"OPENBLAS_NUM_THREADS": "1", **handed_on(os.environ), **own}
        try:
            self.process = subprocess.Popen(
                command, stdin=theirs.fileno(), stdout=self.stderr, stderr=self.stderr, env=environment,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self.control.close()
            self.stderr.close()
            self.scratch.cleanup()
            why = f"{error.strerror}. A Python interpreter is expected here, by its path or its name on PATH"
            raise Refused(f"can't start {python.path} (--python): {why}") from None
        finally:
            theirs.close()
        self.begun = beginning_of(self.process.pid)
        self.buffer = b""
        self.is_over = False  # whether it sends no more messages: it has ended, or has become a worker
        self.started = 0
        self.pids: dict[int, int] = {}
        self.statuses: dict[int, int] = {}

    @property
    def has_become_worker(self) -> bool:
        """Whether the process could not be forked, and is the one worker itself."""
        return self.process.pid in self.pids.values()

    def can_start(self) -> bool:
        """Whether another worker can be expected from this process."""
        if self.started:
            self.read(0.0)
        return not (self.is_over or self.has_become_worker)

    def start(self, descriptors: Sequence[int], wanted: WantedWorker) -> int:
        """Ask for a worker with these descriptors for requests, answers, stderr and notes, and return its number."""
        number = self.started
        self.started += 1
        message = json.dumps({"worker": number, **asdict(wanted)}).encode("ascii")
        with contextlib.suppress(OSError):  # the process has ended; the worker's answers end at once
            socket.send_fds(self.control, [message], list(descriptors))
        return number

    def status(self, number: int, seconds: float) -> int | None:
        """Return the exit status of a worker (negative: a signal's number), waiting at most `seconds` for it.

        It is that of this process where the worker is this process, or never came to be. None means that the worker
        still runs, or that it was killed because this process ended.
        """
        deadline = time.monotonic() + seconds
        while number not in self.statuses and not self.is_over:
            self.read(max(deadline - time.monotonic(), 0.0))
            if time.monotonic() >= deadline:
                break
        if not self.is_over or self.pids.get(number, self.process.pid) != self.process.pid:
            return self.statuses.get(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(max(deadline - time.monotonic(), 0.0))
        return None

    def read(self, seconds: float) -> None:
        """Take the messages that come within `seconds`."""
        try:
            self.control.settimeout(seconds or 1e-6)  # 0 would mean not to wait in another way
            chunk = self.control.recv(2**16)
        except TimeoutError:
            return
        except OSError:
            chunk = b""
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        self.is_over = not chunk or len(self.buffer) > LONGEST_MESSAGE
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError, msgspec.ValidationError):  # not what the process sends
                message = msgspec.convert(json.loads(line), Message)
                if message.pid is not None:
                    self.pids[message.worker] = message.pid if self.is_own(message.pid) else GONE
                if message.status is not None:
                    self.statuses[message.worker] = message.status

    def is_own(self, pid: int) -> bool:
        """Whether a worker runs and was started after this process: none of those before may ever be killed for one."""
        return sys.platform != "linux" or beginning_of(pid) >= self.begun > 0

    def end_orphans(self) -> None:
        """End what workers that are no more have started."""
        end_orphans(self.mark, self.process.pid if self.process.poll() is None else None)

    def ask_for_stack(self, number: int) -> None:
        """Have a worker that does not answer print where it is, or this process if it has not been forked yet."""
        pid = self.pids.get(number, self.process.pid)
        if pid != GONE:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGUSR1)
        time.sleep(STACK_SECONDS)

    def kill(self, number: int) -> None:
        """Kill a worker with the processes that it has started; this process if the worker has not been forked yet.

        A worker may have answered, and this process not yet have said which it is.
        """
        deadline = time.monotonic() + END_SECONDS
        while number not in self.pids and not self.is_over and time.monotonic() < deadline:
            self.read(END_SECONDS)
        pid = self.pids.get(number, self.process.pid)
        self.is_over = self.is_over or pid == self.process.pid
        if pid != GONE:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process; it ends workers that it has forked, and would leave them as zombies if it were killed."""
        self.control.close()
        self.stderr.close()
        if self.pids and not self.has_become_worker:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_SECONDS)
        if self.process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.end_orphans()
        self.scratch.cleanup()
