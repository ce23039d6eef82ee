"""Runs programs in the current process, so that a debugger can step into them."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from conformance.execution.fork_server import Interpreter
from conformance.execution.program import line_of
from conformance.model.build import Build
from conformance.model.sandbox import Sandbox


class InProcess:
    """Takes requests as `Workers` does, and runs each when its answer is asked for."""

    sandbox = Sandbox(lacks=("cases run in pytest's own process",))

    def __init__(self, python: Interpreter) -> None:
        # Imported here because they import torch.
        from conformance.worker import backend, build  # noqa: PLC0415
        from conformance.worker.engine import Engine  # noqa: PLC0415

        modules, profile = list(python.modules), python.profile.told()
        backend.prepare(modules, profile)
        self.engine = Engine(profile)
        self.build = msgspec.convert(build.describe(list(python.devices), modules, profile), Build)
        self.programs: dict[int, dict[str, Any]] = {}

    def handshake(self, tell: Callable[[str], object] = bool) -> Build:  # noqa: ARG002 - as Workers
        return self.build

    def request(self, number: int, program: dict[str, Any], seconds: float = 0.0) -> None:  # noqa: ARG002 - as Workers
        self.programs[number] = program

    def is_queued(self, number: int) -> bool:
        return number in self.programs

    def outcome(self, number: int) -> dict[str, Any]:
        answer = self.engine.run(json.loads(line_of({"n": number, **self.programs.pop(number)})))
        del answer["n"]
        answer.pop("printed", None)  # it was, in this process
        answer.pop("must_restart", None)  # there is no other process to go on in
        return answer

    def answer(self, number: int, seconds: float) -> dict[str, Any] | None:
        return self.outcome(number) if seconds > 0 else None

    def close(self) -> None:
        self.programs.clear()
