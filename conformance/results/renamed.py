"""Gives the cases of earlier reports the ids that they have now, so that what they found stays joined to what is found.

All else is as it was: the digests are those of the cases that ran, so that these count as another revision.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from conformance.language.renames import Renames
from conformance.model.report import Report, footer_of


def joined(reports: Sequence[Report], renames: Renames) -> list[Report]:
    """Return the reports with one id for each case: an earlier one stays where none of them has a case of today."""
    known = {record.id for report in reports for record in report.cases}
    needed = {earlier: now for earlier, now in renames.items() if not known.isdisjoint(now)}
    return [renamed(report, needed) for report in reports]


def renamed(report: Report, renames: Renames) -> Report:
    """Return a report in which each case that has an earlier id stands once for each case that it has become."""
    found = earlier_ids(report, renames)
    if not renames.keys() & {record.id for record in report.cases}:
        return report

    def ids_of(case: str) -> list[str]:
        return [now for now in renames[case] if found.get(now) == case] if case in renames else [case]

    outcomes = tuple(replace(each, case=case) for each in report.outcomes for case in ids_of(each.case))
    end = report.footer
    return replace(
        report,
        cases=tuple(replace(each, id=case) for each in report.cases for case in ids_of(each.id)),
        plan=tuple(replace(each, case=case) for each in report.plan for case in ids_of(each.case)),
        outcomes=outcomes,
        graphs={case: graph for earlier, graph in report.graphs.items() for case in ids_of(earlier)},
        footer=None if end is None else footer_of(outcomes, end.exit_status, end.finished),
    )


def earlier_ids(report: Report, renames: Renames) -> dict[str, str]:
    """Return the ids that cases have in a report by those that they have now; what it has under both has the new one.

    Of several cases that have become one, the first that did not pass stands for all.
    """
    own = {record.id for record in report.cases}
    not_passed = {outcome.case for outcome in report.outcomes if outcome.status != "pass"}
    found: dict[str, str] = {}
    for record in report.cases:
        for now in renames.get(record.id, ()):
            if now not in own and (now not in found or (record.id in not_passed and found[now] not in not_passed)):
                found[now] = record.id
    return found
