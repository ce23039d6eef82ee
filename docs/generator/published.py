"""Reads from published reports how cases stood on each release, and says it as stretches of releases."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from packaging.version import Version

from conformance.model.outcome import Outcome
from conformance.model.report import Report
from conformance.render.page.builds import release_key
from conformance.results.store import load_report

TARGET = "cpu-float32"
DASH = "\N{EN DASH}"
HOLDS, KNOWN, LACKING, UNKNOWN = "holds", "known issue", "not there", "not published"
WORDS = {"pass": HOLDS, "known": KNOWN, "unsupported": LACKING, "not-run": UNKNOWN}  # others have their own
MIXED = "holds but for known issues"  # some of several cases
# Of what several cases come to the last counts; what is not here, most.
LIGHTEST = (UNKNOWN, LACKING, HOLDS, MIXED, KNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A release: what a report of it says of each case but mere passes, and the digests of the cases that it has."""

    release: str
    outcomes: Mapping[str, Outcome]
    digests: Mapping[str, str]

    def word(self, case: str, digest: str | None) -> str:
        """Return how a case stood; one of which the report has another revision is not published."""
        if case not in self.digests or (digest is not None and digest != self.digests[case]):
            return UNKNOWN
        outcome = self.outcomes.get(case)
        return HOLDS if outcome is None else WORDS.get(outcome.status, outcome.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Releases one after another on which something stands alike."""

    word: str
    first: str
    last: str
    count: int

    @property
    def span(self) -> str:
        return self.first if self.count == 1 else f"{self.first}{DASH}{self.last}"


def load_reports(folder: Path) -> list[Report]:
    """Return the reports of PyTorch alone in a folder, the oldest release first."""
    reports = (load_report(path) for path in sorted(folder.glob("*.json")))
    return sorted((each for each in reports if not each.build.backends), key=lambda each: release_key(each.build))


def columns_of(reports: Iterable[Report]) -> list[Column]:
    return [
        Column(
            release=Version(report.build.torch).public,
            outcomes={each.case: each for each in report.outcomes if each.target == TARGET and each.status != "pass"},
            digests={case.id: case.digest for case in report.cases},
        )
        for report in reports
    ]


def heaviest(words: Iterable[str]) -> str:
    """Return what several cases come to on one release."""
    found = set(words)
    if KNOWN in found and found & {HOLDS, MIXED}:
        found = (found - {KNOWN}) | {MIXED}
    weights = {word: weight for weight, word in enumerate(LIGHTEST)}
    return max(sorted(found), key=lambda word: weights.get(word, len(weights)), default=UNKNOWN)


def stretches_of(columns: Sequence[Column], words: Sequence[str]) -> list[Stretch]:
    """Return the stretches of what stands on each release."""
    found = []
    for word, group in groupby(zip(words, columns, strict=True), key=lambda pair: pair[0]):
        releases = [column.release for _, column in group]
        found.append(Stretch(word=word, first=releases[0], last=releases[-1], count=len(releases)))
    return found


def in_words(stretches: Sequence[Stretch]) -> str:
    """Return stretches as a line: what stood when, the last of them without an end."""
    if len(stretches) == 1:
        return f"{stretches[0].word} on each of {stretches[0].count} builds"
    *earlier, last = stretches
    return "; ".join([*(f"{each.span} {each.word}" for each in earlier), f"{last.first}{DASH} {last.word}"])


def issues_of(columns: Sequence[Column], cases: Mapping[str, str | None]) -> list[tuple[str, str, str]]:
    """Return the known issues of cases, with digests: the releases, the reason and the link of each."""
    found: dict[tuple[str, str], set[str]] = {}
    for column in columns:
        for case, digest in cases.items():
            issue = column.outcomes[case].issue if column.word(case, digest) == KNOWN else None
            if issue is not None:
                found.setdefault((issue.reason, issue.link), set()).add(column.release)
    return [(spans_of(columns, releases), *issue) for issue, releases in found.items()]


def spans_of(columns: Sequence[Column], releases: Collection[str]) -> str:
    """Return some of the releases as spans of neighbours."""
    words = [KNOWN if column.release in releases else "" for column in columns]
    return ", ".join(stretch.span for stretch in stretches_of(columns, words) if stretch.word)
