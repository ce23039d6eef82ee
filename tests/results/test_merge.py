"""Tests that the reports of shards add up to that of the whole run, and that others don't add up."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from samples import CPU, CUDA, FINISHED, HOSTILE, any_report, build, case, device, failed, outcome, report
from sessions import Session

from conformance.language.files import shipped_cases
from conformance.model.build import BackEnd
from conformance.model.graph import Graph
from conformance.model.outcome import Outcome
from conformance.model.report import Report
from conformance.model.shard import Shard
from conformance.results.merge import Merged, MergeError, merge_shards
from conformance.results.store import load_report, text_of

GOOD = outcome("pass")
PAIR = ("a", CPU)
ONE, OTHER = Shard(1, 2), Shard(2, 2)  # the case a is in the first, and d in the other
WRONG = """\
- a = tensor([2.0], requires_grad=True)
- (a * 3).backward()
- expect: {a: {grad: [4.0]}}
"""


def merged(*reports: Report) -> Merged:
    return merge_shards([(f"{number}.json", report) for number, report in enumerate(reports, start=1)])


def refusal(*reports: Report) -> str:
    with pytest.raises(MergeError) as caught:
        merged(*reports)
    return str(caught.value)


def elsewhere(shard: Shard) -> Outcome:
    return outcome("not-run", reason=shard.elsewhere)


def in_shard(shard: Shard, made: Report) -> Report:
    """Return the report of a run that was asked for a shard, as one that had no other cases."""
    header = msgspec.structs.replace(made.header, run=msgspec.structs.replace(made.header.run, shard=shard))
    return msgspec.structs.replace(made, header=header)


def timeless(text: str) -> str:
    """Return the text of a report without the times in it."""
    return re.sub(r'("started": ?|"finished": ?|, ?"seconds": ?)("[^"]*"|[\d.e-]+)', "", text)


def slices(whole: Report, keys: Sequence[int]) -> list[Report]:
    """Return reports that hold only their own part of the cases; `keys` says which part each case is in."""
    parts = []
    for key in sorted(set(keys)):
        mine = {record.id for record, of in zip(whole.cases, keys, strict=True) if of == key}
        parts.append(part_of(whole, lambda case, _, mine=mine: case in mine))  # type: ignore[misc]
    return parts


def part_of(whole: Report, holds: Callable[[str, str], bool]) -> Report:
    plan = tuple(entry for entry in whole.plan if holds(entry.case, entry.target))
    ids = {entry.case for entry in plan} | {record.id for record in whole.cases if holds(record.id, "")}
    records = tuple(record for record in whole.cases if record.id in ids)
    cited = {rule for record in records for rule in record.rules}
    return msgspec.structs.replace(
        whole, cases=records, plan=plan,
        rules={name: rule for name, rule in whole.rules.items() if name in cited},
        outcomes=tuple(known for known in whole.outcomes if holds(known.case, known.target)),
        graphs={name: graph for name, graph in whole.graphs.items() if name in ids},
    )  # fmt: skip


def run(session: Session, *arguments: str) -> tuple[str, Report]:
    """Return the report of a run, as text and read."""
    place = session.directory / f"out-{sum(1 for _ in session.directory.iterdir())}"
    (place / "published").mkdir(parents=True)  # else those of the checkout would be on the page
    result = session.run(f"--report={place.name}", *arguments)
    assert result.status in (0, 1, 5), result.output
    (path,) = place.glob("*.json")
    return path.read_text(encoding="utf-8"), load_report(path)


def shards_of(session: Session, count: int, *arguments: str) -> list[Report]:
    return [run(session, *arguments, f"--shard={number}/{count}")[1] for number in range(1, count + 1)]


@pytest.mark.slow
def test_shards_of_shipped_cases_add_up_to_the_whole_run(tmp_path: Path) -> None:
    session = Session(tmp_path)
    files = [str(shipped_cases() / f"{topic}.yaml") for topic in ("hooks", "inplace", "requires_grad")]
    whole, report = run(session, *files)
    assert len(report.cases) > 100
    result = merged(*shards_of(session, 3, *files))
    assert timeless(text_of(result.report)) == timeless(whole)
    assert result.notes == ()


@pytest.mark.slow
def test_shards_with_failures_deselected_cases_and_an_absent_device_add_up(tmp_path: Path) -> None:
    session = Session(tmp_path)
    right = WRONG.replace("4.0", "3.0")
    session.cases("second.yaml", one_bad=WRONG, one_good=right, two_good=right)
    session.cases("first.yaml", three_good=right, three_bad=WRONG, four_good=right)
    options = ("--device=cpu", "--device=cuda", "-k", "not two", "second.yaml", "first.yaml")
    whole, report = run(session, *options)
    result = merged(*shards_of(session, 3, *options))
    assert timeless(text_of(result.report)) == timeless(whole)
    assert report.footer is not None
    assert report.footer.exit_status == 1
    assert {known.reason.partition(":")[0] for known in report.outcomes if known.status == "not-run"} == {
        "deselected", "device cuda is absent",
    }  # fmt: skip


FOUR = report(
    {
        ("c", CPU): failed(seconds=1.0), ("c", CUDA): GOOD, ("a", CPU): GOOD, ("a", CUDA): outcome("not-run"),
        ("d", CPU): outcome("known", reason="x"), ("b", CUDA): outcome("unsupported", reason="no"),
    },
    cases=[
        case("c", file="cases/a.yaml", line=1), case("a", file="cases/b/x.yaml", line=7, rules=("r.two",)),
        case("d", file="cases/b/x.yaml", line=10), case("b", file="cases/b.yaml", line=3),
    ],
    status=1,
)  # fmt: skip
FOUR = msgspec.structs.replace(FOUR, graphs={name: Graph(target=CPU, tensors=(), nodes=()) for name in ("c", "a", "b")})


@given(
    st.lists(st.integers(0, 2), min_size=4, max_size=4).map(lambda keys: slices(FOUR, keys)).flatmap(st.permutations)
)
def test_slices_by_case_add_up_in_any_order(parts: list[Report]) -> None:
    assert text_of(merged(*parts).report) == text_of(FOUR)


def test_slices_by_target_add_up_in_any_order() -> None:
    parts = [part_of(FOUR, lambda _, target, mine=mine: target in (mine, "")) for mine in (CUDA, CPU)]  # type: ignore[misc]
    assert text_of(merged(*parts).report) == text_of(FOUR)
    assert text_of(merged(*reversed(parts)).report) == text_of(FOUR)


@given(any_report(), st.integers(1, 4))
def test_shards_with_the_whole_plan_add_up(whole: Report, count: int) -> None:
    parts = []
    for number in range(1, count + 1):
        mine = Shard(number, count)
        outcomes = tuple(
            known
            if mine.includes(known.case)
            else msgspec.structs.replace(elsewhere(mine), case=known.case, target=known.target)
            for known in whole.outcomes
        )
        parts.append(in_shard(mine, msgspec.structs.replace(whole, outcomes=outcomes)))
    result = merged(*parts).report
    known = {(outcome.case, outcome.target): outcome for outcome in whole.outcomes}
    assert result.outcomes == tuple(known[pair] for pair in whole.pairs if pair in known)
    assert (result.footer is None) == (whole.footer is None)
    assert result.plan == whole.plan
    assert result.header == whole.header


def test_one_report_is_itself() -> None:
    assert merged(FOUR) == Merged(report=FOUR, notes=())
    assert merged(FOUR, FOUR).report == FOUR


@each(
    "statuses, status",
    [((0, 0), 0), ((0, 1), 1), ((5, 0), 0), ((5, 5), 5), ((5, 1), 1), ((1, 2), 2), ((3, 0), 3), ((0, -9), -9)],
)
def test_the_run_ends_as_the_whole_would_have(statuses: tuple[int, int], status: int) -> None:
    one, other = (report({PAIR: GOOD}, status=given) for given in statuses)
    footer = merged(one, other).report.footer
    assert footer is not None
    assert footer.exit_status == status


def test_times_span_those_of_all() -> None:
    early, late = "2026-01-01T00:00:00+00:00", "2026-12-31T00:00:00+00:00"
    one = report({PAIR: GOOD})
    assert one.footer is not None
    header = msgspec.structs.replace(one.header, run=msgspec.structs.replace(one.header.run, started=early))
    footer = msgspec.structs.replace(one.footer, finished=late)
    result = merged(report({PAIR: GOOD}), msgspec.structs.replace(one, header=header, footer=footer)).report
    assert result.footer is not None
    assert (result.header.run.started, result.footer.finished) == (early, late)


def test_counts_are_counted_again() -> None:
    footer = msgspec.structs.replace(report({PAIR: GOOD}).footer, counts={"fail": 7})  # type: ignore[type-var]
    result = merged(msgspec.structs.replace(report({PAIR: GOOD}), footer=footer)).report
    assert result.footer is not None
    assert result.footer.counts == {"pass": 1}
    assert result.footer.finished == FINISHED


@each(
    "given, left",
    [
        (("-q", "--shard=1/2", "-x"), ("-q", "-x")),
        (("-q", "--shard", "1/2", "-x"), ("-q", "-x")),
        (("--shards", "-k", "shard"), ("--shards", "-k", "shard")),
        ((), ()),
    ],
)
def test_the_arguments_are_those_without_the_shard(given: tuple[str, ...], left: tuple[str, ...]) -> None:
    assert merged(report({PAIR: GOOD}, arguments=given)).report.header.run.arguments == left


def test_other_arguments_are_noted_but_for_where_files_go() -> None:
    one = report({PAIR: GOOD}, arguments=("--shard=1/2", "--report=a", "-x"))
    same = report({PAIR: GOOD}, arguments=("--shard", "2/2", "--report", "b", "--junitxml=c", "-x"))
    assert merged(one, same).notes == ()
    result = merged(one, report({PAIR: GOOD}, arguments=("-k", "x")))
    assert result.notes == ("2.json was run with other arguments than 1.json, whose stand in the report",)
    assert result.report.header.run.arguments == ("--report=a", "-x")


def test_a_shard_that_did_not_finish_leaves_the_whole_unfinished() -> None:
    one = report({PAIR: GOOD, ("d", CPU): elsewhere(ONE)}, shard=ONE)
    other = report({PAIR: None, ("d", CPU): None}, finished=False)
    result = merged(one, other)
    assert result.report.footer is None
    assert [(known.case, known.status) for known in result.report.outcomes] == [("a", "pass")]
    assert result.notes == (
        "2.json is incomplete: its run did not finish",
        "the report is incomplete: 1 of 2 planned have no outcome; given are the shards 1 of 2",
    )


def test_a_shard_that_is_missing_leaves_the_whole_unfinished() -> None:
    first, third = Shard(1, 3), Shard(3, 3)
    one = report({("f", CPU): GOOD, PAIR: elsewhere(first), ("c", CPU): elsewhere(first)}, shard=first)
    other = report({("f", CPU): elsewhere(third), PAIR: elsewhere(third), ("c", CPU): failed()}, status=1, shard=third)
    result = merged(one, other)
    assert result.report.footer is None
    assert [known.case for known in result.report.outcomes] == ["f", "c"]
    assert result.notes == (
        "the report is incomplete: 1 of 3 planned have no outcome; given are the shards 1 of 3, 3 of 3",
    )


def test_which_shard_a_report_is_of_is_a_fact_and_no_sentence() -> None:
    one = report({PAIR: GOOD, ("d", CPU): outcome("not-run", reason="in other words")}, shard=ONE)
    assert merged(one).report.outcomes == one.outcomes[:1]
    own = report({PAIR: GOOD, ("d", CPU): elsewhere(ONE)})
    assert merged(own).report.outcomes == own.outcomes


def test_what_ran_counts_more_than_what_did_not() -> None:
    ran, not_run = report({PAIR: failed()}), report({PAIR: outcome("not-run", reason="the run ended before it")})
    assert merged(ran, not_run).report.outcomes == merged(not_run, ran).report.outcomes == ran.outcomes


def test_the_same_outcome_twice_is_no_contradiction_whatever_time_it_took() -> None:
    one = report({PAIR: failed(seconds=1.0, stderr="pid 1")})
    assert merged(one, report({PAIR: failed(seconds=2.0, stderr="pid 2")})).report.outcomes == one.outcomes


@each(
    "other, message",
    [
        (GOOD, "status: expected 'fail' as in 1.json, got 'pass'"),
        (failed(step=3), "step: expected 2 as in 1.json, got 3"),
        (failed(observed="3"), "failures: expected 'a.grad: expected 1, observed 2' as in 1.json, got 'a.grad: exp"),
    ],
)
def test_two_outcomes_of_a_pair_that_differ_are_refused(other: Outcome, message: str) -> None:
    assert refusal(report({PAIR: failed()}), report({PAIR: other})).startswith(
        f"2.json: outcomes: a[cpu-float32]: {message}"
    )


@each(
    "facts, message",
    [
        ({"torch": "2.12.0"}, "header.build.torch: expected '2.13.0+cpu' as in 1.json, got '2.12.0'"),
        ({"git": "fedc"}, "header.build.git: expected '0123456789abcdef' as in 1.json, got 'fedc'"),
        ({"debug": True}, "header.build.debug: expected false as in 1.json, got true"),
        ({"cuda": "13.0"}, "header.build.cuda: expected nothing (null) as in 1.json, got '13.0'"),
        ({"python": "3.11.8"}, "header.build.python: expected '3.11.7' as in 1.json, got '3.11.8'"),
        ({"implementation": "PyPy"}, "header.build.implementation: expected 'CPython' as in 1.json, got 'PyPy'"),
        ({"system": "linux-aarch64"}, "header.build.system: expected 'linux-x86_64' as in 1.json, got 'linux-aarch64'"),
        (
            {"backends": (BackEnd(device="xla", modules=("torch_xla",), name="torch-xla", version="2.9"),)},
            "header.build.backends: expected '' as in 1.json, got 'torch-xla 2.9'",
        ),
        (
            {"config": "PyTorch built with:\n  - GCC 9.3\n"},
            "header.build.config: expected '- GCC 13.3' as in 1.json, got '- GCC 9.3'",
        ),
        (
            {"config": build().config + "  - LAPACK is enabled\n"},
            "header.build.config: expected nothing (null) as in 1.json, got '- LAPACK is enabled'",
        ),
    ],
)
def test_shards_of_another_build_are_refused(facts: dict[str, Any], message: str) -> None:
    assert refusal(report({PAIR: GOOD}), report({PAIR: GOOD}, **facts)) == f"2.json: {message}"


@each(
    "fact, value, message",
    [
        ("version", "0.2.0", "header.suite.version: expected '0.1.0' as in 1.json, got '0.2.0'"),
        ("commit", None, "header.suite.commit: expected 'c0ffee' as in 1.json, got nothing (null)"),
    ],
)
def test_shards_of_another_suite_are_refused(fact: str, value: Any, message: str) -> None:
    one = report({PAIR: GOOD})
    header = msgspec.structs.replace(one.header, suite=msgspec.structs.replace(one.header.suite, **{fact: value}))
    assert refusal(one, msgspec.structs.replace(one, header=header)) == f"2.json: {message}"


def test_a_case_or_rule_that_differs_is_refused() -> None:
    one = report({PAIR: GOOD})
    other = report({PAIR: GOOD}, cases=[case("a", digest="other")])
    assert refusal(one, other) == "2.json: cases: a: digest: expected 'digest-a' as in 1.json, got 'other'"
    rule = msgspec.structs.replace(one.rules["r.one"], text="Something else.")
    assert refusal(one, msgspec.structs.replace(one, rules={"r.one": rule})) == (
        "2.json: rules: r.one: text: expected 'The rule r.one.' as in 1.json, got 'Something else.'"
    )


def test_hosts_may_differ_in_what_does_not_make_the_build() -> None:
    one = report({PAIR: GOOD})
    config = (
        build().config.replace("AVX2", "AVX512") + "  - CUDA Runtime 13.0\n  - CuDNN 9.1\n    - Built with CuDNN 9\n"
    )
    cpu = device("cpu", name="another processor")
    other = report(
        {("b", CPU): GOOD}, config=config, path="/p", executable="/e", platform="Linux 7",
        devices=(cpu, *build().devices[1:]),
    )  # fmt: skip
    assert merged(one, other).report.header.build == one.header.build


def test_a_device_that_one_host_has_is_the_builds() -> None:
    one = report({PAIR: elsewhere(OTHER), ("a", CUDA): elsewhere(OTHER)}, shard=OTHER)
    present = device("cuda", name="H200", driver="13.0", count=2)
    other = report({PAIR: GOOD, ("a", CUDA): GOOD}, shard=ONE, devices=(device("cpu"), present, device("npu")))
    for both in ((one, other), (other, one)):
        result = merged(*both).report
        assert result.build.devices == (device("cpu"), present, device("npu"))
        assert [(known.target, known.status) for known in result.outcomes] == [(CPU, "pass"), (CUDA, "pass")]
    more = report({PAIR: GOOD}, devices=(device("cuda", name="H200", driver="13.0", count=8),))
    assert {found.type: found.count for found in merged(other, more).report.build.devices} == {
        "cpu": 1, "cuda": 8, "npu": 1,
    }  # fmt: skip


def test_two_kinds_of_a_device_are_refused() -> None:
    reports = [
        report({PAIR: GOOD}, devices=(device("cuda", name=name, driver=driver),))
        for name, driver in (("H200", "13.0"), ("T4", "13.0"), ("H200", "12.0"))
    ]
    where = "2.json: header.build.devices: cuda"
    assert refusal(*reports[:2]) == f"{where}: name: expected 'H200' as in 1.json, got 'T4'"
    assert refusal(reports[0], reports[2]) == f"{where}: driver: expected '13.0' as in 1.json, got '12.0'"


def test_a_pair_that_no_host_was_there_for_is_missing() -> None:
    """One host lost its graphics card, so that nobody ran the half of the cases that was its own."""
    one = report({PAIR: GOOD, ("d", CPU): elsewhere(ONE), ("a", CUDA): GOOD, ("d", CUDA): elsewhere(ONE)}, shard=ONE)
    other = report({PAIR: elsewhere(OTHER), ("d", CPU): GOOD}, shard=OTHER)
    result = merged(one, other)
    assert result.report.footer is None
    assert result.report.by_pair()["d", CUDA].reason == "the report is incomplete"


def test_of_two_graphs_of_a_case_that_of_the_first_target_stands() -> None:
    graphs = [Graph(target=target, tensors=(), nodes=()) for target in (CUDA, CPU)]
    one, other = (msgspec.structs.replace(report({("a", graph.target): GOOD}), graphs={"a": graph}) for graph in graphs)
    assert merged(one, other).report.graphs == {"a": graphs[1]}


@given(st.lists(any_report(), min_size=1, max_size=3))
def test_any_reports_add_up_to_a_report_or_are_refused(tmp_path_factory: Any, reports: Iterable[Report]) -> None:
    try:
        result = merged(*reports)
    except MergeError:
        return
    path = tmp_path_factory.getbasetemp() / "merged.json"
    path.write_text(text_of(result.report), encoding="utf-8")
    assert load_report(path) == result.report


def test_hostile_text_is_merged_as_it_is() -> None:
    made = report({("a", HOSTILE): outcome("error", reason=HOSTILE)})
    assert json.loads(text_of(merged(made, made).report))["outcomes"][0]["reason"] == HOSTILE
