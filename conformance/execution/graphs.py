"""Gathers the graphs of a run: those kept from earlier runs, and those that its own worker is asked for.

A case is asked for once its outcome is known, so that a sketch can't change one. What comes is kept in pytest's cache
directory, in a file for each case file and build, and holds for one revision of the case and one state of torch and
of what draws.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import msgspec

from conformance.execution.program import program_of
from conformance.model.build import IN_TREE, Build, Target
from conformance.model.case import Case
from conformance.model.graph import Graph
from conformance.model.outcome import Outcome
from conformance.model.report import Pair
from conformance.model.status import AT_A_STEP
from conformance.results.checkout import package_state
from conformance.results.store import write_whole

SKETCHED = {"pass", *AT_A_STEP}  # what else can happen ends a worker, or is no run at all


def is_compiled(case: Case) -> bool:
    """Whether a case compiles something, which takes long once more and leaves a graph of one node."""
    return any("compiled" in step.get("needs", ()) for step in case.steps)


class Worker(Protocol):
    """Takes requests and answers them in their order."""

    def request(self, number: int, program: dict[str, Any]) -> None: ...
    def answer(self, number: int, seconds: float) -> dict[str, Any] | None: ...


class Sketch(msgspec.Struct, frozen=True, kw_only=True):
    """The graph of a case on a target, or None where it builds none; `revision` tells whether it still holds."""

    file: str
    case: str
    target: str
    revision: str
    graph: Graph | None = None

    @property
    def pair(self) -> Pair:
        return self.case, self.target


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """The sketches of one case file on one build, as they are kept; `state` is that of all that made them."""

    state: str
    sketches: list[Sketch]


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """What one process of a distributed run has gathered."""

    old: list[Sketch]
    new: list[Sketch]


class Sketches:
    """The sketches of one run; `directory` is None to keep nothing, `worker` is None to ask for nothing."""

    def __init__(self, build: Build, directory: Path | None, worker: Worker | None) -> None:
        self.build = build
        self.directory = directory
        self.worker = worker
        self.shelves: dict[str, dict[Pair, Sketch]] = {}
        self.seen: set[str] = set()  # cases that have had their turn
        self.asked: dict[int, Sketch] = {}  # by number of the request; their graphs are to come
        self.old: dict[Pair, Sketch] = {}
        self.new: dict[Pair, Sketch] = {}
        self.last = 0

    def see(self, case: Case, target: Target, outcome: Outcome) -> None:
        """Have the graph of a case that has just run: the kept one, or else the worker is asked for it."""
        if case.id in self.seen or outcome.status not in SKETCHED or is_compiled(case):
            return
        self.seen.add(case.id)
        revision = f"{case.digest}:{outcome.step}"
        kept = self.shelf(case.file).get((case.id, str(target)))
        if kept is not None and kept.revision == revision:
            self.old[kept.pair] = kept
        elif self.worker is not None:
            program = program_of(case, target, self.build.torch)
            if outcome.step is not None:
                program["steps"] = [step for step in program["steps"] if step["number"] <= outcome.step]
            self.last -= 1  # items have the numbers from 0 on
            self.worker.request(self.last, {**program, "sketch": True})
            self.asked[self.last] = Sketch(file=case.file, case=case.id, target=str(target), revision=revision)
            self.take_answers(0.0)

    def take_answers(self, seconds: float) -> None:
        """Take the answers that are there, or come within `seconds`."""
        deadline = time.monotonic() + seconds
        while self.asked and self.worker is not None:
            number = next(iter(self.asked))
            answer = self.worker.answer(number, max(deadline - time.monotonic(), 0.0) if seconds else 0.0)
            if answer is None:
                return
            wanted = self.asked.pop(number)
            with contextlib.suppress(KeyError, msgspec.ValidationError):  # a lost one, or no picture of anything
                graph = msgspec.convert(answer["graph"], Graph | None)
                self.new[wanted.pair] = msgspec.structs.replace(wanted, graph=graph)

    def finish(self, seconds: float) -> None:
        """Take what comes within `seconds`, and no more when somebody loses patience."""
        with contextlib.suppress(KeyboardInterrupt):
            self.take_answers(seconds)
        self.asked.clear()

    def handed_over(self) -> bytes:
        """Return what this process has gathered, for `take_over` in another one."""
        return msgspec.json.encode(Gathered(old=list(self.old.values()), new=list(self.new.values())))

    def take_over(self, encoded: bytes) -> None:
        gathered = msgspec.json.decode(encoded, type=Gathered)
        self.old.update((sketch.pair, sketch) for sketch in gathered.old)
        self.new.update((sketch.pair, sketch) for sketch in gathered.new)

    def graphs(self, plan: Iterable[Pair]) -> dict[str, Graph]:
        """Return the graphs by case, of the first target in the plan that there is a sketch of."""
        found: dict[str, Graph | None] = {}
        for pair in plan:
            sketch = self.new.get(pair) or self.old.get(pair)
            if sketch is not None and pair[0] not in found:
                found[pair[0]] = sketch.graph
        return {case: graph for case, graph in found.items() if graph is not None}

    def keep(self) -> None:
        """Keep what is new, with what was there before of the same files."""
        files: dict[str, dict[Pair, Sketch]] = {}
        for pair, sketch in self.new.items():
            if sketch.target.partition("-")[0].partition(":")[0] in IN_TREE:  # another back-end is no part of the build
                files.setdefault(sketch.file, {})[pair] = sketch
        for file, new in files.items():
            place = self.place(file)
            if place is not None:
                shelf = Shelf(state=self.state, sketches=list({**self.shelf(file), **new}.values()))
                with contextlib.suppress(OSError):
                    write_whole(place, msgspec.json.encode(shelf).decode())

    def shelf(self, file: str) -> Mapping[Pair, Sketch]:
        """Return what is kept of a case file."""
        if file not in self.shelves:
            place = self.place(file)
            shelf = None
            if place is not None:
                with contextlib.suppress(OSError, msgspec.DecodeError):
                    shelf = msgspec.json.decode(place.read_bytes(), type=Shelf)
            holds = shelf is not None and shelf.state == self.state
            self.shelves[file] = {sketch.pair: sketch for sketch in shelf.sketches} if shelf and holds else {}
        return self.shelves[file]

    def place(self, file: str) -> Path | None:
        if self.directory is None:
            return None
        build = self.build
        name = hashlib.sha256("\0".join([file, build.slug, build.path, build.executable]).encode()).hexdigest()[:32]
        return self.directory / f"{name}.graphs.json"

    @cached_property
    def state(self) -> str:
        """What tells this state of torch and of what draws from another: the sizes and times of their files."""
        torch = Path(self.build.path)
        found = []
        for path in [torch / "version.py", *sorted((torch / "lib").glob("*torch*"))]:
            with contextlib.suppress(OSError):
                found.append((path.name, path.stat().st_size, path.stat().st_mtime_ns))
        return hashlib.sha256(repr((package_state(), found, self.build.config)).encode()).hexdigest()
