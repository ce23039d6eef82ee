"""The difference between two reports: each case on each target once, and whether anything got worse.

A pair is a case and a target. A table decides the kind of its change; the page has the same table, as data. What a pair
is now counts more than what has been done to the case: where it ran before and isn't run any more, or turned red, an
edit is no excuse. The rest of what an edited case does differently says nothing about torch.

A case that has another id now, or that has been split into several, is joined to what it was. It counts as edited, but
for one thing: a pass of the earlier case says that each of its parts held, and what a part does now is compared with
that. Of any other outcome nobody knows which part it was of; and a part that this torch lacks is no loss, since the
earlier case left it out.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import msgspec

from conformance.language import versions
from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Report, SuiteVersion
from conformance.model.rule import Rule
from conformance.model.status import TABLE, Verdict
from conformance.results.fingerprint import fingerprint

FORMAT = 3

# Of what holds in both reports because other things are expected of the second one's release, what counts more first.
ExpectedKind = Literal[
    "behaviour-changed", "error-type-changed", "newly-asked", "message-changed", "expectation-changed"
]  # fmt: skip
EXPECTED: tuple[ExpectedKind, ...] = get_args(ExpectedKind)
Kind = Literal[
    "regressed", "changed-failure", "newly-not-run", "suite-defect", "behaviour-changed", "error-type-changed",
    "expected-failure", "fixed", "newly-asked", "message-changed", "expectation-changed", "newly-run",
    "wording-changed", "edited", "added", "removed",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
GATES: tuple[Kind, ...] = ("regressed", "changed-failure", "newly-not-run", "suite-defect")
MEANINGS: dict[Kind, str] = {
    "regressed": "red now, and not before",
    "changed-failure": "red before and now, but at another step, at other places, with another error, or not steadily",
    "newly-not-run": "ran before; now not run, unsupported, or its target is gone",
    "suite-defect": "the suite itself failed, before or now, so that nothing can be said of torch",
    "behaviour-changed": "holds in both, where a program observes something else on the two releases",
    "error-type-changed": "holds in both, with an error or a warning of another type",
    "expected-failure": "fails as a known issue says, and did not before",
    "fixed": "red or known before; now a pass, or a known issue that no longer fails",
    "newly-asked": "holds in both, but some of it is asked of one of the releases alone",
    "message-changed": "holds in both, with an error or a warning in other words",
    "expectation-changed": "holds in both, where other things are expected, by a case that this suite doesn't have",
    "newly-run": "not run or unsupported before; now a pass",
    "wording-changed": "fails, is known or isn't run as before, in other words",
    "edited": "the case itself has changed, so that its outcomes can't be compared",
    "added": "the old report has no such case, or not on this target",
    "removed": "the new report has no such case, or not on this target, where it didn't run before either",
}

# What a report says of a pair: the verdict of its outcome, or why there is none. A report that doesn't plan a case on a
# target may have the case on others (`off-target`) or not at all (`absent`).
Standing = Verdict | Literal["off-target", "absent"]

# Where outcomes differ, what counts more first.
Degree = Literal["revision", "failure", "wording", "nothing"]
DEGREES: tuple[Degree, ...] = get_args(Degree)

# The kind of change, by what a report said before (rows) and says now (columns). What had not been run counts as having
# held: a gate that forgot what it held to while a device was missing would let anything through when it comes back.
# An edited case is `edited`, except where the kind has an exclamation mark. `failure` and `wording` compare outcomes
# that say the same of torch, `-` takes them for the same, and `.` is nothing at all.
GRID = """
before      held           outdated       broken           unsteady         expected          lacking        not-run         defect         off-target      absent
held        -              fixed          regressed        regressed        expected-failure  newly-not-run  newly-not-run!  suite-defect!  newly-not-run!  removed!
outdated    fixed          -              regressed        regressed        expected-failure  newly-not-run  newly-not-run!  suite-defect!  newly-not-run!  removed!
broken      fixed          fixed          failure          changed-failure  expected-failure  newly-not-run  newly-not-run!  suite-defect!  newly-not-run!  removed!
unsteady    fixed          fixed          changed-failure  wording          expected-failure  newly-not-run  newly-not-run!  suite-defect!  newly-not-run!  removed!
expected    fixed          fixed          regressed        regressed        wording           newly-not-run  newly-not-run!  suite-defect!  newly-not-run!  removed!
lacking     newly-run      newly-run      regressed        regressed        expected-failure  wording        wording         suite-defect!  removed!        removed!
not-run     newly-run      newly-run      regressed        regressed        expected-failure  wording        wording         suite-defect!  removed!        removed!
defect      suite-defect!  suite-defect!  suite-defect!    suite-defect!    suite-defect!     suite-defect!  suite-defect!   suite-defect!  suite-defect!   removed!
off-target  added!         added!         added!           added!           added!            added!         added!          suite-defect!  .               .
absent      added!         added!         added!           added!           added!            added!         added!          suite-defect!  .               .
"""  # noqa: E501 - a table is read across

Decision = dict[Degree, Kind | None]
Words = tuple[str, str, str]  # the expression or step, what is expected of it on one release, and on the other
Expectation = tuple[ExpectedKind, tuple[Words, ...]]


def decision(entry: str) -> Decision:
    """Return what an entry of the grid says: the kind by degree, None for no change."""
    kind: Any = entry.rstrip("!")
    if entry == ".":
        return dict.fromkeys(DEGREES)
    if entry == "-":
        return {**dict.fromkeys(DEGREES), "revision": "edited"}
    if entry in ("failure", "wording"):
        failure: Kind = "changed-failure" if entry == "failure" else "wording-changed"
        return {"revision": "edited", "failure": failure, "wording": "wording-changed", "nothing": None}
    return {**dict.fromkeys(DEGREES, kind), "revision": kind if entry.endswith("!") else "edited"}


def decisions(grid: str) -> dict[Standing, dict[Standing, Decision]]:
    (_, *columns), *rows = (line.split() for line in grid.strip().splitlines())
    named: Any = {row: dict(zip(columns, map(decision, entries), strict=True)) for row, *entries in rows}
    return dict(named)


DECISIONS = decisions(GRID)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a case on a target; an outcome is None where a report doesn't plan the pair."""

    kind: Kind
    case: CaseRecord
    target: str
    old: Outcome | None
    new: Outcome | None
    expected: tuple[Words, ...] = ()  # what is expected otherwise

    @property
    def gates(self) -> bool:
        """Whether this is for the worse; an edit says nothing of torch, but may not hide that something turned red."""
        if self.kind != "edited":
            return self.kind in GATES
        return DECISIONS[standing(self.old)][standing(self.new)]["nothing"] == "regressed"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """All that changed between two reports, by kind and then in the order of the plans, and how many pairs did not."""

    old: Report
    new: Report
    changes: tuple[Change, ...]
    unchanged: int
    earlier: dict[str, str] = {}  # ids in the old report as it was written, by those of today

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


