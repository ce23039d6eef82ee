"""Puts the reports of one build's shards together: the result is the report of the run that was not divided.

Shards may each hold the whole plan, as those of `--shard` do, or only their own part of it. They may come from several
hosts, so that what belongs to a host is not compared: paths, the processor, what a graphics card adds to torch's
account of itself. A device that only some hosts have is one of the build's.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

import msgspec

from conformance.language.errors import quoted_value
from conformance.model.build import OF_HOST, Build, Device
from conformance.model.graph import Graph
from conformance.model.outcome import Outcome
from conformance.model.report import (
    FORMAT,
    CaseRecord,
    Footer,
    Header,
    Pair,
    PartialRun,
    PlanEntry,
    Report,
    Run,
    cited_rules,
    footer_of,
    set_digest,
)

Shards = Sequence[tuple[str, Report]]  # each with what messages call it
Item = TypeVar("Item", bound=Hashable)
Rank = Callable[[str], int]
Record = TypeVar("Record", bound=msgspec.Struct)

BUILD_FACTS = ("torch", "git", "debug", "cuda", "hip", "python", "implementation", "system")
DIVIDES = "--shard"
PLACES = ("--report", "--junitxml", "--junit-xml")  # options that may differ from host to host
NO_TESTS, FAILED = 5, 1  # exit statuses of pytest


class MergeError(Exception):
    """Reports that are not of one build and one suite, or that contradict each other."""


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """A report, and what one must know of it who relies on it."""

    report: Report
    notes: tuple[str, ...]


def merge_shards(shards: Shards) -> Merged:
    """Return the report that `shards` add up to; raise MergeError with the file and the fact that don't fit."""
    for shard in shards[1:]:
        check_header(shards[0], shard)
    reports = [report for _, report in shards]
    records = agreed(shards, "cases", lambda report: {case.id: case for case in report.cases})
    rules = agreed(shards, "rules", lambda report: report.rules)
    devices = devices_of(shards)
    ids = in_order([[case.id for case in report.cases] for report in reports], lambda case: place_of(records[case]))
    kind = rank_in(device.type for device in devices)
    targets = in_order([report.targets for report in reports], lambda target: kind(target.rpartition("-")[0]))
    row, column = rank_in(ids), rank_in(targets)
    plan = in_order([report.pairs for report in reports], lambda pair: (row(pair[0]), column(pair[1])))
    cases = tuple(records[case] for case in ids)
    known = outcomes_of(shards)
    outcomes = tuple(known[pair] for pair in plan if pair in known)
    report = Report(
        format=FORMAT,
        header=header_of(reports, devices, set_digest((case.id, case.digest) for case in cases)),
        rules=cited_rules(rules, cases),
        cases=cases,
        plan=tuple(PlanEntry(case=case, target=target) for case, target in plan),
        outcomes=outcomes,
        graphs=graphs_of(reports, row, column),
        footer=merged_footer(reports, outcomes) if len(outcomes) == len(plan) else None,
    )
    return Merged(report=report, notes=tuple(notes_on(shards, report)))


def header_of(reports: Sequence[Report], devices: tuple[Device, ...], digest: str) -> Header:
    first = reports[0].header
    started = min(report.header.run.started for report in reports)
    return Header(
        suite=msgspec.structs.replace(first.suite, cases=digest),
        run=Run(started=started, arguments=without(first.run.arguments, DIVIDES)),
        build=msgspec.structs.replace(first.build, devices=devices),
        partial_runs=tuple(partial_runs_of(reports)),
    )


def partial_runs_of(reports: Iterable[Report]) -> dict[PartialRun, int]:
    """Return the partial runs of all reports, and their numbers."""
    runs = dict.fromkeys(run for report in reports for run in report.header.partial_runs)
    return {run: number for number, run in enumerate(runs, start=1)}


