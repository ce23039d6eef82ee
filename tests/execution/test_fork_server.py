"""Workers are forked from one process where that is safe, are processes of their own elsewhere, and answer alike."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import case_of, request_of
from shipped import spread, telling

from conformance.execution import fork_server
from conformance.execution.fork_server import Interpreter, Refused
from conformance.execution.program import outcome_without_run, program_of
from conformance.execution.workers import Workers
from conformance.model.build import Target

PYTHON = Interpreter(sys.executable)
ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")  # of an object that a message shows
GOOD = {key: value for key, value in request_of(case_of("- a = ones(1)\n- expect: {a: 1}\n")).items() if key != "n"}
ENDLESS = {**GOOD, "steps": [{"number": 0, "line": 1, "do": "for number in iter(int, 1):\n    pass"}]}
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers aren't forked")


@pytest.fixture
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    made = Workers(PYTHON, may_fork=getattr(request, "param", True))
    made.handshake()
    yield made
    made.close()


def test_a_case_process_has_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "not-to-be-seen")
    made = Workers(PYTHON)
    made.handshake()
    try:
        for process in pids(made):
            assert b"not-to-be-seen" not in Path(f"/proc/{process}/environ").read_bytes()
    finally:
        made.close()


def pids(workers: Workers) -> list[int]:
    """Return the processes of the workers."""
    found = []
    for worker in workers.workers:
        server = worker.process.server
        while worker.process.number not in server.pids:
            server.read(1.0)
        found.append(server.pids[worker.process.number])
    return found


def answers_of(workers: Workers, programs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for number, program in enumerate(programs):
        workers.request(number, program)
    return [workers.outcome(number) for number in range(len(programs))]


@pytest.mark.parametrize("may_fork", [True, False])
@pytest.mark.parametrize("modules", [(), ("colorsys",)])
def test_a_worker_ends_of_itself_when_it_is_asked_no_more(
    monkeypatch: pytest.MonkeyPatch, may_fork: bool, modules: tuple[str, ...]
) -> None:
    monkeypatch.setattr(fork_server, "handed_on", dict)  # one that measures what is run needs a variable
    made = Workers(Interpreter(sys.executable, modules=modules), may_fork=may_fork)
    made.handshake()
    try:
        assert answers_of(made, [GOOD])[0]["status"] == "pass"
        (worker,) = made.workers
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), worker.process.requests)  # closes the pipe, and keeps the descriptor
        assert worker.process.server.status(worker.process.number, 60.0) == 0
    finally:
        made.close()


@on_linux
def test_a_worker_is_a_process_of_its_own_and_so_is_its_successor(workers: Workers) -> None:
    assert workers.server is not None
    server = workers.server.process.pid
    (first,) = pids(workers)
    assert first != server
    os.kill(first, signal.SIGSEGV)
    workers.request(0, GOOD)
    answer = workers.outcome(0)
    assert (answer["status"], answer["signal"]) == ("crash", "SIGSEGV")
    workers.request(1, GOOD)
    assert workers.outcome(1)["status"] == "pass"
    assert workers.server.process.pid == server
    assert set(pids(workers)).isdisjoint({first, server})


@on_linux
def test_a_worker_that_ends_between_requests_is_blamed_on_none_and_replaced(workers: Workers) -> None:
    workers.widen(2)
    first, second = pids(workers)
    os.kill(first, signal.SIGKILL)
    while len(workers.workers) == 2:
        assert workers.read(30.0)
    assert [worker.index for worker in workers.workers] == [1]
    assert [answer["status"] for answer in answers_of(workers, [GOOD] * 9)] == ["pass"] * 9
    assert len(workers.workers) == 2
    assert second in pids(workers)


@on_linux
def test_a_worker_that_answers_before_its_pid_is_told_can_be_ended_alone(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = workers.server
    assert server is not None
    pids(workers)
    told, read = server.pids.copy(), server.read
    server.pids.clear()

    def late(seconds: float) -> None:
        if seconds:
            server.pids.update(told)
        read(0.0)

    monkeypatch.setattr(server, "read", late)
    workers.workers[0].process.close()
    workers.remove(workers.workers[0])
    assert server.process.poll() is None
    assert server.can_start()
    workers.start_missing()
    assert [answer["status"] for answer in answers_of(workers, [GOOD])] == ["pass"]
    assert workers.server is server


@on_linux
def test_nothing_is_asked_of_a_process_that_was_killed_in_place_of_a_worker(workers: Workers) -> None:
    server = workers.server
    assert server is not None
    server.kill(server.started)  # of which it says nothing
    assert not server.can_start()


@on_linux
def test_when_the_process_ends_that_workers_are_forked_from_none_of_their_cases_is_blamed(workers: Workers) -> None:
    assert workers.server is not None
    workers.widen(2)
    pids(workers)
    for number in range(40):
        workers.request(number, GOOD)
    os.kill(workers.server.process.pid, signal.SIGKILL)
    assert {workers.outcome(number)["status"] for number in range(40)} == {"pass"}


@on_linux
def test_a_request_that_is_sent_to_two_workers_of_a_process_that_has_ended_is_not_blamed(workers: Workers) -> None:
    assert workers.server is not None
    workers.widen(2)
    first, second = pids(workers)
    while not all(worker.is_ready for worker in workers.workers):
        workers.receive(1.0)
    for pid in (first, second):
        os.kill(pid, signal.SIGSTOP)
    workers.request(0, GOOD)
    workers.send_waiting()
    os.kill(workers.server.process.pid, signal.SIGKILL)
    workers.lose(workers.workers[0])
    workers.send_waiting()
    assert [request.number for request in workers.workers[0].sent] == [0]
    assert workers.outcome(0)["status"] == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [False], indirect=True)
def test_where_none_is_forked_each_worker_imports_torch_itself(workers: Workers) -> None:
    workers.widen(2)
    found = pids(workers)
    assert found == [worker.process.server.process.pid for worker in workers.workers]
    assert len(set(found)) == 2
    assert workers.start_seconds > 1.0
    assert [answer["status"] for answer in answers_of(workers, [GOOD] * 20)] == ["pass"] * 20
    os.kill(found[0], signal.SIGKILL)
    assert [answer["status"] for answer in answers_of(workers, [GOOD] * 3)].count("crash") <= 1


@on_linux
@pytest.mark.slow
def test_a_process_with_threads_is_not_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    workers = Workers(PYTHON)
    workers.handshake()
    try:
        assert workers.server is not None
        assert pids(workers) == [workers.server.process.pid]
        assert [answer["status"] for answer in answers_of(workers, [GOOD, GOOD])] == ["pass", "pass"]
    finally:
        workers.close()


@on_linux
@pytest.mark.slow
def test_threads_may_be_the_first_to_compute_in_a_forked_worker(workers: Workers) -> None:
    work = "def f():\n    (ones([40000], requires_grad=True).exp() * 2).sum().backward()\nin_threads(*[f] * 64)"
    program = {**GOOD, "steps": [{"number": 0, "line": 1, "do": work}]}
    for number in range(5):  # on 2.15 they abort in a fraction of workers whose thread pool is that of another process
        workers.request(number, program)
        assert workers.outcome(number)["status"] == "pass"
        (pid,) = pids(workers)
        os.kill(pid, signal.SIGKILL)
        while workers.workers:
            assert workers.read(30.0)


def test_no_process_is_left_behind(workers: Workers) -> None:
    workers.widen(2)
    workers.request(0, ENDLESS)
    found = pids(workers)
    workers.close()
    for pid in found:
        with pytest.raises(OSError):  # noqa: PT011 - no such process, or another user's
            os.killpg(pid, signal.SIGTERM)


def test_an_import_of_torch_that_fails_is_told_with_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('a broken build')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(Refused, match="RuntimeError: a broken build"):
        Workers(PYTHON).handshake()


def test_an_import_of_torch_that_ends_the_process_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("import os, sys\nprint('last words', flush=True)\nos._exit(5)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(Refused, match=r"exited with status 5 at once\nlast words"):
        Workers(PYTHON).handshake()


@pytest.mark.parametrize("text", ["'y' * 10**8", "Hostile()"])
def test_an_error_of_the_import_is_told_briefly_whatever_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    hostile = "class Hostile:\n    def __str__(self):\n        raise ValueError\n"
    (tmp_path / "torch.py").write_text(f"{hostile}raise ImportError({text})\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(Refused, match="ImportError: ") as caught:
        Workers(PYTHON).handshake()
    assert len(str(caught.value)) < 5000
    assert "Traceback" not in str(caught.value)


def test_an_import_that_blocks_is_waited_for_with_a_word_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("conformance.execution.workers.START_SECONDS", 3.0)
    monkeypatch.setattr("conformance.execution.workers.TOLD_SECONDS", 0.5)
    told: list[str] = []
    with pytest.raises(Refused, match="did not import torch in 3 s") as caught:
        Workers(PYTHON).handshake(told.append)
    assert "line 2 in <module>" in str(caught.value)  # the stack of Python
    assert told
    assert all(line.startswith(f"waiting for {sys.executable} to import torch, at most ") for line in told)


# Run when torch has been imported, as a broken build would have it.
FACTS = """\
import builtins, os, time, torch

