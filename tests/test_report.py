"""Tests of the JSON report: whole after every outcome, complete only with its footer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from conformance import report
from conformance.case import Case
from conformance.outcome import Failure, Outcome
from conformance.report import FORMAT, ReportError, ReportWriter, case_record, load_report, rule_records, write_whole
from conformance.rule import Rule

PLAN = [("one", "cpu-float32"), ("two", "cpu-float32"), ("three", "cuda-float32")]
HEADER = {"suite": "1", "build": {"torch": "2.13.0"}}
HARD_TEXT = 'quotes " and \\ and ]}\n, "outcomes": [] ö 😀 \x00 </script>'


def rule(name: str, level: str) -> Rule:
    return Rule(id=name, text="A rule.", topic="Rules", level=level, link="https://example.org", since="1.13")


RULES = {"a.b": rule("a.b", "documented"), "a.c": rule("a.c", "observed"), "a.d": rule("a.d", "documented")}
CASE = Case(
    file="x.yaml", line=3, topic="T", id="one", title="A", why="W", rules=("a.b", "a.c"), source=("s",),
    steps=(), text="- id: one\n", digest="0123",
)  # fmt: skip


@contextmanager
def begun(directory: Path) -> Iterator[ReportWriter]:
    writer = ReportWriter(directory, "torch-x", HEADER)
    writer.begin(rule_records(RULES, [CASE]), [case_record(CASE, RULES)], PLAN)
    try:
        yield writer
    finally:
        writer.file.close()


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def test_a_report_holds_what_is_known_before_the_first_outcome(tmp_path: Path) -> None:
    with begun(tmp_path / "reports") as writer:
        content = read(writer.partial)
    assert list(content) == ["format", "header", "rules", "cases", "plan", "outcomes"]
    assert content["format"] == FORMAT
    assert content["header"] == HEADER
    assert content["plan"][2] == {"case": "three", "target": "cuda-float32"}
    assert content["outcomes"] == []


def test_the_file_is_whole_after_every_outcome_and_has_no_footer(tmp_path: Path) -> None:
    with begun(tmp_path) as writer:
        for count, (case, target) in enumerate(PLAN, start=1):
            writer.add(case, target, Outcome(status="fail", reason=HARD_TEXT * count, stderr=HARD_TEXT))
            content = read(writer.partial)
            assert len(content["outcomes"]) == count
            assert content["outcomes"][-1]["reason"] == HARD_TEXT * count
            assert "footer" not in content
    assert not writer.path.exists()


def test_the_file_is_whole_when_a_short_outcome_follows_a_long_one(tmp_path: Path) -> None:
    with begun(tmp_path) as writer:
        writer.add("one", "cpu-float32", Outcome(status="crash", stderr="x" * 10_000))
        writer.add("two", "cpu-float32", Outcome(status="pass"))
        assert [outcome["status"] for outcome in read(writer.partial)["outcomes"]] == ["crash", "pass"]


def test_the_report_of_an_unfinished_run_loads(tmp_path: Path) -> None:
    with begun(tmp_path) as writer:
        writer.add("one", "cpu-float32", Outcome(status="pass"))
        assert "footer" not in load_report(writer.partial)


def test_a_finished_report_has_a_footer_and_no_partial_file_beside_it(tmp_path: Path) -> None:
    with begun(tmp_path) as writer:
        writer.add(
            "two",
            "cpu-float32",
            Outcome(status="fail", failures=(Failure(line=1, path="a", expected="1", observed="2"),)),
        )
        writer.add("one", "cpu-float32", Outcome(status="pass", seconds=0.25))
        path = writer.finish({("three", "cuda-float32"): "no device cuda"}, "aborted", 1)
    assert [entry.name for entry in tmp_path.iterdir()] == ["torch-x.json"]
    content = load_report(path)
    assert content["footer"]["exit_status"] == 1
    assert content["footer"]["counts"] == {"fail": 1, "not-run": 1, "pass": 1}
    assert datetime.fromisoformat(content["footer"]["finished"]).tzinfo is not None


def test_outcomes_stand_in_the_order_of_the_plan(tmp_path: Path) -> None:
    with begun(tmp_path) as writer:
        for case, target in reversed(PLAN):
            writer.add(case, target, Outcome(status="pass"))
        content = read(writer.finish({}, "aborted", 0))
    assert [(outcome["case"], outcome["target"]) for outcome in content["outcomes"]] == PLAN


def test_what_was_planned_and_has_no_outcome_was_not_run_for_a_reason(tmp_path: Path) -> None:
    with begun(tmp_path) as writer:
        writer.add("one", "cpu-float32", Outcome(status="pass"))
        content = read(writer.finish({("three", "cuda-float32"): "no device cuda"}, "deselected", 0))
    assert content["outcomes"][1:] == [
        {"case": "two", "target": "cpu-float32", "status": "not-run", "reason": "deselected"},
        {"case": "three", "target": "cuda-float32", "status": "not-run", "reason": "no device cuda"},
    ]


def test_a_later_outcome_of_the_same_pair_replaces_the_earlier(tmp_path: Path) -> None:
    with begun(tmp_path) as writer:
        writer.add("one", "cpu-float32", Outcome(status="crash"))
        writer.add("one", "cpu-float32", Outcome(status="pass"))
        content = read(writer.finish({}, "aborted", 0))
    assert [outcome["status"] for outcome in content["outcomes"]] == ["pass", "not-run", "not-run"]


def test_a_finished_report_replaces_the_one_of_the_run_before(tmp_path: Path) -> None:
    for status in (1, 0):
        with begun(tmp_path) as writer:
            writer.finish({}, "aborted", status)
    assert load_report(writer.path)["footer"]["exit_status"] == 0
    assert len(list(tmp_path.iterdir())) == 1


def test_a_report_has_one_line_for_each_case_and_outcome(tmp_path: Path) -> None:
    with begun(tmp_path) as writer:
        lines = writer.finish({}, "aborted", 0).read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith('{"case": ') and "status" in line for line in lines) == len(PLAN)


def test_a_case_record_holds_its_level_and_text() -> None:
    record = case_record(CASE, RULES)
    assert (record["level"], record["rules"], record["yaml"]) == ("observed", ["a.b", "a.c"], "- id: one\n")
    assert json.loads(json.dumps(record)) == record


def test_only_the_rules_that_are_cited_stand_in_a_report() -> None:
    assert list(rule_records(RULES, [CASE])) == ["a.b", "a.c"]


def test_a_file_is_written_whole_and_can_be_read_by_others(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "x.json"
    write_whole(path, "ö")
    write_whole(path, "öö")
    assert path.read_text(encoding="utf-8") == "öö"
    assert path.stat().st_mode & 0o777 == 0o644
    assert len(list(path.parent.iterdir())) == 1


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    write_whole(path, "old")

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        report.write_whole(path, "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]
    assert path.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "can't be read as a report: "),
        (b"{", "can't be read as a report: "),
        (b"\xff\xfe", "can't be read as a report: "),
        (b"[]", "not a report: no format number"),
        (b"{}", "not a report: no format number"),
        (b'"format"', "not a report: no format number"),
        (b'{"format": 2}', "format 2, expected 1"),
        (b'{"format": "1"}', "format '1', expected 1"),
    ],
)
def test_a_file_that_is_no_report_is_refused_with_its_name(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(ReportError) as caught:
        load_report(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_report_that_is_not_there_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"missing\.json: can't be read as a report"):
        load_report(tmp_path / "missing.json")
