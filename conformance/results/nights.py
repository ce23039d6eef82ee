"""Keeps of a build line in which of the last nights each case had which status.

A build line is what is tested under one name night after night, whatever build that is. Its record names the cases by
what they went through, as in `57 pass, 3 fail`, so that it stays small: most went through the same.
"""

import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from conformance.model.report import Pair, Report
from conformance.model.status import STATUSES
from conformance.results.store import ReportError, bytes_of, text_of_record

FORMAT: Final = 1
MOST_NIGHTS = 60
NOT_PLANNED = "not planned"
KNOWN = {*STATUSES, NOT_PLANNED}
RUN = re.compile(r"([1-9][0-9]{0,3}) ([a-z -]+)")

Stretch = tuple[str, int]  # a status, or that the case was not planned, and for how many nights


class Night(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The run of a night."""

    started: str
    torch: str
    git: str


class Nights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last nights of a build line, the build of the last, and each target's cases by what they went through."""

    format: Annotated[int, Meta(ge=FORMAT, le=FORMAT)] = FORMAT
    build: str
    nights: Annotated[tuple[Night, ...], Meta(min_length=1, max_length=MOST_NIGHTS)]
    targets: dict[str, dict[str, tuple[str, ...]]]

    def stretches(self) -> dict[Pair, list[Stretch]]:
        """Return what each case went through on each target."""
        return {
            (case, target): stretches_in(text)
            for target, groups in self.targets.items()
            for text, cases in groups.items()
            for case in cases
        }

    def is_of(self, report: Report) -> bool:
        """Whether the last night is that of a report."""
        return (self.build, self.nights[-1].started) == (report.build.slug, report.header.run.started)


def with_night(earlier: Nights | None, report: Report) -> Nights:
    """Return the record of a build line with one more night, without those that are too old; a night counts once."""
    night = Night(started=report.header.run.started, torch=report.build.torch, git=report.build.git)
    if earlier is not None and earlier.nights[-1].started == night.started:
        return earlier
    nights = (*(earlier.nights if earlier is not None else ()), night)
    before = earlier.stretches() if earlier is not None else {}
    now = {pair: outcome.status for pair, outcome in report.by_pair().items()}
    missing = [(NOT_PLANNED, len(nights) - 1)] if len(nights) > 1 else []
    targets: dict[str, dict[str, list[str]]] = {}
    for pair in sorted({*before, *now}):
        case, target = pair
        stretches = last_of([*before.get(pair, missing), (now.get(pair, NOT_PLANNED), 1)], MOST_NIGHTS)
        if any(status != NOT_PLANNED for status, _ in stretches):
            text = ", ".join(f"{count} {status}" for status, count in stretches)
            targets.setdefault(target, {}).setdefault(text, []).append(case)
    return Nights(
        build=report.build.slug, nights=nights[-MOST_NIGHTS:],
        targets={target: {text: tuple(cases) for text, cases in groups.items()} for target, groups in targets.items()},
    )  # fmt: skip


def last_of(stretches: Iterable[Stretch], most: int) -> list[Stretch]:
    """Return the last nights of stretches, with neighbours of one status as one."""
    nights = [status for status, count in stretches for _ in range(count)][-most:]
    return [(status, len(list(group))) for status, group in itertools.groupby(nights)]


def stretches_in(text: str) -> list[Stretch]:
    """Return the stretches in a text such as `57 pass, 3 fail`; raise ValueError where there are none."""
    found = [RUN.fullmatch(part) for part in text.split(", ")]
    stretches = [(match[2], int(match[1])) for match in found if match and match[2] in KNOWN]
    if len(stretches) != len(found):
        raise ValueError(text)
    return stretches


def load_nights(path: Path) -> Nights:
    """Return the record at `path`; raise ReportError with the reason when it is none."""
    try:
        nights = msgspec.json.decode(bytes_of(path), type=Nights)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ReportError(f"{path}: no record of nights: {error}") from None
    for text in (text for groups in nights.targets.values() for text in groups):
        try:
            count = sum(count for _, count in stretches_in(text))
        except ValueError:
            raise ReportError(f"{path}: expected nights by status, as in `57 pass, 3 fail`, got {text!r}") from None
        if count != len(nights.nights):
            raise ReportError(f"{path}: expected {len(nights.nights)} nights, got {count} in {text!r}")
    return nights


def nights_text(nights: Nights) -> str:
    """Return a record as its file holds it."""
    return text_of_record(nights)
