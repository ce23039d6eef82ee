"""Sends the programs of the next items to the workers while pytest reports the current one."""

import gc
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from conformance.execution import graphs
from conformance.execution.durations import Durations
from conformance.execution.features import with_features
from conformance.execution.fork_server import Interpreter, Refused
from conformance.execution.graphs import GraphRecorder
from conformance.execution.in_process import InProcess
from conformance.execution.program import encoded_program, outcome_without_run
from conformance.execution.queue import LONG_SECONDS
from conformance.execution.workers import Workers
from conformance.language import versions
from conformance.language.profile import NO_PROFILE, Profile
from conformance.model.build import Build
from conformance.model.mode import needed_for
from conformance.model.outcome import Outcome, outcome_of
from conformance.model.sandbox import Sandbox
from conformance.model.status import Status

WINDOW = 64  # programs ahead of pytest for each worker: enough that no process waits for another
RECORDING_SECONDS = {"spare": 1.0, "all": 600.0}  # how long to wait for graphs at the end of a run
# Red cases are run once more until that has taken so long and such a part of the run: a back-end may have hundreds.
RETRY_SECONDS, RETRY_SHARE = 120.0, 0.2
MOST_RETRIED_TIMEOUTS = 3
MOST_WORKERS = 4
ENTERED = -1  # the number of a request that tries a mode, before there are any others


