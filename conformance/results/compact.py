"""Compact reports: what a build did without the words of the cases, for keeping many of them under version control.

A pass is what isn't mentioned; times are left out, and so is what belongs to the machine that ran it. What a case says
is found again in a whole report or in the cases themselves, by its id and its digest; until then a record is bare.
`compact.schema.json` is made of these records.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from conformance.model.outcome import NO_TIME, Outcome
from conformance.model.report import FORMAT, CaseRecord, Footer, Header, PlanEntry, Report, cited_rules, without_machine
from conformance.model.rule import Rule

MOST_PAIRS = 500_000  # what a small file stands for must not fill the memory


class CompactError(Exception):
    """A report that has no compact form, or a compact one that stands for too much."""


class FileOfCases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cases of a file in their order."""

    topic: str
    cases: Annotated[dict[str, str], Meta(description="Digests of the cases, by id, in their order.")]


class Compact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A report of every case on every target, without the words of the cases: id and digest find them again."""

    format: Annotated[Literal[2], Meta(description="The number of this format.")]
    compact: Annotated[Literal[1], Meta(description="The number of this form.")]
    header: Header
    files: Annotated[dict[str, FileOfCases], Meta(description="The case files, in the order of the plan.")]
    targets: Annotated[tuple[str, ...], Meta(description="The plan is each case on each of these.")]
    outcomes: Annotated[
        tuple[Outcome, ...],
        Meta(description="Those that are no mere passes; what is neither here nor missing has passed."),
    ]
    missing: Annotated[
        tuple[PlanEntry, ...], Meta(description="What has no outcome, in the report of a run that did not finish.")
    ] = ()
    footer: Footer | None = None


def compact_of(report: Report) -> Compact:
    """Return the compact form of a report; raise CompactError where its plan isn't every case on every target."""
    files: dict[str, FileOfCases] = {}
    for record in report.cases:
        files.setdefault(record.file, FileOfCases(topic=record.topic, cases={})).cases[record.id] = record.digest
    targets = tuple(report.targets)
    if [case for file in files.values() for case in file.cases] != [record.id for record in report.cases]:
        raise CompactError("the cases of a file don't stand together in it")
    if any(files[record.file].topic != record.topic for record in report.cases):
        raise CompactError("the cases of a file have several topics")
    if report.pairs != [(record.id, target) for record in report.cases for target in targets]:
        raise CompactError("it doesn't plan each case on each target")
    report = without_machine(report)
    outcomes = tuple(replace(outcome, seconds=NO_TIME) for outcome in report.outcomes)
    done = {outcome.pair for outcome in outcomes}
    return Compact(
        format=FORMAT, compact=1, header=report.header, files=files, targets=targets,
        outcomes=tuple(outcome for outcome in outcomes if outcome != mere_pass(*outcome.pair)),
        missing=tuple(entry for entry in report.plan if (entry.case, entry.target) not in done),
        footer=report.footer,
    )  # fmt: skip


def report_of(compact: Compact) -> Report:
    """Return the report that `compact` stands for, with bare records; raise CompactError for one that can't be."""
    if sum(len(file.cases) for file in compact.files.values()) * len(compact.targets) > MOST_PAIRS:
        raise CompactError(f"it stands for more than {MOST_PAIRS:,} outcomes")
    plan = tuple(
        PlanEntry(case=case, target=target)
        for file in compact.files.values() for case in file.cases for target in compact.targets
    )  # fmt: skip
    pairs = [(entry.case, entry.target) for entry in plan]
    missing = {(entry.case, entry.target) for entry in compact.missing}
    for case, target in missing.difference(pairs):
        raise CompactError(f"{case}[{target}] is missing, and not in the plan")
    noted: dict[tuple[str, str], Outcome] = {}
    for outcome in compact.outcomes:
        if noted.setdefault(outcome.pair, outcome) is not outcome:
            raise CompactError(f"{outcome.case}[{outcome.target}] has two outcomes")
    cases = [
        bare(name, case, file.topic, digest)
        for name, file in compact.files.items() for case, digest in file.cases.items()
    ]  # fmt: skip
    passed = [noted.pop(pair, mere_pass(*pair)) for pair in pairs if pair not in missing]
    return Report(
        format=FORMAT, header=compact.header, rules={}, cases=tuple(cases), plan=plan, footer=compact.footer,
        outcomes=(*passed, *noted.values()),  # those of no pair come last, where reading finds them out
    )  # fmt: skip


def mere_pass(case: str, target: str) -> Outcome:
    return Outcome(case=case, target=target, status="pass")


def bare(file: str, case: str, topic: str, digest: str) -> CaseRecord:
    return CaseRecord(
        id=case, file=file, line=1, topic=topic, title=case, why="", level="observed", rules=(), source=(),
        digest=digest, yaml="",
    )  # fmt: skip


def is_bare(record: CaseRecord) -> bool:
    return not record.yaml


def has_bare(reports: Iterable[Report]) -> bool:
    """Whether some report says nothing of some case that it has."""
    return any(is_bare(record) for report in reports for record in report.cases)


def filled(reports: Sequence[Report], cases: Iterable[CaseRecord] = (), rules: Iterable[Rule] = ()) -> list[Report]:
    """Return the reports with what the others, and `cases`, say of the cases of which a report says nothing.

    Of a case that has changed since, what it says now is said, but for its text, which is another one.
    """
    known = {record.id: record for report in reports for record in report.cases if not is_bare(record)}
    texts = {record.digest: record for report in reports for record in report.cases if not is_bare(record)}
    for record in cases:
        known.setdefault(record.id, record)
        texts.setdefault(record.digest, record)
    worded = {rule: record for report in reports for rule, record in report.rules.items()}
    worded = {**{rule.id: rule for rule in rules}, **worded}
    return [fill(report, known, texts, worded) if has_bare([report]) else report for report in reports]


def fill(report: Report, known: dict[str, CaseRecord], texts: dict[str, CaseRecord], rules: dict[str, Rule]) -> Report:
    records = []
    for record in report.cases:
        said = texts.get(record.digest) if is_bare(record) else record
        if said is None and record.id in known:
            said = replace(known[record.id], digest=record.digest, yaml="")
        records.append(replace(said or record, id=record.id, file=record.file))
    return replace(report, cases=tuple(records), rules=cited_rules(rules, records))
