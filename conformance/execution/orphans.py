"""Ends, on Linux, the processes that workers have started and that have left their session, parent and group.

Such a process is known by its environment alone, in which the process that workers are forked from has put a mark that
is made anew for each. What still descends from that process is at work.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

MARK = "CONFORMANCE_WORKERS"  # the name of the variable
PROCESSES = Path("/proc")
MOST_ROUNDS = 100  # a process may start another one while it is looked for


def end_orphans(mark: str, ancestor: int | None) -> None:
    """Kill each process with this mark that does not descend from the `ancestor`, if there is one."""
    for _ in range(MOST_ROUNDS):
        found = list(orphans(mark, ancestor))
        for process in found:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
            os.close(process)
        if not found:
            return


def orphans(mark: str, ancestor: int | None) -> Iterator[int]:
    """Yield a descriptor for each process to end: its number may come to be another's, the descriptor can't."""
    wanted = f"{MARK}={mark}".encode()
    for place in PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted not in (place / "environ").read_bytes().split(b"\0"):
                continue
            process = os.pidfd_open(int(place.name))
            is_same = wanted in (place / "environ").read_bytes().split(b"\0")
            if is_same and ancestor not in ancestors(int(place.name)):
                yield process
            else:
                os.close(process)


def ancestors(process: int) -> set[int]:
    """Return the number of a process and those of its parent, its parent's parent, and so on."""
    found: set[int] = set()
    while process and process not in found:
        found.add(process)
        process = parent_of(process)
    return found


def parent_of(process: int) -> int:
    """Return the number of a process's parent, 0 if it is gone."""
    return fact_of(process, 1)


def beginning_of(process: int) -> int:
    """Return when a process was started, in ticks since the system was; 0 if it is gone."""
    return fact_of(process, 19)


def fact_of(process: int, place: int) -> int:
    """Return a number that the system tells of a process, by its place after the name."""
    try:
        return int((PROCESSES / str(process) / "stat").read_bytes().rpartition(b")")[2].split()[place])
    except OSError:
        return 0