def wording_of(outcome: Outcome) -> tuple[Any, ...]:
    """Return what an outcome says; not the last words of a worker, which hold addresses and process ids."""
    failures = [(failure.path, failure.expected, failure.observed) for failure in outcome.failures]
    return outcome.status, fingerprint(outcome), failures, outcome.reason, outcome.issue


def why_incomparable(old: Report, new: Report) -> str:
    """Say why comparing two reports would tell nothing; "" where it tells something."""
    ids = [{case.id for case in report.cases} for report in (old, new)]
    return "they have no case in common" if any(ids) and not ids[0] & ids[1] else ""


def by_conditions(record: CaseRecord, older: str, newer: str) -> Expectation | None:
    """Return whether a case expects other things of one release of torch than of another, without knowing which."""
    return ("expectation-changed", ()) if conditions_held(record, older) != conditions_held(record, newer) else None


def conditions_held(record: CaseRecord, torch: str) -> tuple[str, ...]:
    """Return those conditions on torch in a case that a release fulfils."""
    stated = [text for step in record.steps for text in (step.torch, *step.variants) if text]
    return tuple(text for text in dict.fromkeys(stated) if is_fulfilled(text, torch))


def is_fulfilled(condition: str, torch: str) -> bool:
    try:
        return versions.holds(condition, torch)
    except ValueError:
        return False


