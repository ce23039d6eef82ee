"""Workers that crash, hang, exit, print junk or never start: each is an outcome, and nothing else is lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sessions import Session

from conformance.execution.fork_server import Interpreter, Refused
from conformance.execution.workers import Workers

# Planted into torch before the suite looks at it, as a broken build would have them.
BROKEN = """\
import ctypes
import os
import sys

import torch

IDENTITY = torch.clone


def exits(x):
    os._exit(7)


def leaves(x):
    sys.exit(3)


def crashes(x):
    ctypes.string_at(0)


def aborts(x):
    os.abort()


def prints(x):
    print('{"n": 0, "status": "pass"}')
    sys.stdout.flush()
    os.write(1, b'{"n": 1, "status": "pass"}\\n\\xff\\x00 junk without an end')
    sys.stderr.write("to stderr\\n")
    return IDENTITY(x)


def floods(x):
    for _ in range(64):
        os.write(2, b"x" * 65536)
    return IDENTITY(x)


def closes(x):
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    return IDENTITY(x)


def corrupts(x):
    for descriptor in range(3, 40):
        try:
            os.write(descriptor, b"this is not JSON\\n")
        except OSError:
            pass
    return IDENTITY(x)


torch.sinh, torch.cosh, torch.tanh, torch.asinh = exits, crashes, leaves, aborts
torch.sin, torch.cos, torch.tan, torch.acosh = prints, floods, closes, corrupts
"""
GOOD = "- a = tensor([2.0], requires_grad=True)\n- (a * 3).backward()\n- expect: {a: {grad: [3.0]}}\n"


def calling(name: str) -> str:
    return f"- a = tensor([2.0])\n- b = torch.{name}(a)\n- expect: {{b: [2.0]}}\n"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    session = Session(tmp_path, real=True)
    session.write("broken.py", BROKEN)
    return session


def test_a_case_that_ends_its_worker_is_named_and_every_other_outcome_is_there(session: Session) -> None:
    session.cases(first=GOOD, exits=calling("sinh"), second=GOOD, crashes=calling("cosh"))
    result = session.run("--device-module", "broken")
    assert result.status == 1
    assert result.statuses == {"first": "pass", "exits": "crash", "second": "pass", "crashes": "crash"}
    assert result.outcomes["exits"]["reason"] == "the worker exited with status 7"
    assert result.outcomes["crashes"]["reason"] == "the worker was ended by SIGSEGV"
    assert "the worker died: first.yaml:" in result.output
    assert "run it alone: pytest --device-module broken 'first.yaml::exits[cpu-float32]'" in result.output


@pytest.mark.slow
def test_workers_that_end_one_after_the_other_lose_nothing(session: Session) -> None:
    session.cases(leaves=calling("tanh"), aborts=calling("asinh"), third=GOOD)
    result = session.run("--device-module", "broken")
    assert result.statuses == {"leaves": "crash", "aborts": "crash", "third": "pass"}
    assert result.outcomes["leaves"]["reason"] == "the worker exited with status 3"
    assert result.outcomes["aborts"]["reason"] == "the worker was ended by SIGABRT"


@pytest.mark.slow
def test_a_case_that_never_ends_is_a_timeout_and_the_rest_runs(session: Session) -> None:
    endless = "- |\n  for number in iter(int, 1): pass\n- expect: {number: 0}\n"  # in one line, so that it stays in it
    session.cases(first=GOOD, endless=endless, second=GOOD)
    result = session.run("--case-timeout", "1")
    assert result.statuses == {"first": "pass", "endless": "timeout", "second": "pass"}
    found = result.outcomes["endless"]
    assert found["step"] == 0
    assert found["reason"].startswith(f"no answer within 1 s; the worker was killed in line {found['line']} after 1.")
    assert f", line {found['line']} in <module>" in found["stderr"]  # the stack of Python
    assert "the case did not end in time" in result.output


def test_a_case_for_which_code_is_generated_has_four_times_as_long(session: Session) -> None:
    endless = "- |\n  for number in iter(int, 1): named = 'inductor'\n- expect: {number: 0}\n"
    session.cases(endless=endless)
    result = session.run("--case-timeout", "0.5")
    assert result.statuses == {"endless": "timeout"}
    assert result.outcomes["endless"]["reason"].startswith("no answer within 2 s; ")


@pytest.mark.slow
def test_what_a_case_prints_disturbs_nothing(session: Session) -> None:
    session.cases(
        first=GOOD, prints=calling("sin"), floods=calling("cos"), second=GOOD, closes=calling("tan"), third=GOOD
    )
    result = session.run("--device-module", "broken")
    assert set(result.statuses.values()) == {"pass"}, result.output


@pytest.mark.slow
def test_a_case_that_prints_without_end_fills_no_disk(session: Session) -> None:
    flood = "- |\n  line = 'x' * 2 ** 26\n  for number in iter(int, 1):\n      print(line)\n- expect: {number: 0}\n"
    session.cases(first=GOOD, endless=flood, second=GOOD)
    result = session.run()
    assert result.statuses == {"first": "pass", "endless": "error", "second": "pass"}
    assert "File too large" in result.outcomes["endless"]["failures"][0]["observed"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere what is limited is not what torch allocates")
def test_memory_that_a_worker_may_not_have_is_an_error_of_its_case(session: Session) -> None:
    large = "- a = torch.zeros(2 ** 28)\n- expect: {a.sum(): 0.0}\n"
    session.cases(first=GOOD, large=large, second=GOOD)
    result = session.run("--worker-memory", "0.9")
    assert result.statuses == {"first": "pass", "large": "error", "second": "pass"}
    assert "allocate" in result.outcomes["large"]["failures"][0]["observed"]


KEEPS = """\
import torch

