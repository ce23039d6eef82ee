"""Runs all cases again and again in one run: memory, descriptors and threads must not grow, nor outcomes change.

    python tests/soak.py                         the whole suite, 20 times: an hour on two cores
    python tests/soak.py --quick --rounds 3      what `--quick` leaves of it
    python tests/soak.py cases/hooks.yaml        the cases of a file

The workers live as long as the run. Cases that end theirs, as known crashes of torch do, are run once, before. The exit
status is 1 where an outcome differs from the first round's, or where something has grown since the second round, when
what is loaded once is there.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import shipped

from conformance.execution.fork_server import Interpreter
from conformance.execution.program import encoded_program, outcome_without_run
from conformance.execution.workers import Workers
from conformance.model.build import Target
from conformance.model.outcome import outcome_of
from conformance.model.status import TABLE
from conformance.results.fingerprint import Fingerprint, fingerprint

TARGET = Target(device="cpu", dtype="float32")
SECONDS = 120.0
REPLACED = "the worker was replaced"
MOST_GROWTH = 0.1  # of memory, from the second round to the last
SETTLED = 1  # the round, from 0, from which on nothing may grow


class Use(NamedTuple):
    """What some processes use: resident memory in MiB, descriptors and threads."""

    memory: float
    descriptors: int
    threads: int

    def __str__(self) -> str:
        return f"{self.memory:7.0f} MiB {self.descriptors:4} descriptors {self.threads:3} threads"


def use_of(pids: Iterable[int]) -> Use:
    """Return what processes use together."""
    found = []
    for pid in pids:
        place = Path(f"/proc/{pid}")
        resident = int((place / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        found.append((resident, *(len(list((place / name).iterdir())) for name in ("fd", "task"))))
    memory, descriptors, threads = zip(*found, strict=True)
    return Use(sum(memory), sum(descriptors), sum(threads))


def pids_of(workers: Workers) -> list[int]:
    """Return the processes of the workers, which have run something."""
    found = []
    for worker in workers.workers:
        server = worker.process.server
        server.read(0.0)  # which may not have been told yet
        found.append(server.pids[worker.process.number])
    return found


def programs_of(workers: Workers, files: Sequence[str], *, quick: bool) -> dict[str, dict[str, Any]]:
    """Return the programs of the cases of all `files`, or of some, that are run on this torch, by the cases' ids."""
    build = workers.handshake()
    case_set = shipped.loaded()
    found = {}
    for case in (case for cases in case_set.loaded().values() for case in cases if not files or case.file in files):
        is_left_out = quick and case_set.is_left_out(case.id, shipped.CASES)
        if not is_left_out and outcome_without_run(case, TARGET, build) is None:
            steps = case_set.encoded_steps(case.file, build.torch, covered=False)
            found[case.id] = encoded_program(case, TARGET, steps[case.place])
    return found


def round_of(workers: Workers, programs: dict[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run programs, and yield the answer to each."""
    for number, program in enumerate(programs.values()):
        workers.request(number, program)
    for number, case in enumerate(programs):
        yield case, workers.outcome(number)


def is_lost(answer: dict[str, Any]) -> bool:
    """Whether the worker that gave an answer, or ended in place of one, was not used again."""
    return TABLE[answer["status"]].ends_worker or REPLACED in answer.get("reason", "")


def manner(answer: dict[str, Any]) -> Fingerprint:
    """Return how a case ended, without values: some known issues read memory that nothing was written to."""
    return fingerprint(outcome_of(answer))


def workers_of(options: argparse.Namespace) -> Workers:
    workers = Workers(Interpreter(options.python, tuple(options.device_module), ("cpu",)), SECONDS)
    workers.handshake()
    workers.widen(options.workers)
    return workers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device-module", default=[], action="append")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    with closing(workers_of(options)) as workers:
        programs = programs_of(workers, options.files, quick=options.quick)
        first = dict(round_of(workers, programs))
    lost = [case for case, answer in first.items() if is_lost(answer)]
    for case in lost:
        del programs[case]
    print(f"{len(programs)} cases, and {len(lost)} that end their worker", flush=True)
    uses: list[tuple[Use, Use]] = []
    changed: set[str] = set()
    with closing(workers_of(options)) as workers:
        pids: list[int] = []
        for number in range(options.rounds):
            begun = time.monotonic()
            changed.update(
                case for case, answer in round_of(workers, programs) if manner(answer) != manner(first[case])
            )
            pids = pids or pids_of(workers)
            if pids_of(workers) != pids:
                print(f"round {number + 1}: a worker was replaced")
                return 1
            uses.append((use_of([os.getpid()]), use_of(pids)))
            seconds = time.monotonic() - begun
            print(f"round {number + 1:2}: parent {uses[-1][0]}, workers {uses[-1][1]}, {seconds:.0f} s", flush=True)
    grown = [
        f"the {name} used more {which} at the end"
        for name, before, after in zip(("parent", "workers"), uses[min(SETTLED, len(uses) - 1)], uses[-1], strict=True)
        for which, most in (
            ("memory", before.memory * (1 + MOST_GROWTH)),
            *zip(Use._fields[1:], before[1:], strict=True),
        )
        if getattr(after, which) > most
    ]
    for line in [*(f"{case} ends in another way" for case in sorted(changed)), *grown]:
        print(line)
    return 1 if changed or grown else 0


if __name__ == "__main__":
    sys.exit(main())
