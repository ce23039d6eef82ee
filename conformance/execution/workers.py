"""Runs requests in worker processes, which are started as there is work, and replaced when they crash or hang.

A worker answers in the order of its requests, so the oldest one without an answer is the one that a silent or dead
worker was running. It gets the outcome; the requests behind it go to other workers.
"""

import collections
import contextlib
import itertools
import math
import os
import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from conformance.execution.answers import NotAnAnswer, why_no_answer
from conformance.execution.durations import CASE_SECONDS
from conformance.execution.ending import End, describe_end, outcome_of_end
from conformance.execution.fork_server import ForkServer, Interpreter, Refused, WantedWorker
from conformance.execution.gpus import share_of_gpus
from conformance.execution.queue import LONG_SECONDS, Queue, Request
from conformance.execution.worker_process import WorkerProcess
from conformance.language.versions import version_of
from conformance.model.build import Build
from conformance.model.sandbox import Sandbox

START_SECONDS = 300.0  # importing torch from a cold disk takes minutes on some machines
ASK_SECONDS = 60.0  # the first use of an accelerator takes long, and of several longer
TOLD_SECONDS = 10.0  # after which it is told what is waited for
FORK_SECONDS = 0.1
IMPORT_SECONDS = 4.0
LOOKING_SECONDS = 10.0  # the time limit of a request that only records a graph or tries a feature
MOST_LOST_TO_RECORDING = 3  # how many workers may end while recording a graph before no more graphs are recorded
NOT_RECORDED = {"status": "not-run", "reason": "too many workers were lost to recording graphs"}
DEPTH = 16  # requests that a worker holds: enough that it never waits for the parent
REFILLED = DEPTH // 2  # what it has left when it is given more: a write for each request would cost the parent most
LONG_QUEUE = 16
NOT_CONFINED = {
    "auto": Sandbox(lacks=("the cases are the suite's own",)),
    "off": Sandbox(lacks=("--sandbox off",)),
    "required": Sandbox(),
}
LONGEST_REASON = 4000  # characters of why a worker can't do anything
POLL_INTERVAL = 0.001  # seconds
GENERATING = 4  # times as long as other cases one may take for which code is generated, and compiled
UNSENT_INTERVAL = 0.05  # seconds after which a full pipe is tried again


@dataclass(slots=True, kw_only=True, eq=False)
class Worker:
    """A worker process, the requests that it holds, and since when the oldest of them can have been running."""

    process: WorkerProcess
    index: int
    since: float
    is_confined: bool = False
    is_ready: bool = False
    only: Request | None = None  # what it is to run alone, if there is such a thing
    asks: str = ""  # the device that it touches, before it is ready
    sent: collections.deque[Request] = field(default_factory=collections.deque)
    done: set[int] = field(default_factory=set)  # the numbers of the requests that it has answered

    @property
    def has_room(self) -> bool:
        return self.is_ready and len(self.sent) < DEPTH and sum(each.seconds for each in self.sent) < LONG_SECONDS


