"""Red cases, which are run once more, each alone in a worker of its own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from loops import each
from sessions import Session

from conformance.execution import scheduler as scheduler_module
from conformance.execution.scheduler import MOST_RETRIED_TIMEOUTS, Scheduler, Settings
from conformance.execution.workers import Workers
from conformance.model.outcome import Outcome
from conformance.model.status import RED, Status
from conformance.results.retry import retried

# A build of which sinh() goes wrong from the third call on that a process makes, as after a cache has grown too long.
TIRED = """\
import os, torch
own, calls = torch.sinh, []
def sinh(x):
    calls.append(x)
    if len(calls) > 2:
        {wrong}
    return own(x)
torch.sinh = sinh
"""
USES = "- b = torch.sinh(tensor([0.0]))\n- expect: {b: [0.0]}\n"
WRONG = "- b = torch.cosh(tensor([0.0]))\n- expect: {b: [2.0]}\n"
HANGS = "- |\n  for number in iter(int, 1):\n      pass\n- expect: {number: 0}\n"
CASES = {"one": USES, "two": USES, "three": USES, "wrong": WRONG, "four": USES}


def run_of(tmp_path: Path, wrong: str, *options: str) -> dict[str, Any]:
    session = Session(tmp_path)
    session.write("tired.py", TIRED.format(wrong=wrong))
    session.cases(**CASES)
    result = session.run("--device-module", "tired", "--workers", "1", *options)
    assert result.status == 1, result.output
    return {"output": result.output, **result.outcomes}


def test_what_fails_only_after_other_cases_is_flaky_and_both_outcomes_are_kept(tmp_path: Path) -> None:
    found = run_of(tmp_path, "return own(x) + 1")
    assert {case: found[case]["status"] for case in CASES} == {
        "one": "pass", "two": "pass", "three": "flaky", "wrong": "fail", "four": "flaky",
    }  # fmt: skip
    three, wrong = found["three"], found["wrong"]
    assert three["failures"][0]["observed"] == "[1.0]"
    assert three["retry"]["status"] == "fail"
    assert three["retry"]["alone"]["status"] == "pass"
    assert (wrong["retry"]["status"], wrong["retry"]["alone"]["status"]) == ("fail", "fail")
    assert wrong["retry"]["alone"]["failures"] == wrong["failures"]
    assert "red cases were run once more, each alone in a fresh worker: 1 red again, 2 flaky" in found["output"]
    assert "run once more, alone in a fresh worker: pass" in found["output"]
    assert "run once more, alone in a fresh worker: the same" in found["output"]
    assert "flaky: fail among other cases" in found["output"]  # what follows in the short summary is cut off


def test_a_crash_that_earlier_cases_have_caused_is_told_apart(tmp_path: Path) -> None:
    found = run_of(tmp_path, "os.abort()")
    assert {case: found[case]["status"] for case in CASES} == {
        "one": "pass", "two": "pass", "three": "flaky", "wrong": "fail", "four": "pass",
    }  # fmt: skip
    assert found["three"]["signal"] == "SIGABRT"
    assert found["three"]["retry"]["status"] == "crash"


def test_pytest_xdist_has_red_cases_run_alone_too(tmp_path: Path) -> None:
    found = run_of(tmp_path, "return own(x) + 1", "-n", "1")
    assert found["four"]["retry"]["alone"]["status"] == "pass"
    assert "1 red again, 2 flaky" in found["output"]


def test_without_workers_nothing_is_run_alone(tmp_path: Path) -> None:
    found = run_of(tmp_path, "return own(x) + 1", "--isolation", "none")
    assert found["three"]["status"] == "fail"
    assert "retry" not in found["three"]
    assert "once more" not in found["output"]


@pytest.mark.slow
def test_of_cases_that_hang_only_some_are_run_again(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.cases(**{f"hang_{number}": HANGS for number in range(MOST_RETRIED_TIMEOUTS + 1)}, wrong=WRONG)
    result = session.run("--case-timeout", "1", "--workers", "1")
    assert [each["status"] for each in result.outcomes.values()] == ["timeout"] * (MOST_RETRIED_TIMEOUTS + 1) + ["fail"]
    again = [each["retry"]["alone"]["status"] for each in result.outcomes.values() if "retry" in each]
    assert again == ["timeout"] * MOST_RETRIED_TIMEOUTS + ["fail"]
    assert f"{MOST_RETRIED_TIMEOUTS + 1} red again, 1 not run again" in result.output


class Alone(Workers):
    """Answers at once."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def run_alone(self, number: int, program: dict[str, Any]) -> dict[str, Any] | None:  # noqa: ARG002 - as Workers
        self.numbers.append(number)
        return {"status": "pass"}


def test_after_a_while_no_more_are_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Scheduler(Settings(python="python"))
    made.executor = alone = Alone()
    monkeypatch.setattr(scheduler_module, "encoded_program", lambda *_: {})
    clock = iter(range(0, 10_000, 30))
    monkeypatch.setattr(scheduler_module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    items: list[Any] = [SimpleNamespace(number=number, case=None, target=None, encoded_steps="") for number in range(9)]
    tried = [made.run_alone(item, "fail") is not None for item in items]
    assert tried == [True] * 4 + [False] * 5  # 30 s each of 120 s
    assert alone.numbers == [0, 1, 2, 3]
    made.begun = -3000.0
    assert made.run_alone(items[5], "fail") is not None  # they have taken a small part of the run


STEADY = {
    ("fail", "fail"), ("fail", "error"), ("fail", "crash"), ("crash", "timeout"), ("timeout", "fail"),
    ("error", "crash"), ("fixed", "fixed"),
}  # fmt: skip
UNSTEADY = {
    ("fail", "pass"), ("fail", "known"), ("crash", "unsupported"), ("fixed", "known"), ("fixed", "fail"),
    ("fail", "fixed"),
}  # fmt: skip


@each("alone", ["internal-error", "not-run"])
def test_what_could_not_be_run_alone_says_nothing(alone: Status) -> None:
    assert retried(Outcome(status="fail"), Outcome(status=alone)) == Outcome(status="fail")


@each("first, alone", sorted(STEADY | UNSTEADY))
def test_an_outcome_stays_as_it_is_where_the_one_alone_says_the_same_of_torch(first: Status, alone: Status) -> None:
    before = Outcome(case="a", target="cpu-float32", status=first, reason="Why.", seconds=1.0)
    found = retried(before, Outcome(case="a", target="cpu-float32", status=alone, reason="Other."))
    assert found.status == (first if (first, alone) in STEADY else "flaky")
    assert (found.case, found.reason, found.seconds) == ("a", "Why.", 1.0)
    assert found.retry is not None
    assert found.at_first == first
    assert (found.retry.alone.case, found.retry.alone.reason) == ("", "Other.")
    assert found.status in RED
