"""Runs one case on releases of torch, each in a virtual environment that is made for it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from conformance.execution.program import outcome_without_run, program_of
from conformance.execution.worker_process import Refused
from conformance.execution.workers import Workers
from conformance.language.files import case_files, load_cases, shipped_cases
from conformance.model.build import target_of
from conformance.model.case import Case
from conformance.model.outcome import Outcome, outcome_of
from conformance.model.status import BROKEN
from conformance.releases.bisect import Bisected, Verdict, bisect
from conformance.releases.catalogue import Release, load_releases
from conformance.releases.environment import NotInstalled, create
from conformance.render.script.script import script_for
from conformance.render.text import outcome_line

CASE_SECONDS = 60.0


class UnknownCase(Exception):
    """A case doesn't exist, or its file can't be read."""


class Trial:
    """A case on a target; `write_line` is called with the outcome on each release that is tried."""

    def __init__(self, named: str, target: str, write_line: Callable[[str], None]) -> None:
        self.case = find_case(named)
        self.target = target_of(target)
        self.write_line = write_line

    @property
    def script(self) -> str:
        """The case as a script in plain torch."""
        return script_for(self.case).text

    def search(self, releases: Sequence[Release], is_old_good: bool, kept: Path | None) -> Bisected:
        """Return where among `releases` the case begins to fail, or to pass if it fails on the old ones.

        Environments are made and kept below `kept`, or else in a temporary directory.
        """
        by_name = {release.torch: release for release in releases}
        expected: tuple[Verdict, Verdict] = ("good", "bad") if is_old_good else ("bad", "good")
        with tempfile.TemporaryDirectory(prefix="autograd-conformance-") as temporary:
            directory = (kept or Path(temporary)).resolve()
            directory.mkdir(parents=True, exist_ok=True)
            return bisect(
                list(by_name), expected, lambda name: self.attempt(by_name[name], directory, is_kept=kept is not None)
            )

    def attempt(self, release: Release, directory: Path, is_kept: bool) -> Verdict:
        """Run the case on a release, and return the verdict."""
        started = time.monotonic()
        try:
            python = create(directory, release, load_releases().python)
            outcome = self.run(python)
        except (NotInstalled, Refused) as error:
            outcome = Outcome(status="not-run", reason=str(error))
        finally:
            if not is_kept:
                shutil.rmtree(directory / f"torch-{release.torch}", ignore_errors=True)  # some take gigabytes
        details = outcome_line(outcome)
        seconds = time.monotonic() - started
        self.write_line(f"torch {release.torch}: {outcome.status} ({seconds:.0f} s)" + (details and f": {details}"))
        if outcome.status == "pass":
            return "good"
        return "bad" if outcome.status in BROKEN else "skip"

    def run(self, python: Path) -> Outcome:
        """Return the outcome of the case with the torch of an interpreter; raise Refused if it has none."""
        workers = Workers(str(python), (), (self.target.device,), CASE_SECONDS)
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
