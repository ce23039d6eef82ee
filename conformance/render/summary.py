"""The Markdown summary of reports for the page of a CI job: counts, what is red, what was not run and why."""

from collections.abc import Sequence
from typing import Any

from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Pair, Report
from conformance.model.status import RED, TABLE
from conformance.render.markdown import fitted, render
from conformance.render.page.builds import release_key
from conformance.render.text import build_name, count_words, outcome_line, run_lines, unobserved_line

NAMED = 20  # cases that are named where many share a reason
HEADINGS = {"defects of the suite, which say nothing about torch": False, "red": True}


def summary_of(reports: Sequence[Report], limit: int) -> str:
    """Return the summary of `reports`, in the order of releases, of at most `limit` bytes."""
    targets = list(dict.fromkeys(target for report in reports for target in report.targets))
    parts = [build_summary(report, targets) for report in sorted(reports, key=lambda report: release_key(report.build))]
    return fitted(render("summary.md", {"targets": targets, "parts": parts}), limit)


def build_summary(report: Report, targets: Sequence[str]) -> dict[str, Any]:
    """Return what the template prints of a report.

    `missing` is None for a finished run, `unobserved` is empty where all could be observed, `runs` is empty for a
    report of one run, `counts` has a cell for each target, and `red` keeps outcomes that say something about torch
    apart from defects of the suite.
    """
    outcomes = report.by_pair()
    cases = {case.id: case for case in report.cases}
    counts = report.counts()
    red = [outcome for outcome in outcomes.values() if outcome.status in RED]
    return {
        "build": build_name(report.build), "planned": len(report.plan), "runs": run_lines(report),
        "missing": len(report.plan) - len(report.outcomes) if report.footer is None else None,
        "counts": [f"{count_words(own)} of {own.total()}" if own else "-" for own in map(counts.get, targets)],
        "red": {
            heading: [red_of(report, cases[each.case], each) for each in red
                      if TABLE[each.status].tells_of_torch == tells_of_torch]
            for heading, tells_of_torch in HEADINGS.items()
        },
        "idle": idle_of(outcomes), "unobserved": unobserved_line(outcomes.values()),
    }  # fmt: skip


def red_of(report: Report, case: CaseRecord, outcome: Outcome) -> dict[str, Any]:
    """Return what the template prints of a case that is red on a target."""
    return {
        "case": case.id, "target": outcome.target, "status": outcome.status, "title": case.title,
        "place": f"{case.file}:{outcome.line or case.line}", "account": outcome_line(outcome),
        "rules": [report.rules[rule] for rule in case.rules],
    }  # fmt: skip


def idle_of(outcomes: dict[Pair, Outcome]) -> list[dict[str, Any]]:
    """Return what was not run or is unsupported by reason, the most frequent first; `more` cases are not named."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair, outcome in outcomes.items():
        if not TABLE[outcome.status].is_run:
            groups.setdefault((outcome.status, outcome.reason), []).append(pair)
    idle = []
    for (status, reason), pairs in sorted(groups.items(), key=lambda group: -len(group[1])):
        cases = list(dict.fromkeys(case for case, _ in pairs))
        idle.append({
            "status": status, "reason": reason or "no reason given", "count": len(pairs),
            "targets": ", ".join(dict.fromkeys(target for _, target in pairs)),
            "cases": cases[:NAMED], "more": max(0, len(cases) - NAMED),
        })  # fmt: skip
    return idle
