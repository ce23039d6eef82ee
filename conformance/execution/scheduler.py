"""Sends the programs of the next items to the worker while pytest reports the current one."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from conformance.execution.gpus import share_of_gpus
from conformance.execution.graphs import GraphRecorder
from conformance.execution.in_process import InProcess
from conformance.execution.program import outcome_without_run, program_of
from conformance.execution.workers import Workers
from conformance.model.build import Build, Target
from conformance.model.case import Case
from conformance.model.outcome import Outcome, outcome_of

WINDOW = 64  # programs in flight: enough that neither process waits for the other
RECORDING_SECONDS = 60.0  # how long to wait for graphs at the end of a run
STOPPED_RECORDING_SECONDS = 3.0  # and at the end of a run that was stopped


class Item(Protocol):
    """A pytest item: a case on a target; `number` is that of its request."""

    case: Case
    target: Target
    number: int

    @property
    def is_marked_by_others(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where and how programs are run.

    `number` is that of this pytest-xdist worker, counted from 0, and None without pytest-xdist. `cache` is the
    directory in which graphs are cached, and None if they are not.
    """

    python: str
    devices: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    seconds: float = 60.0
    in_process: bool = False
    debugged: bool = False
    number: int | None = None
    cache: Path | None = None


class Scheduler:
    """Decides which programs the executor gets next, and returns their outcomes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.executor: Workers | InProcess | None = None
        self.items: Sequence[Item] = ()
        self.next = 0  # the first item that has not been sent
        self.in_order = settings.number is None  # pytest-xdist gives each worker items in any order

    def start(self) -> None:
        """Start the worker, which imports torch while the caller collects."""
        if self.executor is None:
            gc.disable()  # until all items are collected: hardly anything that collecting allocates is garbage
            chosen = self.settings
            if chosen.in_process:
                self.executor = InProcess(chosen.modules, chosen.devices)
            else:
                own = share_of_gpus(chosen.number, os.environ) if chosen.number is not None else {}
                self.executor = Workers(chosen.python, chosen.modules, chosen.devices, chosen.seconds, variables=own)

    @cached_property
    def build(self) -> Build:
        """The build under test; waits until the worker has imported torch."""
        self.start()
        assert self.executor is not None
        return self.executor.handshake()

    @property
    def knows_build(self) -> bool:
        return "build" in self.__dict__

    def order(self, items: Sequence[Item]) -> None:
        """Give the items of the run, which are in the order of the run, their numbers."""
        if self.executor is not None:
            gc.freeze()  # the items live as long as the process: the garbage collector need not traverse them
            gc.enable()
        self.items = items
        for number, item in enumerate(items):
            item.number = number

    def offer(self, item: Item, following: Item | None) -> None:
        """Send the program of `item`, which is about to run, and those of the next items."""
        if self.in_order:
            if item.number == self.next or self.next - item.number < WINDOW // 2:
                end = min(max(item.number, self.next) + WINDOW, len(self.items))
                for upcoming in self.items[max(item.number, self.next) : end]:
                    self.send_ahead(upcoming)
                self.next = max(self.next, end)
        else:
            for upcoming in filter(None, (item, following)):
                self.send_ahead(upcoming)

    def send_ahead(self, item: Item) -> None:
        if not item.is_marked_by_others and outcome_without_run(item.case, item.target, self.build) is None:
            self.send(item)

    def send(self, item: Item) -> None:
        assert self.executor is not None
        if not self.executor.is_queued(item.number):
            self.executor.request(item.number, program_of(item.case, item.target, self.build.torch))

    def run(self, item: Item) -> Outcome:
        """Return the outcome of `item`, whose program may have been sent before."""
        outcome = outcome_without_run(item.case, item.target, self.build)
        if outcome is None:
            self.send(item)
            assert self.executor is not None
            outcome = outcome_of(self.executor.outcome(item.number))
            self.graph_recorder.add(item.case, item.target, outcome)
        return outcome

    @cached_property
    def graph_recorder(self) -> GraphRecorder:
        """Collects the graphs of the cases; records none under a debugger, which would stop in each case twice."""
        return GraphRecorder(self.build, self.settings.cache, None if self.settings.debugged else self.executor)

    def finish(self, is_over: bool) -> None:
        """Wait for the graphs that were requested, briefly if the run was stopped, and end the worker."""
        if "graph_recorder" in self.__dict__:
            self.graph_recorder.finish(RECORDING_SECONDS if is_over else STOPPED_RECORDING_SECONDS)
        if self.executor is not None:
            self.executor.close()
