"""A run whose report is lost says so and isn't green, and one that was interrupted can be resumed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from sessions import Session

GOOD = "- a = tensor([2.0])\n- b = a + 1\n- expect: {b: [3.0]}\n"
WRONG = "- a = tensor([2.0])\n- expect: {a: [3.0]}\n"
# Of the calls that write to a file of a report, the one with the number in the environment fails, and all after it.
FULL = """\
import errno, os

calls = 0


def failing(name):
    real = getattr(os, name)

    def call(*arguments, **options):
        global calls
        calls += 1
        if calls >= int(os.environ["FAILS_FROM"]):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **options)

    return call


def pytest_collection_finish():
    for name in ("pwrite", "fsync", "link", "replace"):
        setattr(os, name, failing(name))
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


@pytest.mark.slow
def test_a_run_without_a_report_is_not_green_and_tells_its_outcomes(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.cases(first=GOOD, second=GOOD)
    for place in ("rules.yaml", "rules.yaml/below", "x" * 300):
        result = session.run("--report", place)
        assert result.status == 1, result.output
        assert "2 passed" in result.output
        assert "Tests  2 pass" in result.output
        assert "no report: " in result.output
    session.write("conftest.py", FULL)
    for number in range(1, 20):
        monkeypatch.setenv("FAILS_FROM", str(number))
        result = session.run()
        assert "Tests  2 pass" in result.output
        if result.status == 0:
            break
        assert result.status == 1, result.output
        assert "no report: [Errno 28]" in result.output
    assert number > 3  # outcomes, footer and name at least
    assert result.report is not None
    assert result.report["footer"]["exit_status"] == 0


def alike(report: dict[str, Any] | None) -> Any:
    """Return a report without times."""
    assert report is not None
    text = json.dumps(report)
    return json.loads(text, object_hook=lambda entry: {k: v for k, v in entry.items() if k not in TIMES})


TIMES = ("seconds", "started", "finished")
BLOCKING = """\
import pathlib, time, torch

def sinh(x):
    while not pathlib.Path("go").exists():
        time.sleep(0.05)
    return x

torch.Tensor.sinh = sinh
"""


def hear_interrupts() -> None:
    """Undo what a shell does to a job in the background, which would make a process deaf to SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


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


def await_end_of_session(leader: int) -> None:
    """Wait until no process of a session is left, though nobody ends those of pytest-xdist."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.getsid(int(place.name)) == leader and b"python" in (place / "cmdline").read_bytes():
                    found.append(place.name)
        if not found:
            return
        time.sleep(0.1)
    raise AssertionError(f"these live on: {found}")
