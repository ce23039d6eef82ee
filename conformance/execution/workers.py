"""The queue of requests to the worker, which is replaced when it crashes, hangs or must restart.

The worker answers in the order of the requests, so the oldest one without an answer is the one that a silent or dead
worker was running. It gets the outcome; the requests behind it are sent to the next worker.
"""

from __future__ import annotations

import collections
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from conformance.execution.worker_process import Refused, WorkerProcess, describe_end, signal_name
from conformance.language.versions import version_of
from conformance.model.build import Build

RECORDING_SECONDS = 10.0  # the time limit of a request that only records a graph
MOST_LOST_TO_RECORDING = 3  # how many workers may end while recording a graph before no more graphs are recorded
LONG_QUEUE = 16
NOT_RECORDED = {"status": "not-run", "reason": "too many workers were lost to recording graphs"}


class Workers:
    """Runs requests in a worker process, one worker at a time."""

    def __init__(
        self,
        python: str,
        modules: Sequence[str] = (),
        devices: Sequence[str] = (),
        case_seconds: float = 60.0,
        *,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.arguments = (python, tuple(modules), tuple(devices), variables or {})
        self.case_seconds = case_seconds
        self.waiting: collections.deque[dict[str, Any]] = collections.deque()
        self.answered: dict[int, dict[str, Any]] = {}
        self.worker: WorkerProcess | None = WorkerProcess(*self.arguments)
        self.build: Build | None = None
        self.since = time.monotonic()  # the earliest time at which the oldest waiting request can have begun
        self.lost_to_recording = 0

    def handshake(self) -> Build:
        """Wait until the first worker has imported torch, and return its build."""
        if self.build is None:
            assert self.worker is not None
            try:
                build = msgspec.convert(self.worker.handshake(), Build)
            except Refused:
                self.worker = None
                raise
            try:
                version_of(build.torch)
            except ValueError as error:
                raise Refused(f"torch.__version__: {error}") from None
            self.build = build
        return self.build

    def request(self, number: int, program: dict[str, Any]) -> None:
        """Queue a program under a number that the caller chooses; its answer is `outcome(number)`."""
        if program.get("sketch") and self.lost_to_recording >= MOST_LOST_TO_RECORDING:
            self.answered[number] = NOT_RECORDED
            return
        self.waiting.append({"n": number, **program})
        if self.worker is None:
            self.replace()
            return
        if len(self.waiting) == 1:
            self.since = time.monotonic()
        self.worker.send(self.waiting[-1])

    def is_queued(self, number: int) -> bool:
        return number in self.answered or any(message["n"] == number for message in self.waiting)

    def outcome(self, number: int) -> dict[str, Any]:
        """Wait for the answer to the request `number` and return it."""
        answer = self.answer(number, math.inf)
        assert answer is not None
        return answer

    def answer(self, number: int, seconds: float) -> dict[str, Any] | None:
        """Return the answer to the request `number`, or None when it doesn't come within `seconds`."""
        deadline = time.monotonic() + seconds
        while number not in self.answered:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self.receive(left)
        return self.answered.pop(number)

    def receive(self, patience: float) -> None:
        """Wait at most `patience` seconds for the oldest request's answer; replace a worker that gives none."""
        assert self.worker is not None
        limit = min(self.case_seconds, RECORDING_SECONDS) if self.waiting[0].get("sketch") else self.case_seconds
        left = max(limit - (time.monotonic() - self.since), 0.0)
        try:
            message = self.worker.receive(min(left, patience), is_busy=len(self.waiting) > LONG_QUEUE)
            if message is not None and message.get("n") != self.waiting[0]["n"]:
                raise EOFError("answered another request than the oldest")
        except EOFError as error:
            self.lose_worker("crash", str(error), limit)
            return
        if message is None:
            if left <= patience:
                self.lose_worker("timeout", "", limit)
            return
        self.since = time.monotonic()
        self.waiting.popleft()
        self.answered[message.pop("n")] = message
        why_restarted = message.pop("must_restart", "")
        if why_restarted:
            if message["status"] != "pass":
                message["reason"] = f"{why_restarted}; the worker was replaced"
            self.end_worker()
            if self.waiting:
                self.replace()

    def lose_worker(self, status: str, why: str, limit: float) -> None:
        """Record the outcome of the request that the worker was running, and send the others to a new worker."""
        assert self.worker is not None
        ended, tail = self.worker.end(kill=status == "timeout" or bool(why))
        self.worker = None
        facts: dict[str, Any] = {}
        if status == "timeout":
            reason = f"no answer within {limit:g} s; the worker was killed"
        else:
            reason = f"the worker {why or describe_end(ended)}"
            if not why:  # it was not killed from here
                facts = {"exit_status": ended} if ended >= 0 else {"signal": signal_name(ended)}
        culprit = self.waiting.popleft()
        seconds = round(time.monotonic() - self.since, 6)
        self.answered[culprit["n"]] = {
            "status": status, "seconds": seconds, "reason": reason, "stderr": tail, **facts,
        }  # fmt: skip
        if culprit.get("sketch"):
            self.lost_to_recording += 1
            if self.lost_to_recording == MOST_LOST_TO_RECORDING:
                self.answered.update((message["n"], NOT_RECORDED) for message in self.waiting if message.get("sketch"))
                self.waiting = collections.deque(message for message in self.waiting if not message.get("sketch"))
        if self.waiting:
            self.replace()

    def replace(self) -> None:
        try:
            self.worker = WorkerProcess(*self.arguments)
            self.worker.handshake()
        except Refused as error:
            self.worker = None
            for message in self.waiting:
                self.answered[message["n"]] = {"status": "crash", "reason": f"no new worker could be started: {error}"}
            self.waiting.clear()
            return
        self.since = time.monotonic()
        for message in self.waiting:
            self.worker.send(message)

    def end_worker(self) -> None:
        if self.worker is not None:
            self.worker.end(kill=True)  # it has nothing left to answer, and unloading torch takes time
            self.worker = None

    def close(self) -> None:
        """End the worker; requests that still wait get no answer."""
        self.end_worker()
