"""Predicts how long cases take, from the last run in this directory, so that long ones can be begun early."""

import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from conformance.execution.graphs import is_long
from conformance.model.build import Target
from conformance.model.case import Case, ListedCase
from conformance.results.store import write_whole

FILE = "durations.json"
CASE_SECONDS = 0.002  # a case of which nothing is known
LONG_SECONDS = 0.5  # such a case that is known to be long
NOTABLE_SECONDS = 0.02  # what is shorter is not kept


class Durations:
    """The seconds of cases by id and target; with None as `directory` nothing is kept between runs."""

    def __init__(self, directory: Path | None) -> None:
        self.path = directory / FILE if directory is not None else None
        self.before: dict[str, float] = {}
        if self.path is not None:
            with contextlib.suppress(OSError, msgspec.DecodeError):
                self.before = msgspec.json.decode(self.path.read_bytes(), type=dict[str, float])
        self.now = dict(self.before)

    def of(self, case: Case | ListedCase, target: Target) -> float:
        """Return how many seconds a case is expected to take."""
        unknown = LONG_SECONDS if is_long(case) else CASE_SECONDS
        return self.before.get(f"{case.id}[{target}]", unknown)

    def total(self, pairs: Iterable[tuple[Case | ListedCase, Target]]) -> float:
        return sum(self.of(case, target) for case, target in pairs)

    def note(self, case: Case | ListedCase, target: Target, seconds: float) -> None:
        """Keep how long a case took, if that is notable or was."""
        name = f"{case.id}[{target}]"
        if seconds >= NOTABLE_SECONDS or name in self.now or is_long(case):
            self.now[name] = seconds

    def write(self) -> None:
        if self.path is not None and self.now != self.before:
            with contextlib.suppress(OSError):
                write_whole(self.path, msgspec.json.encode(self.now).decode())
