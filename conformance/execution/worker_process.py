"""One worker process and the messages exchanged with it: a line of JSON for each request and each answer."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from conformance.execution.answers import LONGEST_ANSWER, SHOWN, NotAnAnswer, parse_message
from conformance.execution.ending import End
from conformance.execution.fork_server import ForkServer, WantedWorker
from conformance.execution.program import line_of

STDERR_TAIL = 8000  # bytes
LONGEST_NOTES = 2**20
CHUNK = 2**16
MOST_CHUNKS = 64  # that are read at once: a worker that sends without end must not keep the clock from being looked at
END_SECONDS = 10.0  # for a worker that has closed its answers to end


class WorkerProcess:
    """A worker, which may end at any time; its first message is its handshake."""

    def __init__(self, server: ForkServer, wanted: WantedWorker) -> None:
        self.server = server
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed when the worker ends
        their_requests, self.requests = os.pipe()
        self.answers, their_answers = os.pipe()
        theirs = (their_requests, their_answers)
        self.notes = tempfile.TemporaryFile()  # noqa: SIM115 - as stderr
        self.number = server.start((*theirs, self.stderr.fileno(), self.notes.fileno()), wanted)
        for descriptor in theirs:
            os.close(descriptor)
        os.set_blocking(self.requests, False)
        os.set_blocking(self.answers, False)
        self.buffer = bytearray()
        self.unsent = bytearray()

    def send(self, message: dict[str, Any]) -> None:
        """Give the worker a request; `flush` sends it."""
        self.unsent += line_of(message).encode("ascii") + b"\n"

    def flush(self) -> None:
        """Send what the worker's pipe takes now."""
        while self.unsent:
            try:
                written = os.write(self.requests, self.unsent)
            except BlockingIOError:
                return
            except OSError:
                self.unsent.clear()  # the worker has ended; the next read raises EOFError
                return
            del self.unsent[:written]

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the messages that have come, or some of them where there are many.

        Raise EOFError where there will be no more, and NotAnAnswer where one is none.
        """
        for _ in range(MOST_CHUNKS):
            try:
                chunk = os.read(self.answers, CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                raise EOFError
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                self.buffer += line
                whole = bytes(self.buffer)
                self.buffer.clear()
                yield parse_message(whole)
            self.buffer += rest
            if len(self.buffer) > LONGEST_ANSWER:
                tail = bytes(self.buffer[-SHOWN:])
                raise NotAnAnswer(f"sent more than {LONGEST_ANSWER >> 20} MiB without the end of a line: …{tail!r}")

    def end(self, kill: bool = False, is_silent: bool = False) -> End:
        """End the worker, one that `is_silent` after it has printed its stack, and return how it ended.

        The status is negative for a signal, and None where it ended because the process that it was forked from did.
        """
        if is_silent:
            self.server.ask_for_stack(self.number)
        if kill:
            self.server.kill(self.number)
        status = self.server.status(self.number, END_SECONDS)
        if status is None and not kill:
            self.server.kill(self.number)
            status = self.server.status(self.number, END_SECONDS)
        self.server.end_orphans()
        tail = tail_of(self.stderr)
        if not tail and self.server.process.poll() is not None and not self.server.stderr.closed:
            tail = tail_of(self.server.stderr)
        self.notes.seek(0)
        notes = self.notes.read(LONGEST_NOTES)
        self.close()
        return End(status, tail, notes)

    def close(self) -> None:
        """Kill what the worker has left running, and close what it was given."""
        self.server.kill(self.number)
        for descriptor in (self.requests, self.answers):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.stderr.close()
        self.notes.close()
        if self.server.has_become_worker:
            self.server.close()


def tail_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - STDERR_TAIL))
    return file.read().decode("utf-8", "replace").strip()
