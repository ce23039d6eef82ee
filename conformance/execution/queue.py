"""The requests that no worker has yet, and which of them a worker gets next."""

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from conformance.execution.durations import CASE_SECONDS
from conformance.execution.fork_server import ForkServer

LONG_SECONDS = 0.05  # a case that is expected to take as long is begun early, and nothing is queued behind it


class Request(msgspec.Struct, kw_only=True):
    """A program under a number that the caller chooses."""

    number: int
    program: dict[str, Any]
    seconds: float = CASE_SECONDS  # how long it is expected to take
    lost_with: ForkServer | None = None  # the process that ended, and with it the worker that was running this
    is_suspect: bool = False  # whether a worker that was running this has sent what nobody asked for

    @property
    def device(self) -> str:
        return str(self.program["device"])

    @property
    def is_look(self) -> bool:
        """Whether it only looks, at a graph or at a feature of a device."""
        return self.is_sketch or "feature" in self.program

    @property
    def generates_code(self) -> bool:
        return self.program.get("feature") == "generated-code" or generates_code(self.program)

    @property
    def finds_more(self) -> bool:
        """Whether its answer is no outcome alone, but has what was found by looking."""
        return self.is_sketch or bool(self.program.get("reach"))

    @property
    def is_sketch(self) -> bool:
        return bool(self.program.get("sketch"))


def generates_code(program: Mapping[str, Any]) -> bool:
    """Whether a C++ compiler runs for a program, many times for the first one of a process."""
    return "inductor" in str(program.get("encoded_steps") or program.get("steps"))


class Queue:
    """Cases in the order of the run, long cases with the longest first if that is asked for, and graphs to record."""

    def __init__(self) -> None:
        self.tells_long = False
        self.waiting: collections.deque[Request] = collections.deque()
        self.long: collections.deque[Request] = collections.deque()
        self.sketches: collections.deque[Request] = collections.deque()
        self.devices: collections.Counter[str] = collections.Counter()  # how many requests each device has here

    def __bool__(self) -> bool:
        return bool(self.waiting or self.long or self.sketches)

    def place_of(self, request: Request) -> collections.deque[Request]:
        if request.is_sketch:
            return self.sketches
        return self.long if self.tells_long and request.seconds >= LONG_SECONDS else self.waiting

    def add(self, request: Request) -> None:
        self.devices[request.device] += 1
        place = self.place_of(request)
        place.append(request)
        if place is self.long:
            self.long = collections.deque(sorted(self.long, key=lambda each: -each.seconds))

    def put_back(self, requests: Iterable[Request]) -> None:
        """Put requests that a worker did not come to in front of those that wait."""
        for request in reversed(list(requests)):
            self.devices[request.device] += 1
            self.place_of(request).appendleft(request)

    def hurry(self, number: int) -> None:
        """Have a long case, which its caller waits for now, run next."""
        for request in self.long:
            if request.number == number:
                self.long.remove(request)
                self.waiting.appendleft(request)
                break

    def take(self, *, keeps_order: bool, is_idle: bool, can_run: Callable[[str], bool]) -> Request | None:
        """Take the next request for a worker that can run cases on some devices.

        One that `keeps_order` runs what pytest reports next, which must not wait behind a long case. Graphs are
        recorded by a worker that has nothing else to do.
        """
        # Looked up by device, since a worker that has no part in a device asks at each poll, for thousands of requests.
        usable = {device for device, waiting in self.devices.items() if waiting and can_run(device)}
        if not usable:
            return None
        places = [self.waiting, self.long] if keeps_order else [self.long, self.waiting]
        if is_idle:
            places.append(self.sketches)
        elif keeps_order:
            places.remove(self.long)
        for place in places:
            for at, request in enumerate(place):
                if request.device in usable:
                    del place[at]
                    self.devices[request.device] -= 1
                    return request
        return None

    def take_sketches(self) -> list[Request]:
        """Take all requests to record graphs."""
        taken = list(self.sketches)
        self.sketches.clear()
        self.devices.subtract(request.device for request in taken)
        return taken

    def take_all(self) -> list[Request]:
        taken = [*self.waiting, *self.long, *self.sketches]
        for place in (self.waiting, self.long, self.sketches, self.devices):
            place.clear()
        return taken
