"""Tests of the report of a run while it lasts: whole after every outcome, complete only with its footer."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from samples import CPU, CUDA, case, failed, outcome, report
from write_faults import Faults

from conformance.model.graph import Graph
from conformance.model.outcome import Outcome
from conformance.model.report import Pair, Report, footer_of
from conformance.model.status import Status
from conformance.results.compact import compact_of
from conformance.results.journal import Journal, found_in
from conformance.results.store import load_report, text_of

PLAN: list[Pair] = [("a", CPU), ("b", CPU), ("c", CUDA)]
BEGIN = report(dict.fromkeys(PLAN), finished=False)
HARD_TEXT = 'quotes " and \\ and ]}\n, "outcomes": [] ö 😀 \x00 \ud800 </script>'
SLUG = "torch-2.13.0+cpu-01234567-py3.11-linux-x86_64"


@contextmanager
def begun(directory: Path, content: Report = BEGIN) -> Iterator[Journal]:
    journal = Journal(directory, content)
    journal.begin()
    try:
        yield journal
    finally:
        journal.file.close()


def of(pair: Pair, status: Status, **facts: Any) -> Outcome:
    return outcome(status, case=pair[0], target=pair[1], **facts)


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def test_what_is_known_before_the_first_outcome_is_on_disk(tmp_path: Path) -> None:
    with begun(tmp_path / "reports") as journal:
        assert journal.partial == tmp_path / "reports" / f"{SLUG}.{os.getpid()}.partial.json"
        assert journal.partial.read_bytes().startswith(text_of(BEGIN).encode()[:-6])
        assert load_report(journal.partial) == BEGIN
        assert list(read(journal.partial)) == ["format", "header", "rules", "cases", "plan", "outcomes"]


def test_the_journal_of_a_run_without_cases_is_a_report_too(tmp_path: Path) -> None:
    empty = report({}, finished=False)
    with begun(tmp_path, empty) as journal:
        assert load_report(journal.partial) == empty
        assert journal.finish({}, 5, {}).footer is not None


def test_the_file_is_whole_after_every_outcome_and_has_no_footer(tmp_path: Path) -> None:
    with begun(tmp_path) as journal:
        for count, pair in enumerate(PLAN, start=1):
            journal.add(of(pair, "error", reason=HARD_TEXT * count, stderr=HARD_TEXT))
            content = load_report(journal.partial)
            assert len(content.outcomes) == count
            assert content.outcomes[-1].reason == HARD_TEXT * count
            assert content.footer is None
    assert not journal.path.exists()


def test_the_file_is_whole_when_a_short_outcome_follows_a_long_one(tmp_path: Path) -> None:
    with begun(tmp_path) as journal:
        journal.add(of(PLAN[0], "crash", stderr="x" * 10_000))
        journal.add(of(PLAN[1], "pass"))
        assert [known.status for known in load_report(journal.partial).outcomes] == ["crash", "pass"]


def test_the_file_is_whole_where_writes_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, content, place: write(file, content[:7], place))
    with begun(tmp_path) as journal:
        journal.add(of(PLAN[0], "crash", stderr=HARD_TEXT))
        journal.add(of(PLAN[1], "pass"))
        assert [known.status for known in load_report(journal.partial).outcomes] == ["crash", "pass"]


def test_a_partial_report_that_is_not_to_be_had_is_never_written_over(tmp_path: Path) -> None:
    """Also where processes have the same number, as on other hosts and in containers."""
    with begun(tmp_path) as running, begun(tmp_path) as other:
        assert other.partial == tmp_path / f"{SLUG}.{os.getpid()}-2.partial.json"
        running.add(of(PLAN[0], "crash"))
        other.add(of(PLAN[1], "pass"))
        assert [known.pair for known in load_report(running.partial).outcomes] == PLAN[:1]
        other.finish(dict.fromkeys(PLAN, "deselected"), 0, {})
        running.finish(dict.fromkeys(PLAN, "deselected"), 0, {})
    assert [known.status for known in load_report(running.path).outcomes] == ["crash", "pass", "not-run"]


@pytest.mark.parametrize("cut", range(1, 50, 7))
def test_what_a_run_has_left_that_was_killed_while_it_wrote_is_taken_up(tmp_path: Path, cut: int) -> None:
    with begun(tmp_path) as killed:
        killed.add(of(PLAN[0], "crash"))
        killed.add(of(PLAN[1], "fail"))
        os.truncate(killed.partial, killed.end - cut)
    with begun(tmp_path) as journal:
        assert [known.pair for known in load_report(journal.path).outcomes] == PLAN[:1]


def test_what_holds_no_outcome_is_out_of_the_way_of_other_commands(tmp_path: Path) -> None:
    (tmp_path / f"{SLUG}.1.partial.json").write_text('{"format": 2,')
    with begun(tmp_path) as journal:
        assert {entry.name for entry in tmp_path.iterdir()} == {f"{SLUG}.1.partial.damaged", journal.partial.name}


def run_with_faults(directory: Path) -> tuple[bool, Journal]:
    """Run all of the plan as the recorder does, and return whether there is a report, and the journal."""
    journal = Journal(directory, BEGIN)
    with suppress(OSError):
        journal.begin()
    for pair in PLAN:
        with suppress(OSError):
            journal.add(of(pair, "fail"))
    try:
        journal.finish({}, 1, {})
    except OSError:
        return False, journal
    return True, journal


@pytest.mark.parametrize("for_good", [False, True])
def test_whichever_write_fails_a_report_is_whole_or_marked_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, for_good: bool
) -> None:
    kept = 0
    for failing in itertools.count(1):
        directory = tmp_path / str(failing)
        directory.mkdir()
        with begun(directory) as before:  # a whole report of before, and what a killed run has left
            for pair in PLAN:
                before.add(of(pair, "pass"))
            before.finish({}, 0, {})
        with begun(directory) as killed:
            killed.add(of(PLAN[0], "crash"))
        with monkeypatch.context() as patch:
            faults = Faults(patch, failing, for_good=for_good)
            is_told, journal = run_with_faults(directory)
        if journal.file is not None:
            journal.file.close()
        found = {path.name: found_in(path) for path in directory.glob("*.json")}
        whole = found[f"{SLUG}.json"]
        statuses = [each.status for each in whole.outcomes]
        if is_told:
            assert statuses == ["fail"] * 3
            assert whole.footer is not None
        else:
            kept += 1
            assert statuses[1:] == ["pass", "pass"]
            assert all(report.footer is None for name, report in found.items() if report is not whole)
            left = {each.status for report in found.values() for each in report.outcomes}
            assert "crash" in left
        if faults.calls < failing:
            break
    assert failing > 15
    assert kept >= 2


def test_what_an_unfinished_run_has_not_come_to_was_not_run(tmp_path: Path) -> None:
    with begun(tmp_path) as journal:
        journal.add(of(PLAN[1], "pass"))
        content = load_report(journal.partial)
    assert [known.status for known in content.by_pair().values()] == ["not-run", "pass", "not-run"]
    assert content.by_pair()[PLAN[0]].reason == "the report is incomplete"


def test_a_finished_report_has_a_footer_and_no_partial_file_beside_it(tmp_path: Path) -> None:
    with begun(tmp_path) as journal:
        journal.add(failed(case="b", target=CPU))
        journal.add(of(PLAN[0], "pass", seconds=0.25))
        returned = journal.finish({PLAN[2]: "no device cuda"}, 1, {})
    assert [entry.name for entry in tmp_path.iterdir()] == [f"{SLUG}.json"]
    content = load_report(journal.path)
    assert content == returned
    assert content.footer is not None
    assert content.footer == footer_of(content.outcomes, 1, content.footer.finished)
    assert content.footer.counts == {"fail": 1, "not-run": 1, "pass": 1}
    assert datetime.fromisoformat(content.footer.finished).tzinfo is not None


def test_outcomes_stand_in_the_order_of_the_plan(tmp_path: Path) -> None:
    with begun(tmp_path) as journal:
        for pair in reversed(PLAN):
            journal.add(of(pair, "pass"))
        content = journal.finish({}, 0, {})
    assert [(known.case, known.target) for known in content.outcomes] == PLAN


def test_what_was_planned_and_has_no_outcome_was_not_run_for_a_reason(tmp_path: Path) -> None:
    with begun(tmp_path) as journal:
        journal.add(of(PLAN[0], "pass"))
        content = journal.finish({PLAN[2]: "no device cuda"}, 0, {})
    assert content.outcomes[1:] == (
        of(PLAN[1], "not-run", reason="the run ended before it"), of(PLAN[2], "not-run", reason="no device cuda"),
    )  # fmt: skip


def test_a_later_outcome_of_the_same_pair_replaces_the_earlier_at_the_end(tmp_path: Path) -> None:
    with begun(tmp_path) as journal:
        journal.add(of(PLAN[0], "crash"))
        journal.add(of(PLAN[0], "pass"))
        content = journal.finish({}, 0, {})
    assert [known.status for known in content.outcomes] == ["pass", "not-run", "not-run"]


def test_a_finished_report_replaces_the_one_of_the_run_before(tmp_path: Path) -> None:
    for status in (1, 0):
        with begun(tmp_path) as journal:
            journal.finish({}, status, {})
    footer = load_report(journal.path).footer
    assert footer is not None
    assert footer.exit_status == 0
    assert len(list(tmp_path.iterdir())) == 1


def test_a_report_has_one_line_for_each_case_and_outcome(tmp_path: Path) -> None:
    with begun(tmp_path) as journal:
        journal.finish({}, 0, {})
    lines = journal.path.read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line.rstrip(",")) for line in lines if line.startswith('{"')]
    assert sum("status" in entry for entry in entries) == len(PLAN)
    assert sum("yaml" in entry for entry in entries) == len(BEGIN.cases)


def test_graphs_stand_in_the_finished_report(tmp_path: Path) -> None:
    graph = Graph(target=CPU, tensors=(), nodes=())
    with begun(tmp_path, report({("a", CPU): None}, cases=[case("a")], finished=False)) as journal:
        journal.finish({}, 0, {"a": graph})
    assert load_report(journal.path).graphs == {"a": graph}


def whole_then(directory: Path, pair: Pair, *, status: int = 0, exit_status: int = 0) -> Report:
    """Write the report of a whole run, then that of a run that came to one pair alone, and return what is on disk."""
    for found in (PLAN, [pair]):
        with begun(directory) as journal:
            for each in found:
                journal.add(of(each, "pass" if len(found) > 1 else "fail"))
            deselected = {each: "deselected" for each in PLAN if each not in found} if not status else {}
            journal.finish(deselected, exit_status, {})
    return load_report(journal.path)


def test_a_part_does_not_destroy_the_whole(tmp_path: Path) -> None:
    content = whole_then(tmp_path, PLAN[1])
    assert [known.status for known in content.outcomes] == ["pass", "fail", "pass"]
    assert [known.run for known in content.outcomes] == [0, 1, 0]
    assert [entry.name for entry in tmp_path.iterdir()] == [f"{SLUG}.json"]


def test_an_interrupted_run_does_not_destroy_the_whole(tmp_path: Path) -> None:
    content = whole_then(tmp_path, PLAN[0], status=1, exit_status=2)
    assert [known.status for known in content.outcomes] == ["fail", "pass", "pass"]
    assert content.header.partial_runs[0].exit_status == 2


def test_what_a_killed_run_has_left_is_taken_up_by_the_next(tmp_path: Path) -> None:
    with begun(tmp_path) as whole:
        for pair in PLAN:
            whole.add(of(pair, "pass"))
        whole.finish({}, 0, {})
    with begun(tmp_path) as killed:
        killed.add(of(PLAN[0], "crash"))
    killed.partial.rename(tmp_path / f"{SLUG}.1.partial.json")
    with begun(tmp_path) as journal:
        assert not (tmp_path / f"{SLUG}.1.partial.json").exists()
        assert [known.status for known in load_report(journal.path).outcomes] == ["crash", "pass", "pass"]
        assert load_report(journal.path).header.partial_runs[0].finished is None


def test_a_killed_first_run_is_an_unfinished_report(tmp_path: Path) -> None:
    with begun(tmp_path) as killed:
        killed.add(of(PLAN[0], "crash"))
    with begun(tmp_path) as journal:
        journal.add(of(PLAN[1], "pass"))
        journal.add(of(PLAN[2], "pass"))
        content = journal.finish({}, 0, {})
    assert [known.status for known in content.outcomes] == ["crash", "pass", "pass"]
    assert content.footer is not None


def test_outcomes_of_an_earlier_id_are_replaced_by_those_of_today(tmp_path: Path) -> None:
    (tmp_path / f"{SLUG}.json").write_text(text_of(report({("z", CPU): failed(), ("b", CPU): of(("b", CPU), "pass")})))
    journal = Journal(tmp_path, report({("a", CPU): None, ("c", CPU): None}, finished=False), {"z": ("a", "c")})
    journal.begin()
    journal.add(of(("a", CPU), "pass"))
    written = journal.finish({("c", CPU): "deselected"}, 0, {})
    found = {pair[0]: (each.status, each.reason) for pair, each in written.by_pair().items()}
    assert found == {"a": ("pass", ""), "b": ("pass", ""), "c": ("fail", "")}
    digests = {record.id: record.digest for record in written.cases}
    assert digests == {"a": "digest-a", "b": "digest-b", "c": "digest-z"}


def test_what_a_run_that_goes_on_has_written_is_left_alone(tmp_path: Path) -> None:
    with begun(tmp_path) as first:
        first.add(of(PLAN[0], "pass"))
        running = first.partial.rename(tmp_path / f"{SLUG}.1.partial.json")
        with begun(tmp_path) as second:
            for pair in PLAN:
                second.add(of(pair, "pass"))
            second.finish({}, 0, {})
        assert running.exists()
        first.add(of(PLAN[1], "fail"))
        assert len(load_report(running).outcomes) == 2
        first.finish({}, 1, {})
    assert [known.status for known in load_report(first.path).outcomes] == ["pass", "fail", "pass"]


def test_a_part_stands_beside_a_report_that_it_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / f"{SLUG}.json"
    other = report(dict.fromkeys(PLAN, outcome("pass")), config="another compiler\n")
    for content in ("no report", text_of(other)):
        path.write_text(content)
        with begun(tmp_path) as journal:
            journal.add(of(PLAN[0], "pass"))
            journal.finish(dict.fromkeys(PLAN[1:], "deselected"), 0, {})
        assert path.read_text() == content
        assert journal.written == tmp_path / f"{SLUG}.partial.json"
        assert [known.status for known in load_report(journal.written).outcomes] == ["pass", "not-run", "not-run"]
        assert f"{SLUG}.json stays as it was" in journal.note


def test_a_whole_run_replaces_what_it_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / f"{SLUG}.json"
    other = report(dict.fromkeys(PLAN, outcome("pass")), config="another compiler\n")
    for content in ("no report", text_of(other)):
        path.write_text(content)
        with begun(tmp_path) as journal:
            for pair in PLAN:
                journal.add(of(pair, "fail"))
            journal.finish({}, 1, {})
        assert [known.status for known in load_report(path).outcomes] == ["fail"] * 3
        assert journal.note == ""


def test_the_file_of_a_finished_run_is_the_text_of_its_report(tmp_path: Path) -> None:
    graphs = {"a": Graph(target=CPU, tensors=(), nodes=())}
    with begun(tmp_path) as journal:
        journal.add(of(PLAN[1], "crash", stderr=HARD_TEXT))
        journal.add(of(PLAN[0], "fail"))
        journal.add(of(PLAN[0], "pass", seconds=0.25))
        content = journal.finish({}, 0, graphs)
    assert [known.status for known in content.outcomes] == ["pass", "crash", "not-run"]
    assert journal.path.read_bytes() == text_of(content).encode()


def test_the_file_of_a_finished_run_without_cases_is_the_text_of_its_report(tmp_path: Path) -> None:
    with begun(tmp_path, report({}, finished=False)) as journal:
        content = journal.finish({}, 5, {})
    assert journal.path.read_bytes() == text_of(content).encode()


def test_an_outcome_is_encoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(tmp_path) as journal:
        for pair in PLAN:
            journal.add(of(pair, "pass"))
        monkeypatch.setattr("conformance.results.journal.encoded", None)
        monkeypatch.setattr("conformance.results.journal.text_of", None)
        assert journal.finish({}, 0, {}) == load_report(journal.path)


def test_a_whole_run_need_not_read_the_report_that_it_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: tuple[Status, ...] = ("fail", "pass")
    for status in statuses:
        with begun(tmp_path) as journal:
            for pair in PLAN:
                journal.add(of(pair, status))
            journal.finish({}, 0, {})
        monkeypatch.setattr("conformance.results.journal.load_report", None)
    assert [known.status for known in load_report(journal.path).outcomes] == ["pass"] * 3


def test_a_whole_run_keeps_what_only_an_earlier_one_ran(tmp_path: Path) -> None:
    """Also where the earlier one is compact and doesn't mention what passed."""
    path = tmp_path / f"{SLUG}.json"
    other = report({("a", CPU): outcome("pass"), ("z", CPU): outcome("pass")})
    for content in (other, compact_of(other)):
        path.write_text(text_of(content))
        with begun(tmp_path, report({("a", CPU): None}, finished=False)) as journal:
            journal.add(of(("a", CPU), "fail"))
            written = journal.finish({}, 1, {})
        assert {pair[0]: each.status for pair, each in written.by_pair().items()} == {"a": "fail", "z": "pass"}
