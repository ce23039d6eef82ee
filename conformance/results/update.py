"""Brings the report of a build up to date with what another run of some of its cases found.

The newest outcome of a case on a target counts, but for one that says only that it was not run. What the run did not
come to stays as it was, and says which run it is of. Outcomes of another revision of a case that was run go with it.
"""

from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec
from msgspec.structs import replace

from conformance.language.renames import Renames
from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Header, Pair, PlanEntry, Report, cited_rules, footer_of, set_digest
from conformance.results.merge import MergeError, another_build, devices_of, graphs_of, in_order, place_of, rank_in
from conformance.results.store import ReportError, bytes_of

EDITED = "the case has been edited since it ran here"
NOT_REACHED = "the run ended before it"


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """Of a report on disk what tells whether anything in it is still needed."""

    plan: msgspec.Raw  # which a compact report has not
    outcomes: tuple[Outcome, ...]


def is_superseded(path: Path, new: Report, renames: Renames) -> bool:
    """Whether a run that left nothing out has run all that ran in the report at `path`, which is not read in full."""
    try:
        old = msgspec.json.decode(bytes_of(path), type=Ran)
    except (ReportError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    ran = {outcome.pair for outcome in new.outcomes if outcome.status != "not-run"}
    return all(
        outcome.case not in renames and (outcome.status == "not-run" or outcome.pair in ran)
        for outcome in old.outcomes
    )  # fmt: skip


def updated(
    old: Report, new: Report, left: Collection[Pair], is_gone: Callable[[CaseRecord], bool] = lambda _: False
) -> Report:
    """Return `old` with what the run of `new` found; `new` as it is where nothing that ran is left of `old`.

    `left` are the pairs that the run did not come to, `is_gone` tells which cases are no longer in the suite. Raise
    MergeError where the two are not of one build.
    """
    difference = another_build(old.build, new.build)
    if difference is not None:
        raise MergeError("it is of another build: {} is {!r}, and now {!r}".format(*difference))
    reports = [old, new]
    devices = devices_of([("the earlier report", old), ("this run", new)])
    found = {each.pair: each for each in new.outcomes if each.pair not in left}
    now = {record.id: record for record in new.cases}
    ran = {case for (case, _), outcome in found.items() if outcome.status != "not-run"}
    before = {
        record.id: record
        for record in old.cases
        if not is_gone(record) and not (record.id in ran and record.digest != now[record.id].digest)
    }
    same = {case for case, record in before.items() if case in now and record.digest == now[case].digest}
    records = {**now, **{case: record for case, record in before.items() if case not in same}}
    outcomes: dict[Pair, Outcome] = {}
    for outcome in old.outcomes:
        newest = found.get(outcome.pair)
        if outcome.case in before and (newest is None or (newest.status == "not-run" and outcome.status != "not-run")):
            outcomes[outcome.pair] = outcome.moved(records[outcome.case].line - before[outcome.case].line)
    if all(outcome.status == "not-run" for outcome in outcomes.values()):
        return new
    number = len(old.runs)
    planned = set(old.pairs)
    for outcome in new.outcomes:
        if not (outcome.pair in left and outcome.pair in planned):
            outcomes.setdefault(outcome.pair, replace(outcome, run=number))
    ids = in_order([list(now), list(before)], lambda case: place_of(records[case]))
    row, column = rank_in(ids), rank_in(dict.fromkeys([*old.targets, *new.targets]))
    plan = in_order(
        [[pair for pair in report.pairs if pair[0] in records] for report in (new, old)],
        lambda pair: (row(pair[0]), column(pair[1])),
    )
    for outcome in old.outcomes:
        if outcome.case in records and outcome.case not in before:
            again = Outcome(case=outcome.case, target=outcome.target, status="not-run", reason=EDITED, run=number)
            outcomes.setdefault(outcome.pair, again)
    kept = replace(old, graphs={case: graph for case, graph in old.graphs.items() if case in before})
    joined = replace(
        new,
        header=replace(new.header, build=replace(new.build, devices=devices)),
        rules={**old.rules, **new.rules},
        cases=tuple(records[case] for case in ids),
        plan=tuple(PlanEntry(case=case, target=target) for case, target in plan),
        outcomes=tuple(outcomes[pair] for pair in plan if pair in outcomes),
        graphs=graphs_of([new, kept], row, column),
    )
    return with_runs_of(reports, joined)


def with_runs_of(reports: list[Report], joined: Report) -> Report:
    """Return a report with the run of which most outcomes are in its header, and the others as partial runs."""
    runs = [run for report in reports for run in report.runs]
    most = Counter({outcome.run: 0 for outcome in joined.outcomes})
    most.update(outcome.run for outcome in joined.outcomes if outcome.status != "not-run")
    main = max(most, key=lambda number: (most[number], number))
    order = [main, *sorted(number for number in most if number != main)]
    run = runs[main]
    outcomes = tuple(replace(each, run=order.index(each.run)) for each in joined.outcomes)
    footer = None
    if run.finished is not None and run.exit_status is not None:
        known = {each.pair: each for each in outcomes}
        outcomes = tuple(
            known.get(pair) or Outcome(case=pair[0], target=pair[1], status="not-run", reason=NOT_REACHED)
            for pair in joined.pairs
        )
        footer = footer_of(outcomes, run.exit_status, run.finished)
    digest = set_digest((record.id, record.digest) for record in joined.cases)
    return replace(
        joined,
        header=Header(
            suite=replace(run.suite, cases=digest), run=run.run, build=joined.build,
            partial_runs=tuple(runs[number] for number in order[1:]),
        ),
        rules=cited_rules(joined.rules, joined.cases),
        outcomes=outcomes,
        footer=footer,
    )  # fmt: skip
