"""Notes of a worker for the parent, in a file: how far the case has come, should the worker not live to answer.

Each case begins the file anew. A line is `number step line seconds` when a step begins, and the answer in JSON when it
is known but still looked at, in a way that may end the worker.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict


class Notes:
    """Writes to the file with this descriptor; with None, nowhere."""

    def __init__(self, descriptor: "int | None" = None) -> None:
        self.descriptor = descriptor
        self.number = self.size = 0
        self.start = 0.0

    def begin(self, number: int) -> None:
        """Begin the notes on the request of this number."""
        self.number, self.size, self.start = number, 0, time.perf_counter()

    def step(self, step: int, line: int) -> None:
        if self.descriptor is not None:
            self.write(f"{self.number} {step} {line} {time.perf_counter() - self.start:.6f}")

    def answer(self, answer: Dict[str, Any]) -> None:
        if self.descriptor is not None:
            self.write(json.dumps(answer))

    def write(self, line: str) -> None:
        # The zero byte ends what is true of this case; the next line overwrites it.
        assert self.descriptor is not None
        self.size += os.pwrite(self.descriptor, line.encode("ascii") + b"\n\0", self.size) - 1
