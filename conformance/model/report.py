"""The JSON report: all outcomes of one build.

`report.schema.json` is generated from these records; `results/store.py` reads and writes them.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from conformance.model.build import OF_HOST, Build
from conformance.model.case import Case, ListedCase
from conformance.model.graph import Graph
from conformance.model.outcome import Line, Outcome
from conformance.model.rule import Level, Rule, level_of
from conformance.model.shard import Shard
from conformance.model.status import RED, Status

FORMAT: Final = 2
TIME = {"format": "date-time"}

Pair = tuple[str, str]  # a case's id and a target
Revision = tuple[str, str]  # a case's id and digest


class SuiteVersion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The suite that ran."""

    version: Annotated[str, Meta(description="The suite's version.")]
    commit: Annotated[
        str | None, Meta(description="The suite's commit, with + where it had changes; null outside of a checkout.")
    ]
    cases: Annotated[str, Meta(description="A digest of the set of cases, the same for the same cases in any order.")]


class Run(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A run of pytest."""

    started: Annotated[str, Meta(description="When the run began, in UTC.", extra_json_schema=TIME)]
    arguments: Annotated[tuple[str, ...], Meta(description="The arguments of the command, without paths of reports.")]
    shard: Annotated[Shard | None, Meta(description="The part of the cases that was selected by --shard.")] = None
    command: Annotated[str, Meta(description="What the arguments were given to.")] = "pytest"


class PartialRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run with only some of its outcomes in the report; null for one that did not finish."""

    run: Run
    suite: SuiteVersion
    finished: Annotated[str | None, Meta(description="When the run ended, in UTC.", extra_json_schema=TIME)]
    exit_status: Annotated[int | None, Meta(description="pytest's exit status.")]


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The run of most outcomes, other runs of some of the cases, and the build."""

    suite: SuiteVersion
    run: Run
    build: Build
    partial_runs: Annotated[
        tuple[PartialRun, ...], Meta(description="Other runs, of which the outcomes are that give their number.")
    ] = ()


class StepRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The line of a step, and the releases of torch that it applies to."""

    line: Annotated[Line, Meta(description="Its first line in the case file.")]
    kind: Annotated[Literal["do", "expect"], Meta(description="Statements, or an expectation.")]
    torch: Annotated[str, Meta(description="The condition on torch under which it is a step at all.")] = ""
    variants: Annotated[tuple[str, ...], Meta(description="The conditions on torch of its alternatives.")] = ()


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A case in a report."""

    id: Annotated[str, Meta(description="Unique in the set.")]
    file: Annotated[str, Meta(description="The case file.")]
    line: Line
    topic: Annotated[str, Meta(description="The file's topic.")]
    title: Annotated[str, Meta(description="What holds.")]
    why: Annotated[str, Meta(description="Why autograd behaves so.")]
    level: Annotated[Level, Meta(description="documented when every rule that it cites is.")]
    rules: tuple[str, ...]
    source: tuple[str, ...]
    digest: Annotated[str, Meta(description="Changes whenever the case's meaning may have.")]
    yaml: Annotated[str, Meta(description="The case as it stands in its file.")]
    steps: Annotated[tuple[StepRecord, ...], Meta(description="None in reports of format 1.")] = ()


class PlanEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A case on a target."""

    case: Annotated[str, Meta(description="A case's id.")]
    target: Annotated[str, Meta(description="A device and a dtype, such as cpu-float32.")]


class Cause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Outcomes that seem to have one cause; `case` on `target` is the smallest of them."""

    id: Annotated[str, Meta(description="The same for the same cause in any report.")]
    signatures: Annotated[
        tuple[str, ...], Meta(description="What its outcomes say alike, without what differs from case to case.")
    ]
    op: Annotated[str, Meta(description="The operator that a message names, or a suspected operation.")] = ""
    topic: Annotated[
        str,
        Meta(description="The topic of its cases, or the program or way that they share, where nothing tells more."),
    ] = ""
    counts: Annotated[
        dict[Status, Annotated[int, Meta(ge=1)]], Meta(description="How many outcomes there are of each status.")
    ]
    case: Annotated[str, Meta(description="The smallest case, by its steps and then its text.")]
    target: Annotated[str, Meta(description="A target of the smallest case.")]
    targets: tuple[str, ...]
    cases: tuple[str, ...]

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    @property
    def is_red(self) -> bool:
        return not RED.isdisjoint(self.counts)

    @property
    def title(self) -> str:
        """What the cause is, in one line."""
        own, *others = self.signatures
        more = f" (and {len(others)} other way{'s'[: len(others) > 1]})" if others else ""
        where = self.op or self.topic
        return f"{own}{more}" if where in own else f"{where}: {own}{more}"


class Footer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the run of the header ended."""

    finished: Annotated[str, Meta(description="When the run ended, in UTC.", extra_json_schema=TIME)]
    exit_status: Annotated[int, Meta(description="pytest's exit status.")]
    counts: Annotated[
        dict[Status, Annotated[int, Meta(ge=1)]], Meta(description="How many outcomes there are of each status.")
    ]


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """All outcomes of one build; there is no footer if the run did not finish."""

    format: Annotated[Literal[2], Meta(description="The number of this format.")]
    header: Header
    rules: Annotated[dict[str, Rule], Meta(description="The rules that the cases cite, by id.")]
    cases: tuple[CaseRecord, ...]
    plan: Annotated[
        tuple[PlanEntry, ...], Meta(description="Every case on every target that the run knew of, in its order.")
    ]
    outcomes: Annotated[
        tuple[Outcome, ...],
        Meta(
            description="In a finished report one for each entry of the plan, in its order; before that, those that "
            "are known, in the order in which they came."
        ),
    ]
    graphs: Annotated[
        Mapping[str, Graph], Meta(description="The graphs that the cases build, by case; a case without any has none.")
    ] = {}
    causes: Annotated[
        tuple[Cause, ...],
        Meta(
            description="What is red and what is unsupported by cause, the most outcomes first. It follows from the "
            "outcomes, and is made anew whenever a report is written."
        ),
    ] = ()
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

    @property
    def runs(self) -> tuple[PartialRun, ...]:
        """The runs, indexed by the `run` of outcomes: that of the header first."""
        end = self.footer
        first = PartialRun(
            run=self.header.run, suite=self.header.suite, finished=None if end is None else end.finished,
            exit_status=None if end is None else end.exit_status,
        )  # fmt: skip
        return first, *self.header.partial_runs

    def is_left_to_others(self, outcome: Outcome) -> bool:
        """Whether an outcome is not-run because its case is in another shard than that of its run."""
        shard = self.header.run.shard if outcome.run == 0 else self.header.partial_runs[outcome.run - 1].run.shard
        return outcome.status == "not-run" and shard is not None and not shard.includes(outcome.case)

    def by_pair(self) -> dict[Pair, Outcome]:
        """Return the outcome of each entry of the plan, not-run for one without an outcome."""
        known = {outcome.pair: outcome for outcome in self.outcomes}
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
    """Return a report without what depends on the machine: paths, arguments, processor, and stderr of workers."""
    header, build = report.header, report.build
    config = "".join(f"{line}\n" for line in build.config.splitlines() if not OF_HOST.match(line))
    header = replace(
        header, run=replace(header.run, arguments=()),
        partial_runs=tuple(replace(each, run=replace(each.run, arguments=())) for each in header.partial_runs),
        build=replace(build, config=config, path="", executable="", platform=""),
    )  # fmt: skip
    return replace(report, header=header, outcomes=tuple(map(without_output, report.outcomes)))


def without_output(outcome: Outcome) -> Outcome:
    """Return an outcome without the stderr of its worker, and of that in which its case was run once more."""
    retry = None if outcome.retry is None else replace(outcome.retry, alone=without_output(outcome.retry.alone))
    return replace(outcome, stderr="", retry=retry)


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def case_record(case: Case, rules: Mapping[str, Rule]) -> CaseRecord:
    """Return the record of a case in a report."""
    return CaseRecord(
        id=case.id, file=case.file, line=case.line, topic=case.topic, title=case.title, why=case.why,
        level=level_of(rules, case.rules), rules=case.rules, source=case.source, digest=case.digest, yaml=case.text,
        steps=tuple(map(step_record, case.steps)),
    )  # fmt: skip


def step_record(step: Mapping[str, Any]) -> StepRecord:
    inner = [value for key, value in step.items() if key != "torch"]
    return StepRecord(
        line=step.get("begins", step["line"]), kind="do" if "do" in step else "expect", torch=step.get("torch") or "",
        variants=tuple(dict.fromkeys(conditions_in(inner))),
    )  # fmt: skip


def conditions_in(value: Any) -> list[str]:
    """Return all conditions on torch in a part of a step."""
    if isinstance(value, (list, tuple)):
        return [condition for entry in value for condition in conditions_in(entry)]
    if not isinstance(value, dict):
        return []
    own = value.get("torch")
    stated = [own] if isinstance(own, str) else list(own) if isinstance(own, dict) else []
    return stated + [condition for entry in value.values() for condition in conditions_in(entry)]


def cited_rules(rules: Mapping[str, Rule], cases: Iterable[Case | CaseRecord | ListedCase]) -> dict[str, Rule]:
    """Return the rules that `cases` cite, sorted by id."""
    return {name: rules[name] for name in sorted({rule for case in cases for rule in case.rules})}


def set_digest(digests: Iterable[tuple[str, str]]) -> str:
    """Return a digest of a set of cases, given as pairs of id and digest in any order."""
    listed = "".join(sorted(case + digest for case, digest in digests))
    return hashlib.sha256(listed.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def footer_of(outcomes: Iterable[Outcome], exit_status: int, finished: str) -> Footer:
    counts = Counter(outcome.status for outcome in outcomes)
    return Footer(finished=finished, exit_status=exit_status, counts=dict(sorted(counts.items())))
