"""How graphs get into the report, are cached between runs, and never change an outcome."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from loops import each
from sessions import PAIRS, Result, Session

from conformance.execution.graphs import MOST_REQUESTED, GraphRecorder
from conformance.execution.workers import MOST_LOST_TO_RECORDING
from conformance.language.schema import load_schema
from conformance.model.build import Build, Target
from conformance.model.case import ListedCase
from conformance.model.outcome import Outcome
from conformance.results.store import load_report

GOOD = """\
- a = tensor([2.0], requires_grad=True)
- b = a * 3
- b.backward()
- expect:
    a: {is_leaf: true, requires_grad: true, grad: [3.0]}
    b: {grad_fn: MulBackward0}
"""
WRONG = """\
- a = tensor([2.0], requires_grad=True)
- b = a * 3
- expect: {b: [7.0]}
- c = b.exp()
- expect: {c: {is_leaf: false}}
"""
ERROR = "- a = tensor([2.0], requires_grad=True)\n- b = a.exp().reshape(7)\n- expect: {a: {is_leaf: true}}\n"
PLAIN = "- a = ones(2)\n- expect: {a: 1}\n"
MARKED = "- a = tensor([{mark}], requires_grad=True)\n- b = a.exp()\n- expect: {{a: {{is_leaf: true}}}}\n"

# A module for the worker that counts how often a tensor with a certain value is made, and does something
# the second time: when the graph of the case that makes it is recorded.
PLANTED = """\
import os, signal, time
import torch
real = torch.tensor
made = []
def tensor(data, **kwargs):
    if isinstance(data, list) and data and data[0] == 13.0:
        made.append(data)
        if len(made) == 2:
            {action}
    return real(data, **kwargs)
torch.tensor = tensor
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def graphs(result: Result) -> dict[str, Any]:
    assert result.report is not None, result.output
    Draft202012Validator(load_schema("report.schema.json")).validate(result.report)
    found: dict[str, Any] = result.report.get("graphs", {})
    return found


def plant(session: Session, action: str) -> None:
    session.write("planted.py", PLANTED.format(action=action))


def count_asked(session: Session) -> None:
    """Have the worker write to the file `asked` for each graph that it records."""
    session.write(
        "counting.py",
        """\
        from pathlib import Path
        import conformance.worker.tracer as place
        real = place.sketch
        def sketch(run):
            with open("asked", "a") as file:
                file.write("x")
            return real(run)
        place.sketch = sketch
        """,
    )


def asked(session: Session) -> int:
    path = session.directory / "asked"
    count = len(path.read_text()) if path.exists() else 0
    path.unlink(missing_ok=True)
    return count


def test_the_report_has_the_graph_of_each_case_that_ran(session: Session) -> None:
    session.cases(good=GOOD, wrong=WRONG, error=ERROR, plain=PLAIN, other=GOOD)
    result = session.run("--deselect", "first.yaml::other[cpu-float32]")
    assert result.statuses == {"good": "pass", "wrong": "fail", "error": "error", "plain": "pass", "other": "not-run"}
    found = graphs(result)
    assert list(found) == ["good", "wrong", "error"]
    assert found["good"]["target"] == "cpu-float32"
    assert [tensor["name"] for tensor in found["good"]["tensors"]] == ["a", "b"]
    assert found["good"]["nodes"][0]["next"] == [{"tensor": 0}, None]
    assert [tensor["name"] for tensor in found["wrong"]["tensors"]] == ["a", "b"]  # it went no further
    (path,) = (session.directory / "reports").glob("*.json")
    assert json.loads(msgspec.json.encode(load_report(path).graphs)) == found


def test_a_case_that_is_covered_by_another_one_has_no_graph_of_its_own(session: Session) -> None:
    session.write("pairs.yaml", PAIRS)
    (first,) = session.run().statuses
    result = session.run("--pairs", "all", "--graphs", "all")
    assert len(result.statuses) == 2
    assert list(graphs(result)) == [first]


@pytest.mark.slow
def test_the_first_target_that_ran_gives_the_graph(session: Session) -> None:
    session.cases(good=GOOD, other=GOOD)
    both = ("--dtype", "float64", "--dtype", "float32")
    found = graphs(session.run(*both, "--deselect", "first.yaml::other[cpu-float64]"))
    assert {case: graph["target"] for case, graph in found.items()} == {"good": "cpu-float64", "other": "cpu-float32"}


@pytest.mark.slow
def test_a_second_run_asks_for_nothing_and_has_the_same_graphs(session: Session) -> None:
    session.cases(good=GOOD, wrong=WRONG, plain=PLAIN)
    count_asked(session)
    first = graphs(session.run("--device-module", "counting"))
    assert asked(session) == 3
    assert graphs(session.run("--device-module", "counting")) == first
    assert graphs(session.run("--device-module", "counting", "-k", "good")) == first  # what did not run keeps its own
    assert asked(session) == 0
    session.cases(good=GOOD, wrong=WRONG.replace("7.0", "6.0"), plain=PLAIN)
    again = graphs(session.run("--device-module", "counting"))
    assert asked(session) == 1
    assert [tensor["name"] for tensor in again["wrong"]["tensors"]] == ["a", "b", "c"]
    session.run("--device-module", "counting", "-p", "no:cacheprovider")
    assert asked(session) == 3


