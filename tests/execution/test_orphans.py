"""What a worker starts ends with it, even a daemon; what isn't its own, and what is still at work, lives on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sessions import Session

from conformance.execution.orphans import MARK, ancestors, end_orphans

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")

SLEEPER = "import os, sys, time\nif sys.argv[1:]:\n    os.fork() and os._exit(0)\n    os.setsid()\ntime.sleep(600)\n"


def sleeping(mark: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", SLEEPER], env={MARK: mark}, start_new_session=True)


def test_a_process_is_ended_by_its_mark_unless_it_descends_from_the_one_at_work() -> None:
    marked, other = sleeping("a" * 32), sleeping("b" * 32)
    try:
        while MARK.encode() not in Path(f"/proc/{marked.pid}/environ").read_bytes():
            time.sleep(0.01)
        end_orphans("a" * 32, os.getpid())
        assert marked.poll() is None
        end_orphans("a" * 32, other.pid)
        assert marked.wait(10) == -9
        assert other.poll() is None
    finally:
        marked.kill()
        other.kill()
        marked.wait()
        other.wait()


def test_a_process_has_itself_and_its_parents_as_ancestors() -> None:
    assert {os.getpid(), os.getppid()} <= ancestors(os.getpid())
    assert ancestors(2**30) == {2**30}


# Planted as a back-end: the functions start processes in sessions of their own, some without a parent.
STARTING = """\
import os, subprocess, sys, time, torch

COMMAND = [sys.executable, "-S", "-c", SLEEPER]


def start(*arguments):
    child = subprocess.Popen([*COMMAND, *arguments], start_new_session=True, stdin=subprocess.DEVNULL)
    with open("started", "a") as file:
        file.write(f"{child.pid}\\n")
    if arguments:
        child.wait()


def leaves(x):
    start()
    start("daemon")
    return x


def dies(x):
    leaves(x)
    os._exit(7)


def hangs(x):
    leaves(x)
    time.sleep(600)


torch.sinh, torch.cosh, torch.tanh = leaves, dies, hangs
"""


@pytest.mark.slow
def test_nothing_that_a_worker_has_started_outlives_the_run(tmp_path: Path) -> None:
    session = Session(tmp_path, real=True)
    session.write("starting.py", f"SLEEPER = {SLEEPER!r}\n{STARTING}")
    steps = "- a = tensor([2.0])\n- b = torch.{}(a)\n- expect: {{b: [2.0]}}\n"
    session.cases(**{name: steps.format(name) for name in ("sinh", "cosh", "tanh")})
    result = session.run("--device-module", "starting", "--case-timeout", "3", "--workers", "1")
    assert result.statuses == {"sinh": "pass", "cosh": "crash", "tanh": "timeout"}, result.output
    assert len((tmp_path / "started").read_text().split()) >= 6  # graphs are recorded by running a case again
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert SLEEPER.encode() not in place.read_bytes()
        except OSError:
            continue
