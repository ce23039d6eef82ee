"""Keeps the worker busy: sends the programs of the next items while pytest is at the current one."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from conformance.execution.gpus import share_of_gpus
from conformance.execution.graphs import Sketches
from conformance.execution.in_process import InProcess
from conformance.execution.program import program_of, why_unsupported
from conformance.execution.workers import Workers
from conformance.model.build import Build, Target
from conformance.model.case import Case
from conformance.model.outcome import Outcome, outcome_of

WINDOW = 64  # programs under way at once: enough that neither side waits for the other's bookkeeping
SKETCHING_SECONDS = 60.0  # what the sketches may take at the end
HURRIED_SECONDS = 3.0


class Item(Protocol):
    """A case on a target, as pytest has it; `number` is that of its request."""

    case: Case
    target: Target
    number: int

    @property
    def is_marked_by_others(self) -> bool: ...


class Executor(Protocol):
    """Runs programs, in a process of its own (`Workers`) or in this one (`InProcess`)."""

    def handshake(self) -> Build: ...
    def request(self, number: int, program: dict[str, Any]) -> None: ...
    def is_queued(self, number: int) -> bool: ...
    def outcome(self, number: int) -> dict[str, Any]: ...
    def answer(self, number: int, seconds: float) -> dict[str, Any] | None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where and how programs are run.

    `number` is that of this process among those of pytest-xdist, counted from 0, and None where there are no others;
    `kept` is the directory in which graphs are kept, and None where none are.
    """

    python: str
    devices: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    seconds: float = 60.0
    in_process: bool = False
    debugged: bool = False
    number: int | None = None
    kept: Path | None = None


class Scheduler:
    """Decides which programs the executor has, and hands out its answers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.executor: Executor | None = None
        self.items: Sequence[Item] = ()
        self.next = 0  # the first item that has not been sent
        self.in_order = settings.number is None  # pytest-xdist deals out items as it likes

    def start(self) -> None:
        """Start the worker; it imports torch while the caller goes on."""
        if self.executor is None:
            gc.disable()  # until all items are there: hardly anything that is made before is garbage
            chosen = self.settings
            if chosen.in_process:
                self.executor = InProcess(chosen.modules, chosen.devices)
            else:
                own = share_of_gpus(chosen.number, os.environ) if chosen.number is not None else {}
                self.executor = Workers(chosen.python, chosen.modules, chosen.devices, chosen.seconds, variables=own)

    @cached_property
    def build(self) -> Build:
        """The torch under test; waits until the worker has imported it."""
        self.start()
        assert self.executor is not None
        return self.executor.handshake()

    @property
    def knows_build(self) -> bool:
        return "build" in self.__dict__

    def order(self, items: Sequence[Item]) -> None:
        """Take note of the items of the run, in the order in which they will be run."""
        if self.executor is not None:
            gc.freeze()  # they are here to stay, and collecting garbage need not look at them again and again
            gc.enable()
        self.items = items
        for number, item in enumerate(items):
            item.number = number

    def offer(self, item: Item, following: Item | None) -> None:
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

    def send_ahead(self, item: Item) -> None:
        if not item.is_marked_by_others and not self.why_not(item):
            self.send(item)

    def send(self, item: Item) -> None:
        assert self.executor is not None
        if not self.executor.is_queued(item.number):
            self.executor.request(item.number, program_of(item.case, item.target, self.build.torch))

    def why_not(self, item: Item) -> str:
        """Return why an item can't be run here, or an empty string."""
        return self.build.why_absent(item.target.device) or why_unsupported(item.case, item.target, self.build.torch)

    def run(self, item: Item) -> Outcome:
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
        return Sketches(self.build, self.settings.kept, None if self.settings.debugged else self.executor)

    def finish(self, is_over: bool) -> None:
        """Take the sketches that are under way, and not much time for it in a run that was stopped; end the worker."""
        if "sketches" in self.__dict__:
            self.sketches.finish(SKETCHING_SECONDS if is_over else HURRIED_SECONDS)
        if self.executor is not None:
            self.executor.close()