def merged_footer(reports: Sequence[Report], outcomes: Iterable[Outcome]) -> Footer | None:
    """Return the footer of the whole; None where some part has none."""
    footers = [report.footer for report in reports if report.footer is not None]
    if len(footers) < len(reports):
        return None
    status = exit_status_of([footer.exit_status for footer in footers])
    return footer_of(outcomes, status, max(footer.finished for footer in footers))


def check_header(first: tuple[str, Report], other: tuple[str, Report]) -> None:
    """Raise MergeError where two reports are not of one build and one suite."""
    suites = first[1].header.suite, other[1].header.suite
    check_same(("version", "commit"), *suites, f"{other[0]}: header.suite.", first[0])
    difference = another_build(first[1].build, other[1].build)
    if difference is not None:
        fact, expected, found = difference
        raise MergeError(differing(f"{other[0]}: header.build.{fact}", first[0], expected, found))


def another_build(one: Build, other: Build) -> tuple[str, Any, Any] | None:
    """Return a fact in which two builds differ that are not the same, and its two values; None for one build.

    What belongs to a host, such as paths and devices, may differ.
    """
    facts: list[list[tuple[str, Any]]] = [
        [
            *((name, getattr(build, name)) for name in BUILD_FACTS),
            ("backends", ", ".join(each.title for each in build.backends)),
            *(("config", line) for line in config_of(build)),
        ]
        for build in (one, other)
    ]
    for (fact, expected), (_, found) in zip_longest(*facts, fillvalue=("config", None)):
        if found != expected:
            return fact, expected, found
    return None


def config_of(build: Build) -> list[str]:
    """Return the lines of torch's account of itself that are the same on every host."""
    return [line.strip() for line in build.config.splitlines() if line.strip() and not OF_HOST.match(line)]


def check_same(facts: Iterable[str], one: object, other: object, place: str, first: str) -> None:
    """Raise MergeError with the first of these facts in which two records differ; `one` is that of the file `first`."""
    for fact in facts:
        expected, found = getattr(one, fact), getattr(other, fact)
        if found != expected:
            raise MergeError(differing(place + fact, first, expected, found))


def differing(place: str, first: str, expected: object, found: object) -> str:
    return f"{place}: expected {quoted_value(expected)} as in {first}, got {quoted_value(found)}"


def agreed(shards: Shards, place: str, entries: Callable[[Report], Mapping[str, Record]]) -> dict[str, Record]:
    """Return the entries of all shards by id; raise MergeError where two of them say different things of one."""
    found: dict[str, tuple[str, Record]] = {}
    for name, report in shards:
        for key, record in entries(report).items():
            first, expected = found.setdefault(key, (name, record))
            check_same(record.__struct_fields__, expected, record, f"{name}: {place}: {key}: ", first)
    return {key: record for key, (_, record) in found.items()}


def devices_of(shards: Shards) -> tuple[Device, ...]:
    """Return the devices of a build: one that is there on some host is there, under the same name on each."""
    found: dict[str, tuple[str, Device]] = {}
    for name, report in shards:
        for device in report.build.devices:
            first, before = found.setdefault(device.type, (name, device))
            if before.absent is not None and device.absent is None:
                found[device.type] = name, device
            elif before.absent is None and device.absent is None and device.type != "cpu":
                place = f"{name}: header.build.devices: {device.type}: "
                check_same(("name", "driver"), before, device, place, first)
                if device.count > before.count:
                    found[device.type] = first, msgspec.structs.replace(before, count=device.count)
    return tuple(device for _, device in found.values())


def outcomes_of(shards: Shards) -> dict[Pair, Outcome]:
    """Return the outcome of each pair that some shard was there for, of those that are not not-run if there is one."""
    found: dict[Pair, tuple[str, Outcome]] = {}
    numbers = partial_runs_of(report for _, report in shards)
    for name, report in shards:
        for own in report.outcomes:
            if report.is_left_to_others(own):
                continue
            run = numbers[report.header.partial_runs[own.run - 1]] if own.run else 0
            outcome = own if run == own.run else msgspec.structs.replace(own, run=run)
            pair = outcome.pair
            first, before = found.setdefault(pair, (name, outcome))
            if before.status == "not-run":
                if outcome.status != "not-run":
                    found[pair] = name, outcome
            elif outcome.status != "not-run":
                check_agreement(f"{name}: outcomes: {pair[0]}[{pair[1]}]: ", first, before, outcome)
    return {pair: outcome for pair, (_, outcome) in found.items()}


