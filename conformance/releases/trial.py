"""Runs one case on releases of torch, each in a virtual environment made for it, and finds where it turns bad, or good.

A release that can't be installed, or on which the case can't be run, is skipped, and its neighbours are tried.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import msgspec

from conformance.execution.fork_server import Interpreter, Refused
from conformance.execution.program import outcome_without_run, program_of
from conformance.execution.workers import Workers
from conformance.language.files import case_files, is_shipped, load_cases, shipped_cases
from conformance.model.build import target_of
from conformance.model.case import Case
from conformance.model.outcome import Outcome, outcome_of
from conformance.model.status import BROKEN
from conformance.releases.catalogue import Release, load_releases
from conformance.releases.environment import NotInstalled, borrowed
from conformance.render.script.script import script_for
from conformance.render.text import outcome_line

CASE_SECONDS = 60.0

Verdict = Literal["good", "bad", "skip"]


class Bisected(msgspec.Struct, frozen=True, kw_only=True):
    """The last release that is as the first one was, those after it that were skipped, and the first that differs."""

    last: str
    skipped: tuple[str, ...]
    first: str


class Unanswerable(Exception):
    """One of the two ends is not as it was given, so there is no change to search for between them."""


class UnknownCase(Exception):
    """A case doesn't exist, or its file can't be read."""


class Trial:
    """A case on a target; `write_line` is called with the outcome on each release, `during` with what takes long."""

    def __init__(
        self, named: str, target: str, write_line: Callable[[str], None],
        during: Callable[[str], AbstractContextManager[object]] = nullcontext, *, trusts: bool = False,
    ) -> None:  # fmt: skip
        self.target = target_of(target)  # first, as to find the case takes long
        with during(f"looking for {named}"):
            self.case = find_case(named)
        self.during = during
        self.write_line = write_line
        file = named.rpartition("::")[0]
        self.sandbox = "off" if trusts or not file or is_shipped(Path(file)) else "required"

    @property
    def script(self) -> str:
        """The case as a script in plain torch."""
        return script_for(self.case).text

    def search(self, releases: Sequence[Release], is_old_good: bool, kept: Path | None) -> Bisected:
        """Return where among `releases` the case begins to fail, or to pass if it fails on the old ones.

        Environments are made and kept below `kept`, or else each goes when it was used.
        """
        by_name = {release.torch: release for release in releases}
        expected: tuple[Verdict, Verdict] = ("good", "bad") if is_old_good else ("bad", "good")
        return bisect(list(by_name), expected, lambda name: self.attempt(by_name[name], kept))

    def attempt(self, release: Release, kept: Path | None) -> Verdict:
        """Run the case on a release, and return the verdict."""
        started = time.monotonic()
        try:
            with (
                self.during(f"installing torch {release.torch}, and running the case"),
                borrowed(release, load_releases().python, kept) as python,
            ):
                outcome = self.run(python)
        except (NotInstalled, Refused) as error:
            outcome = Outcome(status="not-run", reason=str(error))
        details = outcome_line(outcome)
        seconds = time.monotonic() - started
        self.write_line(f"torch {release.torch}: {outcome.status} ({seconds:.0f} s)" + (details and f": {details}"))
        if outcome.status == "pass":
            return "good"
        return "bad" if outcome.status in BROKEN else "skip"

    def run(self, python: Path) -> Outcome:
        """Return the outcome of the case with the torch of an interpreter; raise Refused if it has none."""
        workers = Workers(Interpreter(str(python), devices=(self.target.device,)), CASE_SECONDS, sandbox=self.sandbox)
        try:
            build = workers.handshake()
            outcome = outcome_without_run(self.case, self.target, build)
            if outcome is None:
                workers.request(0, program_of(self.case, self.target, build.torch))
                outcome = outcome_of(workers.outcome(0))
            return outcome
        finally:
            workers.close()


def find_case(named: str) -> Case:
    """Return the case that an id or `file::id` names; raise UnknownCase, or CaseFileError if the file has problems."""
    file, _, name = named.rpartition("::")
    name = name.partition("[")[0]
    try:
        cases = load_cases([Path(file)] if file else case_files([shipped_cases()]))
    except OSError as error:
        raise UnknownCase(f"{file}: can't be read: {error.strerror}") from None
    found = next((case for case in cases if case.id == name), None)
    if found is None:
        near = get_close_matches(name, [case.id for case in cases], n=1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownCase(f"there is no case {name!r} in {file or 'the suite'}{meant}")
    return found


def bisect(releases: Sequence[str], expected: tuple[Verdict, Verdict], attempt: Callable[[str], Verdict]) -> Bisected:
    """Return between which two of the ordered `releases` the verdict changes from the first expected to the second.

    Each release is tried at most once. Raise Unanswerable where an end is not as expected.
    """
    for release, wanted in zip((releases[0], releases[-1]), expected, strict=True):
        found = attempt(release)
        if found != wanted:
            observed = "can't be tested" if found == "skip" else f"is {found}"
            raise Unanswerable(f"{release} {observed}, but was given as {wanted}")
    before, after = 0, len(releases) - 1
    skipped: set[int] = set()
    while True:
        untried = [index for index in range(before + 1, after) if index not in skipped]
        if not untried:
            between = tuple(releases[index] for index in range(before + 1, after))
            return Bisected(last=releases[before], skipped=between, first=releases[after])
        middle = min(untried, key=lambda index: abs(2 * index - before - after))
        verdict = attempt(releases[middle])
        if verdict == expected[0]:
            before = middle
        elif verdict == expected[1]:
            after = middle
        else:
            skipped.add(middle)
