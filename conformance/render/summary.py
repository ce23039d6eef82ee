"""The Markdown summary of reports for the page of a CI job: counts, what is red, what was not run and why."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Pair, Report
from conformance.model.rule import Rule
from conformance.model.status import RED, TABLE
from conformance.render.markdown import fitted, render
from conformance.render.page.builds import release_key
from conformance.render.text import build_name, count_words, outcome_line, run_lines

NAMED = 20  # cases that are named where many share a reason
HEADINGS = {"defects of the suite, which say nothing about torch": False, "red": True}


class Red(msgspec.Struct, frozen=True, kw_only=True):
    """A case that is red on a target."""

    case: str
    target: str
    status: str
    place: str
    title: str
    account: str
    rules: tuple[Rule, ...]


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """The cases that were not run, or are unsupported, for one reason; `more` of them are not named."""

    status: str
    reason: str
    targets: str
    count: int
    cases: tuple[str, ...]
    more: int


class BuildSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of one report.

    `missing` is None for a finished run, `runs` is empty for a report of one run, `counts` has a cell for each target,
    and `red` keeps outcomes that say something about torch apart from defects of the suite.
    """

    build: str
    planned: int
    missing: int | None
    runs: tuple[str, ...]
    counts: tuple[str, ...]
    red: dict[str, tuple[Red, ...]]
    idle: tuple[Idle, ...]


def summary_of(reports: Sequence[Report], limit: int) -> str:
    """Return the summary of `reports`, in the order of releases, of at most `limit` bytes."""
    targets = list(dict.fromkeys(target for report in reports for target in report.targets))
    parts = [build_summary(report, targets) for report in sorted(reports, key=lambda report: release_key(report.build))]
    return fitted(render("summary.md", {"targets": targets, "parts": parts}), limit)


def build_summary(report: Report, targets: Sequence[str]) -> BuildSummary:
    outcomes = report.by_pair()
    cases = {case.id: case for case in report.cases}
    counts = report.counts()
    return BuildSummary(
        build=build_name(report.build),
        planned=len(report.plan),
        missing=len(report.plan) - len(report.outcomes) if report.footer is None else None,
        runs=tuple(run_lines(report)),
        counts=tuple(
            f"{count_words(counts[target])} of {counts[target].total()}" if target in counts else "-"
            for target in targets
        ),
        red={
            heading: tuple(
                red_of(report, cases[case], outcome)
                for (case, _), outcome in outcomes.items()
                if outcome.status in RED and TABLE[outcome.status].tells_of_torch == tells_of_torch
            )
            for heading, tells_of_torch in HEADINGS.items()
        },
        idle=idle_of(outcomes),
    )


def red_of(report: Report, case: CaseRecord, outcome: Outcome) -> Red:
    return Red(
        case=case.id, target=outcome.target, status=outcome.status, place=f"{case.file}:{outcome.line or case.line}",
        title=case.title, account=outcome_line(outcome), rules=tuple(report.rules[rule] for rule in case.rules),
    )  # fmt: skip


def idle_of(outcomes: dict[Pair, Outcome]) -> tuple[Idle, ...]:
    """Return what was not run by reason, the most frequent reason first."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair, outcome in outcomes.items():
        if not TABLE[outcome.status].is_run:
            groups.setdefault((outcome.status, outcome.reason), []).append(pair)
    idle: list[Idle] = []
    for (status, reason), pairs in sorted(groups.items(), key=lambda group: -len(group[1])):
        cases = tuple(dict.fromkeys(case for case, _ in pairs))
        targets = ", ".join(dict.fromkeys(target for _, target in pairs))
        idle.append(Idle(status=status, reason=reason or "no reason given", targets=targets, count=len(pairs),
                         cases=cases[:NAMED], more=max(0, len(cases) - NAMED)))  # fmt: skip
    return tuple(idle)