@pytest.mark.slow
def test_what_is_kept_and_broken_is_made_again(session: Session) -> None:
    spoiled: list[Callable[[str], str]] = [
        lambda _: "", lambda _: "{", lambda _: "[]", lambda text: text[:-9],
        lambda text: text.replace('"state":"', '"state":"0'),
    ]  # fmt: skip
    for number in range(len(spoiled)):
        session.cases(f"{number}.yaml", **{f"good_{number}": GOOD})
    count_asked(session)
    first = graphs(session.run("--device-module", "counting"))
    assert asked(session) == len(first) == len(spoiled)
    kept = list(session.directory.rglob("*.graphs.json"))
    for path, spoil in zip(kept, spoiled, strict=True):
        text = path.read_text()
        assert spoil(text) != text
        path.write_text(spoil(text))
    result = session.run("--device-module", "counting")
    assert result.status == 0, result.output
    assert graphs(result) == first
    assert asked(session) == len(spoiled)


@pytest.mark.slow
@pytest.mark.parametrize("action", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(3)"])
def test_recording_that_ends_the_worker_costs_only_its_graph(session: Session, action: str) -> None:
    plant(session, action)
    session.cases(before=GOOD, bad=MARKED.format(mark=13.0), after=GOOD, last=WRONG)
    result = session.run("--device-module", "planted")
    assert result.statuses == {"before": "pass", "bad": "pass", "after": "pass", "last": "fail"}
    assert list(graphs(result)) == ["before", "after", "last"]


@pytest.mark.slow
def test_recording_that_never_ends_costs_only_its_graph(session: Session) -> None:
    plant(session, "time.sleep(600)")
    session.cases(before=GOOD, bad=MARKED.format(mark=13.0), after=GOOD)
    result = session.run("--device-module", "planted", "--case-timeout", "2", "--graphs", "all")
    assert result.statuses == {"before": "pass", "bad": "pass", "after": "pass"}
    assert list(graphs(result)) == ["before", "after"]


@pytest.mark.slow
def test_no_more_are_made_when_many_workers_were_lost(session: Session) -> None:
    session.write(
        "deadly.py",
        """\
        import os
        import conformance.worker.tracer as place
        def sketch(run):
            with open("asked", "a") as file:
                file.write("x")
            os._exit(1)
        place.sketch = sketch
        """,
    )
    session.cases(**{f"case_{number}": GOOD for number in range(20)})
    result = session.run("--device-module", "deadly", "--graphs", "all")
    assert set(result.statuses.values()) == {"pass"}
    assert graphs(result) == {}
    assert asked(session) == MOST_LOST_TO_RECORDING


@pytest.mark.slow
def test_workers_of_xdist_find_the_same_graphs_and_keep_them(session: Session) -> None:
    cases = {f"case_{number}": GOOD.replace("3", str(number + 3)) for number in range(12)}
    session.cases(**cases, wrong=WRONG, plain=PLAIN)
    count_asked(session)
    alone = graphs(session.run("--device-module", "counting", "-p", "no:cacheprovider"))
    assert asked(session) == 14
    assert graphs(session.run("--device-module", "counting", "-n", "2")) == alone
    assert asked(session) == 14
    again = session.run("--device-module", "counting", "-n", "2")
    assert graphs(again) == alone
    assert list(graphs(again)) == list(alone)
    assert graphs(session.run("--device-module", "counting")) == alone
    assert asked(session) == 0


@pytest.mark.slow
def test_in_one_process_the_graphs_are_the_same(session: Session) -> None:
    session.cases(good=GOOD, wrong=WRONG, plain=PLAIN)
    apart = graphs(session.run("-p", "no:cacheprovider"))
    result = session.run("-p", "no:cacheprovider", "--isolation", "none")
    assert graphs(result) == apart
    assert result.statuses == {"good": "pass", "wrong": "fail", "plain": "pass"}


@pytest.mark.slow
def test_who_debugs_a_case_comes_by_once(session: Session) -> None:
    session.cases(good=GOOD)
    count_asked(session)
    result = session.run("--isolation", "none", "--pdb", "--device-module", "counting")
    assert result.statuses == {"good": "pass"}
    assert graphs(result) == {}
    assert asked(session) == 0


@pytest.mark.slow
def test_outcomes_are_the_same_with_recording_and_without(session: Session) -> None:
    count = "- |\n  class Count(Function):\n    times = 0\n- Count.times += 1\n- expect: {Count.times: 1}\n"
    hooks = "- a = ones(1, requires_grad=True)\n- 'a.register_hook(lambda g: log(1))'\n- a.exp().backward()\n"
    session.cases(good=GOOD, wrong=WRONG, error=ERROR, count=count, hooks=hooks + "- expect: {log: [1]}\n")
    count_asked(session)
    cold = session.run("--device-module", "counting")
    assert asked(session) == 5
    warm = session.run("--device-module", "counting")
    assert asked(session) == 0
    assert graphs(cold) == graphs(warm) != {}
    for result in (cold, warm):
        for outcome in result.outcomes.values():
            del outcome["seconds"]
    assert cold.outcomes == warm.outcomes
    assert cold.statuses == {"good": "pass", "wrong": "fail", "error": "error", "count": "pass", "hooks": "pass"}


@pytest.mark.slow
def test_a_run_that_stops_early_has_what_was_answered(session: Session) -> None:
    session.cases(good=GOOD, wrong=WRONG, other=GOOD)
    assert list(graphs(session.run("-x"))) == ["good", "wrong"]


@pytest.mark.slow
def test_a_run_that_is_interrupted_does_not_wait_for_the_rest(session: Session) -> None:
    plant(session, "time.sleep(600)")
    session.cases(bad=MARKED.format(mark=13.0), endless="- a = ones(1)\n- expect: {a: 1}\n")
    session.write(
        "conftest.py",
        """\
        pytest_plugins = ["conformance.pytest_plugin.plugin"]
        def pytest_runtest_logreport(report):
            if report.when == "call":
                print("SEEN", flush=True)
        """,
    )
    process = subprocess.Popen(
        session.command("-s", "--device-module", "planted"), cwd=session.directory, env=session.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if "SEEN" in line:
            break
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=300)  # the graph would take twice as long
    report = session.report()
    assert report is not None
    assert "footer" in report


class Answering:
    """A worker that answers what it is told to."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.given = answer
        self.requests: list[tuple[int, dict[str, Any]]] = []

    def request(self, number: int, program: dict[str, Any]) -> None:
        self.requests.append((number, program))

    def answer(self, number: int, seconds: float) -> dict[str, Any] | None:
        assert number < 0
        return self.given if seconds else None


def recorder_with(answer: dict[str, Any]) -> tuple[GraphRecorder, Answering]:
    build = Build(
        torch="2.13.0", git="0" * 40, debug=False, cuda=None, hip=None, config="", path="/nowhere", python="3.11.0",
        implementation="CPython", executable=sys.executable, system="linux-x86_64", platform="", devices=(),
    )  # fmt: skip
    worker = Answering(answer)
    return GraphRecorder(build, None, worker), worker


STEPS = [{"number": 0, "line": 7, "do": "a = 1"}, {"number": 2, "line": 8, "do": "b = 1"}]
CASE = ListedCase(
    file="f.yaml", line=1, place=0, topic="T", id="c", level="observed", rules=("a.b",), torch=None, dtypes=(),
    devices=(), needs=(), digest="d", is_covered=False,
)  # fmt: skip


def item_of(case: str = "c") -> Any:
    return SimpleNamespace(
        case=msgspec.structs.replace(CASE, id=case), target=Target(device="cpu", dtype="float32"),
        encoded_steps=json.dumps(STEPS),
    )  # fmt: skip


GRAPH = {"target": "cpu-float32", "tensors": [], "nodes": [{"name": "AddBackward0"}]}
EMPTY = {"target": "cpu-float32", "tensors": [{"name": "a", "shape": [2], "is_leaf": True}], "nodes": []}


@each(
    "answer",
    [
        {"status": "crash", "reason": "gone"},
        {"status": "pass", "graph": {"target": 3}},
        {"status": "pass", "graph": {**GRAPH, "more": 1}},
        {"status": "pass", "graph": {**GRAPH, "nodes": [{"name": None, "next": [], "saved": []}]}},
        {"status": "pass", "graph": None},
        {"status": "pass", "graph": EMPTY},
    ],
)
def test_what_is_no_graph_is_dropped(answer: dict[str, Any]) -> None:
    recorder, _ = recorder_with(answer)
    recorder.add(item_of(), Outcome(status="pass"))
    recorder.finish(1.0)
    assert recorder.graphs([("c", "cpu-float32")]) == {}


def test_a_case_is_asked_for_once_and_up_to_the_step_that_failed() -> None:
    recorder, worker = recorder_with({"status": "pass", "graph": GRAPH})
    recorder.add(item_of(), Outcome(status="unsupported"))
    recorder.add(item_of(), Outcome(status="crash"))
    assert worker.requests == []
    recorder.add(item_of(), Outcome(status="fail", step=0))
    recorder.add(item_of(), Outcome(status="pass"))
    ((number, program),) = worker.requests
    assert number < 0
    assert program["sketch"]
    assert json.loads(program["encoded_steps"]) == STEPS[:1]
    recorder.finish(1.0)
    assert json.loads(msgspec.json.encode(dict(recorder.graphs([("c", "cpu-float32")])))) == {"c": GRAPH}


def test_graphs_that_wait_for_spare_time_are_requested_a_few_at_a_time() -> None:
    recorder, worker = recorder_with({"status": "pass", "graph": GRAPH})
    cases = [f"c{number}" for number in range(3 * MOST_REQUESTED)]
    for case in cases:
        recorder.add(item_of(case), Outcome(status="pass"))
    assert len(worker.requests) == MOST_REQUESTED
    recorder.finish(1.0)
    assert list(recorder.graphs((case, "cpu-float32") for case in cases)) == cases