KEPT = []


def keeps(x):
    KEPT.append(bytearray(b"1") * (400 * 2**20))
    return torch.clone(x)


torch.sinh, torch.cosh = keeps, lambda x: x * len(KEPT)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the memory of a process is not known")
@pytest.mark.parametrize(("times", "left"), [(2, 2), (3, 0)])
def test_a_worker_in_which_torch_keeps_a_gibibyte_makes_way_for_another(
    session: Session, times: int, left: int
) -> None:
    session.write("keeps.py", KEEPS)
    cases = {f"keeps_{number}": calling("sinh") for number in range(times)}
    session.cases(**cases, after=f"- a = torch.cosh(tensor([1.0]))\n- expect: {{a: [{left}.0]}}\n")
    result = session.run("--device-module", "keeps")
    assert set(result.statuses.values()) == {"pass"}, result.output
    assert not any("reason" in outcome for outcome in result.outcomes.values())


@pytest.mark.slow
def test_the_last_words_of_a_dead_worker_are_kept(session: Session) -> None:
    session.cases(talks="- a = tensor([2.0])\n- print('farewell')\n- torch.sinh(a)\n- expect: {a: [2.0]}\n")
    result = session.run("--device-module", "broken")
    assert result.outcomes["talks"]["stderr"].endswith("farewell")
    assert "the end of the worker's output:\n" in result.output
    assert "\n  farewell\n" in result.output


@pytest.mark.slow
def test_junk_in_the_conversation_costs_the_case_at_fault_alone(session: Session) -> None:
    session.cases(first=GOOD, corrupts=calling("acosh"), second=GOOD)
    result = session.run("--device-module", "broken")
    assert result.statuses == {"first": "pass", "corrupts": "crash", "second": "pass"}, result.output
    assert "sent a line that is not a message" in result.outcomes["corrupts"]["reason"]


@pytest.mark.slow
def test_a_crash_under_xdist_is_an_outcome_too(session: Session) -> None:
    session.cases(first=GOOD, exits=calling("sinh"), second=GOOD, third=GOOD)
    result = session.run("-n", "2", "--device-module", "broken")
    assert result.statuses == {"first": "pass", "exits": "crash", "second": "pass", "third": "pass"}


@pytest.mark.slow
def test_a_worker_that_can_not_be_replaced_makes_a_crash_of_what_waits(session: Session) -> None:
    once = (
        "import pathlib\nmark = pathlib.Path('started')\nassert not mark.exists(), 'only once'\nmark.write_text('')\n"
    )
    session.write("broken.py", once + BROKEN)
    session.cases(first=GOOD, exits=calling("sinh"), second=GOOD)
    result = session.run("--device-module", "broken")
    assert result.statuses == {"first": "pass", "exits": "crash", "second": "crash"}
    assert "no new worker could be started" in result.outcomes["second"]["reason"]
    assert "only once" in result.outcomes["second"]["reason"]


def test_an_interpreter_that_says_nothing_is_refused() -> None:
    workers = Workers(Interpreter("true"))
    with pytest.raises(Refused, match=r"the worker \(true\) exited with status 0 at once"):
        workers.handshake()


def test_answers_come_in_order_and_by_number() -> None:
    workers = Workers(Interpreter(sys.executable))
    try:
        assert workers.handshake().present[0] == "cpu"
        programs = [
            {
                "device": "cpu",
                "dtype": "float32",
                "file": "t.yaml",
                "steps": [
                    {"number": 0, "line": 1, "do": f"a = tensor({number}.0)"},
                    expecting(number % 3 == 0, number),
                ],
            }
            for number in range(300)
        ]
        for number, program in enumerate(programs):
            workers.request(number, program)
        statuses = [workers.outcome(number)["status"] for number in reversed(range(300))]
        assert statuses == ["pass" if number % 3 == 0 else "fail" for number in reversed(range(300))]
    finally:
        workers.close()


def expecting(right: bool, number: int) -> dict[str, object]:
    value = float(number) if right else number + 0.5
    return {"number": 1, "line": 2, "expect": [{"line": 2, "subject": "a", "checks": [["value", value, 2]]}]}


@pytest.mark.slow
def test_what_lies_beside_the_package_can_not_be_imported_by_the_worker(session: Session) -> None:
    session.write("probe.py", "import sys\nassert 'yaml' not in sys.modules and 'pytest' not in sys.modules\n")
    session.cases(first=GOOD)
    result = session.run("--device-module", "probe")
    assert result.statuses == {"first": "pass"}
