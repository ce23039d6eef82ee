"""The report of a build that could not be had: every case is there, none ran, and the reason is said."""

from __future__ import annotations

from pathlib import Path

from running import RULES, case_of

from conformance.results.placeholder import NOT_FOUND, placeholder_report
from conformance.results.store import load_report, text_of

WHY = "it could not be installed: no such version"
CASE = case_of("- a = ones(1)\n- expect: {a: 1}\n")


def test_no_case_ran_and_each_says_why(tmp_path: Path) -> None:
    report = placeholder_report([CASE], RULES, "9.9", WHY)
    assert [(found.case, found.status, found.reason) for found in report.outcomes] == [("c", "not-run", WHY)]
    assert (report.build.torch, report.build.why_absent("cpu")) == ("9.9", WHY)
    assert report.footer is not None
    assert (report.footer.exit_status, report.footer.counts) == (NOT_FOUND, {"not-run": 1})
    path = tmp_path / "report.json"
    path.write_text(text_of(report), encoding="utf-8")
    assert load_report(path) == report
