"""The Markdown summary of reports for the page of a CI job: counts, what is red by cause, what was not run and why."""

from collections.abc import Iterable, Sequence
from typing import Any

from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Report
from conformance.model.status import RED, TABLE
from conformance.render.markdown import fitted, render
from conformance.render.page.builds import release_key
from conformance.render.text import build_name, count_words, outcome_line, run_lines, unobserved_line
from conformance.results.causes import Group, groups_of

NAMED = 20  # cases that are named where many share a reason
CAUSES = 50  # that a table has
HEADINGS = {"defects of the suite, which say nothing about torch": False, "red": True}


def summary_of(reports: Sequence[Report], limit: int) -> str:
    """Return the summary of `reports`, in the order of releases, of at most `limit` bytes."""
    targets = list(dict.fromkeys(target for report in reports for target in report.targets))
    parts = [build_summary(report, targets) for report in sorted(reports, key=lambda report: release_key(report.build))]
    return fitted(render("summary.md", {"targets": targets, "parts": parts}), limit)


def build_summary(report: Report, targets: Sequence[str]) -> dict[str, Any]:
    """Return what the template prints of a report.

    `missing` is None for a finished run, `unobserved` is empty where all could be observed, `runs` is empty for a
    report of one run, `counts` has a cell for each target, `causes` are those of what is red, of which `more_causes`
    have no row, and `red` keeps outcomes that say something about torch apart from defects of the suite.
    """
    outcomes = report.by_pair()
    cases = {case.id: case for case in report.cases}
    counts = report.counts()
    red = [outcome for outcome in outcomes.values() if outcome.status in RED]
    groups = groups_of(outcomes.values(), cases)
    causes = [cause for cause, _ in groups if cause.is_red]
    return {
        "build": build_name(report.build), "planned": len(report.plan), "runs": run_lines(report),
        "missing": len(report.plan) - len(report.outcomes) if report.footer is None else None,
        "counts": [f"{count_words(own)} of {own.total()}" if own else "-" for own in map(counts.get, targets)],
        "causes": [
            {"title": cause.title, "counts": count_words(dict[str, int](cause.counts.items())),
             "targets": ", ".join(cause.targets), "case": cause.case, "target": cause.target}
            for cause in causes[:CAUSES]
        ],
        "more_causes": len(causes[CAUSES:]),
        "red": {
            heading: [red_of(report, cases[each.case], each) for each in red
                      if TABLE[each.status].tells_of_torch == tells_of_torch]
            for heading, tells_of_torch in HEADINGS.items()
        },
        "idle": idle_of(outcomes.values(), [group for group in groups if not group[0].is_red]),
        "unobserved": unobserved_line(outcomes.values()),
    }  # fmt: skip


def red_of(report: Report, case: CaseRecord, outcome: Outcome) -> dict[str, Any]:
    """Return what the template prints of a case that is red on a target."""
    return {
        "case": case.id, "target": outcome.target, "status": outcome.status, "title": case.title,
        "place": f"{case.file}:{outcome.line or case.line}", "account": outcome_line(outcome),
        "rules": [report.rules[rule] for rule in case.rules],
    }  # fmt: skip


def idle_of(outcomes: Iterable[Outcome], lacking: Sequence[Group]) -> list[dict[str, Any]]:
    """Return what is unsupported by cause, and what was not run by reason, the most frequent first.

    `more` cases are not named.
    """
    left: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.status == "not-run":
            left.setdefault(outcome.reason, []).append(outcome)
    groups = [*((cause.title, own) for cause, own in lacking), *left.items()]
    idle = []
    for reason, own in sorted(groups, key=lambda group: -len(group[1])):
        cases = list(dict.fromkeys(outcome.case for outcome in own))
        idle.append({
            "status": own[0].status, "reason": reason or "no reason given", "count": len(own),
            "targets": ", ".join(dict.fromkeys(outcome.target for outcome in own)),
            "cases": cases[:NAMED], "more": max(0, len(cases) - NAMED),
        })  # fmt: skip
    return idle
