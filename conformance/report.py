"""The JSON report: all outcomes of one build.

`report.schema.json` describes it. A report without a footer is of a run that did not finish. `load_report` accepts
what the schema accepts, as long as it holds together: each pair of the plan names a case, each outcome such a pair.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import msgspec

from conformance.case import Case
from conformance.outcome import Count, Line, Outcome, Status
from conformance.rule import Level, Rule, level_of
from conformance.target import Build

FORMAT = 1

Pair = tuple[str, str]  # a case's id and a target


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The suite that ran: `cases` is a digest of the set of cases."""

    version: str
    commit: str | None
    cases: str


class Run(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When it ran, in UTC, and what pytest was called with."""

    started: str
    arguments: tuple[str, ...]


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a report is of."""

    suite: Suite
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


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of the plan."""

    case: str
    target: str


class GraphTensor(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """A tensor of a graph; `node` and `shares_storage` are indices in the graph's lists."""

    name: str = ""
    line: Line | None = None
    shape: tuple[int, ...]
    is_leaf: bool = False
    requires_grad: bool = False
    retains_grad: bool = False
    has_grad: bool = False
    accumulates: bool = False
    node: Count | None = None
    output_nr: Count = 0
    shares_storage: Count | None = None


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Where a gradient goes: to a node, or to the leaf that accumulates it."""

    node: Count | None = None
    tensor: Count | None = None


class SavedTensor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A tensor that a node has saved for backward, and what the node calls it."""

    name: str
    tensor: Count | None = None


class GraphNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A node of a graph, with an edge (or None) for each input of its operation."""

    name: str
    next: tuple[GraphEdge | None, ...] = ()
    saved: tuple[SavedTensor, ...] = ()


class Graph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a case builds, seen on one target while it runs; `cut` when there was more than is listed."""

    target: str
    tensors: tuple[GraphTensor, ...]
    nodes: tuple[GraphNode, ...]
    cut: bool = False


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
    plan: tuple[Entry, ...]
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


def text_of(report: Report) -> str:
    """Return a report as its file holds it."""
    parts = msgspec.structs.asdict(report)
    for name in ("graphs", "footer"):
        if not parts[name]:
            del parts[name]
    return "{\n" + ",\n".join(f'"{name}": {dump(value)}' for name, value in parts.items()) + "\n}\n"


def dump(value: Any) -> str:
    """Return JSON with one line for each entry of a list or mapping, so that reports can be compared by line."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"{encoded(key)}: {encoded(item)}" for key, item in value.items()) + "\n}"
    if isinstance(value, (list, tuple)) and value:
        return "[\n" + ",\n".join(map(encoded, value)) + "\n]"
    return encoded(value)


def encoded(value: Any) -> str:
    """Return JSON in one line."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # halves of surrogate pairs, which only their escapes can be written as
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def write_whole(path: Path, content: str) -> None:
    """Write a file that is never seen half-written: under another name first, then in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(content, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


class ReportError(Exception):
    """A file that is no report, or that this version can't read."""


def load_report(path: Path) -> Report:
    """Return the report at `path`; raise ReportError with the reason when it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except OSError as error:
        raise ReportError(f"{path}: can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ReportError(f"{path}: can't be read as a report: {error}; is it cut off?") from None
    if not isinstance(content, dict) or "format" not in content:
        raise ReportError(f"{path}: not a report: no format number")
    if type(content["format"]) is not int or content["format"] != FORMAT:
        raise ReportError(f"{path}: format {content['format']!r}, expected {FORMAT}")
    try:
        report = msgspec.convert(content, Report)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        place = re.sub(r"^(`key` in )?[`$.]+|`$", "", place) or "the report"
        raise ReportError(f"{path}: {place}: {message}") from None
    except UnicodeEncodeError as error:  # half of a pair, where something else than any text belongs
        raise ReportError(f"{path}: the report: {error.object!r} where it doesn't belong") from None
    problem = problem_of_absence(content) or problem_within(report)
    if problem:
        raise ReportError(f"{path}: {problem}")
    return report


def refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number in JSON")


def problem_of_absence(content: Mapping[str, Any]) -> str:
    """Say in words where a report gives nothing for what it should leave out, which a record can't tell; else ""."""
    if "footer" in content and content["footer"] is None:
        return "footer: Expected `object`, got `null`"
    for index, outcome in enumerate(content["outcomes"]):
        for name in ("step", "line"):
            if name in outcome and outcome[name] is None:
                return f"outcomes[{index}].{name}: Expected `int`, got `null`"
        if outcome.get("failures", True) == []:
            return f"outcomes[{index}].failures: Expected `array` of length >= 1"
    return ""


def problem_within(report: Report) -> str:
    """Say in words what of a report doesn't fit together; "" where all does."""
    cases = [case.id for case in report.cases]
    known = set(cases)
    pairs = report.pairs
    planned = set(pairs)
    done = [(outcome.case, outcome.target) for outcome in report.outcomes]
    listings: dict[str, Sequence[str | Pair]] = {"cases": cases, "plan": pairs, "outcomes": done}
    for what, listed in listings.items():
        seen: set[str | Pair] = set()
        for index, entry in enumerate(listed):
            if entry in seen:
                return f"{what}[{index}]: {shown(entry)} stands twice"
            seen.add(entry)
    for index, (case, _) in enumerate(pairs):
        if case not in known:
            return f"plan[{index}]: no case {case!r} among the cases"
    for index, pair in enumerate(done):
        if pair not in planned:
            return f"outcomes[{index}]: {shown(pair)} is not in the plan"
    for index, outcome in enumerate(report.outcomes):
        if math.isinf(outcome.seconds):
            return f"outcomes[{index}].seconds: expected a number, got infinity"
    for index, record in enumerate(report.cases):
        for rule in record.rules:
            if rule not in report.rules:
                return f"cases[{index}]: no rule {rule!r} among the rules"
    return ""


def shown(entry: str | Pair) -> str:
    return entry if isinstance(entry, str) else f"{entry[0]}[{entry[1]}]"