def check_agreement(place: str, first: str, before: Outcome, outcome: Outcome) -> None:
    """Raise MergeError where two outcomes of one pair differ in more than time and a worker's last words."""
    check_same(("status", "step"), before, outcome, place, first)
    if before.failures != outcome.failures:
        raise MergeError(differing(f"{place}failures", first, before.summary, outcome.summary))
    check_same(("reason",), before, outcome, place, first)


def graphs_of(reports: Sequence[Report], row: Rank, column: Rank) -> dict[str, Graph]:
    """Return the graph of each case, in their order; of several the one that was seen on the first target."""
    found: dict[str, Graph] = {}
    for report in reports:
        for case, graph in report.graphs.items():
            before = found.setdefault(case, graph)
            if column(graph.target) < column(before.target):
                found[case] = graph
    return {case: found[case] for case in sorted(found, key=row)}


def exit_status_of(statuses: Sequence[int]) -> int:
    """Return how the whole run would have ended: broken off if a part was, else red if a part was."""
    usual = {0, FAILED, NO_TESTS}
    broken = [status for status in statuses if status not in usual]
    if broken:
        return max(broken)
    if FAILED in statuses:
        return FAILED
    return NO_TESTS if set(statuses) == {NO_TESTS} else 0


def without(arguments: Iterable[str], *options: str) -> tuple[str, ...]:
    """Return the arguments of a run without some options and their values."""
    left: list[str] = []
    for argument in arguments:
        if left and left[-1] in options:
            left.pop()
        elif argument.partition("=")[0] not in options or argument in options:
            left.append(argument)
    return tuple(left)


def notes_on(shards: Shards, report: Report) -> list[str]:
    """Return why a merged report is incomplete, and which shards were called unlike the first."""
    notes = [f"{name} is incomplete: its run did not finish" for name, shard in shards if shard.footer is None]
    missing = len(report.plan) - len(report.outcomes)
    if missing:
        parts = {run.run.shard for _, shard in shards for run in shard.runs if run.run.shard is not None}
        named = [f"{part.number} of {part.count}" for part in sorted(parts, key=msgspec.structs.astuple)]
        given = f"; given are the shards {', '.join(named)}" if named else ""
        notes.append(f"the report is incomplete: {missing} of {len(report.plan)} planned have no outcome{given}")
    name, first = shards[0]
    usual = without(first.header.run.arguments, DIVIDES, *PLACES)
    for other, shard in shards[1:]:
        if without(shard.header.run.arguments, DIVIDES, *PLACES) != usual:
            notes.append(f"{other} was run with other arguments than {name}, whose stand in the report")
    return notes


def place_of(record: CaseRecord) -> tuple[list[str], int]:
    """Return what sorts cases by file and line, whatever the system that their report is from."""
    return record.file.replace("\\", "/").split("/"), record.line


def in_order(listings: Sequence[Sequence[Item]], key: Callable[[Item], Any]) -> list[Item]:
    """Return the items of all listings, in the order of one that has them all, or else in that of `key`."""
    everything = dict.fromkeys(item for listing in listings for item in listing)
    whole = next((listing for listing in listings if len(listing) == len(everything)), None)
    return sorted(everything, key=key) if whole is None else list(whole)


def rank_in(items: Iterable[str]) -> Rank:
    """Return a function that tells where an item stands among `items`, and puts all others behind them."""
    places = {item: place for place, item in enumerate(items)}
    return lambda item: places.get(item, len(places))
