"""The JSON report: all outcomes of one build.

`report.schema.json` describes it; `report_file.py` reads and writes it. A report without a footer is of a run that did
not finish.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Annotated

import msgspec

from conformance.model.build import OF_HOST, Build
from conformance.model.case import Case
from conformance.model.graph import Graph
from conformance.model.outcome import Line, Outcome
from conformance.model.rule import Level, Rule, level_of
from conformance.model.status import Status

FORMAT = 1

Pair = tuple[str, str]  # a case's id and a target


class SuiteVersion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The suite that ran: `cases` is a digest of the set of cases."""

    version: str
    commit: str | None
    cases: str


class Run(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When it ran, in UTC, and what pytest was called with, but for where reports go."""

    started: str
    arguments: tuple[str, ...]


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a report is of."""

    suite: SuiteVersion
    run: Run
    build: Build


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a report says of a case; `digest` changes whenever its meaning may have."""

    id: str
    file: str
    line: Line
    topic: str
    title: str
    why: str
    level: Level
    rules: tuple[str, ...]
    source: tuple[str, ...]
    digest: str
    yaml: str


class PlanEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of the plan."""

    case: str
    target: str


class Footer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run ended."""

    finished: str
    exit_status: int
    counts: dict[Status, Annotated[int, msgspec.Meta(ge=1)]]


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """All outcomes of one build; those of an unfinished run may lack some that the plan has."""

    format: int
    header: Header
    rules: dict[str, Rule]
    cases: tuple[CaseRecord, ...]
    plan: tuple[PlanEntry, ...]
    outcomes: tuple[Outcome, ...]
    graphs: dict[str, Graph] = {}
    footer: Footer | None = None

    @property
    def build(self) -> Build:
        return self.header.build

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(entry.target for entry in self.plan))

    @property
    def pairs(self) -> list[Pair]:
        return [(entry.case, entry.target) for entry in self.plan]

    def by_pair(self) -> dict[Pair, Outcome]:
        """Return the outcome of each entry of the plan; what has none yet was not run."""
        known = {(outcome.case, outcome.target): outcome for outcome in self.outcomes}
        missing = "the report is incomplete"
        return {
            pair: known.get(pair) or Outcome(case=pair[0], target=pair[1], status="not-run", reason=missing)
            for pair in self.pairs
        }

    def counts(self) -> dict[str, Counter[str]]:
        """Return how many outcomes of each status there are, by target."""
        counts: dict[str, Counter[str]] = {target: Counter() for target in self.targets}
        for (_, target), outcome in self.by_pair().items():
            counts[target][outcome.status] += 1
        return counts


def without_machine(report: Report) -> Report:
    """Return a report that says nothing of the machine: no paths, arguments or processor, no last words of a worker."""
    header, build = report.header, report.build
    config = "".join(f"{line}\n" for line in build.config.splitlines() if not OF_HOST.match(line))
    header = msgspec.structs.replace(
        header,
        run=msgspec.structs.replace(header.run, arguments=()),
        build=msgspec.structs.replace(build, config=config, path="", executable="", platform=""),
    )
    outcomes = tuple(msgspec.structs.replace(outcome, stderr="") for outcome in report.outcomes)
    return msgspec.structs.replace(report, header=header, outcomes=outcomes)


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def case_record(case: Case, rules: Mapping[str, Rule]) -> CaseRecord:
    """Return what a report says of a case."""
    return CaseRecord(
        id=case.id, file=case.file, line=case.line, topic=case.topic, title=case.title, why=case.why,
        level=level_of(rules, case.rules), rules=case.rules, source=case.source, digest=case.digest, yaml=case.text,
    )  # fmt: skip


def cited_rules(rules: Mapping[str, Rule], cases: Iterable[Case]) -> dict[str, Rule]:
    """Return the rules that `cases` cite, as a report holds them."""
    return {name: rules[name] for name in sorted({rule for case in cases for rule in case.rules})}


def set_digest(digests: Iterable[tuple[str, str]]) -> str:
    """Return a digest of a set of cases, given as id and digest, that is the same for the same cases in any order."""
    listed = "".join(sorted(case + digest for case, digest in digests))
    return hashlib.sha256(listed.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def footer_of(outcomes: Iterable[Outcome], exit_status: int, finished: str) -> Footer:
    counts = Counter(outcome.status for outcome in outcomes)
    return Footer(finished=finished, exit_status=exit_status, counts=dict(sorted(counts.items())))
