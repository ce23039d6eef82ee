"""Runs cases on the CPU, under limits, in a process that a back-end was not imported into: some change the CPU too."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import IO, Any, Dict, Optional

from conformance.worker import confinement
from conformance.worker.fork_server import end_with_parent, is_safe_to_fork


class Beside:
    """A process that is forked now, and imports what it needs when it is first asked."""

    def __init__(self, is_confined: bool = False) -> None:
        ours, theirs = socket.socketpair()
        self.process = os.fork()
        if self.process == 0:
            ours.close()
            try:
                serve(theirs.makefile("rw", encoding="ascii"), is_confined)
            finally:
                os._exit(0)
        theirs.close()
        with ours:  # it is open until the file is closed
            self.lines = ours.makefile("rw", encoding="ascii")

    def run(self, request: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        """Return the answer to a request, or None if the process has ended over it, or over an earlier one."""
        try:
            self.lines.write(json.dumps(request) + "\n")
            self.lines.flush()
            line = self.lines.readline()
        except OSError:
            return None
        found: Optional[Dict[str, Any]] = json.loads(line) if line else None
        return found

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):  # a request that it didn't take
            self.lines.close()
        os.waitpid(self.process, 0)


def beside(is_confined: bool = False) -> Optional[Beside]:
    """Return a process beside this one, or None where a fork isn't safe."""
    return Beside(is_confined) if is_safe_to_fork() else None


def serve(lines: IO[str], is_confined: bool) -> None:
    end_with_parent()
    engine: Any = None
    for line in lines:
        if engine is None:
            from conformance.worker.engine import Engine  # noqa: PLC0415 - most are never asked

            engine = Engine()
            if is_confined:
                confinement.confine((), confinement.readable_places())
        lines.write(json.dumps(engine.run(json.loads(line))) + "\n")
        lines.flush()
