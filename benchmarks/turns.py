"""Runs commands in turn, round by round, and prints what they took and ratios, with the spread.

Ratios are computed round by round, so that a machine whose speed drifts doesn't favour one of the commands. CPU times
and memory are read from /proc: the process that was started is told apart from those that it has started, which are
the suite's workers.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # as the suite's worker has it; torch's default is one for each core
FIRST_OUTCOME = re.compile(rb"\.yaml [.FEsxX]")
LONGEST_MESSAGE = 8000
SAMPLE_SECONDS = 0.05
TICKS = os.sysconf("SC_CLK_TCK")
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The words of a command, where it runs, what it adds to the environment, and with which statuses it may exit."""

    words: Sequence[str]
    directory: Path
    variables: Mapping[str, str] = field(default_factory=lambda: ONE_THREAD)
    statuses: Sequence[int] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one run took: seconds of wall and CPU time, and the most MiB that one process had in memory.

    `first` is the time until pytest had printed the outcome of a case, and NaN if it printed none.
    """

    wall: float
    first: float
    cpu: float
    own_cpu: float
    workers_cpu: float
    own_peak: float
    worker_peak: float


COLUMNS = {
    "wall": "wall, s",
    "each": "wall of each, ms",
    "first": "to the first outcome, s",
    "cpu": "CPU, s",
    "own_cpu": "CPU of pytest, s",
    "workers_cpu": "CPU of workers, s",
    "own_peak": "pytest, MiB",
    "worker_peak": "worker, MiB",
}


def sample_peaks(process: int, peaks: dict[bool, float], is_over: threading.Event) -> None:
    """Keep in `peaks` the most MiB of a process (True), and of any that it has started (False)."""
    while not is_over.wait(SAMPLE_SECONDS):
        for one in descendants(os.getpid()):
            peaks[one == process] = max(peaks[one == process], peak_of(one))


def descendants(process: int) -> Iterator[int]:
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended
            for child in path.read_text().split():
                yield int(child)
                yield from descendants(int(child))


def peak_of(process: int) -> float:
    """Return the most MiB that a process has had in memory so far, and 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def cpu_of_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def run(command: Command) -> Spent:
    """Run a command, which must succeed."""
    dropped = ("PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    environment |= {"PYTHONUNBUFFERED": "1", **command.variables}
    # Processes whose parent ends first become children of this one, so that their CPU time is counted, too.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    before = cpu_of_children()
    output = b""
    first = math.nan
    peaks = {True: 0.0, False: 0.0}
    is_over = threading.Event()
    begin = time.perf_counter()
    with subprocess.Popen(
        command.words, cwd=command.directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        sampler = threading.Thread(target=sample_peaks, args=(process.pid, peaks, is_over), daemon=True)
        sampler.start()
        while chunk := os.read(process.stdout.fileno(), 2**16):
            output = output[-LONGEST_MESSAGE:] + chunk
            if math.isnan(first) and FIRST_OUTCOME.search(output):
                first = time.perf_counter() - begin
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.perf_counter() - begin
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        is_over.set()
        sampler.join()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    if process.returncode not in command.statuses:
        shown = output[-LONGEST_MESSAGE:].decode("utf-8", "replace")
        sys.exit(f"{' '.join(command.words)} exited with status {process.returncode}:\n{shown}")
    cpu = cpu_of_children() - before
    own = (int(fields[11]) + int(fields[12])) / TICKS
    return Spent(
        wall=wall, first=first, cpu=cpu, own_cpu=own, workers_cpu=cpu - own, own_peak=peaks[True],
        worker_peak=peaks[False],
    )  # fmt: skip


def interpreter(text: str) -> str:
    path = Path(text).absolute()  # commands run elsewhere; what a link points to would be outside its environment
    if not path.exists():
        raise argparse.ArgumentTypeError(f"there is no {path}")
    return str(path)


def parser_of(description: str | None, *, count: int | None = None, compares: bool = True) -> argparse.ArgumentParser:
    """Return a parser with the options that the benchmarks share."""
    if sys.platform != "linux":
        sys.exit("CPU times and memory are read from /proc, as Linux has it")
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if count is not None:
        parser.add_argument("--count", type=int, default=count, help=f"how many cases (default: {count})")
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds are counted (default: 5)")
    parser.add_argument(
        "--warm-ups", type=int, default=1,
        help="how many rounds come first, fill the caches and are not counted (default: 1)",
    )  # fmt: skip
    if compares:
        parser.add_argument(
            "--before", metavar="PYTHON", type=interpreter,
            help="an interpreter with another state of the suite and the same torch, which runs the same in turn",
        )  # fmt: skip
    return parser


def states(options: argparse.Namespace) -> dict[str, str]:
    """Return the interpreters to compare, by what their rows are called after."""
    return {"": sys.executable} | ({", before": options.before} if options.before else {})


def in_turn(
    commands: Mapping[str, Command],
    options: argparse.Namespace,
    *,
    before: Callable[[Path], object] | None = None,
    after: Callable[[str, Path], object] | None = None,
) -> dict[str, list[Spent]]:
    """Run each command once a round; return what the counted rounds took.

    `before` is called with its directory before each run, and `after` with its label and its directory after it.
    """
    taken: dict[str, list[Spent]] = {label: [] for label in commands}
    for number in range(options.warm_ups + options.rounds):
        for label, command in commands.items():
            if before is not None:
                before(command.directory)
            spent = run(command)
            if after is not None:
                after(label, command.directory)
            if number >= options.warm_ups:
                taken[label].append(spent)
    return taken


def record_graphs(command: Command) -> None:
    """Run cases until all their graphs are cached, since a run leaves to the next those that it has no time for."""
    found = -1
    while (known := graphs_in(command.directory / "reports")) != found:
        found = known
        run(command)


def graphs_in(directory: Path) -> int:
    return sum(len(json.loads(path.read_bytes()).get("graphs", {})) for path in directory.glob("*.json"))


def spread(values: Sequence[float], digits: int = 2) -> str:
    if any(map(math.isnan, values)):
        return "-"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def print_rows(title: str, taken: Mapping[str, Sequence[Spent]], columns: Sequence[str], count: int = 1) -> None:
    """Print a row for each command: the median of each column, and the least and the most.

    The column "each" is the wall time by the `count` of the cases.
    """
    print(f"{title}: median (least to most)")
    width = max(map(len, taken))
    print(" " * (width + 2) + "".join(f" {COLUMNS[column]:>25}" for column in columns))
    for label, rows in taken.items():
        cells = [
            spread([spent.wall / count * 1000 for spent in rows])
            if column == "each"
            else spread([getattr(spent, column) for spent in rows], 0 if column.endswith("peak") else 2)
            for column in columns
        ]
        print(f"  {label:{width}}" + "".join(f" {cell:>25}" for cell in cells))  # a long one is wider


def print_ratio(label: str, over: Sequence[Spent], under: Sequence[Spent], column: str, other: str = "") -> None:
    """Print the ratio of `column` in one command to the same, or another, column in another command."""
    pairs = zip(over, under, strict=True)
    ratios = [getattr(one, column) / getattr(two, other or column) for one, two in pairs]
    print(f"  {label}: {spread(ratios)}")
