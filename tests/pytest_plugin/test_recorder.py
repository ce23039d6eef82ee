"""A run whose report is lost says so and isn't green, and one that was interrupted can be resumed."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from interruptions import alike, await_end_of_session, hear_interrupts, interruptions
from sessions import Session

GOOD = "- a = tensor([2.0])\n- b = a + 1\n- expect: {b: [3.0]}\n"
WRONG = "- a = tensor([2.0])\n- expect: {a: [3.0]}\n"
# Of the calls that write to a file, the one with the number in the environment fails, and perhaps all after it.
FULL = """\
import errno, os, stat

calls = 0


def failing(name):
    real = getattr(os, name)

    def call(*arguments, **options):
        global calls
        if name == "write" and not stat.S_ISREG(os.fstat(arguments[0]).st_mode):
            return real(*arguments, **options)  # to a worker
        calls += 1
        failing = int(os.environ["FAILING"])
        if calls == failing or (calls > failing and os.environ["FOR_GOOD"]):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **options)

    return call


def pytest_collection_finish():
    for name in ("write", "pwrite", "fsync", "link", "replace", "unlink", "ftruncate"):
        setattr(os, name, failing(name))


def pytest_unconfigure():
    with open("calls", "w") as file:
        file.write(str(calls))
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


@pytest.mark.slow
def test_a_run_without_a_report_is_not_green_and_tells_its_outcomes(session: Session) -> None:
    session.cases(first=GOOD, second=GOOD)
    for place in ("rules.yaml", "rules.yaml/below", "x" * 300):
        result = session.run("--report", place)
        assert result.status == 1, result.output
        assert "2 passed" in result.output
        assert "Tests  2 pass" in result.output
        assert "no report: " in result.output
        told = result.output.index("no report so far: ")
        assert told < result.output.index("[100%]")


@pytest.mark.slow
def test_a_run_where_no_cache_can_be_made_is_like_one_without(session: Session) -> None:
    session.cases(first=GOOD, second=GOOD)
    result = session.run("-o", "cache_dir=rules.yaml/below", "-W", "ignore::pytest.PytestCacheWarning")
    assert result.status == 0, result.output
    assert result.statuses == {"first": "pass", "second": "pass"}


TWICE = """
def pytest_runtest_teardown(item):
    if "first" in item.name:
        raise KeyboardInterrupt

def pytest_keyboard_interrupt():
    raise KeyboardInterrupt
"""


@pytest.mark.slow
def test_a_run_that_is_interrupted_twice_is_not_over_and_can_be_resumed(session: Session) -> None:
    session.cases(first=GOOD, second=GOOD)
    session.write("conftest.py", TWICE)
    report = session.run().report
    assert report is not None
    assert report["footer"]["exit_status"] == pytest.ExitCode.INTERRUPTED
    session.write("conftest.py", "")
    assert "resumed: the run of" in session.run("--resume").output


@pytest.mark.slow
def test_a_part_whose_report_has_no_place_tells_its_outcomes(session: Session) -> None:
    """Whether a page is there can't be seen in such a place."""
    session.cases(first=GOOD, second=GOOD)
    result = session.run("--report", "x" * 300, "-k", "second")
    assert result.status == 1, result.output
    assert "Tests  1 pass" in result.output
    assert "no report: " in result.output


@pytest.mark.slow
@pytest.mark.parametrize("for_good", ["", "1"], ids=["once", "for good"])
def test_whichever_write_of_a_run_fails_its_report_is_whole_or_it_is_not_green_and_an_earlier_one_stays(
    session: Session, monkeypatch: pytest.MonkeyPatch, for_good: str
) -> None:
    session.cases(first=GOOD, second=GOOD)
    assert session.run("--page", "never").status == 0
    earlier = alike(session.report())
    (path,) = (session.directory / "reports").glob("*.json")
    content = path.read_bytes()
    session.write("conftest.py", FULL)
    monkeypatch.setenv("FOR_GOOD", for_good)
    lost = 0
    for number in itertools.count(1):
        monkeypatch.setenv("FAILING", str(number))
        for each in path.parent.iterdir():
            each.unlink()
        path.write_bytes(content)
        result = session.run("--page", "never")
        assert "Tests  2 pass" in result.output
        if result.status == 0:
            assert path.read_bytes() != content  # it has other times
            assert alike(json.loads(path.read_text(encoding="utf-8"))) == earlier
        else:
            lost += 1
            assert path.read_bytes() == content
            assert result.status == 1, result.output
            assert "no report: [Errno 28]" in result.output
        if int((session.directory / "calls").read_text()) < number:
            break
    assert result.status == 0
    assert lost >= 2  # the text and the name of the whole report at least


BLOCKING = """\
import pathlib, time, torch

def sinh(x):
    while not pathlib.Path("go").exists():
        time.sleep(0.05)
    return x

torch.Tensor.sinh = sinh
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "options"), [(signal.SIGKILL, ()), (signal.SIGTERM, ()), (signal.SIGINT, ()), (signal.SIGKILL, ("-n", "2"))]
)
def test_a_run_that_is_resumed_gives_the_report_of_one_that_was_not_interrupted(
    tmp_path: Path, way: signal.Signals, options: tuple[str, ...]
) -> None:
    session = Session(tmp_path, real=True)
    session.write("blocking.py", BLOCKING)
    steps = "- y = tensor(1.0).sinh()\n- expect: {y: 1}\n"
    kinds = (GOOD, WRONG, steps)
    session.cases(**{f"case_{number:02}": kinds[number // 8] for number in range(24)})
    call = ("--device-module", "blocking", "--graphs", "all", "--page", "never", *options)
    interrupted = subprocess.Popen(
        session.command("-q", *call), cwd=tmp_path, env=session.environment(), stdout=subprocess.DEVNULL,
        start_new_session=True, preexec_fn=hear_interrupts,  # noqa: PLW1509 - there are no threads here
    )  # fmt: skip
    while len((session.report() or {"outcomes": ()})["outcomes"]) < 10:
        assert interrupted.poll() is None
        time.sleep(0.1)
    interrupted.send_signal(way)
    interrupted.wait(60)
    if options:
        await_end_of_session(interrupted.pid)
    (tmp_path / "go").touch()
    again = session.run("-q", "--resume", *call)
    assert again.status == 1, again.output
    assert "resumed: the run of " in again.output
    assert again.report is not None
    assert "8 failed, 16 passed" in again.output
    (tmp_path / "reports").rename(tmp_path / "resumed")
    whole = session.run("-q", *call)
    assert alike(again.report) == alike(whole.report)
    assert "was not interrupted" in session.run("-q", "--resume", *call).output


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "kills"), [(0, 2), (2, 1)])
def test_runs_that_are_interrupted_at_any_moment_and_resumed_give_the_report_of_a_whole_one(
    tmp_path: Path, workers: int, kills: int
) -> None:
    """`python tests/interruptions.py` does so fifty times."""
    made, wrong = interruptions(tmp_path, kills, seed=workers, workers=workers, count=24)
    assert (made >= kills, wrong) == (True, [])
