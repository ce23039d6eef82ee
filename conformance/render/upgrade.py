"""Formats what changes between two releases as a guide for those who upgrade, in Markdown."""

from collections.abc import Iterable
from typing import Any

from conformance.model.report import Report
from conformance.render.diff import accounts
from conformance.render.markdown import render
from conformance.render.text import build_name
from conformance.results.diff import Change, Difference, Kind

# The sections of a guide, the one that matters most first: a heading, the kinds in it, and whether it is folded.
SECTIONS: tuple[tuple[str, tuple[Kind, ...], bool], ...] = (
    ("What behaves otherwise", ("behaviour-changed", "expectation-changed"), False),
    ("Errors and warnings of another type", ("error-type-changed",), False),
    ("What got worse", ("regressed", "changed-failure", "expected-failure", "newly-not-run"), False),
    ("What is right now", ("fixed",), False),
    ("What there is now", ("newly-run", "newly-asked"), True),
    ("Errors and warnings in other words", ("message-changed",), True),
)

MOST_WORDS = 4  # of what one case expects otherwise
MOST_FOLDED = 25  # cases of a folded section: a release that brings a feature brings hundreds


def guide_of(difference: Difference) -> str:
    """Return the guide from the release of the old report to that of the new one."""
    old, new = difference.old, difference.new
    found = [(heading, entries_of(difference, kinds), folded) for heading, kinds, folded in SECTIONS]
    sections = [
        (heading, len(entries), entries[: MOST_FOLDED if folded else None], folded)
        for heading, entries, folded in found
    ]
    return render("upgrade.md", {
        "old": old.build.torch, "new": new.build.torch, "both": [build_name(report.build) for report in (old, new)],
        "count": len(cases_of(old) & cases_of(new)),
        "sections": [section for section in sections if section[1]],
    })  # fmt: skip


def cases_of(report: Report) -> set[str]:
    return {case.id for case in report.cases}


def entries_of(difference: Difference, kinds: Iterable[Kind]) -> list[dict[str, Any]]:
    """Return the changes of some kinds, each case once."""
    changes = (change for kind in kinds for change in difference.by_kind.get(kind, ()))
    once: dict[str, Change] = {}
    for change in changes:
        once.setdefault(change.case.id, change)
    return [
        {
            "case": change.case.id, "title": change.case.title or change.case.id,
            "words": change.expected[:MOST_WORDS], "more": max(0, len(change.expected) - MOST_WORDS),
            "accounts": [] if change.expected else accounts(change)[-1:],
            "advice": [rule.upgrade for rule in difference.rules_of(change) if rule.upgrade],
            "link": change.new.issue.link if change.new and change.new.issue else "",
        }
        for change in once.values()
    ]  # fmt: skip
