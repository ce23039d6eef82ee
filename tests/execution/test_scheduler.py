"""How many workers a run has, and which of them gets what when."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from samples import build
from sessions import Session

from conformance.execution.ending import End
from conformance.execution.fork_server import Interpreter, Refused
from conformance.execution.queue import LONG_SECONDS, Request
from conformance.execution.scheduler import MOST_WORKERS, Settings, usable_cores
from conformance.execution.workers import (
    DEPTH,
    MOST_LOST_TO_RECORDING,
    NOT_RECORDED,
    REFILLED,
    Worker,
    Workers,
)
from conformance.model.build import Device

GOOD = "- a = tensor([2.0], requires_grad=True)\n- (a * 3).backward()\n- expect: {a: {grad: [3.0]}}\n"
LONG = 10 * LONG_SECONDS
PROGRAM = {"device": "cpu"}
# A module for workers that writes down which process has imported it.
COUNTING = "import os\nwith open('workers', 'a') as file:\n    file.write(f'{os.getpid()}\\n')\n"


def started(session: Session) -> int:
    """Return how many workers the last run started."""
    path = session.directory / "workers"
    count = len(path.read_text().splitlines())
    path.unlink()
    return count


def test_as_many_workers_are_started_as_there_is_work_for(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.write("counting.py", COUNTING)
    session.cases(**{f"case_{number}": GOOD for number in range(20)})
    few = session.run("--device-module", "counting", "--workers", "3")
    assert set(few.statuses.values()) == {"pass"}, few.output
    assert started(session) == 1
    session.cases("more.yaml", **{f"more_{number}": GOOD for number in range(130)})
    many = session.run("--device-module", "counting", "--workers", "3")
    assert list(many.statuses.values()) == ["pass"] * 150
    assert list(many.statuses) == [f"case-{n}" for n in range(20)] + [f"more-{n}" for n in range(130)]
    assert started(session) == 3
    session.run("--device-module", "counting", "--workers", "1")
    assert started(session) == 1
    refused = session.run("--workers", "0")
    assert refused.status == 4
    assert "--workers" in refused.output


@pytest.mark.slow
def test_a_crash_and_a_hang_cost_the_cases_of_other_workers_nothing(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.write("broken.py", "import os, torch\ntorch.sinh = lambda x: os._exit(7)\n")
    cases = {f"case_{number}": GOOD for number in range(150)}
    for number in (3, 40, 41, 90, 149):
        cases[f"case_{number}"] = "- b = torch.sinh(tensor([2.0]))\n- expect: {b: [2.0]}\n"
    cases["case_60"] = "- |\n  for number in iter(int, 1):\n      pass\n- expect: {number: 0}\n"
    session.cases(**cases)
    found = session.run("--device-module", "broken", "--workers", "3", "--case-timeout", "2").statuses
    assert list(found) == [f"case-{number}" for number in range(150)]
    assert {case: status for case, status in found.items() if status != "pass"} == {
        **{f"case-{number}": "crash" for number in (3, 40, 41, 90, 149)}, "case-60": "timeout",
    }  # fmt: skip


def test_without_the_option_there_is_a_worker_for_each_core_but_one_beside_others_of_xdist() -> None:
    assert Settings(python="python").most_workers == min(usable_cores(), MOST_WORKERS)
    assert Settings(python="python", number=0).most_workers == 1
    assert Settings(python="python", number=0, workers=3).most_workers == 3


class FakeProcess:
    """Takes requests, and answers none."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.unsent = b""
        self.answers = -1
        self.server = None

    def send(self, message: dict[str, Any]) -> None:
        self.numbers.append(message["n"])

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def end(self, kill: bool, is_silent: bool) -> End:  # noqa: ARG002 - as WorkerProcess
        return End(-9 if kill else 1, "", b"")


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    """Give three workers, which are ready, without processes."""

    def start(self: Workers, only: Request | None = None) -> None:  # noqa: ARG001 - as Workers
        process: Any = FakeProcess()
        self.workers.append(Worker(process=process, index=len(self.workers), since=time.monotonic(), is_ready=True))

    monkeypatch.setattr(Workers, "start", start)
    monkeypatch.setattr("selectors.DefaultSelector", lambda: SimpleNamespace(unregister=lambda _: None))
    made = Workers(Interpreter("python"))
    made.build = build()
    made.widen(3)
    return made


def request(workers: Workers, *numbers: int, seconds: float = 0.001, **program: Any) -> None:
    for number in numbers:
        workers.request(number, {**PROGRAM, **program}, seconds)
    workers.send_waiting()


def sent(workers: Workers) -> list[list[int]]:
    return [worker.process.numbers for worker in workers.workers]  # type: ignore[attr-defined]  # see FakeProcess


def finish(workers: Workers, index: int, count: int = 1) -> None:
    """Have a worker answer its oldest requests."""
    worker = workers.workers[index]
    for _ in range(count):
        workers.take(worker, {"n": worker.sent[0].number, "status": "pass"})
    workers.send_waiting()


