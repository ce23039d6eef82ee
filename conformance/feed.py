"""Keeps the worker busy: sends the programs of the next items while pytest is at the current one."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import pytest

from conformance.gpus import share_of_gpus
from conformance.outcome import Outcome, outcome_of
from conformance.process import Workers
from conformance.program import program_of, why_unsupported
from conformance.sketches import Sketches
from conformance.target import Build

if TYPE_CHECKING:
    from conformance.item import CaseItem

WINDOW = 64  # programs under way at once: enough that neither side waits for the other's bookkeeping
SKETCHING_SECONDS = 60.0  # what the sketches may take at the end
HURRIED_SECONDS = 3.0


class Executor(Protocol):
    """Runs programs, in a process of its own (`Workers`) or in this one (`InProcess`)."""

    def hello(self) -> Build: ...
    def request(self, number: int, program: dict[str, Any]) -> None: ...
    def is_queued(self, number: int) -> bool: ...
    def outcome(self, number: int) -> dict[str, Any]: ...
    def answer(self, number: int, seconds: float) -> dict[str, Any] | None: ...
    def close(self) -> None: ...


class InProcess:
    """Runs each program here and now, so that a debugger can step into it."""

    def __init__(self, modules: Sequence[str], devices: Sequence[str]) -> None:
        # Only here, since this imports torch.
        from conformance.worker import build  # noqa: PLC0415
        from conformance.worker.engine import Engine  # noqa: PLC0415

        build.import_modules(list(modules))
        self.engine = Engine()
        self.build = msgspec.convert(build.describe(list(devices)), Build)
        self.programs: dict[int, dict[str, Any]] = {}

    def hello(self) -> Build:
        return self.build

    def request(self, number: int, program: dict[str, Any]) -> None:
        self.programs[number] = program

    def is_queued(self, number: int) -> bool:
        return number in self.programs

    def outcome(self, number: int) -> dict[str, Any]:
        answer = self.engine.run({"n": number, **self.programs.pop(number)})
        del answer["n"]
        answer.pop("spent", None)  # there is no other process to go on in
        return answer

    def answer(self, number: int, seconds: float) -> dict[str, Any] | None:
        return self.outcome(number) if seconds > 0 else None

    def close(self) -> None:
        self.programs.clear()


def number_of(config: pytest.Config) -> int | None:
    """Return the number of this worker of pytest-xdist, counted from 0; None in a process that is none."""
    name = getattr(config, "workerinput", {}).get("workerid", "")
    return int(re.sub(r"\D", "", name) or 0) if name else None


class Feed:
    """Decides which programs the executor has, and hands out its answers."""

    def __init__(self, config: pytest.Config) -> None:
        self.option = config.option
        kept = config.cache.mkdir("conformance") if getattr(config, "cache", None) is not None else None
        self.kept: Path | None = kept
        self.executor: Executor | None = None
        self.items: Sequence[CaseItem] = ()
        self.next = 0  # the first item that has not been sent
        self.number = number_of(config)
        self.in_order = self.number is None  # pytest-xdist deals out items as it likes

    def start(self) -> None:
        """Start the worker; it imports torch while the caller goes on."""
        if self.executor is None:
            gc.disable()  # until all items are there: hardly anything that is made before is garbage
            option = self.option
            devices = [*option.device, *option.require_device]
            if option.isolation == "none":
                self.executor = InProcess(option.device_module, devices)
            else:
                python = option.python or sys.executable
                own = share_of_gpus(self.number, os.environ) if self.number is not None else {}
                self.executor = Workers(python, option.device_module, devices, option.case_timeout, variables=own)

    @cached_property
    def build(self) -> Build:
        """The torch under test; waits until the worker has imported it."""
        self.start()
        assert self.executor is not None
        return self.executor.hello()

    @property
    def knows_build(self) -> bool:
        return "build" in self.__dict__

    def order(self, items: Sequence[CaseItem]) -> None:
        """Take note of the items of the run, in the order in which they will be run."""
        if self.executor is not None:
            gc.freeze()  # they are here to stay, and collecting garbage need not look at them again and again
            gc.enable()
        self.items = items
        for number, item in enumerate(items):
            item.number = number

    def offer(self, item: CaseItem, following: CaseItem | None) -> None:
        """Send what comes next, seen from `item`, which is about to run."""
        if self.in_order:
            if item.number == self.next or self.next - item.number < WINDOW // 2:
                end = min(max(item.number, self.next) + WINDOW, len(self.items))
                for upcoming in self.items[max(item.number, self.next) : end]:
                    self.send_ahead(upcoming)
                self.next = max(self.next, end)
        else:
            self.send_ahead(item)
            if following is not None:
                self.send_ahead(following)

    def send_ahead(self, item: CaseItem) -> None:
        if not item.is_marked_by_others and not self.why_not(item):
            self.send(item)

    def send(self, item: CaseItem) -> None:
        assert self.executor is not None
        if not self.executor.is_queued(item.number):
            self.executor.request(item.number, program_of(item.case, item.target, self.build.torch))

    def why_not(self, item: CaseItem) -> str:
        """Return why an item can't be run here, or an empty string."""
        return self.build.why_absent(item.target.device) or why_unsupported(item.case, item.target, self.build.torch)

    def run(self, item: CaseItem) -> Outcome:
        """Return the outcome of `item`, which may have been sent long ago."""
        absent = self.build.why_absent(item.target.device)
        if absent:
            return Outcome(status="not-run", reason=f"device {item.target.device} is absent: {absent}")
        unsupported = why_unsupported(item.case, item.target, self.build.torch)
        if unsupported:
            return Outcome(status="unsupported", reason=unsupported)
        self.send(item)
        assert self.executor is not None
        outcome = outcome_of(self.executor.outcome(item.number))
        self.sketches.see(item.case, item.target, outcome)
        return outcome

    @cached_property
    def sketches(self) -> Sketches:
        """The graphs of the cases; somebody who debugs one doesn't want to come by twice."""
        debugged = self.option.usepdb or self.option.trace
        return Sketches(self.build, self.kept, None if debugged else self.executor)

    def finish(self, is_over: bool) -> None:
        """Take the sketches that are under way, and not much time for it in a run that was stopped; end the worker."""
        if "sketches" in self.__dict__:
            self.sketches.finish(SKETCHING_SECONDS if is_over else HURRIED_SECONDS)
        if self.executor is not None:
            self.executor.close()
