"""The difference between two reports: each case on each target once, and whether anything got worse.

A pair is a case and a target. What it is now counts more than what has been done to the case: where it ran before and
isn't run any more, or turned red, an edit is no excuse. The rest of what an edited case does differently says nothing
about torch.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, get_args

import msgspec

from conformance.model.outcome import RED, Outcome
from conformance.model.report import CaseRecord, Pair, Report, SuiteVersion
from conformance.model.rule import Rule
from conformance.results.fingerprint import fingerprint

FORMAT = 1

Kind = Literal[
    "regressed", "changed-failure", "newly-not-run", "newly-known", "fixed", "newly-run", "wording-changed", "edited",
    "added", "removed",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
GATES: tuple[Kind, ...] = ("regressed", "changed-failure", "newly-not-run")
MEANINGS: dict[Kind, str] = {
    "regressed": "red now, and not before",
    "changed-failure": "red before and now, but at another step, at other places or with another error",
    "newly-not-run": "ran before; now not run, unsupported, or its target is gone",
    "newly-known": "fails as a known issue says, and did not before",
    "fixed": "red or known before; now a pass, or a known issue that no longer fails",
    "newly-run": "not run or unsupported before; now a pass",
    "wording-changed": "fails, is known or isn't run as before, in other words",
    "edited": "the case itself has changed, so that its outcomes can't be compared",
    "added": "the old report has no such case, or not on this target",
    "removed": "the new report has no such case, or not on this target, where it didn't run before either",
}

NOT_RUN = frozenset({"unsupported", "not-run"})
HOLDS = frozenset({"pass", "fixed"})
BROKEN = RED - HOLDS


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a case on a target; an outcome is None where a report doesn't plan the pair."""

    kind: Kind
    case: CaseRecord
    target: str
    old: Outcome | None
    new: Outcome | None

    @property
    def gates(self) -> bool:
        """Whether this is for the worse; an edit says nothing of torch, but may not hide that something turned red."""
        turned_red = self.new is not None and self.new.status in BROKEN and not (self.old and self.old.status in BROKEN)
        return self.kind in GATES or (self.kind == "edited" and turned_red)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """All that changed between two reports, by kind and then in the order of the plans, and how many pairs did not."""

    old: Report
    new: Report
    changes: tuple[Change, ...]
    unchanged: int

    @property
    def gates(self) -> bool:
        return any(change.gates for change in self.changes)

    @property
    def counts(self) -> dict[Kind, int]:
        counts = Counter(change.kind for change in self.changes)
        return {kind: counts[kind] for kind in KINDS if counts[kind]}

    @property
    def by_kind(self) -> dict[Kind, list[Change]]:
        return {kind: [change for change in self.changes if change.kind == kind] for kind in self.counts}

    def rules_of(self, change: Change) -> list[Rule]:
        """Return the rules that a case cites, in the words of the newest report that has it."""
        both = {**self.old.rules, **self.new.rules}
        return [both[rule] for rule in change.case.rules]


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of several builds by name, None where there is no earlier report, and builds that are gone."""

    found: dict[str, Difference | None]
    gone: tuple[str, ...] = ()

    @property
    def worse(self) -> list[str]:
        """The names of the builds that got worse, those that are gone among them."""
        return [*self.gone, *(name for name, each in self.found.items() if each is not None and each.gates)]


def words_of(outcome: Outcome) -> tuple[Any, ...]:
    """Return what an outcome says; not the last words of a worker, which hold addresses and process ids."""
    failures = [(failure.path, failure.expected, failure.observed) for failure in outcome.failures]
    return outcome.status, fingerprint(outcome), failures, outcome.reason, outcome.issue


def why_incomparable(old: Report, new: Report) -> str:
    """Say why comparing two reports would tell nothing; "" where it tells something."""
    ids = [{case.id for case in report.cases} for report in (old, new)]
    return "they have no case in common" if any(ids) and not ids[0] & ids[1] else ""


def compare(old: Report, new: Report) -> Difference:
    """Return what changed from `old` to `new`."""
    cases = {case.id: case for report in (old, new) for case in report.cases}
    digests = [{case.id: case.digest for case in report.cases} for report in (old, new)]
    edited = {case for case, digest in digests[0].items() if digests[1].get(case, digest) != digest}
    before, after = old.by_pair(), new.by_pair()
    changes: dict[Kind, list[Change]] = {kind: [] for kind in KINDS}
    unchanged = 0
    for pair in (*after, *(pair for pair in before if pair not in after)):
        was, now = before.get(pair), after.get(pair)
        kind: Kind | None
        if was is None:
            kind = "added"
        elif now is None:
            kind = "newly-not-run" if pair[0] in digests[1] and was.status not in NOT_RUN else "removed"
        elif now.status == "not-run" and was.status not in NOT_RUN:
            kind = "newly-not-run"
        else:
            kind = "edited" if pair[0] in edited else kind_of(was, now)
        if kind is None:
            unchanged += 1
        else:
            changes[kind].append(change_of(kind, pair, cases[pair[0]], was, now))
    listed = tuple(change for kind in KINDS for change in changes[kind])
    return Difference(old=old, new=new, changes=listed, unchanged=unchanged)


def change_of(kind: Kind, pair: Pair, case: CaseRecord, old: Outcome | None, new: Outcome | None) -> Change:
    return Change(kind=kind, case=case, target=pair[1], old=old, new=new)


def kind_of(was: Outcome, now: Outcome) -> Kind | None:
    """Return what changed between two outcomes of the same case; None for nothing.

    What had not been run counts as having held: a gate that forgot what it held to while a device was
    missing would let anything through when the device comes back.
    """
    if now.status in BROKEN:
        if was.status not in BROKEN:
            return "regressed"
        if fingerprint(was) != fingerprint(now):
            return "changed-failure"
    elif now.status in NOT_RUN:
        if was.status not in NOT_RUN:
            return "newly-not-run"
    elif now.status == "known":
        if was.status != "known":
            return "newly-known"
    else:
        if was.status in NOT_RUN:
            return "newly-run"
        return None if was.status == now.status else "fixed"
    return None if words_of(was) == words_of(now) else "wording-changed"


def notes_of(difference: Difference) -> list[str]:
    """Return what a reader must know before trusting the difference."""
    notes = []
    for name, report in (("old", difference.old), ("new", difference.new)):
        if report.footer is None:
            missing = len(report.plan) - len(report.outcomes)
            notes.append(f"the {name} report is incomplete: {missing} of {len(report.plan)} planned have no outcome")
    facts = msgspec.structs.fields(SuiteVersion)
    suites = difference.old.header.suite, difference.new.header.suite
    values = [(fact.name, *(getattr(suite, fact.name) for suite in suites)) for fact in facts]
    differing = [f"{name} {old or 'none'} and {new or 'none'}" for name, old, new in values if old != new]
    if differing:
        notes.append(f"the suites differ: {'; '.join(differing)}")
    return notes


def record_of(difference: Difference) -> dict[str, Any]:
    """Return the difference as JSON holds it."""
    counts = difference.counts
    return {
        "format": FORMAT,
        "gates": difference.gates,
        "old": side(difference.old),
        "new": side(difference.new),
        "notes": notes_of(difference),
        "counts": {**{kind: counts.get(kind, 0) for kind in KINDS}, "unchanged": difference.unchanged},
        "changes": [
            {
                "kind": change.kind, "gates": change.gates, "case": change.case.id, "target": change.target,
                "file": change.case.file, "line": change.case.line, "rules": list(change.case.rules),
                "old": told(change.old), "new": told(change.new),
            }
            for change in difference.changes
        ],
    }  # fmt: skip


def side(report: Report) -> dict[str, Any]:
    build = {name: getattr(report.build, name) for name in ("torch", "git", "python", "system")}
    counts = {target: dict(sorted(counts.items())) for target, counts in report.counts().items()}
    suite = msgspec.to_builtins(report.header.suite)
    return {"build": build, "suite": suite, "complete": report.footer is not None, "counts": counts}


def told(outcome: Outcome | None) -> dict[str, Any] | None:
    """Return what there is to say of an outcome besides whose it is and how long it took."""
    if outcome is None:
        return None
    return {name: value for name, value in outcome.record().items() if name not in ("case", "target", "seconds")}
