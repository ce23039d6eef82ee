"""Runs all cases again and again in one run: memory, descriptors and threads must not grow, nor outcomes change.

    python tests/soak.py                         the whole suite, 20 times: an hour on two cores
    python tests/soak.py --quick --rounds 3      what `--quick` leaves of it
    python tests/soak.py cases/hooks.yaml        the cases of a file

The workers live as long as the run, but for one that has grown by a gibibyte, which is replaced as in any run. Cases
that end theirs, as known crashes of torch do, are run once, before. The exit status is 1 where an outcome differs from
the first round's, unless the list of known issues says that torch fails so in some processes alone, or where a process
used more in the second half of the rounds than any did in the first. The first round doesn't count, in which what is
needed once is loaded.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import contextlib
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
from conformance.model.build import Build, Target
from conformance.model.outcome import outcome_of
from conformance.model.status import TABLE
from conformance.results.fingerprint import Fingerprint, fingerprint
from conformance.results.known_issues import KnownIssues, load_known_issues

TARGET = Target(device="cpu", dtype="float32")
SECONDS = 120.0
REPLACED = "the worker was replaced"
MOST_GROWTH = 0.1  # of memory, from the first half of the rounds to the second
SETTLED = 1  # the round, from 0, from which on nothing may grow
LOOKED_AT = 100  # cases after which it is looked at the memory; the rest is looked at when nothing runs


class Use(NamedTuple):
    """The most that a process uses: resident memory in MiB, descriptors and threads."""

    memory: float
    descriptors: int
    threads: int

    def __str__(self) -> str:
        return f"{self.memory:7.0f} MiB {self.descriptors:4} descriptors {self.threads:3} threads"


NOTHING = Use(0.0, 0, 0)


def use_of(pids: Iterable[int]) -> Use:
    """Return the most that any of some processes uses."""
    found = [NOTHING]
    for pid in pids:
        place = Path(f"/proc/{pid}")
        with contextlib.suppress(OSError):  # it has just ended, to be replaced
            resident = int((place / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
            found.append(Use(resident, *(len(list((place / name).iterdir())) for name in ("fd", "task"))))
    return most_of(found)


def most_of(uses: Iterable[Use]) -> Use:
    """Return the most of each kind."""
    return Use(*map(max, zip(*uses, strict=True)))


def pids_of(workers: Workers) -> list[int]:
    """Return the processes of the workers that are known."""
    found = []
    for worker in workers.workers:
        server = worker.process.server
        server.read(0.0)  # which may not have been told yet
        found.append(server.pids.get(worker.process.number))
    return [pid for pid in found if pid is not None]


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


def known_issues() -> KnownIssues:
    return load_known_issues(shipped.CASES / "known-issues.yaml", "known-issues.yaml", shipped.CASES)


def is_as_before(case: str, answer: dict[str, Any], before: dict[str, Any], known: KnownIssues, build: Build) -> bool:
    """Whether a case ends as it did, or in two of the ways that torch has by the list, in some processes alone."""
    if manner(answer) == manner(before):
        return True
    entries = known.about(case, TARGET, build)
    is_steady = any(entry.must_hold(TARGET, build) for entry in entries)
    judged = {known.judge(case, TARGET, build, outcome_of(each)).status for each in (answer, before)}
    return bool(entries) and not is_steady and judged <= {"pass", "known"}


def grown(rounds: Sequence[tuple[Use, Use]]) -> list[str]:
    """Return what the parent or the workers used more of in the second half of the rounds than in the first."""
    settled = rounds[SETTLED:] or rounds
    middle = (len(settled) + 1) // 2
    found = []
    for place, name in enumerate(("parent", "workers")):
        before = most_of(use[place] for use in settled[:middle])
        after = most_of(use[place] for use in settled[middle:] or settled)
        allowed = before._replace(memory=before.memory * (1 + MOST_GROWTH))
        found += [
            f"the {name} used more {which} at the end"
            for which, most, used in zip(Use._fields, allowed, after, strict=True)
            if used > most
        ]
    return found


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
        build, known = workers.handshake(), known_issues()
        programs = programs_of(workers, options.files, quick=options.quick)
        first = dict(round_of(workers, programs))
    lost = [case for case, answer in first.items() if is_lost(answer)]
    for case in lost:
        del programs[case]
    print(f"{len(programs)} cases, and {len(lost)} that end their worker", flush=True)
    rounds: list[tuple[Use, Use]] = []
    changed: set[str] = set()
    started: set[int] = set()
    with closing(workers_of(options)) as workers:
        for number in range(options.rounds):
            begun = time.monotonic()
            uses: list[tuple[Use, Use]] = []
            for place, (case, answer) in enumerate(round_of(workers, programs), start=1):
                if not is_as_before(case, answer, first[case], known, build):
                    changed.add(case)
                if place % LOOKED_AT == 0 or place == len(programs):
                    pids = pids_of(workers)
                    started.update(pids)
                    now = use_of([os.getpid()]), use_of(pids)
                    is_idle = place == len(programs)
                    uses.append(now if is_idle else (Use(now[0].memory, 0, 0), Use(now[1].memory, 0, 0)))
            own, theirs = map(most_of, zip(*uses, strict=True))
            rounds.append((own, theirs))
            seconds = time.monotonic() - begun
            print(f"round {number + 1:2}: parent {own}, largest worker {theirs}, {seconds:.0f} s", flush=True)
    print(f"{len(started)} workers")
    found = grown(rounds)
    for line in [*(f"{case} ends in another way" for case in sorted(changed)), *found]:
        print(line)
    return 1 if changed or found else 0


if __name__ == "__main__":
    sys.exit(main())