def fails(*_):
    raise RuntimeError("no such luck")

def answers(*names):
    DEVICE = torch.device

    class Kind(type):
        def __instancecheck__(self, value):
            return isinstance(value, DEVICE)

        def __call__(self, *arguments):
            return time.sleep(600) if arguments == ("mps",) else DEVICE(*arguments)

    class device(metaclass=Kind):
        pass

    torch.device = device

torch.__config__.show = torch.cuda.is_available = fails
torch.xpu.is_available = lambda: os._exit(9)
answers()
"""


@on_linux
@pytest.mark.slow
def test_what_a_build_can_not_tell_is_a_fact_and_no_end_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted.py").write_text(FACTS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("conformance.execution.workers.ASK_SECONDS", 3.0)
    workers = Workers(Interpreter(sys.executable, modules=("planted",)))
    try:
        build = workers.handshake()
        assert build.problems == ("torch.__config__.show(): RuntimeError: no such luck",)
        assert {each.type: each.absent for each in build.devices} == {
            "cpu": None,
            "cuda": "RuntimeError: no such luck",
            "mps": "the worker gave no answer in 3 s when it touched the device",
            "xpu": "the worker exited with status 9 when it touched the device",
        }
        assert "cuda: RuntimeError: no such luck" in build.header()
        assert "problem: torch.__config__.show(): RuntimeError: no such luck" in build.header()
        assert [answer["status"] for answer in answers_of(workers, [GOOD])] == ["pass"]
    finally:
        workers.close()


@on_linux
@pytest.mark.slow
def test_a_forked_worker_and_a_fresh_one_give_the_same_outcomes() -> None:
    target = Target(device="cpu", dtype="float32")
    found = []
    for may_fork in (True, False):
        workers = Workers(PYTHON, may_fork=may_fork)
        build = workers.handshake()
        programs = [
            program_of(case, target, build.torch)
            for case in spread(300, telling())
            if outcome_without_run(case, target, build) is None
        ]
        answers = [{**answer, "seconds": 0, "stderr": ""} for answer in answers_of(workers, programs)]
        found.append(json.loads(ADDRESS.sub("0x…", json.dumps(answers))))
        workers.close()
    assert len(found[0]) > 250
    assert found[0] == found[1]
