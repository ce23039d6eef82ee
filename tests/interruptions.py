"""Interrupts runs at moments drawn by chance, resumes them, and compares their reports with that of a whole run.

    python tests/interruptions.py --kills 50                   alone
    python tests/interruptions.py --kills 50 --workers 2       under pytest-xdist

A run is interrupted up to five times, by SIGKILL, SIGTERM and SIGINT in turn, before it may come to its end. The exit
status is 1 where a report differs from that of the whole run by anything but times.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import contextlib
import difflib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessions import Session

WAYS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TIMES = ("seconds", "started", "finished", "commit")  # the last that of the checkout, in which somebody may be at work
LATEST = 0.05  # seconds after an outcome
STEPS = {
    "pass": "- a = tensor([2.0])\n- 'for number in range(200000): pass'\n- expect: {a: [2.0]}\n",
    "fail": "- a = tensor([2.0])\n- 'for number in range(200000): pass'\n- expect: {a: [3.0]}\n",
    "error": "- a = tensor([2.0])\n- a.view(3)\n- expect: {a: [3.0]}\n",
}


def alike(report: dict[str, Any] | None) -> Any:
    """Return a report without times, and without the commit of the suite."""
    assert report is not None
    text = json.dumps(report)
    return json.loads(text, object_hook=lambda entry: {k: v for k, v in entry.items() if k not in TIMES})


def hear_interrupts() -> None:
    """Undo what a shell does to a job in the background, which would make a process deaf to SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


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


def outcomes_in(directory: Path) -> int:
    """Return how many outcomes the runs of a directory have written so far."""
    with contextlib.suppress(OSError):
        return sum(path.read_bytes().count(b'"status"') for path in (directory / "reports").glob("*.json"))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Runs of one session with the same arguments, what the report of a whole one is, and what is drawn by chance."""

    session: Session
    call: tuple[str, ...]
    whole: Any
    drawn: random.Random
    ways: Iterator[signal.Signals] = field(default_factory=lambda: itertools.cycle(WAYS))

    def interrupted(self, *more: str) -> bool:
        """Run until some more outcomes are there, and send a signal; return False if the run ends before."""
        session, begun = self.session, outcomes_in(self.session.directory)
        left = max(len(self.whole["outcomes"]) - begun, 0)
        wanted = begun + self.drawn.randint(0, left // self.drawn.choice((1, 4)))
        run = subprocess.Popen(
            session.command(*self.call, *more), cwd=session.directory, env=session.environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=hear_interrupts,  # noqa: PLW1509 - there are no threads here
        )  # fmt: skip
        while outcomes_in(session.directory) < wanted and run.poll() is None:
            time.sleep(0.01)
        time.sleep(self.drawn.uniform(0, LATEST))
        is_running = run.poll() is None
        run.send_signal(next(self.ways))
        run.wait(60)
        await_end_of_session(run.pid)
        return is_running

    def series(self, most: int) -> tuple[int, list[str]]:
        """Interrupt and resume one run; return how often that was, and how its report differs from that of a whole."""
        shutil.rmtree(self.session.directory / "reports", ignore_errors=True)
        kills = sum(self.interrupted(*["--resume"] * (number > 0)) for number in range(most))
        report = alike(self.session.run("-q", "--resume", *self.call).report)
        whole, resumed = (json.dumps(each, indent=1).splitlines() for each in (self.whole, report))
        return kills, list(difflib.unified_diff(whole, resumed, "whole", "resumed", lineterm=""))


def prepared(directory: Path, count: int) -> Session:
    """Return a session with cases that end in every way."""
    session = Session(directory, real=True)
    kinds = list(STEPS.values())
    session.cases(**{f"case_{number:03}": kinds[number % len(kinds)] for number in range(count)})
    return session


def interruptions(directory: Path, kills: int, *, seed: int, workers: int, count: int) -> tuple[int, list[list[str]]]:
    """Return how often runs were interrupted, at least so many times, and how the reports differ that do."""
    session = prepared(directory, count)
    call = ("--graphs", "all", "--page", "never", *(["-n", str(workers)] if workers else ["--workers", "2"]))
    whole = alike(session.run("-q", *call).report)
    assert {outcome["status"] for outcome in whole["outcomes"]} == {"pass", "fail", "error"}
    trial = Trial(session=session, call=call, whole=whole, drawn=random.Random(seed))
    made, wrong = 0, []
    while made < kills:
        found, difference = trial.series(min(5, kills - made))
        made += found
        wrong += [difference] * bool(difference)
    return made, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0, help="processes of pytest-xdist (default: none)")
    parser.add_argument("--count", type=int, default=60, help="cases in a run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        made, wrong = interruptions(
            Path(name), options.kills, seed=options.seed, workers=options.workers, count=options.count
        )
    for difference in wrong:
        print(*difference[:50], sep="\n")
    print(f"{made} interruptions, {len(wrong)} reports differ from that of the whole run")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
