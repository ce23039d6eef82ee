"""The causes of what is red or unsupported as plain data: one list for the page, and rows for each build."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Cause, Pair
from conformance.results.causes import groups_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCauses:
    """The causes of several reports.

    `listed` has the id, the title and the count of each, and whether it is of what is red; `rows` has by report the
    number of each in that list, its counts, its targets, and its smallest case with a target; `numbers` has by report
    and pair the number of the outcome's cause.
    """

    listed: list[tuple[str, str, int, bool]]
    rows: list[list[tuple[int, dict[str, int], tuple[str, ...], str, str]]]
    numbers: list[dict[Pair, int]]


def page_causes(outcomes: Sequence[Mapping[Pair, Outcome]], records: Sequence[Mapping[str, CaseRecord]]) -> PageCauses:
    """Return the causes of the outcomes of each report, of which `records` has the cases."""
    groups = [groups_of(own.values(), known) for own, known in zip(outcomes, records, strict=True)]
    counts: Counter[str] = Counter()
    causes: dict[str, Cause] = {}
    for cause, own in (group for found in groups for group in found):
        counts[cause.id] += len(own)
        causes.setdefault(cause.id, cause)
    ordered = sorted(causes.values(), key=lambda cause: (not cause.is_red, -counts[cause.id], cause.title))
    number = {cause.id: place for place, cause in enumerate(ordered)}
    return PageCauses(
        listed=[(cause.id, cause.title, counts[cause.id], cause.is_red) for cause in ordered],
        rows=[
            [(number[each.id], dict[str, int](each.counts.items()), each.targets, each.case, each.target)
             for each, _ in found] for found in groups
        ],
        numbers=[{outcome.pair: number[cause.id] for cause, own in found for outcome in own} for found in groups],
    )  # fmt: skip
