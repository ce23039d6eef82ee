"""The published reports: one of each release, small, without anything red, and with the bugs that are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.model.report import Report
from conformance.model.status import RED
from conformance.releases.catalogue import load_releases
from conformance.results.compact import is_bare
from conformance.results.store import load_report

PUBLISHED = Path(__file__).parent.parent / "reports" / "published"
FILES = sorted(PUBLISHED.glob("*.json"))
LARGEST = 280  # bytes of each case


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    return [load_report(path) for path in FILES]


def test_each_release_has_one_and_so_has_a_distribution(reports: list[Report]) -> None:
    published = [report.build.torch.partition("+")[0] for report in reports]
    known = [release.torch for release in load_releases().releases]
    assert set(known) <= set(published)
    assert len(published) > len(known)


def test_they_are_compact_and_say_nothing_of_a_machine(reports: list[Report]) -> None:
    for path, report in zip(FILES, reports, strict=True):
        assert path.stat().st_size < LARGEST * len(report.cases)
        assert all(map(is_bare, report.cases))
        assert (report.build.path, report.build.executable, report.header.run.arguments) == ("", "", ())
        retries = [outcome.retry.alone for outcome in report.outcomes if outcome.retry is not None]
        assert not any(outcome.stderr for outcome in (*report.outcomes, *retries))


def test_they_are_of_one_state_of_the_suite_and_nothing_is_unexplained(reports: list[Report]) -> None:
    assert len({report.header.suite.commit for report in reports}) == 1
    again = {outcome.case for report in reports for outcome in report.outcomes if outcome.run}
    assert len(again) < 60  # of which the suite had spoilt or not known something at first
    cases = [{each.id: each.digest for each in report.cases if each.id not in again} for report in reports]
    assert all(each == cases[0] for each in cases)
    for report in reports:
        assert report.footer is not None
        assert not {outcome.status for outcome in report.outcomes} & {*RED, "not-run"}, report.build.torch


def test_many_rows_show_real_bugs_with_links_on_the_releases_that_have_them(reports: list[Report]) -> None:
    releases: dict[str, set[str]] = {}
    for report in reports:
        for outcome in report.outcomes:
            if outcome.issue is not None and outcome.issue.link.startswith("https://github.com/"):
                releases.setdefault(outcome.case, set()).add(report.build.torch.partition("+")[0])
    assert len(releases) >= 50
    hardswish = releases["hardswish-at-its-bound-in-every-place"]
    assert hardswish == {"1.13.0a0", "1.13.1", "2.0.1", "2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0"}
    assert releases["product-of-two-sparse-matrices"] == {"2.0.1"}


def test_the_page_is_of_them(reports: list[Report]) -> None:
    page = (PUBLISHED / "index.html").read_text(encoding="utf-8")
    for report in reports:
        assert report.build.torch in page
