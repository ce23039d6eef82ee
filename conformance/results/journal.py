"""The report of a run while it lasts: on disk as soon as anything is known.

It stands in `<build>.<process>.partial.json`, and is a whole JSON document after each outcome: what is appended
overwrites the closing brackets and brings its own. A run that ends writes `<build>.json` in one go: its outcomes, and
those of earlier runs that it did not come to. Of a run that came to all in their order, the text is copied from file to
file: it need not be in memory, and no outcome is encoded twice. What a run that was killed has left is taken up by the
next one.
"""

import fcntl
import glob
import itertools
import operator
import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from conformance.language.renames import Renames
from conformance.model.graph import Graph
from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Pair, Report, footer_of, now
from conformance.results.merge import MergeError
from conformance.results.renamed import renamed
from conformance.results.store import (
    END,
    ReportError,
    encoded,
    load_report,
    salvaged,
    synchronize,
    text_of,
    text_of_end,
    text_of_head,
    write_all,
    write_whole,
)
from conformance.results.update import NOT_REACHED, is_superseded, updated

CHUNK = 2**18  # bytes that are written at once


def chunks_of(pieces: Iterable[str]) -> Iterator[bytes]:
    """Yield pieces of text as chunks of bytes."""
    chunk: list[str] = []
    size = 0
    for piece in pieces:
        chunk.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield "".join(chunk).encode()
            chunk, size = [], 0
    yield "".join(chunk).encode()


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
        self.written = self.path
        self.note = ""
        self.file: Any = None
        self.is_broken = False  # whether something could not be written to the partial file
        self.added = 0  # outcomes, also those that later ones replaced
        self.head = 0  # the bytes of the partial file that precede the outcomes
        self.end = 0  # and those that precede the closing brackets

    def begin(self) -> None:
        """Write what is known before the first outcome, and take up what killed runs have left."""
        try:
            self.partial.parent.mkdir(parents=True, exist_ok=True)
            self.take_up()
            self.open()
        except BaseException:
            self.is_broken = True
            raise

    def open(self) -> None:
        """Make the partial file, which has its name when it is a whole report without outcomes."""
        unnamed = self.partial.with_name(f".{self.partial.name}.{secrets.token_hex(4)}")
        self.file = unnamed.open("x+b", buffering=0)
        try:
            with suppress(OSError):  # where files can't be locked, nobody can tell whether a run still goes on
                fcntl.flock(self.file, fcntl.LOCK_EX)
            for chunk in chunks_of(text_of_head(self.report)):
                self.end = self.write(chunk, self.end)
            self.head = self.end
            os.fsync(self.file.fileno())
            self.name(unnamed)
        except BaseException:
            self.file.close()
            with suppress(OSError):
                unnamed.unlink()
            raise
        synchronize(self.partial.parent)

    def name(self, unnamed: Path) -> None:
        """Give the file its name, or the next one that is free: processes of other hosts have the same numbers."""
        first = self.partial
        for number in itertools.count(2):
            try:
                os.link(unnamed, self.partial)  # fails where there is such a file, unlike a change of the name
            except FileExistsError:
                self.partial = first.with_name(first.name.replace(".partial.", f"-{number}.partial."))
            except OSError:  # the file system has no second names
                os.replace(unnamed, self.partial)  # noqa: PTH105 - tests let it fail
                return
            else:
                unnamed.unlink()
                return

    def take_up(self) -> None:
        """Put what killed runs of this build have left into its report; a run that goes on holds a lock."""
        for path in left_behind(self.path):
            with suppress(OSError, ReportError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                try:
                    found = renamed(found_in(path), self.renames)
                except ReportError:
                    path.rename(path.with_suffix(".damaged"))  # no other command stumbles over it
                    continue
                if found.outcomes:
                    left = set(found.pairs) - {outcome.pair for outcome in found.outcomes}
                    self.put(found, left, lambda _: False)
                path.unlink()

    def add(self, outcome: Outcome) -> None:
        """Add an outcome, on disk when this returns; a later one for the same pair replaces it at the end.

        When one can't be written, the partial file stays a report of those before, and the others are kept in memory.
        """
        separator = ",\n" if self.outcomes else "\n"
        self.outcomes[outcome.pair] = outcome
        self.added += 1
        if not self.is_broken:
            self.is_broken = True  # until it is written, whatever ends that: a full disk, no memory, an interrupt
            self.end = self.write((separator + encoded(outcome)).encode(), self.end)
            self.is_broken = False

    def write(self, text: bytes, place: int) -> int:
        """Write a text and the closing brackets at a place in the partial file; return the place after the text."""
        descriptor = self.file.fileno()
        try:
            write_all(descriptor, text + END, place)
        except BaseException:
            with suppress(OSError, MemoryError):  # the disk has this room already
                write_all(descriptor, END, place)
                os.ftruncate(descriptor, place + len(END))
            raise
        return place + len(text)

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
        own = msgspec.structs.replace(self.report, outcomes=ordered, graphs=graphs, footer=footer)
        report = self.put(own, left, is_gone, self.chunks(own) if self.head and not self.file.closed else None)
        if self.file is not None:
            self.file.close()
            with suppress(OSError):  # the next run takes it up
                self.partial.unlink()
        return report

    def chunks(self, own: Report) -> Iterator[bytes]:
        """Yield the text of the report of this run, of which the partial file has the beginning."""
        is_ordered = (
            not self.is_broken and self.added == len(own.outcomes) and all(map(operator.eq, self.outcomes, own.pairs))
        )
        copied = self.end if is_ordered else self.head
        for place in range(0, copied, CHUNK):
            yield os.pread(self.file.fileno(), min(CHUNK, copied - place), place)
        again = enumerate(() if is_ordered else own.outcomes)
        lines = ((",\n" if number else "\n") + encoded(outcome) for number, outcome in again)
        closing = "\n]" if own.outcomes else "]"
        yield from chunks_of(itertools.chain(lines, closing, text_of_end(own)))

    def put(
        self,
        own: Report,
        left: Collection[Pair],
        is_gone: Callable[[CaseRecord], bool],
        chunks: Iterable[bytes] | None = None,
    ) -> Report:
        """Write what a run found into the report of its build; `left` are the pairs that it did not come to.

        Where that can't be done the report is replaced by a run that left nothing out, and stays where one did.
        `chunks` are the text of `own`, if it is known.
        """
        with alone(self.path.parent):
            report, path = own, self.path
            if path.exists() and (left or not is_superseded(path, own, self.renames)):
                ran: set[Pair] = set()
                try:
                    earlier = renamed(load_report(path), self.renames)
                    ran = {each.pair for each in earlier.outcomes if each.status != "not-run"}
                    report = updated(earlier, own, left, is_gone)
                except (ReportError, MergeError) as error:
                    if left or not ran <= set(own.pairs):
                        path = self.free_aside(own)
                        self.note = f"{self.path.name} stays as it was, and this part beside it: {error}"
            self.written = path
            content = chunks if chunks is not None and report is own else text_of(report)
            write_whole(path, content, is_durable=True)
        return report

    def free_aside(self, own: Report) -> Path:
        """Return the first place for a part at which there is none, or one of what this part has run, too."""
        aside, number = self.aside, 1
        while aside.exists() and not is_superseded(aside, own, self.renames):
            number += 1
            aside = self.aside.with_name(self.aside.name.replace(".partial.json", f".partial-{number}.json"))
        return aside


def left_behind(path: Path) -> list[Path]:
    """Return the partial files beside the report of a build, also of runs that go on."""
    pattern = f"{glob.escape(str(path.with_suffix('')))}.*.partial.json"
    return sorted(map(Path, glob.glob(pattern)))  # noqa: PTH207 - pathlib's own takes no escaped pattern before 3.13


def found_in(partial: Path) -> Report:
    """Return the report of a run that was killed, be it while it wrote an outcome."""
    try:
        return load_report(partial)
    except ReportError:
        return salvaged(partial)


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Let no other run replace a report below a directory meanwhile: each reads the one that it adds to."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # where directories can't be locked
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
