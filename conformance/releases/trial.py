"""Tries one case on releases of torch, each in an environment that is made for it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from conformance.execution.program import program_of, why_unsupported
from conformance.execution.workers import Refused, Workers
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
    """There is no such case, or its file can't be read."""


class Trial:
    """A case and a target, and what is told of each release on which it is tried."""

    def __init__(self, named: str, target: str, tell: Callable[[str], None]) -> None:
        self.case = find_case(named)
        self.target = target_of(target)
        self.tell = tell

    @property
    def script(self) -> str:
        """The case as a script in plain torch."""
        return script_for(self.case).text

    def bisect(self, releases: Sequence[Release], is_old_good: bool, kept: Path | None) -> Bisected:
        """Return where among `releases` the case begins to fail, or to hold if it failed on the old ones.

        Environments are made below `kept`, or in a place that goes at the end.
        """
        by_name = {release.torch: release for release in releases}
        expected: tuple[Verdict, Verdict] = ("good", "bad") if is_old_good else ("bad", "good")
        with place_for(kept) as place:

            def attempt(name: str) -> Verdict:
                return self.attempt(by_name[name], place, is_kept=kept is not None)

            return bisect([release.torch for release in releases], expected, attempt)

    def attempt(self, release: Release, place: Path, is_kept: bool) -> Verdict:
        """Return what a release is, and tell it."""
        begun = time.monotonic()
        try:
            python = create(place, release, load_releases().python)
            outcome = self.run(python)
        except (NotInstalled, Refused) as error:
            outcome = Outcome(status="not-run", reason=str(error))
        finally:
            if not is_kept:
                shutil.rmtree(place / f"torch-{release.torch}", ignore_errors=True)  # some take gigabytes
        said = outcome_line(outcome)
        seconds = time.monotonic() - begun
        self.tell(f"torch {release.torch}: {outcome.status} ({seconds:.0f} s)" + (f": {said}" if said else ""))
        if outcome.status == "pass":
            return "good"
        return "bad" if outcome.status in BROKEN else "untold"

    def run(self, python: Path) -> Outcome:
        """Return the outcome of the case with the torch of an interpreter; raise Refused where it has none."""
        workers = Workers(str(python), (), (self.target.device,), CASE_SECONDS)
        try:
            build = workers.handshake()
            why = why_unsupported(self.case, self.target, build.torch)
            if why:
                return Outcome(status="unsupported", reason=why)
            absent = build.why_absent(self.target.device)
            if absent:
                return Outcome(status="not-run", reason=absent)
            workers.request(0, program_of(self.case, self.target, build.torch))
            return outcome_of(workers.outcome(0))
        finally:
            workers.close()


def find_case(named: str) -> Case:
    """Return the case that `file::id` or an id names; raise UnknownCase, or CaseFileError for a wrong file."""
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


@contextlib.contextmanager
def place_for(kept: Path | None) -> Iterator[Path]:
    """Give a directory for environments: the one to keep, or one that goes."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
    else:
        with tempfile.TemporaryDirectory(prefix="autograd-conformance-") as place:
            yield Path(place)