def compare(
    old: Report,
    new: Report,
    earlier: Mapping[str, str] | None = None,
    expectation: Callable[[CaseRecord, str, str], Expectation | None] = by_conditions,
) -> Difference:
    """Return what changed from `old` to `new`.

    `earlier` are the ids that cases had when `old` was written; `expectation` returns what a case that holds on two
    releases of torch expects otherwise on the second, or None.
    """
    earlier = earlier or {}
    cases = {case.id: case for report in (old, new) for case in report.cases}
    digests = [{case.id: case.digest for case in report.cases} for report in (old, new)]
    edited = {case for case, digest in digests[0].items() if digests[1].get(case, digest) != digest}
    before, after = old.by_pair(), new.by_pair()
    changes: list[Change] = []
    unchanged = 0
    for pair in (*after, *(pair for pair in before if pair not in after)):
        case, target = pair
        was, now = before.get(pair), after.get(pair)
        stand = [standing(each, case in known) for each, known in ((was, digests[0]), (now, digests[1]))]
        is_joined = case in earlier and stand[0] == "held" and stand[1] != "lacking"
        kind = DECISIONS[stand[0]][stand[1]][degree(was, now, case in edited and not is_joined)]
        words: tuple[Words, ...] = ()
        if kind is None and stand == ["held", "held"]:
            kind, words = expectation(cases[case], old.build.torch, new.build.torch) or (None, words)
        if kind is None:
            unchanged += 1
        else:
            changes.append(Change(kind=kind, case=cases[case], target=target, old=was, new=now, expected=words))
    listed = tuple(sorted(changes, key=lambda change: KINDS.index(change.kind)))
    joined = {case: earlier[case] for case in digests[0] if case in earlier}
    return Difference(old=old, new=new, changes=listed, unchanged=unchanged, earlier=joined)


def standing(outcome: Outcome | None, is_known: bool = True) -> Standing:
    """Return what a report says of a pair; `is_known` tells whether it has the case."""
    if outcome is not None:
        return TABLE[outcome.status].verdict
    return "off-target" if is_known else "absent"


def degree(was: Outcome | None, now: Outcome | None, is_edited: bool) -> Degree:
    """Return in what two outcomes differ."""
    if is_edited:
        return "revision"
    if was is None or now is None:
        return "nothing"
    if fingerprint(was) != fingerprint(now):
        return "failure"
    return "nothing" if wording_of(was) == wording_of(now) else "wording"


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
    for earlier, count in Counter(difference.earlier.values()).items():
        notes.append(f"the old report's case {earlier} is joined to the {count} that it is now")
    return notes


def record_of(difference: Difference) -> dict[str, Any]:
    """Return the difference as JSON holds it."""
    counts = difference.counts
    return {
        "format": FORMAT, "gates": difference.gates, "old": report_record(difference.old),
        "new": report_record(difference.new), "notes": notes_of(difference),
        "counts": {**{kind: counts.get(kind, 0) for kind in KINDS}, "unchanged": difference.unchanged},
        "changes": [
            {
                "kind": change.kind, "gates": change.gates, "case": change.case.id, "target": change.target,
                "file": change.case.file, "line": change.case.line, "rules": list(change.case.rules),
                "earlier": difference.earlier.get(change.case.id),
                "expected": [dict(zip(("place", "before", "after"), words, strict=True)) for words in change.expected],
                "old": change.old and outcome_record(change.old), "new": change.new and outcome_record(change.new),
            }
            for change in difference.changes
        ],
    }  # fmt: skip


def report_record(report: Report) -> dict[str, Any]:
    build = {name: getattr(report.build, name) for name in ("torch", "git", "python", "system")}
    build["backends"] = [
        {"device": each.device, "name": each.name, "version": each.version, "commit": each.commit,
         "hardware": report.build.hardware_of(each)}
        for each in report.build.backends
    ]  # fmt: skip
    counts = {target: dict(sorted(counts.items())) for target, counts in report.counts().items()}
    suite = msgspec.to_builtins(report.header.suite)
    return {"build": build, "suite": suite, "complete": report.footer is not None, "counts": counts}


def outcome_record(outcome: Outcome) -> dict[str, Any]:
    """Return what there is to say of an outcome besides whose it is and how long it took."""
    left_out = {"case", "target", "seconds", "run", *(() if outcome.status == "flaky" else ("retry",))}
    return {name: value for name, value in outcome.record().items() if name not in left_out}