class Workers:
    """Runs requests in worker processes, of which there is one unless `widen` allows more."""

    def __init__(  # noqa: PLR0913 - what a run sets
        self,
        python: Interpreter,
        case_seconds: float = 60.0,
        *,
        memory: int = 0,
        number: int | None = None,
        may_fork: bool = True,
        sandbox: str = "auto",
    ) -> None:
        self.python = python
        self.case_seconds = case_seconds
        self.number = number  # of this process among those that share the GPUs
        self.memory = memory  # bytes that a worker may have, if no accelerator is used
        self.may_fork = may_fork
        self.sandbox_mode = sandbox
        self.is_confining = sandbox == "required"
        self.sandbox = NOT_CONFINED[sandbox]  # of the worker that came last
        self.most = 1
        self.queue = Queue()
        self.queued: set[int] = set()  # the numbers of all requests without an answer
        self.answered: dict[int, dict[str, Any]] = {}
        self.server: ForkServer | None = None
        self.workers: list[Worker] = []
        self.selector = selectors.DefaultSelector()
        self.why_refused = ""
        self.build: Build | None = None
        self.absent: dict[str, str] = {}  # devices that ended or blocked a worker at the first touch, and how
        self.lost_to_recording = 0
        self.start()

    def handshake(self, tell: Callable[[str], object] = bool) -> Build:
        """Wait until the first worker has imported torch, and return its build; `tell` what takes long."""
        told = time.monotonic()
        while self.build is None:
            if not self.workers:
                self.close()
                raise Refused(self.why_refused)
            self.receive(TOLD_SECONDS)
            worker = next(iter(self.workers), None)
            if self.build is None and worker is not None and time.monotonic() - told >= TOLD_SECONDS:
                told = time.monotonic()
                what = f"touch the device {worker.asks}" if worker.asks else "import torch"
                left = worker.since + self.limit(worker) - told
                tell(f"waiting for {self.python.path} to {what}, at most {left:.0f} s more")
        try:
            version_of(self.build.torch)
        except ValueError as error:
            self.close()
            raise Refused(f"torch.__version__: {error}") from None
        return self.build

    def confine(self) -> Sandbox:
        """Have the kernel confine the workers from now on, with new ones in place of those that there are.

        Where nothing says what their devices need, they are left as they are.
        """
        if self.sandbox_mode == "auto" and self.has_unknown_needs:
            self.sandbox = Sandbox(is_assumed=True)
        elif self.sandbox_mode == "auto" and not self.is_confining:
            self.is_confining = True
            for worker in list(self.workers):
                self.retire(worker)
            self.start_missing()
            while not any(worker.is_ready for worker in self.workers):
                if not self.workers:
                    self.close()
                    raise Refused(self.why_refused)
                self.receive(TOLD_SECONDS)
        return self.sandbox

    @property
    def has_unknown_needs(self) -> bool:
        """Whether a device other than the CPU is used whose profile doesn't say what it needs."""
        profile = self.python.profile
        devices = self.python.devices or (self.build.present if self.build is not None else ())
        uses_others = bool(self.python.modules or profile.setup) or any(each != "cpu" for each in devices)
        return profile.sandbox is None and uses_others

    @property
    def start_seconds(self) -> float:
        """How many seconds of work a further worker must take over to be worth its start."""
        return FORK_SECONDS if self.server is not None and self.server.can_start() else IMPORT_SECONDS

    def widen(self, most: int) -> None:
        """Allow `most` workers, and start them."""
        self.most = most
        self.queue.tells_long = most > 1
        self.start_missing()

    def start(self, only: Request | None = None) -> Worker:
        """Start a worker, for one request `only` if given; where the process to fork it from ended, with a new one."""
        if self.server is None or not self.server.can_start():
            if self.server is not None and not self.server.has_become_worker:
                self.server.close()
            self.server = ForkServer(self.python)
        index = next(index for index in itertools.count() if all(worker.index != index for worker in self.workers))
        share = index if self.number is None else self.number
        variables = share_of_gpus(share, os.environ) if share or self.number is not None else {}
        is_limited = self.build is None or self.build.present == ["cpu"]
        wanted = WantedWorker(
            variables=variables,
            memory=self.memory * is_limited,
            describes=self.build is None,
            may_fork=self.may_fork,
            absent=self.absent,
            present=() if self.build is None else tuple(self.build.present),
            sandbox=self.is_confining,
        )
        process = WorkerProcess(self.server, wanted)
        worker = Worker(process=process, index=index, since=time.monotonic(), is_confined=self.is_confining, only=only)
        self.workers.append(worker)
        self.selector.register(process.answers, selectors.EVENT_READ, worker)
        return worker

    def start_missing(self) -> None:
        """Start workers, up to as many as are allowed; without any, what waits can't be run."""
        try:
            while len(self.workers) < self.most and not (self.workers and self.why_refused):
                self.start()
        except Refused as error:
            self.refuse(str(error))

    def request(self, number: int, program: dict[str, Any], seconds: float = CASE_SECONDS) -> None:
        """Queue a program under a number that the caller chooses; its answer is `outcome(number)`.

        It is sent by the next `send_waiting`, or while an answer is waited for.
        """
        request = Request(number=number, program=program, seconds=seconds)
        if request.is_sketch and self.lost_to_recording >= MOST_LOST_TO_RECORDING:
            self.answered[number] = NOT_RECORDED
            return
        self.queued.add(number)
        self.queue.add(request)
        if len(self.workers) < self.most:
            self.start_missing()

    def run_alone(self, number: int, program: dict[str, Any]) -> dict[str, Any] | None:
        """Run a program in a new worker that runs nothing else, and return its answer; None where there is no worker.

        The others end before it starts if it is for a device other than the CPU, which may be open to one process only.
        """
        if self.why_refused:
            return None
        request = Request(number=number, program=program)
        if request.device.partition(":")[0] != "cpu":
            for worker in list(self.workers):
                self.retire(worker)
        with contextlib.suppress(Refused):
            own = self.start(request)
            while number not in self.answered and own in self.workers:
                self.receive(TOLD_SECONDS)
            if own in self.workers:
                self.retire(own)
        self.replace()
        return self.answered.pop(number, None)

    def is_queued(self, number: int) -> bool:
        return number in self.queued or number in self.answered

    def outcome(self, number: int) -> dict[str, Any]:
        """Wait for the answer to the request `number` and return it."""
        self.queue.hurry(number)
        answer = self.answer(number, math.inf)
        assert answer is not None
        return answer

    def answer(self, number: int, seconds: float) -> dict[str, Any] | None:
        """Return the answer to the request `number`, or None when it doesn't come within `seconds`."""
        deadline = time.monotonic() + seconds
        while number not in self.answered:
            left = deadline - time.monotonic()
            if left <= 0 and seconds:
                return None
            self.receive(max(left, 0.0))
            if not seconds:
                break
        return self.answered.pop(number, None)

    def send_waiting(self) -> None:
        """Send the workers what waits: the least busy first, so that none has more to do than the others."""
        free = [worker for worker in self.workers if len(worker.sent) <= REFILLED and worker.has_room]
        while free:
            worker = min(free, key=lambda each: len(each.sent))
            request = self.next_for(worker)
            if request is None:
                free.remove(worker)
                continue
            if not worker.sent:
                worker.since = time.monotonic()
            worker.sent.append(request)
            worker.process.send({"n": request.number, **request.program})
            if not worker.has_room:
                free.remove(worker)
        for worker in self.workers:
            worker.process.flush()

    def next_for(self, worker: Worker) -> Request | None:
        if self.build is None:
            return None
        if worker.only is not None:
            return None if worker.sent or worker.done else worker.only
        return self.queue.take(
            keeps_order=worker.index == 0, is_idle=not worker.sent, can_run=lambda device: self.can_run(worker, device)
        )

    def can_run(self, worker: Worker, device: str) -> bool:
        """Whether a worker may use a device: any of them the CPU, and one each card of an accelerator.

        Where none of these could be started again, the others take what is left.
        """
        if device.partition(":")[0] == "cpu":
            return True
        assert self.build is not None
        count = next((each.count for each in self.build.devices if each.type == device), 1)
        return worker.index <= max(count - 1, min(each.index for each in self.workers))

    def receive(self, patience: float) -> None:
        """Take the answers that come within `patience` seconds; replace workers that have ended or give none.

        While the workers are busy with a long queue, this process sleeps for a poll interval and then reads several
        answers at once: waking up for each would take CPU time from the workers.
        """
        self.send_waiting()
        if not self.read(0.0) and patience > 0:
            if len(self.queued) > LONG_QUEUE:
                time.sleep(POLL_INTERVAL)
                self.read(0.0)
            else:
                now = time.monotonic()
                ends = [worker.since + self.limit(worker) - now for worker in self.workers if self.is_busy(worker)]
                unsent = [UNSENT_INTERVAL for worker in self.workers if worker.process.unsent]
                self.read(max(min([patience, *ends, *unsent]), 0.0))
        for worker in list(self.workers):
            if self.is_busy(worker) and time.monotonic() - worker.since >= self.limit(worker):
                self.lose(worker, is_silent=True)
        self.send_waiting()

    def is_busy(self, worker: Worker) -> bool:
        return bool(worker.sent) or not worker.is_ready

    def limit(self, worker: Worker) -> float:
        """Return how many seconds a worker may take for what it does now."""
        if not worker.is_ready:
            return ASK_SECONDS if worker.asks else START_SECONDS
        first = worker.sent[0]
        seconds = min(self.case_seconds, LOOKING_SECONDS) if first.is_look else self.case_seconds
        return seconds * (GENERATING if first.generates_code else 1)

    def read(self, seconds: float) -> bool:
        """Take the messages that come within `seconds`; return whether any worker had something to say."""
        events = self.selector.select(seconds)
        for key, _ in events:
            worker: Worker = key.data
            try:
                for message in worker.process.messages():
                    self.take(worker, message)
                    if worker not in self.workers:
                        break
            except EOFError:
                self.lose(worker)
            except NotAnAnswer as error:
                self.lose(worker, wrong=error)
        return bool(events)

    def take(self, worker: Worker, message: dict[str, Any]) -> None:
        """Take a message of a worker: its handshake, or the answer to its oldest request."""
        if not worker.is_ready:
            self.take_first(worker, message)
            return
        request = self.answered_by(worker, message)
        why = why_no_answer(message, looks=request.finds_more)
        if why:
            raise NotAnAnswer(why, is_own=True)
        worker.sent.popleft()
        worker.done.add(request.number)
        worker.since = time.monotonic()
        why_restarted = message.pop("must_restart", "")
        has_grown = message.pop("has_grown", False)  # by what torch keeps of all cases: nothing to say of this one
        if why_restarted:
            reasons = [message.get("reason", ""), why_restarted, "the worker was replaced"]
            message["reason"] = "; ".join(filter(None, reasons))
        self.put(request, message)
        if why_restarted or has_grown:
            self.retire(worker)
            self.replace()

    def answered_by(self, worker: Worker, message: dict[str, Any]) -> Request:
        """Return the request that a message answers: the oldest, and raise NotAnAnswer where it bears no such number.

        A request that is answered twice has done something else than its case says, if it isn't reported yet.
        """
        number = message.pop("n", None)
        if type(number) is int and worker.sent and worker.sent[0].number == number:
            return worker.sent[0]
        if type(number) is int and number in worker.done:
            why = "the worker sent a second answer"
            if number in self.answered:
                self.answered[number] = {"status": "crash", "reason": why}
            raise NotAnAnswer(why, is_late=True)
        raise NotAnAnswer("sent an answer that nobody asked for")

    def take_first(self, worker: Worker, message: dict[str, Any]) -> None:
        """Take a worker's handshake, which device it touches before, or why it can't do anything."""
        if isinstance(message.get("asks"), str) and self.build is None:
            worker.asks, worker.since = message["asks"], time.monotonic()
            return
        why = "" if "handshake" in message else str(message.get("refused", "the first message is not a handshake"))
        if not why:
            try:
                if worker.is_confined:
                    self.sandbox = msgspec.convert(message["sandbox"], Sandbox)
                if self.sandbox_mode == "required" and (self.sandbox.lacks or self.sandbox.is_assumed):
                    why = f"{self.sandbox.line}; --sandbox required"
                elif self.build is None:
                    self.build = msgspec.convert(message["handshake"], Build)
            except (KeyError, msgspec.ValidationError, RecursionError) as error:
                why = f"it describes itself as no build does: {error}"
        if why:
            self.remove(worker)
            worker.process.end(kill=True)
            if worker.only is None:
                self.refuse(f"{self.python.path}: {why[:LONGEST_REASON]}")
            return
        worker.is_ready = True
        worker.since = time.monotonic()

    def put(self, request: Request, answer: dict[str, Any]) -> None:
        self.queued.discard(request.number)
        self.answered[request.number] = answer

    def lose(self, worker: Worker, *, is_silent: bool = False, wrong: NotAnAnswer | None = None) -> None:
        """Record the outcome of the request that the worker was running; the others are sent to other workers.

        What is `wrong` with the worker's answers is no doing of the request if it doesn't bear its number, and nothing
        of the kind happens when it is run again.
        """
        limit = self.limit(worker) if self.is_busy(worker) else 0.0
        why = "" if wrong is None else str(wrong)
        end = worker.process.end(kill=is_silent or bool(why), is_silent=is_silent)
        self.remove(worker)
        if not worker.is_ready:
            self.lose_first(worker, end, why, is_silent=is_silent)
            return
        culprit = worker.sent.popleft() if worker.sent else None
        server = worker.process.server
        if culprit is None:
            pass
        elif worker.only is None and end.status is None and not why and culprit.lost_with in (None, server):
            culprit.lost_with = server  # not its doing: the worker ended because the process it was forked from did
            worker.sent.appendleft(culprit)
        elif worker.only is None and wrong is not None and (wrong.is_late or not (wrong.is_own or culprit.is_suspect)):
            culprit.is_suspect = culprit.is_suspect or not wrong.is_late
            worker.sent.appendleft(culprit)
        else:
            seconds = round(time.monotonic() - worker.since, 6)
            self.put(culprit, outcome_of_end(end, culprit.number, seconds, limit=limit if is_silent else None, why=why))
            self.lost_to_recording += culprit.is_sketch
            if self.lost_to_recording == MOST_LOST_TO_RECORDING:
                for request in self.queue.take_sketches():
                    self.put(request, NOT_RECORDED)
        self.queue.put_back(worker.sent)
        self.replace()

    def lose_first(self, worker: Worker, end: End, why: str, *, is_silent: bool) -> None:
        """Start another worker without the device that this one touched last, or note that none can be started."""
        if not why:
            ended = is_silent or end.status is None
            why = "gave no answer" if worker.asks else f"did not import torch in {START_SECONDS:.0f} s"
            why = f"{why} in {ASK_SECONDS:.0f} s" if worker.asks and ended else why
            why = why if ended else describe_end(end.status) + " at once" * (not worker.asks)
        if worker.asks and worker.asks not in ("cpu", *self.absent):
            self.absent[worker.asks] = f"the worker {why} when it touched the device"
            self.start_missing()
            return
        if worker.only is not None:
            return
        where = f" when it touched the device {worker.asks}" if worker.asks else ""
        self.refuse(f"the worker ({self.python.path}) {why}{where}\n{end.printed}")

    def replace(self) -> None:
        if self.queue:
            self.start_missing()

    def refuse(self, why: str) -> None:
        """Note that a worker could not be started; without any, what waits is not run."""
        self.why_refused = why
        if not self.workers and self.build is not None:
            reason = f"no new worker could be started: {why}"
            for request in self.queue.take_all():
                self.put(request, {"status": "crash", "reason": reason})

    def retire(self, worker: Worker) -> None:
        """End a worker that has done nothing wrong; others get what it has not answered."""
        self.remove(worker)
        worker.process.close()
        self.queue.put_back(worker.sent)

    def remove(self, worker: Worker) -> None:
        self.selector.unregister(worker.process.answers)
        self.workers.remove(worker)

    def close(self) -> None:
        """End the workers; requests that still wait get no answer."""
        for worker in list(self.workers):
            self.remove(worker)
            worker.process.close()  # they have nothing left to answer, and unloading torch takes time
        self.selector.close()
        if self.server is not None and not self.server.has_become_worker:
            self.server.close()