def test_the_others_begin_with_the_longest_cases_and_the_first_keeps_to_the_order(workers: Workers) -> None:
    for worker in workers.workers[1:]:
        worker.is_ready = False
    request(workers, 0)
    for number, seconds in ((1, LONG), (7, 2 * LONG), (8, 4 * LONG), (9, 3 * LONG)):
        request(workers, number, seconds=seconds)
    request(workers, 2)
    assert sent(workers) == [[0, 2], [], []]
    for worker in workers.workers[1:]:
        worker.is_ready = True
    workers.send_waiting()
    assert sent(workers) == [[0, 2], [8], [9]]
    request(workers, 3, 4)
    assert sent(workers) == [[0, 2, 3, 4], [8], [9]]  # nothing is queued behind a long case
    finish(workers, 0, 3)
    assert 7 not in sent(workers)[0]
    finish(workers, 0)
    assert sent(workers)[0][-1] == 7  # the first worker had nothing else to do
    finish(workers, 2)
    assert sent(workers)[2] == [9, 1]


def test_requests_go_to_the_least_busy_and_none_holds_many(workers: Workers) -> None:
    request(workers, *range(3 * DEPTH + 50))
    assert sent(workers) == [list(range(index, 3 * DEPTH, 3)) for index in range(3)]
    assert [request.number for request in workers.queue.waiting] == list(range(3 * DEPTH, 3 * DEPTH + 50))
    finish(workers, 2)
    assert sent(workers)[2][-1] == 3 * DEPTH - 1
    finish(workers, 2, DEPTH - REFILLED - 1)
    assert sent(workers)[2][DEPTH:] == list(range(3 * DEPTH, 4 * DEPTH - REFILLED))


def test_an_accelerator_is_used_by_one_worker_for_each_card(workers: Workers) -> None:
    card = Device(type="cuda", name="card", count=2, driver=None, absent=None, unknown=False)
    workers.build = msgspec.structs.replace(build(), devices=(card,))
    request(workers, *range(6), device="cuda")
    request(workers, *range(6, 9))
    request(workers, -1, device="cuda", sketch=True)
    assert sent(workers) == [[0, 2, 4], [1, 3, 5], [6, 7, 8]]
    finish(workers, 2, 3)
    assert sent(workers)[2] == [6, 7, 8]


def test_what_is_left_for_an_accelerator_is_run_by_others_where_its_worker_is_no_more(workers: Workers) -> None:
    request(workers, 0, device="npu")
    request(workers, 1)
    assert sent(workers) == [[0], [1], []]
    workers.why_refused = "its driver is gone"
    workers.lose(workers.workers[0])
    assert [worker.index for worker in workers.workers] == [1, 2]
    request(workers, 2, 3, device="npu")
    assert sent(workers) == [[1, 2, 3], []]


def test_the_others_go_on_where_none_can_be_started_to_run_a_case_alone(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain: Any = Workers.start

    def start(self: Workers, only: Request | None = None) -> None:
        if only is not None:
            raise Refused("another process has the device")
        plain(self)

    monkeypatch.setattr(Workers, "start", start)
    request(workers, 1, 2, device="npu")
    workers.send_waiting()
    before = list(workers.workers)
    assert workers.run_alone(3, {"device": "npu"}) is None
    assert not set(before) & set(workers.workers)  # none may be in the way of the one that was to be alone
    workers.send_waiting()
    assert sorted(itertools.chain(*sent(workers))) == [1, 2]
    assert not workers.answered


def test_graphs_are_recorded_where_nothing_else_is_to_do(workers: Workers) -> None:
    workers.workers[2].is_ready = False
    request(workers, 0, 1)
    request(workers, -1, -2, -3, sketch=True)
    assert sent(workers) == [[0], [1], []]
    finish(workers, 0)
    assert sent(workers) == [[0, -1], [1], []]
    request(workers, 2)
    finish(workers, 0)
    finish(workers, 1)
    assert sent(workers) in ([[0, -1, 2], [1, -2], []], [[0, -1, -2], [1, 2], []])


def test_workers_that_are_lost_to_graphs_are_counted_and_no_more_are_lost(workers: Workers) -> None:
    request(workers, *range(-9, 0), sketch=True)
    for count in range(1, MOST_LOST_TO_RECORDING + 1):
        workers.lose(workers.workers[0])
        assert workers.lost_to_recording == count
        workers.send_waiting()
    answered = [answer["status"] for answer in workers.answered.values()]
    assert answered.count("crash") == MOST_LOST_TO_RECORDING
    assert answered.count("not-run") == 9 - MOST_LOST_TO_RECORDING - 2  # two are being recorded
    workers.request(-10, {**PROGRAM, "sketch": True})
    assert workers.answer(-10, 0.0) == NOT_RECORDED
    request(workers, 1)
    workers.lose(workers.workers[-1], is_silent=True)
    assert [answer["status"] for answer in workers.answered.values()].count("timeout") == 1
