"""The report of a run while it lasts: on disk as soon as anything is known.

It stands in `<build>.<process>.partial.json`, and is a whole JSON document after each outcome: what is appended
overwrites the closing brackets and brings its own. A run that ends writes `<build>.json` in one go: its outcomes, and
those of earlier runs that it did not come to. No outcome is encoded twice, unless there are such. What a run that was
killed has left is taken up by the next one.
"""

import fcntl
import glob
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from conformance.language.renames import Renames
from conformance.model.graph import Graph
from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Pair, Report, footer_of, now
from conformance.results.merge import MergeError
from conformance.results.renamed import renamed
from conformance.results.store import ReportError, encoded, load_report, text_of, text_of_end, write_whole
from conformance.results.update import NOT_REACHED, is_superseded, updated

END = b"\n]\n}\n"


class Journal:
    """Keeps the report of one run below `directory`; it begins as a report without outcomes.

    Cases of earlier runs have the ids that `renames` gives them.
    """

    def __init__(self, directory: Path, report: Report, renames: Renames | None = None) -> None:
        slug = report.build.slug
        self.path = directory / f"{slug}.json"
        self.partial = directory / f"{slug}.{os.getpid()}.partial.json"
        self.aside = directory / f"{slug}.partial.json"  # where a part goes that does not fit the report of its build
        self.report = report
        self.renames = renames or {}
        self.outcomes: dict[Pair, Outcome] = {}
        self.head = ""  # the text of the report up to its outcomes
        self.lines: dict[Pair, str] = {}  # the texts of the outcomes
        self.written = self.path
        self.note = ""
        self.file: Any = None
        self.end = 0

    def begin(self) -> None:
        """Write what is known before the first outcome, and take up what killed runs have left."""
        self.head = text_of(self.report).removesuffix("]\n}\n")
        self.partial.parent.mkdir(parents=True, exist_ok=True)
        self.take_up()
        self.file = self.partial.open("wb", buffering=0)
        with suppress(OSError):  # where files can't be locked, nobody can tell whether a run still goes on
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.end = self.write(self.head, 0)

    def take_up(self) -> None:
        """Put what killed runs of this build have left into its report; a run that goes on holds a lock."""
        pattern = f"{glob.escape(str(self.path.with_suffix('')))}.*.partial.json"
        for path in sorted(map(Path, glob.glob(pattern))):  # noqa: PTH207 - pathlib's own takes no escaped pattern before 3.13
            with suppress(OSError, ReportError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found = renamed(load_report(path), self.renames)
                if found.outcomes:
                    left = set(found.pairs) - {outcome.pair for outcome in found.outcomes}
                    self.put(found, left, lambda _: False)
                path.unlink()

    def add(self, outcome: Outcome) -> None:
        """Add an outcome, on disk when this returns; a later one for the same pair replaces it at the end."""
        line = encoded(outcome)
        self.end = self.write((",\n" if self.lines else "\n") + line, self.end)
        self.outcomes[outcome.pair] = outcome
        self.lines[outcome.pair] = line

    def write(self, text: str, place: int) -> int:
        """Write a text and the closing brackets at a place in the partial file; return the place after the text."""
        content = memoryview(text.encode() + END)
        at = place
        while content:  # a disk that is nearly full takes a part; the next write raises the error
            written = os.pwrite(self.file.fileno(), content, at)
            content, at = content[written:], at + written
        return at - len(END)

    def finish(
        self,
        why_not_run: Mapping[Pair, str],
        exit_status: int,
        graphs: Mapping[str, Graph],
        is_gone: Callable[[CaseRecord], bool] = lambda _: False,
    ) -> Report:
        """Write the report of the build and return it; what was planned and has no outcome was not run."""
        left = {pair: why_not_run.get(pair, NOT_REACHED) for pair in self.report.pairs if pair not in self.outcomes}
        ordered = tuple(
            self.outcomes.get(pair)
            or Outcome(case=pair[0], target=pair[1], status="not-run", reason=left[pair])
            for pair in self.report.pairs
        )  # fmt: skip
        footer = footer_of(ordered, exit_status, now())
        own = msgspec.structs.replace(self.report, outcomes=ordered, graphs=dict(graphs), footer=footer)
        report = self.put(own, left, is_gone, self.text(own))
        self.file.close()
        self.partial.unlink(missing_ok=True)
        return report

    def text(self, own: Report) -> str:
        """Return the text of the report of this run, which ends with what is known at the end of the run alone."""
        lines = [self.lines.get(outcome.pair) or encoded(outcome) for outcome in own.outcomes]
        outcomes = "\n" + ",\n".join(lines) + "\n" if lines else ""
        return f"{self.head}{outcomes}]{text_of_end(own)}"

    def put(self, own: Report, left: Collection[Pair], is_gone: Callable[[CaseRecord], bool], text: str = "") -> Report:
        """Write what a run found into the report of its build; `left` are the pairs that it did not come to.

        Where that can't be done the report is replaced by a run that left nothing out, and stays where one did. `text`
        is that of `own`, if it is known.
        """
        report, path = own, self.path
        if path.exists() and (left or not is_superseded(path, own, self.renames)):
            ran: set[Pair] = set()
            try:
                earlier = renamed(load_report(path), self.renames)
                ran = {each.pair for each in earlier.outcomes if each.status != "not-run"}
                report = updated(earlier, own, left, is_gone)
            except (ReportError, MergeError) as error:
                if left or not ran <= set(own.pairs):
                    path = self.aside
                    self.note = f"{self.path.name} stays as it was, and this part beside it: {error}"
        self.written = path
        write_whole(path, text if text and report is own else text_of(report))
        return report
