"""Reports that differ in all ways that a page must tell apart, and what a reader sees of them."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import msgspec
from playwright.sync_api import Page
from samples import (
    CPU,
    CUDA,
    GRAPH,
    broken,
    device,
    failed,
    outcome,
    report,
    valid_case,
)

from conformance.model.outcome import Issue
from conformance.model.report import Report
from conformance.results.nights import Nights, with_night

HOSTILE = (
    "<script>document.title='pwned'</script>", "</script><script>alert(1)</script>",
    "\"'`><img src=x onerror=alert(1)>", "javascript:alert(1)", "\u202egnp.exe\u2066", "\ud800 half a pair",
    "{{ 7 * 7 }} ${7 * 7} <!--", "]]>&amp;\\u003cb\\u003e",
)  # fmt: skip
DOUBLE = "cpu-float64"
GOOD = outcome("pass")
LATE = Issue(status="fail", reason="Late since ever.", link="https://example.org/issues/1")
OLD_BUILD, NEW_BUILD = (
    quote(f"torch-{torch}-01234567-py3.11-linux-x86_64") for torch in ("1.13.1+cu117", "2.13.0+cpu")
)
Shower = Callable[..., Page]


def many_reports() -> list[Report]:
    """Return reports of three builds that differ in all ways that a page must tell apart."""
    cases = [
        valid_case("holds", topic="First", rules=("r.one", "r.two")),
        valid_case("breaks", line=21, topic="First", title="It breaks on the new release"),
        valid_case("crashes", line=41, topic="Second", file="cases/y.yaml"),
        valid_case("late", line=61, topic="Second", file="cases/y.yaml", level="observed", rules=("r.two",)),
        valid_case("lacks", line=81, topic="Third", file="cases/z.yaml"),
    ]
    ids = [case.id for case in cases]
    old = report(
        {**{(name, CPU): GOOD for name in ids}, ("lacks", CPU): outcome("unsupported", reason="no such operation")},
        cases=cases, torch="1.13.1+cu117", devices=(device("cpu"),),
    )  # fmt: skip
    middle = report(
        {(name, target): GOOD for target in (CPU, CUDA) for name in ids},
        cases=cases, torch="2.0.1", devices=(device("cpu"), device("cuda")), cuda="11.7",
    )  # fmt: skip
    new = report(
        {
            ("holds", CPU): GOOD, ("holds", DOUBLE): GOOD, ("breaks", CPU): broken(line=29),
            ("crashes", CPU): outcome("crash", reason="the worker was ended by SIGSEGV", stderr="Fatal Python error"),
            ("late", CPU): failed(status="known", issue=LATE),
            ("lacks", CPU): None,
        },
        cases=cases, finished=False,
    )  # fmt: skip
    return [new, old, msgspec.structs.replace(middle, graphs={"holds": GRAPH, "breaks": GRAPH})]


def nights_of(last: Report) -> Nights:
    """Return three nights of a build line, in the last of which a case broke and another one crashed."""
    nights = None
    for day in (1, 2):
        run = msgspec.structs.replace(last.header.run, started=f"2026-01-0{day}T03:17:00+00:00")
        header = msgspec.structs.replace(last.header, run=run)
        outcomes = tuple(outcome("pass", case=each.case, target=each.target) for each in last.outcomes)
        nights = with_night(nights, msgspec.structs.replace(last, header=header, outcomes=outcomes))
    return with_night(nights, last)


def rows(page: Page) -> list[str]:
    """Return the labels of the rows of the matrix, with a sign of those that stand open or closed."""
    labels: list[str] = page.locator("table.matrix tbody th").evaluate_all(
        """heads => heads.map(head => {
            const expanded = head.querySelector('[aria-expanded]')?.ariaExpanded;
            const sign = expanded === 'true' ? '- ' : expanded === 'false' ? '+ ' : '';
            return sign + head.textContent.replace(/\\s+/g, ' ').trim();
        })"""
    )
    return labels


def cells(page: Page, label: str) -> list[str]:
    """Return the outcomes in the row of a case, as somebody hears them who can't see them."""
    row = page.locator("table.matrix tbody tr", has=page.locator("th", has_text=label)).last
    outcomes: list[str] = row.locator("td").evaluate_all(
        "tds => tds.map(td => [...td.querySelectorAll('[aria-label]')].map(s => s.ariaLabel).join())"
    )
    return outcomes


def steps_said(page: Page) -> list[str]:
    return [" ".join(text.split()) for text in page.locator("table.steps td:last-child").all_inner_texts()]
