"""Tests that a run of some cases brings the report of its build up to date, and destroys nothing of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from samples import CPU, CUDA, FINISHED, GRAPH, any_report, case, device, failed, outcome, report

from conformance.model.outcome import Outcome
from conformance.model.report import Pair, Report
from conformance.results.merge import MergeError
from conformance.results.store import load_report, text_of
from conformance.results.update import updated

GOOD = outcome("pass")
LATER = "2026-03-04T05:06:07+00:00"
DESELECTED = outcome("not-run", reason="deselected")
A, B, C = ("a", CPU), ("b", CPU), ("c", CPU)
WHOLE = report({A: GOOD, B: failed(), C: GOOD}, status=1)


def later(outcomes: dict[Pair, Outcome | None], **facts: Any) -> Report:
    """Return the report of a run that began at LATER."""
    made = report(outcomes, arguments=("-k", "x"), **facts)
    run = msgspec.structs.replace(made.header.run, started=LATER)
    return msgspec.structs.replace(made, header=msgspec.structs.replace(made.header, run=run))


def deselected(made: Report) -> set[Pair]:
    return {(each.case, each.target) for each in made.outcomes if each.reason == "deselected"}


def joined(old: Report, new: Report) -> Report:
    return updated(old, new, deselected(new))


def said(made: Report) -> dict[Pair, tuple[str, str]]:
    """Return the status of each pair of the plan, and when it ran."""
    return {
        pair: (each.status, made.runs[each.run].run.started[:7]) for pair, each in made.by_pair().items()
    }  # fmt: skip


def test_what_a_part_found_stands_beside_what_the_whole_had_found() -> None:
    result = joined(WHOLE, later({A: DESELECTED, B: GOOD, C: DESELECTED}))
    assert said(result) == {A: ("pass", "2026-01"), B: ("pass", "2026-03"), C: ("pass", "2026-01")}
    assert result.header.run == WHOLE.header.run
    (part,) = result.header.partial_runs
    assert (part.run.started, part.run.arguments, part.finished) == (LATER, ("-k", "x"), FINISHED)
    assert result.footer is not None
    assert (result.footer.exit_status, result.footer.counts) == (1, {"pass": 3})


def test_a_run_that_found_everything_replaces_the_report() -> None:
    new = later({A: failed(), B: GOOD, C: GOOD})
    assert joined(WHOLE, new) == new
    assert joined(joined(WHOLE, later({A: GOOD})), new) == new


def test_a_whole_run_after_a_part_is_the_run_of_the_report() -> None:
    part = report({A: GOOD, B: DESELECTED, C: DESELECTED})
    assert joined(part, later({A: GOOD, B: GOOD, C: GOOD})).header.partial_runs == ()
    result = joined(part, later({A: DESELECTED, B: GOOD, C: GOOD}))
    assert said(result) == {A: ("pass", "2026-01"), B: ("pass", "2026-03"), C: ("pass", "2026-03")}
    assert result.header.run.started == LATER
    assert [each.run.started for each in result.header.partial_runs] == [part.header.run.started]


def test_a_plan_of_one_file_leaves_those_of_the_others_alone() -> None:
    assert said(joined(WHOLE, later({C: failed()}))) == {
        A: ("pass", "2026-01"), B: ("fail", "2026-01"), C: ("fail", "2026-03"),
    }  # fmt: skip


def test_what_was_not_run_now_does_not_replace_what_ran() -> None:
    result = joined(WHOLE, later({A: GOOD, B: outcome("not-run", reason="no device"), C: DESELECTED}))
    assert said(result)[B] == ("fail", "2026-01")


def test_another_target_is_added() -> None:
    result = joined(WHOLE, later({("a", CUDA): GOOD}))
    assert said(result)["a", CUDA] == ("pass", "2026-03")
    assert said(result)[A] == ("pass", "2026-01")


def test_an_edited_case_that_ran_replaces_its_outcomes_everywhere() -> None:
    old = report({A: GOOD, ("a", CUDA): failed(), B: GOOD})
    edited = [case("a", digest="another", title="Edited"), case("b", digest="edited too")]
    result = joined(old, later({A: GOOD, B: DESELECTED}, cases=edited))
    assert said(result) == {A: ("pass", "2026-03"), ("a", CUDA): ("not-run", "2026-03"), B: ("pass", "2026-01")}
    assert result.by_pair()["a", CUDA].reason == "the case has been edited since it ran here"
    assert {record.id: record.digest for record in result.cases} == {"a": "another", "b": "digest-b"}


def test_lines_of_a_case_that_has_moved_move_with_it() -> None:
    old = report({A: failed(), B: GOOD, C: GOOD})
    result = joined(old, later({A: DESELECTED, B: GOOD}, cases=[case("a", line=110), case("b")]))
    kept = result.by_pair()[A]
    assert (kept.line, kept.failures[0].line) == (112, 111)
    assert next(record.line for record in result.cases if record.id == "a") == 110


def test_a_case_that_is_gone_goes_with_its_outcomes() -> None:
    new = later({B: GOOD, C: DESELECTED})
    result = updated(WHOLE, new, deselected(new), lambda record: record.id == "a")
    assert list(said(result)) == [B, C]


def test_graphs_are_those_of_the_cases_as_they_are_now() -> None:
    old = msgspec.structs.replace(WHOLE, graphs={"a": GRAPH, "b": GRAPH})
    newer = msgspec.structs.replace(GRAPH, cut=True)
    new = msgspec.structs.replace(later({B: GOOD}), graphs={"b": newer})
    assert joined(old, new).graphs == {"a": GRAPH, "b": newer}
    edited = later({B: GOOD}, cases=[case("b", digest="another")])
    assert joined(old, edited).graphs == {"a": GRAPH}


def test_an_unfinished_run_stays_unfinished_with_a_part_more() -> None:
    unfinished = report({A: GOOD, ("d", CPU): GOOD, B: GOOD, C: None}, finished=False)
    result = joined(unfinished, later({A: DESELECTED, B: GOOD, C: DESELECTED}))
    assert result.footer is None
    assert len(result.outcomes) == len(result.plan) - 1
    killed = later({A: failed(), B: None, C: None}, finished=False)
    assert said(updated(WHOLE, killed, {B, C})) == {
        A: ("fail", "2026-03"), B: ("fail", "2026-01"), C: ("pass", "2026-01"),
    }  # fmt: skip


def test_other_builds_are_refused() -> None:
    with pytest.raises(MergeError, match="it is of another build: git is '0123456789abcdef', and now 'fedc'"):
        joined(WHOLE, later({A: GOOD}, git="fedc"))
    cards = [(device("cuda", name=name, driver="13.0"),) for name in ("H200", "T4")]
    with pytest.raises(MergeError, match="expected 'H200' as in the earlier report, got 'T4'"):
        joined(report({A: GOOD}, devices=cards[0]), later({B: GOOD}, devices=cards[1]))


@given(any_report(), any_report())
def test_any_two_reports_make_one_that_can_be_read(tmp_path_factory: Any, old: Report, new: Report) -> None:
    assume(old.build.torch == new.build.torch)
    result = updated(old, new, ())
    path = tmp_path_factory.getbasetemp() / "updated.json"
    path.write_text(text_of(result), encoding="utf-8")
    assert load_report(path) == result
    kept = {record.id for record in result.cases}
    ran = {(each.case, each.target) for each in old.outcomes if each.status != "not-run"}
    assert all(pair in result.by_pair() for pair in ran if pair[0] in kept)
