"""The executor without a process of its own: it answers as a worker does, once for each request."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch
from running import case_of, request_of, running_engine

from conformance.execution.fork_server import Interpreter
from conformance.execution.in_process import InProcess

PROGRAM = {key: value for key, value in request_of(case_of("- a = ones(1)\n- expect: {a: 1}\n")).items() if key != "n"}


@pytest.fixture
def executor() -> Iterator[InProcess]:
    with running_engine():  # it puts back what another engine changes in the process, too
        yield InProcess(Interpreter(sys.executable, devices=("nowhere",)))


def test_it_is_the_torch_of_this_process(executor: InProcess) -> None:
    build = executor.handshake()
    assert build.torch == torch.__version__
    assert build.present[0] == "cpu"
    assert build.is_unknown("nowhere")


def test_a_request_is_answered_once_without_what_concerns_processes_alone(executor: InProcess) -> None:
    executor.request(7, PROGRAM)
    assert executor.is_queued(7)
    assert executor.answer(7, 0.0) is None
    answer = executor.answer(7, 1.0)
    assert answer is not None
    assert answer.keys() == {"status", "seconds"}
    assert answer["status"] == "pass"
    assert not executor.is_queued(7)


def test_what_is_closed_has_forgotten_its_requests(executor: InProcess) -> None:
    executor.request(7, PROGRAM)
    executor.close()
    assert not executor.is_queued(7)