class Item(graphs.Item, Protocol):
    """A pytest item, and the number of its request."""

    number: int

    @property
    def is_marked_by_others(self) -> bool: ...

    @property
    def found_before(self) -> Outcome | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where and how programs are run.

    `seconds` limits a case, and `memory`, in bytes, a worker. `workers` is the largest number of worker processes, None
    for one per core. `graphs` says which are recorded: those that there is time for ("spare"), or "all". `number` is
    that of this pytest-xdist worker, counted from 0, and None without pytest-xdist. `cache` is the directory in which
    graphs and durations are cached, and None if they are not. `sandbox` is "auto" (as soon as
    it is asked for), "off" or "required".
    """

    python: str
    devices: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    profile: Profile = NO_PROFILE
    seconds: float = 60.0
    memory: int = 0
    workers: int | None = None
    graphs: str = "spare"
    sandbox: str = "auto"
    in_process: bool = False
    debugged: bool = False
    number: int | None = None
    cache: Path | None = None

    @property
    def most_workers(self) -> int:
        """The largest number of worker processes: by default one, where pytest-xdist has processes for the cores."""
        if self.workers is not None:
            return self.workers
        return min(usable_cores(), MOST_WORKERS) if self.number is None else 1


class Scheduler:
    """Decides which programs the executor gets next, and returns their outcomes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.executor: Workers | InProcess | None = None
        self.items: Sequence[Item] = ()
        self.modes: set[str] = set()  # those that were entered once
        self.next = 0  # the first item that has not been sent
        self.window = WINDOW
        self.in_order = settings.number is None  # pytest-xdist gives each worker items in any order
        self.durations = Durations(settings.cache)
        self.printed = ""  # by the case that has run last
        self.begun = 0.0  # when the first item could run
        self.retry_seconds = 0.0  # that it took to run red cases once more
        self.retried_timeouts = 0
        self.tell: Callable[[str], object] = bool  # gets a line where the start of the workers takes long

    def start(self) -> None:
        """Start the worker, which imports torch while the caller collects."""
        if self.executor is None:
            gc.disable()  # until all items are collected: hardly anything that collecting allocates is garbage
            chosen = self.settings
            python = Interpreter(chosen.python, chosen.modules, chosen.devices, chosen.profile)
            if chosen.in_process:
                if chosen.sandbox == "required":
                    raise Refused(f"{InProcess.sandbox.line}; --sandbox required")
                self.executor = InProcess(python)
            else:
                self.executor = Workers(
                    python, chosen.seconds, memory=chosen.memory, number=chosen.number, sandbox=chosen.sandbox
                )

    @cached_property
    def build(self) -> Build:
        """The build under test; waits until the worker has imported torch."""
        self.start()
        assert self.executor is not None
        return with_features(self.executor.handshake(self.tell), self.executor)

    @cached_property
    def sandbox(self) -> Sandbox:
        """What confines the workers once all cases are collected; waits until there is a worker."""
        assert self.build
        assert self.executor is not None
        return self.executor.sandbox

    def confine(self) -> Sandbox | None:
        """Have the kernel confine the workers, as far as it can, and return by what; None where it was asked not to."""
        assert self.build
        if self.settings.sandbox == "off" or not isinstance(self.executor, Workers):
            return None
        return self.executor.confine()

    def require_mode(self, mode: str) -> None:
        """Raise Refused if a mode can't be entered, though this torch is to have it."""
        if mode in self.modes or not versions.holds(needed_for(mode), self.build.torch):
            return
        assert self.executor is not None
        self.executor.request(ENTERED, {"device": "cpu", "enters": mode})
        reason = self.executor.outcome(ENTERED).get("reason", "")
        if reason:
            raise Refused(f"--under {mode}: {reason}")
        self.modes.add(mode)

    @property
    def knows_build(self) -> bool:
        return "build" in self.__dict__

    def order(self, items: Sequence[Item]) -> None:
        """Give the items of the run, which are in the order of the run, their numbers."""
        if self.executor is not None:
            gc.freeze()  # the items live as long as the process: the garbage collector need not traverse them
            gc.enable()
        self.items = items
        self.begun = time.monotonic()
        for number, item in enumerate(items):
            item.number = number
        if isinstance(self.executor, Workers) and items:
            total = self.durations.total((item.case, item.target) for item in items)
            count = min(self.settings.most_workers, 1 + int(total / self.executor.start_seconds))
            self.window = WINDOW * count
            self.executor.widen(count)

    def offer(self, item: Item, following: Item | None) -> None:
        """Send the program of `item`, which is about to run, and those of the next items."""
        if self.in_order:
            is_first = self.next == 0
            if item.number == self.next or self.next - item.number < self.window // 2:
                end = min(max(item.number, self.next) + self.window, len(self.items))
                for upcoming in self.items[max(item.number, self.next) : end]:
                    self.send_ahead(upcoming)
                self.next = max(self.next, end)
            if is_first and self.window > WINDOW:
                self.send_long()
        else:
            for upcoming in filter(None, (item, following)):
                self.send_ahead(upcoming)
        if isinstance(self.executor, Workers):
            self.executor.send_waiting()

    def send_long(self) -> None:
        """Send the programs of all long cases, so that none is left to run alone at the end."""
        for item in self.items:
            if self.durations.of(item.case, item.target) >= LONG_SECONDS:
                self.send_ahead(item)

    def send_ahead(self, item: Item) -> None:
        is_run = item.found_before is None and not item.is_marked_by_others
        if is_run and outcome_without_run(item.case, item.target, self.build) is None:
            self.send(item)

    def send(self, item: Item) -> None:
        assert self.executor is not None
        if not self.executor.is_queued(item.number):
            program = encoded_program(item.case, item.target, item.encoded_steps)
            self.executor.request(item.number, program, self.durations.of(item.case, item.target))

    def run(self, item: Item) -> Outcome:
        """Return the outcome of `item`, whose program may have been sent before."""
        outcome = outcome_without_run(item.case, item.target, self.build)
        self.printed = ""
        if outcome is None:
            self.send(item)
            assert self.executor is not None
            answer = self.executor.outcome(item.number)
            self.printed = answer.get("printed", "")
            outcome = outcome_of(answer)
            self.durations.note(item.case, item.target, outcome.seconds)
            self.graph_recorder.add(item, outcome)
        return outcome

    def run_alone(self, item: Item, status: Status) -> Outcome | None:
        """Return what comes of a red `item` when it is run once more, alone in a new worker; None where it isn't."""
        begun, is_slow = time.monotonic(), status == "timeout"
        is_over = self.retry_seconds >= max(RETRY_SECONDS, RETRY_SHARE * (begun - self.begun))
        if is_over or (is_slow and self.retried_timeouts >= MOST_RETRIED_TIMEOUTS):
            return None
        if not isinstance(self.executor, Workers):
            return None
        self.retried_timeouts += is_slow
        answer = self.executor.run_alone(item.number, encoded_program(item.case, item.target, item.encoded_steps))
        self.retry_seconds += 0.0 if is_slow else time.monotonic() - begun
        return None if answer is None else outcome_of(answer)

    def take_over(self, item: Item, outcome: Outcome) -> None:
        """Do with the outcome of an interrupted run what is done with one of this run."""
        observed = outcome if outcome.issue is None else replace(outcome, status=outcome.issue.status)
        self.durations.note(item.case, item.target, observed.seconds)
        self.graph_recorder.add(item, observed)

    @cached_property
    def graph_recorder(self) -> GraphRecorder:
        """Collects the graphs of the cases; records none under a debugger, which would stop in each case twice."""
        return GraphRecorder(self.build, self.settings.cache, None if self.settings.debugged else self.executor)

    def finish(self, is_over: bool) -> None:
        """Wait for the graphs that were requested, unless the run was stopped, and end the workers."""
        if "graph_recorder" in self.__dict__:
            self.graph_recorder.finish(RECORDING_SECONDS[self.settings.graphs] if is_over else 0.0)
        if self.executor is not None:
            self.executor.close()
        if self.settings.number is None:
            self.durations.write()


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
