"""Does pieces of work in several processes, each a copy of this one, which leave what they make in a cache."""

import os
import signal
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Sequence

from conformance.execution.scheduler import usable_cores

PLACE = struct.Struct("=H")  # of a piece of work, as it is handed out
MOST_PIECES = 4096 // PLACE.size  # as many as a pipe holds of any system
MOST_PROCESSES = 4


def work_side_by_side(pieces: Sequence[Callable[[], object]]) -> None:
    """Call each of the functions in this process or one beside it; what they return or raise is lost.

    Does nothing where there is one processor, or where a copy of this process would not be safe to run.
    """
    others = min(usable_cores(), MOST_PROCESSES, len(pieces)) - 1
    # What macOS loads into a process may not survive a copy.
    if others < 1 or not sys.platform.startswith("linux") or threading.active_count() > 1:
        return
    reader, writer = os.pipe()
    os.write(writer, b"".join(map(PLACE.pack, range(len(pieces[:MOST_PIECES])))))
    os.close(writer)
    copies = [copy_that_works(pieces, reader) for _ in range(others)]
    try:
        work(pieces, reader)
    finally:
        while os.read(reader, MOST_PIECES * PLACE.size):
            pass  # after an interruption nothing more is begun
        os.close(reader)
        for process in copies:
            os.waitpid(process, 0)


def copy_that_works(pieces: Sequence[Callable[[], object]], reader: int) -> int:
    """Start a copy of this process that does some of the pieces, and return its id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, of threads that a library started
        process = os.fork()
    if process == 0:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run that is interrupted says so, and takes what is left
            work(pieces, reader)
        finally:
            os._exit(0)
    return process


def work(pieces: Sequence[Callable[[], object]], reader: int) -> None:
    """Do pieces of work until none is left that no process has taken."""
    while place := os.read(reader, PLACE.size):
        try:
            pieces[PLACE.unpack(place)[0]]()
        except Exception:  # noqa: BLE001, S112 - whoever needs the piece does it again, and says what is wrong
            continue
