"""What pytest-xdist workers send to the controller besides outcomes.

A `WorkerStart` is sent with a worker's first outcome, a `WorkerEnd` when the worker ends.
"""

import ctypes
import re
import signal
import sys
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from conformance.execution.graphs import RecordedGraph
from conformance.model.build import Build
from conformance.model.report import Pair
from conformance.model.sandbox import Sandbox
from conformance.results.resume import Past

RESUMED_KEY = "conformance_resumed"  # in the mapping `workerinput`, which pytest-xdist sends at the start
PR_SET_PDEATHSIG = 1
KEY = "conformance"  # in the mapping `workeroutput`, which pytest-xdist sends at the end

CollectedItem = tuple[str, str, str]  # a case's id, a target and the path of a case file


class WorkerStart(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker tests, and what it collected."""

    build: Build
    sandbox: Sandbox
    collected: list[CollectedItem]
    why_deselected: list[tuple[Pair, str]]
    resumed: str = ""


class WorkerEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The case files that a worker could not load, in lines of text, and the graphs that it has collected."""

    broken: list[str]
    graphs: list[RecordedGraph]


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def is_controller(config: pytest.Config) -> bool:
    return not is_worker(config) and bool(getattr(config.option, "tx", None))


def worker_number(config: pytest.Config) -> int | None:
    """Return the number of this worker, counted from 0, or None if this process is not one."""
    name = getattr(config, "workerinput", {}).get("workerid", "")
    return int(re.sub(r"\D", "", name) or 0) if name else None


def end_with_controller(config: pytest.Config) -> None:
    """Have the kernel kill this worker when the controller is killed: nobody would take what it still finds."""
    if is_worker(config) and sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def tell_past(node: Any, past: list[Past]) -> None:
    """Tell a worker, before it starts, what earlier runs have found: it knows which build it tests."""
    node.workerinput[RESUMED_KEY] = msgspec.json.encode(past)


def past_of(config: pytest.Config) -> list[Past] | None:
    """Return what the controller has told of earlier runs; None in a process that is no worker."""
    told = getattr(config, "workerinput", {}).get(RESUMED_KEY)
    return None if told is None else msgspec.json.decode(told, type=list[Past])


def send_end(config: pytest.Config, end: WorkerEnd) -> None:
    config.workeroutput[KEY] = msgspec.json.encode(end)  # type: ignore[attr-defined]  # pytest-xdist adds it


def end_of(node: Any) -> WorkerEnd | None:
    """Return what a worker sent when it ended, or None if it crashed."""
    sent = getattr(node, "workeroutput", {}).get(KEY)
    return None if sent is None else msgspec.json.decode(sent, type=WorkerEnd)
