"""Collects the graphs of a run's cases: from the cache of earlier runs, or recorded by the worker.

A graph is requested when the outcome of its case is known, so that recording can't change the outcome. Graphs are
cached in pytest's cache directory, in one file for each case file and build. A cached graph is valid for one revision
of its case and one state of torch and of this package.
"""

import contextlib
import hashlib
import sys
import time
from collections import deque
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from conformance.execution.program import encoded_program, encoded_steps_until
from conformance.language.operations import is_of_operation
from conformance.model.build import IN_TREE, Build, Target
from conformance.model.case import Case, ListedCase
from conformance.model.graph import EncodedGraphs, Graph
from conformance.model.outcome import Outcome
from conformance.model.report import Pair
from conformance.model.status import AT_A_STEP
from conformance.results.checkout import package_state
from conformance.results.store import encoded, write_whole

RECORDED = {"pass", *AT_A_STEP}  # with any other status the case would not run, or would end the worker again
MOST_REQUESTED = 64  # graphs at once: those that wait for time to spare need no program yet


def is_long(case: Case | ListedCase) -> bool:
    """Whether a case takes long and has next to no graph: it traces a function, or tries an operation in all ways."""
    return is_of_operation(case) or any(name in ("compiled", "exported") for name, _ in case.needs)


def has_graph_of_its_own(case: ListedCase) -> bool:
    """Whether the graph of a case is worth a look: that of a covered one shows nothing that others' don't."""
    return not (is_long(case) or case.is_covered)


def revision_of(case: ListedCase, step: int | None) -> str:
    """Return what a graph was recorded of: a case, up to the step at which it diverged."""
    return f"{case.digest}:{step}"


class Item(Protocol):
    """A case on a target, and what the torch at hand runs of it."""

    case: ListedCase
    target: Target

    @property
    def encoded_steps(self) -> str: ...


class Executor(Protocol):
    """Takes requests and answers them."""

    def request(self, number: int, program: dict[str, Any]) -> None: ...
    def answer(self, number: int, seconds: float) -> dict[str, Any] | None: ...


