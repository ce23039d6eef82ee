"""Tests of drafted known issues: that each says which releases and targets fail, and holds what it was drafted from."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from samples import failed, outcome, report

from conformance.language.errors import CaseFileError
from conformance.model.build import Target
from conformance.model.outcome import Outcome
from conformance.model.report import Report
from conformance.results.drafts import drafts_of, drafts_text
from conformance.results.known_issues import load_known_issues

CPU, DOUBLE, CUDA = "cpu-float32", "cpu-float64", "cuda-float32"
GOOD, BAD, OTHER = outcome("pass"), failed(), failed("b.version")


def on(torch: str, found: Outcome, *targets: str) -> Report:
    return report({("a", target): found for target in targets or (CPU,)}, torch=torch)


def conditions(*outcomes: tuple[str, Outcome]) -> list[tuple[str, str]]:
    return [(draft.torch, draft.fails.kind[0]) for draft in drafts_of([on(*pair) for pair in outcomes])]


def test_a_range_ends_where_another_outcome_was_seen() -> None:
    releases = [("1.13.1", BAD), ("2.0.1", BAD), ("2.1.2", GOOD), ("2.2.2+cu121", BAD), ("2.10.0", OTHER)]
    assert conditions(*releases) == [("<2.1", "a.grad"), (">=2.2,<2.10", "a.grad"), (">=2.10", "b.version")]


def test_what_did_not_run_ends_no_range() -> None:
    lacks = outcome("unsupported", reason="no such dtype")
    assert conditions(("2.0.1", BAD), ("2.1.2", lacks), ("2.2.2", BAD)) == [(">=2.0", "a.grad")]


def test_patches_of_one_release_are_told_apart_where_they_differ() -> None:
    assert conditions(("2.1.0", GOOD), ("2.1.2", BAD), ("2.2.0", GOOD)) == [(">=2.1.2,<2.2", "a.grad")]


def test_of_two_builds_of_a_release_the_one_that_fails_counts() -> None:
    for builds in ((("2.1.2+cpu", GOOD), ("2.1.2+cu121", BAD)), (("2.1.2+cu121", BAD), ("2.1.2+cpu", GOOD))):
        assert conditions(*builds, ("2.2.2", GOOD)) == [(">=2.1,<2.2", "a.grad")]


def test_a_device_stands_for_its_dtypes_where_they_agree() -> None:
    bad, good = on("2.0.1", BAD, CPU, DOUBLE, CUDA), on("2.1.2", GOOD, CPU, DOUBLE, CUDA)
    assert [draft.targets for draft in drafts_of([bad, good])] == [("cpu", "cuda")]
    mixed = report({("a", CPU): BAD, ("a", DOUBLE): GOOD, ("a", CUDA): BAD})
    assert [draft.targets for draft in drafts_of([mixed])] == [("cpu-float32", "cuda")]


def test_the_text_loads_and_describes_what_was_seen(tmp_path: Path) -> None:
    crashed = outcome("crash", reason="the worker was ended by SIGSEGV", signal="SIGSEGV")
    reports = [on("2.0.1", BAD), on("2.1.2", GOOD), on("2.2.2", crashed)]
    path = tmp_path / "known-issues.yaml"
    drafted = drafts_text(reports, date(2026, 1, 1))
    path.write_text(drafted)
    with pytest.raises(CaseFileError, match="reason: expected text, got nothing"):
        load_known_issues(path, path.name, path)
    path.write_text(drafted.replace("reason: null", "reason: It is wrong."))
    issues = load_known_issues(path, path.name, path)
    target = Target(device="cpu", dtype="float32")
    found = [issues.judge("a", target, each.build, each.outcomes[0]).status for each in reports]
    assert found == ["known", "pass", "known"]
    assert {entry.review for entry in issues.entries} == {date(2026, 7, 2)}


def test_nothing_red_makes_an_empty_list() -> None:
    assert drafts_text([on("2.0.1", GOOD)], date(2026, 1, 1)) == "issues: []\n"