class RecordedGraph(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The graph of one revision of a case on a target as JSON, or "" if the case builds none."""

    file: str
    case: str
    target: str
    revision: str
    graph: str = ""

    @property
    def pair(self) -> Pair:
        return self.case, self.target


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The cached graphs of one case file on one build; `state` is that of torch and of the package."""

    state: str
    graphs: list[RecordedGraph]


class GraphRecorder:
    """Collects graphs; without a `directory` nothing is cached, without an `executor` nothing is recorded."""

    def __init__(self, build: Build, directory: Path | None, executor: Executor | None) -> None:
        self.build = build
        self.directory = directory
        self.executor = executor
        self.entries: dict[str, dict[Pair, RecordedGraph]] = {}  # of the cache, by case file
        self.seen: set[str] = set()  # cases of which a target has run
        self.wanted: deque[tuple[Item, int | None]] = deque()  # items, each with the step at which it diverged
        self.requested: dict[int, RecordedGraph] = {}  # by number of the request, without the graph
        self.found: dict[Pair, RecordedGraph] = {}
        self.last = 0

    def add(self, item: Item, outcome: Outcome) -> None:
        """Take the graph of an item that has just run from the cache, or request it from the worker."""
        case = item.case
        is_told = case.id in self.seen or item.target.mode
        if is_told or outcome.status not in RECORDED or not has_graph_of_its_own(case):
            return
        self.seen.add(case.id)
        cached = self.entry(case.file).get((case.id, str(item.target)))
        if cached is not None and cached.revision == revision_of(case, outcome.step):
            self.found[cached.pair] = cached
        elif self.executor is not None:
            self.wanted.append((item, outcome.step))
            self.take_answers(0.0)

    def request_wanted(self) -> None:
        """Request graphs, as many at once as are allowed."""
        assert self.executor is not None
        while self.wanted and len(self.requested) < MOST_REQUESTED:
            item, step = self.wanted.popleft()
            steps = item.encoded_steps if step is None else encoded_steps_until(item.encoded_steps, step)
            self.last -= 1  # items have the numbers from 0 up
            self.executor.request(self.last, {**encoded_program(item.case, item.target, steps), "sketch": True})
            self.requested[self.last] = RecordedGraph(
                file=item.case.file, case=item.case.id, target=str(item.target), revision=revision_of(item.case, step)
            )

    def take_answers(self, seconds: float) -> None:
        """Take the answers that have come, or that come within `seconds`."""
        deadline = time.monotonic() + seconds
        while self.executor is not None:
            self.request_wanted()
            if not self.requested:
                return
            number = next(iter(self.requested))
            answer = self.executor.answer(number, max(deadline - time.monotonic(), 0.0) if seconds else 0.0)
            if answer is None:
                return
            recorded = self.requested.pop(number)
            with contextlib.suppress(KeyError, msgspec.ValidationError):  # the worker was lost, or sent no valid graph
                graph = msgspec.convert(answer["graph"], Graph)
                self.found[recorded.pair] = replace(recorded, graph="" if graph.is_empty else encoded(graph))

    def finish(self, seconds: float) -> None:
        """Take the answers that come within `seconds`, unless the user interrupts."""
        with contextlib.suppress(KeyboardInterrupt):
            self.take_answers(seconds)
        self.requested.clear()
        self.wanted.clear()

    def graphs(self, plan: Iterable[Pair]) -> EncodedGraphs:
        """Return the graph of each case, on the first target in the plan for which one was found."""
        first: dict[str, str] = {}
        for pair in plan:
            if pair in self.found:
                first.setdefault(pair[0], self.found[pair].graph)
        return EncodedGraphs({case: graph for case, graph in first.items() if graph})

    def write_cache(self) -> None:
        """Write the cache entries of those case files of which a graph was recorded."""
        files: dict[str, dict[Pair, RecordedGraph]] = {}
        for pair, recorded in self.found.items():
            if recorded.target.partition("-")[0].partition(":")[0] in IN_TREE:  # the build doesn't describe the others
                files.setdefault(recorded.file, {})[pair] = recorded
        for file, graphs in files.items():
            path, merged = self.path_of(file), {**self.entry(file), **graphs}
            if path is not None and merged != self.entry(file):
                entry = CacheEntry(state=self.state, graphs=list(merged.values()))
                with contextlib.suppress(OSError):
                    write_whole(path, msgspec.json.encode(entry).decode())

    def entry(self, file: str) -> dict[Pair, RecordedGraph]:
        """Return the valid cached graphs of a case file."""
        if file not in self.entries:
            self.entries[file] = {}
            path = self.path_of(file)
            if path is not None:
                with contextlib.suppress(OSError, msgspec.DecodeError):
                    entry = msgspec.json.decode(path.read_bytes(), type=CacheEntry)
                    if entry.state == self.state:  # many graphs have the name of their target in common
                        graphs = [replace(each, file=file, target=sys.intern(each.target)) for each in entry.graphs]
                        self.entries[file] = {recorded.pair: recorded for recorded in graphs}
        return self.entries[file]

    def path_of(self, file: str) -> Path | None:
        """Return the path of a case file's cache entry."""
        if self.directory is None:
            return None
        build = self.build
        name = hashlib.sha256("\0".join([file, build.slug, build.path, build.executable]).encode()).hexdigest()[:32]
        return self.directory / f"{name}.graphs.json"

    @cached_property
    def state(self) -> str:
        """A digest of what graphs depend on: the sizes and times of the files of torch and of this package."""
        torch = Path(self.build.path)
        found = []
        for path in [torch / "version.py", *sorted((torch / "lib").glob("*torch*"))]:
            with contextlib.suppress(OSError):
                found.append((path.name, path.stat().st_size, path.stat().st_mtime_ns))
        return hashlib.sha256(repr((package_state(), found, self.build.config)).encode()).hexdigest()
