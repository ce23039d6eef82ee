"""Tests of the page in a real browser: what it shows, finds and links to, by mouse, by keyboard and on paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import NEEDED, Opener
from playwright.sync_api import Browser, Page, expect
from samples import (
    CPU,
    CUDA,
    FAILURES,
    GRAPH,
    broken,
    case,
    device,
    failed,
    outcome,
    read_case,
    report,
    rule,
    suite_of,
    valid_case,
)

from conformance.model.build import BackEnd
from conformance.model.outcome import Failure, Issue, Unobserved
from conformance.model.report import Report, StepRecord, without_machine
from conformance.model.status import STATUSES, TABLE
from conformance.render.page.matrix import matrix_of
from conformance.render.page.page import Suite, page_of
from conformance.results.diff import compare
from conformance.results.nights import Nights, with_night

HOSTILE = (
    "<script>document.title='pwned'</script>", "</script><script>alert(1)</script>",
    "\"'`><img src=x onerror=alert(1)>", "javascript:alert(1)", "\u202egnp.exe\u2066", "\ud800 half a pair",
    "{{ 7 * 7 }} ${7 * 7} <!--", "]]>&amp;\\u003cb\\u003e",
)  # fmt: skip
DOUBLE = "cpu-float64"
GOOD = outcome("pass")
LATE = Issue(status="fail", reason="Late since ever.", link="https://example.org/issues/1")

pytestmark = NEEDED


def many_reports() -> list[Report]:
    """Return reports of three builds that differ in all ways that a page must tell apart."""
    cases = [
        valid_case("holds", topic="First", rules=("r.one", "r.two")),
        valid_case("breaks", line=21, topic="First", title="It breaks on the new release"),
        valid_case("crashes", line=41, topic="Second", file="cases/y.yaml"),
        valid_case("late", line=61, topic="Second", file="cases/y.yaml", level="observed", rules=("r.two",)),
        valid_case("lacks", line=81, topic="Third", file="cases/z.yaml"),
    ]
    ids = [case.id for case in cases]
    old = report(
        {**{(name, CPU): GOOD for name in ids}, ("lacks", CPU): outcome("unsupported", reason="no such operation")},
        cases=cases, torch="1.13.1+cu117", devices=(device("cpu"),),
    )  # fmt: skip
    middle = report(
        {(name, target): GOOD for target in (CPU, CUDA) for name in ids},
        cases=cases, torch="2.0.1", devices=(device("cpu"), device("cuda")), cuda="11.7",
    )  # fmt: skip
    new = report(
        {
            ("holds", CPU): GOOD, ("holds", DOUBLE): GOOD, ("breaks", CPU): broken(line=29),
            ("crashes", CPU): outcome("crash", reason="the worker was ended by SIGSEGV", stderr="Fatal Python error"),
            ("late", CPU): failed(status="known", issue=LATE),
            ("lacks", CPU): None,
        },
        cases=cases, finished=False,
    )  # fmt: skip
    return [new, old, msgspec.structs.replace(middle, graphs={"holds": GRAPH, "breaks": GRAPH})]


def nights_of(last: Report) -> Nights:
    """Return three nights of a build line, in the last of which a case broke and another one crashed."""
    nights = None
    for day in (1, 2):
        run = msgspec.structs.replace(last.header.run, started=f"2026-01-0{day}T03:17:00+00:00")
        header = msgspec.structs.replace(last.header, run=run)
        outcomes = tuple(outcome("pass", case=each.case, target=each.target) for each in last.outcomes)
        nights = with_night(nights, msgspec.structs.replace(last, header=header, outcomes=outcomes))
    return with_night(nights, last)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "index.html"
    reports = many_reports()
    text = page_of(reports, suite=Suite(script_of=suite_of(*reports).get), nights=[nights_of(reports[0])])
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


def rows(page: Page) -> list[str]:
    """Return the labels of the rows of the matrix, with a sign of those that stand open or closed."""
    labels: list[str] = page.locator("table.matrix tbody th").evaluate_all(
        """heads => heads.map(head => {
            const expanded = head.querySelector('[aria-expanded]')?.ariaExpanded;
            const sign = expanded === 'true' ? '- ' : expanded === 'false' ? '+ ' : '';
            return sign + head.textContent.replace(/\\s+/g, ' ').trim();
        })"""
    )
    return labels


def cells(page: Page, label: str) -> list[str]:
    """Return the outcomes in the row of a case, as somebody hears them who can't see them."""
    row = page.locator("table.matrix tbody tr", has=page.locator("th", has_text=label)).last
    outcomes: list[str] = row.locator("td").evaluate_all(
        "tds => tds.map(td => [...td.querySelectorAll('[aria-label]')].map(s => s.ariaLabel).join())"
    )
    return outcomes


def test_the_page_opens_on_topics_with_the_releases_in_order(opened: Opener, address: str) -> None:
    page = opened(address)
    heads = page.locator("table.matrix thead tr").first.locator("th").all_inner_texts()
    assert heads == ["Behaviour", "2.13.0", "2.0.1", "1.13.1"]
    assert rows(page) == ["All of these 5", "+ First 2", "+ Second 2", "+ Third 1"]
    assert page.locator("table.matrix thead tr").nth(1).locator("th").count() == 4
    assert "incomplete" in page.locator("table.matrix thead").inner_text()
    assert "did not finish" in page.locator("body").inner_text()


def test_a_sentence_says_how_the_build_of_the_last_release_stands(opened: Opener, address: str) -> None:
    page = opened(address)
    told = "torch 2.13.0+cpu py3.11: 2 red outcomes from 2 causes; 2 pass, 1 known, 1 not-run."
    assert page.inner_text("#verdict") == told
    page.get_by_role("link", name="2 red outcomes", exact=True).click()
    expect(page.locator("#found")).to_contain_text("2 of 5 cases")
    page.get_by_role("link", name="2 causes", exact=True).click()
    expect(page.locator("#sheet h1")).to_have_text("torch 2.13.0+cpu")


def test_a_topic_opens_to_what_is_wrong(opened: Opener, address: str) -> None:
    page = opened(address)
    page.get_by_role("button", name="First").click()
    assert rows(page) == [
        "All of these 5", "- First 2", "- The rule r.one. r.one 2", "+ dtypes The case holds holds",
        "It breaks on the new release breaks", "+ The rule r.two. r.two 1", "+ Second 2", "+ Third 1",
    ]  # fmt: skip
    told = "fail: b.is_leaf: expected false, observed true (and 1 more)"
    assert cells(page, "It breaks") == [told, "pass", "pass", "pass"]


def test_a_search_finds_ids_titles_rules_and_messages(opened: Opener, address: str) -> None:
    page = opened(address)
    for words, found in (
        ("crashes", "1 of 5 cases"), ("NEW release", "1 of 5"), ("r.two", "2 of 5"), ("sigsegv", "1 of 5"),
        ("observed true", "2 of 5"), ("nosuch thing", "0 of 5"), ("", "5 cases"),
    ):  # fmt: skip
        page.fill("#q", words)
        expect(page.locator("#found")).to_contain_text(found)


def test_filters_by_status_device_topic_level_build_and_dtype_narrow_the_matrix(opened: Opener, address: str) -> None:
    page = opened(address)

    def count(fragment: str) -> str:
        page.goto(f"{address}{fragment}")
        return page.inner_text("#found")

    assert count("#?status=fail") == "1 of 5 cases in 4 columns"
    assert count("#?status=fail&status=crash") == "2 of 5 cases in 4 columns"
    assert count("#?device=cuda") == "5 cases in 1 column"
    assert count("#?topic=Second&level=observed") == "1 of 5 cases in 4 columns"
    assert count("#?dtype=float64") == "1 of 5 cases in 4 columns"
    assert count("#?build=torch-2.0.1-01234567-py3.11-linux-x86_64&status=fail") == "0 of 5 cases in 2 columns"
    assert "Nothing fits" in page.inner_text("#table")


def test_boxes_of_the_form_do_what_the_address_says(opened: Opener, address: str) -> None:
    page = opened(address)
    page.check("#statuses input[value=crash]")
    expect(page.locator("#found")).to_contain_text("1 of 5")
    page.get_by_text("Topic: all").click()
    page.check("input[name=topic][value=First]")
    expect(page.locator("#found")).to_contain_text("0 of 5")
    page.wait_for_url("**#?status=crash&topic=First")
    page.reload()
    page.wait_for_selector("#wait", state="detached")
    assert page.is_checked("#statuses input[value=crash]")
    assert page.inner_text("#found").startswith("0 of 5")
    page.locator("#clear").click()
    expect(page.locator("#found")).to_contain_text("5 cases")


def test_only_what_differs_is_one_click_away(opened: Opener, address: str) -> None:
    page = opened(address)
    page.check("#differ")
    shown = "\n".join(rows(page))
    assert "It breaks" in shown
    assert "The case holds" not in shown
    assert page.inner_text("#found") == "4 of 5 cases in 4 columns"


def test_what_is_wrong_is_one_click_away(opened: Opener, address: str) -> None:
    page = opened(address)
    page.locator("#wrong").click()
    assert page.inner_text("#found") == "3 of 5 cases in 4 columns"


def test_a_link_shows_the_same_view(opened: Opener, address: str) -> None:
    page = opened(address)
    page.fill("#q", "the case")
    page.get_by_role("button", name="dtypes").click()
    page.wait_for_timeout(300)
    again = opened(page.url)
    assert rows(again) == rows(page)
    assert again.input_value("#q") == "the case"


def test_a_case_that_runs_with_two_dtypes_opens_to_its_targets(opened: Opener, address: str) -> None:
    page = opened(f"{address}#?q=holds")
    page.get_by_role("button", name="dtypes").click()
    assert [row for row in rows(page) if row.startswith("float")] == ["float32", "float64"]
    assert cells(page, "float64") == ["pass", "", "", ""]


def test_the_page_of_a_case_says_all_there_is_to_say(opened: Opener, address: str) -> None:
    page = opened(address)
    page.get_by_role("button", name="First").click()
    page.get_by_role("link", name="It breaks on the new release").click()
    expect(page.locator("#sheet h1")).to_have_text("It breaks on the new release")
    assert page.title().startswith("It breaks on the new release")
    text = page.locator("#sheet").inner_text()
    assert "cpu, float32: pass on 1.13.1 to 2.0.1; fail on 2.13.0" in text
    assert "To test." in text
    assert "cases/x.yaml:21" in text
    assert "pytest 'cases/x.yaml::breaks[cpu-float32]'" in text
    link = page.get_by_role("link", name="documentation")
    assert link.get_attribute("href") == "https://x"


def test_the_steps_show_where_builds_diverged(opened: Opener, address: str) -> None:
    cases = [valid_case("breaks")]
    path = Path(address.removeprefix("file://")).with_name("steps.html")
    pair = ("breaks", CPU)
    reports = [report({pair: GOOD}, cases=cases, torch="2.0.1"), report({pair: broken()}, cases=cases)]
    path.write_text(page_of(reports, suite=Suite(script_of=suite_of(*reports).get)), encoding="utf-8")
    page = opened(f"{path.as_uri()}#case/breaks")
    steps = page.locator("table.steps tbody tr")
    told = [" ".join(text.split()) for text in steps.locator("td:last-child").all_inner_texts()]
    assert told == [
        "✓ as expected", "✓ as expected",
        "✗ fail here b.is_leaf: expected false, observed true a.grad: expected null, observed [0.25]",
        "not reached", "not reached",
    ]  # fmt: skip
    assert [text.split()[-1] for text in steps.locator("td:nth-child(3)").all_inner_texts()] == ["expected"] * 5
    assert steps.locator("th").all_inner_texts() == ["6", "7", "8", "11", "12"]


def test_the_graph_is_drawn_with_its_tensors_and_nodes(opened: Opener, address: str) -> None:
    page = opened(f"{address}#case/holds")
    drawn = page.locator("svg.graph")
    assert drawn.locator("g.node").count() == 2
    assert drawn.locator("g.leaf text").all_text_contents()[:2] == ["a [1]", "leaf, requires grad"]
    label = drawn.get_attribute("aria-label") or ""
    assert "leaf, requires grad, accumulates into .grad" in label
    assert "SigmoidBackward0, saved result = b" in label
    boxes = drawn.locator("rect").evaluate_all("rects => rects.map(rect => rect.getBoundingClientRect().toJSON())")
    assert not [
        (one, other) for at, one in enumerate(boxes) for other in boxes[:at]
        if one["left"] < other["right"] and other["left"] < one["right"]
        and one["top"] < other["bottom"] and other["top"] < one["bottom"]
    ]  # fmt: skip


def test_the_graph_is_shown_before_backward_and_at_the_end(opened: Opener, address: str) -> None:
    page = opened(f"{address}#case/holds")
    drawn = page.locator("svg.graph")
    assert "accumulates into .grad (set)" in (drawn.get_attribute("aria-label") or "")
    page.get_by_role("button", name="before backward").click()
    assert "accumulates into .grad;" in (drawn.get_attribute("aria-label") or "")
    page.get_by_role("button", name="at the end").click()
    assert "accumulates into .grad (set)" in (drawn.get_attribute("aria-label") or "")


def test_the_script_is_copied_as_it_is_shown(opened: Opener, address: str) -> None:
    page = opened(f"{address}#case/holds", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the script").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "".join(page.locator("pre.script").all_text_contents())
    assert "import torch" in copied
    compile(copied, "script", "exec")


def test_known_issues_are_named_with_their_link(opened: Opener, address: str) -> None:
    page = opened(f"{address}#case/late")
    assert page.get_by_role("link", name="upstream").get_attribute("href") == "https://example.org/issues/1"
    assert page.locator(".failure .issue").all_inner_texts() == ["Late since ever. upstream"]


def test_a_known_issue_that_is_not_reported_is_written_up_to_be_reported(shown: Shower) -> None:
    late = failed(status="known", issue=Issue(status="fail", reason="It is late."))
    reports = [report({("a", CPU): late}, cases=[valid_case("a")], torch=torch) for torch in ("2.0.0", "2.1.0")]
    page = shown(*reports, fragment="#case/a")
    told = "It is late. Not known to be reported; it can be copied as a bug report."
    assert page.locator(".failure .issue").all_inner_texts() == [told]
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.taken = text; }")
    page.get_by_role("button", name="Copy this as a bug report, with the script below").click()
    taken = page.evaluate("window.taken")
    assert taken.startswith("The case a\n\nIt is late.\n\nOn torch 2.0.0 py3.11 on cpu:\n\n- a.grad: expected 1")
    assert "".join(page.locator("pre.script").all_text_contents()).rstrip() in taken


def test_the_page_of_a_build_says_what_was_planned_and_why_some_was_not_run(opened: Opener, address: str) -> None:
    page = opened(address)
    page.locator("table.matrix thead a").first.click()
    expect(page.locator("#sheet h1")).to_have_text("torch 2.13.0+cpu")
    text = page.locator("#sheet").inner_text()
    commit = "0123456789abcdef"
    for part in (commit, "GCC 13.3", "the run did not finish", "the report is incomplete"):
        assert part in text


def test_what_turned_in_the_last_nights_is_told_of_a_build_and_of_a_case(opened: Opener, address: str) -> None:
    page = opened(f"{address}#build/{NEW_BUILD}")
    rows = page.get_by_role("region", name="What turned").locator("tbody tr")
    expect(rows).to_have_count(3)
    told = {row.locator("th").inner_text(): row.locator("td").last.inner_text() for row in rows.all()}
    assert told["It breaks on the new release"] == "fail since 2026-01-02, torch 2.13.0+cpu; pass before"
    assert rows.first.locator(".strip > span").count() == 3
    page.get_by_role("link", name="It breaks on the new release").click()
    section = page.locator("section", has_text="Night after night").last
    expect(section.locator(".strip")).to_be_visible()
    assert "on cpu, float32: fail since 2026-01-02, torch 2.13.0+cpu; pass before" in section.inner_text()
    page.goto(f"{address}#case/holds")
    section = page.locator("section", has_text="Night after night").last
    expect(section).to_contain_text("float64: pass in all of 3 nights")


def caused_report() -> Report:
    """Return a report of which three outcomes have one cause, and another one and one that is unsupported their own."""
    cases = [valid_case(name, line=20 * at + 1, title=f"The title of {name}") for at, name in enumerate("abcde")]
    wrong = broken(failures=(msgspec.structs.replace(FAILURES[1], observed=HOSTILE[0], exception="E"),), line=11)
    return report(
        {("a", CPU): wrong, ("b", CPU): wrong, ("b", DOUBLE): wrong, ("c", CPU): broken(), ("d", CPU): GOOD,
         ("e", CPU): outcome("unsupported", reason="no kernel")},
        cases=cases,
    )  # fmt: skip


def test_a_build_leads_to_its_causes_and_each_of_them_to_its_cases(shown: Shower) -> None:
    page = shown(caused_report(), report({("d", CPU): GOOD}, torch="2.12.0"))
    lead = page.get_by_role("link", name="2 causes of 4 red outcomes")
    lead.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#sheet h1")).to_have_text("torch 2.13.0+cpu")
    table = page.get_by_role("region", name="Causes")
    told = [row.split("\t")[0].strip() for row in table.locator("tbody tr").all_inner_texts()]
    assert told == [HOSTILE[0], "is_leaf: true instead of false"]
    assert table.get_by_role("link").all_inner_texts() == ["show 3", "a", "show 1", "c"]
    table.get_by_role("link", name="show 3").press("Enter")
    expect(page.locator("#found")).to_have_text("2 of 5 cases in 1 column")
    assert [row for row in rows(page) if "title" in row] == ["The title of a a", "+ dtypes The title of b b"]
    expect(page.locator(".choice[data-name=cause] .chosen")).to_have_text(": 1 chosen")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#found")).to_have_text("5 cases in 2 columns")


def test_a_case_leads_to_what_has_its_cause(shown: Shower) -> None:
    page = shown(caused_report(), fragment="#case/a")
    page.get_by_role("link", name=HOSTILE[0]).click()
    expect(page.locator("#found")).to_have_text("2 of 5 cases in 1 column")
    assert "Cause:" not in shown(caused_report(), fragment="#case/c").locator("#sheet").inner_text()


def test_a_cause_is_a_filter_of_the_form_and_one_that_is_unknown_fits_nothing(shown: Shower) -> None:
    page = shown(caused_report())
    page.locator(".choice[data-name=cause] summary").click()
    page.get_by_label("1 missing: no kernel").check()
    expect(page.locator("#found")).to_have_text("1 of 5 cases in 1 column")
    page = shown(caused_report(), fragment="#?cause=none")
    assert "Nothing fits the filters." in page.locator("#table").inner_text()


def test_causes_are_printed_without_what_can_only_be_clicked(shown: Shower) -> None:
    page = shown(caused_report(), fragment=f"#build/{NEW_BUILD}")
    page.emulate_media(media="print")
    assert page.locator("#causes").is_visible()
    assert "show 3" not in page.locator("#sheet").inner_text()


def test_what_changed_between_two_columns_is_what_the_command_line_says(opened: Opener, address: str) -> None:
    reports = matrix_of(many_reports()).reports
    page = opened(address)
    listed = page.locator("#compare select").first.locator("option")
    columns = listed.evaluate_all("options => options.map(option => option.value)")
    on_cpu = [column for column in reversed(columns) if column.endswith("/cpu")]  # they begin with the newest
    for old, first in zip(reports, on_cpu, strict=True):
        for new, second in zip(reports, on_cpu, strict=True):
            page.goto(f"{address}#changes?from={quote(first)}&to={quote(second)}")
            title = f"What changes from torch {old.build.torch} to torch {new.build.torch}"
            expect(page.locator("#sheet h1")).to_have_text(title)
            headings = [text.rpartition(" ") for text in page.locator("#sheet h2").all_inner_texts()]
            told = {kind.lower().replace(" ", "-"): int(count) for kind, _, count in headings}
            said = Counter(change.kind for change in compare(old, new).changes if change.target.startswith("cpu"))
            assert told == said, (first, second)


def test_the_form_leads_to_what_changed(opened: Opener, address: str) -> None:
    page = opened(address)
    options = page.locator("#compare select").first.locator("option").count()
    page.locator("#compare select").first.select_option(index=options - 1)  # the oldest
    page.locator("#compare select").last.select_option(index=options - 4)
    page.locator("#compare button").click()
    expect(page.locator("#sheet h1")).to_contain_text("What changes from torch")
    assert "regressed 2" in page.locator("#sheet").inner_text().lower()
    page.go_back()
    expect(page.locator("#matrix h1")).to_be_visible()


def test_the_keyboard_alone_finds_opens_and_comes_back(opened: Opener, address: str) -> None:
    page = opened(address)
    page.keyboard.press("/")
    page.keyboard.type("breaks")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent").startswith("It breaks on the new release")
    page.keyboard.press("Enter")
    expect(page.locator("#sheet h1")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="It breaks on the new release")).to_be_focused()
    assert page.input_value("#q") == "breaks"


def test_going_back_undoes_filters_one_by_one_and_does_not_leave_the_page(opened: Opener, address: str) -> None:
    page = opened(address)
    page.locator("#find input[name=status][value=fail]").check()
    expect(page.locator("#found")).to_contain_text("1 of 5 cases")
    page.locator("#find input[name=status][value=fail]").uncheck()
    page.fill("#q", "late")
    expect(page.locator("#found")).to_contain_text("1 of 5 cases")
    page.go_back()
    expect(page.locator("#found")).to_have_text("5 cases in 4 columns")
    page.go_back()
    expect(page.locator("#found")).to_contain_text("1 of 5 cases")
    page.go_back()
    expect(page.locator("#found")).to_have_text("5 cases in 4 columns")
    assert page.input_value("#q") == ""


def test_a_click_on_an_outcome_leads_to_its_case_and_one_on_a_count_to_what_it_counts(
    opened: Opener, address: str
) -> None:
    page = opened(address)
    page.locator("tr.topic", has_text="Second").get_by_role("link", name="crash 1").click()
    expect(page.locator("#found")).to_contain_text("1 of 5 cases in 1 column")
    page.locator("tr.case td a").first.click()
    expect(page.locator("#sheet h1")).to_have_text("The case crashes")


def test_older_builds_are_folded_until_they_are_asked_for(shown: Shower) -> None:
    releases = [f"2.{minor}.0" for minor in range(12)]
    page = shown(*(report({("a", CPU): GOOD}, torch=release) for release in releases))
    heads = page.locator("table.matrix thead tr").first.locator("th")
    assert heads.all_inner_texts()[1:] == releases[:3:-1]
    page.get_by_role("button", name="Show 4 older columns").click()
    assert heads.all_inner_texts()[1:] == releases[::-1]
    page.get_by_role("button", name="Fold the older builds").click()
    assert heads.count() == 9
    page.get_by_role("link", name="2.0.0").click()  # what changes from there
    expect(page.locator("#sheet h1")).to_have_text("What changes from torch 2.0.0 to torch 2.11.0")


def test_what_failed_comes_first_with_lines_that_show_it(opened: Opener, tmp_path: Path) -> None:
    record = valid_case("breaks", title="It breaks")
    made = report({("breaks", CPU): broken()}, cases=[record])
    cases = {(record.id, record.digest): read_case(record)}
    path = tmp_path / "index.html"
    path.write_text(page_of([made], suite=Suite(case_of=cases.get)), encoding="utf-8")
    page = opened(f"{path.as_uri()}#case/breaks")
    headings = page.locator("#sheet h2").all_inner_texts()
    assert headings[0].endswith("fail: an expectation did not hold, or an expected error did not come")
    shown = page.locator(".failure pre.script").inner_text()
    assert "b = a.sigmoid()\nassert b.is_leaf == False, b.is_leaf\n# observed: b.is_leaf: true" in shown
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.taken = text; }")
    page.get_by_role("button", name="Copy them as a bug report").click()
    taken = page.evaluate("window.taken")
    assert taken.startswith(
        "It breaks\n\nOn torch 2.13.0+cpu py3.11 on cpu:\n\n- b.is_leaf: expected false, observed true"
    )
    assert shown in taken


def test_a_case_leads_to_those_that_do_much_the_same(opened: Opener, address: str) -> None:
    page = opened(f"{address}#case/holds")
    related = page.locator("section", has_text="Related cases").locator("li")
    expect(related).to_have_count(4)
    assert related.first.get_by_role("img").get_attribute("aria-label") in {"crash", "fail", "known", "not-run"}
    page.get_by_role("link", name="It breaks on the new release").click()
    expect(page.locator("#sheet h1")).to_have_text("It breaks on the new release")


@pytest.fixture
def opened_as_it_is(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Give a function that opens the text of a page, whatever the browser says of it."""
    pages: list[Page] = []

    def open_text(text: str, fragment: str = "") -> Page:
        path = tmp_path / f"{len(pages)}.html"
        path.write_text(text, encoding="utf-8")
        pages.append(browser.new_page())
        pages[-1].goto(path.as_uri() + fragment)
        return pages[-1]

    yield open_text
    for page in pages:
        page.close()


def parts_of(text: str) -> list[int]:
    """Return where the parts of a page begin."""
    return [match.end() for match in re.finditer(r'id="part-\d+">', text)]


def test_a_page_that_was_cut_off_says_so_and_shows_what_it_can(opened_as_it_is: Opener, address: str) -> None:
    whole = Path(address.removeprefix("file://")).read_text(encoding="utf-8")
    index, details, *_, last = parts_of(whole)
    script = whole.index('"use strict"')
    for place in (whole.index("Unpacking") + 200, index + 40, script + 999):
        page = opened_as_it_is(whole[:place])
        expect(page.locator("main")).to_contain_text("If nothing follows, this file was cut off or damaged")
    told = {details - 38: "0 of 5 cases can be opened", details + 40: "0 of 5 cases", last + 40: "5 of 5 cases"}
    for place, count in told.items():
        page = opened_as_it_is(whole[:place])
        expect(page.locator("header")).to_contain_text(f"Cut off: the end of this file is missing. {count}")
        expect(page.locator("#found")).to_have_text("5 cases in 4 columns")
    page.goto(page.url + "#case/breaks")
    expect(page.locator("#sheet")).to_contain_text("observed true")
    page = opened_as_it_is(whole)
    expect(page.locator("#wait")).to_have_count(0)
    expect(page.locator(".notice", has_text="Cut off")).to_have_count(0)


def test_a_damaged_part_is_told_where_it_would_be_and_the_rest_is_shown(opened_as_it_is: Opener, address: str) -> None:
    whole = Path(address.removeprefix("file://")).read_text(encoding="utf-8")
    index, details, expected, background, nights = parts_of(whole)

    def damaged(place: int, fragment: str = "") -> Page:
        return opened_as_it_is(whole[: place + 60] + "AAAA" + whole[place + 64 :], fragment)

    expect(damaged(index).locator("main")).to_contain_text("The file is damaged")
    page = damaged(details, "#case/breaks")
    expect(page.locator(".notice", has_text="Damaged")).to_contain_text("The file is damaged")
    expect(page.locator("#sheet h1")).to_have_text("It breaks on the new release")
    expect(page.get_by_role("region", name="Outcomes")).to_contain_text("b.is_leaf: expected false, observed true")
    page = damaged(expected, f"#changes?from={OLD_BUILD}%2Fcpu&to={NEW_BUILD}%2Fcpu")
    expect(page.locator(".notice", has_text="Damaged")).to_be_visible()
    expect(page.locator("table.changes").first).to_contain_text("It breaks on the new release")
    page = damaged(background, "#case/breaks")
    expect(page.locator("#sheet")).to_contain_text("The file is damaged")
    expect(page.get_by_role("list", name="Rules")).to_contain_text("r.one")
    expect(page.locator("table.steps")).to_contain_text("observed true")
    page = damaged(nights, "#case/breaks")
    expect(page.locator("#sheet")).to_contain_text("The file is damaged")
    expect(page.locator("table.steps")).to_contain_text("observed true")


def test_arrows_open_and_close_a_row_and_keep_the_focus(opened: Opener, address: str) -> None:
    page = opened(address)
    page.get_by_role("button", name="Second").focus()
    page.keyboard.press("ArrowRight")
    assert "- Second 2" in rows(page)
    assert page.evaluate("document.activeElement.textContent").startswith("Second")
    page.keyboard.press("ArrowLeft")
    assert "+ Second 2" in rows(page)


def test_a_view_that_does_not_exist_says_so(opened: Opener, address: str) -> None:
    for fragment in ("#case/none", "#build/none", "#changes?from=a&to=b", "#nothing/%E0%A4%A", "#case/%00"):
        page = opened(address + fragment)
        expect(page.locator("#sheet h1")).to_have_text("Not in this report")


OLD_BUILD, NEW_BUILD = (
    quote(f"torch-{torch}-01234567-py3.11-linux-x86_64") for torch in ("1.13.1+cu117", "2.13.0+cpu")
)


@pytest.mark.parametrize(
    "fragment",
    ["", "#?status=fail&status=crash", "#?q=holds", "#case/breaks", "#case/crashes", "#case/holds", "#case/none",
     f"#build/{NEW_BUILD}", f"#changes?from={OLD_BUILD}%2Fcpu&to={NEW_BUILD}%2Fcpu"],
)  # fmt: skip
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_wide_or_narrow_with_all_unfolded(
    browser: Browser, address: str, fragment: str, scheme: Any
) -> None:
    # The policy of the page lets no foreign script in, and axe is one.
    context = browser.new_context(viewport={"width": 1200, "height": 800}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(address + fragment)
    page.wait_for_selector("#wait", state="detached")
    assert violations(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    folded = "details:not(.choice), .choice:last-of-type"
    page.evaluate("folded => document.querySelectorAll(folded).forEach((each) => { each.open = true; })", folded)
    for button in page.get_by_role("button", name="before backward").all():
        button.click()
    assert violations(page) == []
    context.close()


def violations(page: Page) -> list[tuple[str, list[str]]]:
    found = Axe().run(page).response["violations"]
    return [(entry["id"], [node["html"] for node in entry["nodes"][:3]]) for entry in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_status_can_be_read(browser: Browser, tmp_path: Path, scheme: Any) -> None:
    path = tmp_path / "index.html"
    made = report({(f"of-{status}", CPU): outcome(status, reason="Why.") for status in STATUSES})
    path.write_text(page_of([made]), encoding="utf-8")
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(f"{path.as_uri()}#?dtype=float32")
    page.wait_for_selector("#wait", state="detached")
    told = {status: cells(page, f"of-{status}") for status in STATUSES}
    page.locator("#signs summary").click()
    legend = page.inner_text("#legend")
    found = violations(page)
    context.close()
    assert told == {status: ["pass" if status == "pass" else f"{status}: Why."] for status in STATUSES}
    assert all(row.explanation in legend for row in TABLE.values())
    assert found == []


def test_a_release_on_which_the_suite_failed_is_not_said_to_hold_or_fail(shown: Shower) -> None:
    cases = [valid_case("a")]
    defect = outcome("internal-error", reason="the suite raised KeyError")
    reports = [
        report({("a", CPU): each}, cases=cases, torch=torch)
        for torch, each in (("2.0.0", GOOD), ("2.1.0", defect), ("2.2.0", broken()))
    ]
    page = shown(*reports, fragment="#case/a")
    assert page.inner_text(".ranges") == "cpu, float32: pass on 2.0.0; fail on 2.2.0"
    assert "internal-error: the suite itself failed" in page.locator("#sheet").inner_text()


def test_a_narrow_screen_needs_no_sideways_scrolling_but_in_tables(opened: Opener, address: str) -> None:
    for fragment in ("", "#?status=fail", "#case/breaks", "#build/torch-2.0.1-01234567-py3.11-linux-x86_64"):
        page = opened(address + fragment)
        page.set_viewport_size({"width": 360, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, fragment


def test_paper_shows_the_whole_table_and_no_form(opened: Opener, address: str) -> None:
    page = opened(f"{address}#?status=fail")
    page.emulate_media(media="print")
    assert not page.is_visible("#find")
    assert page.is_visible("table.matrix")
    assert page.locator("#table").evaluate("box => getComputedStyle(box).maxHeight") == "none"
    assert len(page.pdf()) > 1000


def hostile_report() -> Report:
    target = "cpu<b>-float32"
    cases = [
        case(
            f"{text}{at}", line=1, title=text, why=text, topic=text, file=text, rules=(text,), source=(text,),
            yaml=f"- id: {text}\n  steps:\n    - {text}\n",
        )
        for at, text in enumerate(HOSTILE)
    ]  # fmt: skip
    outcomes = {
        (record.id, target): failed(text, text, text, reason=text, stderr=text, traceback=((1, "x"), (2, text)))
        for record, text in zip(cases, HOSTILE, strict=True)
    }
    facts: dict[str, Any] = dict(zip(("torch", "git", "config", "path", "python", "system"), HOSTILE, strict=False))
    made = report(outcomes, cases=cases, finished=False, **facts)
    rules = {text: rule(text, text=text, topic=text, level="observed", link=text) for text in HOSTILE}
    return msgspec.structs.replace(made, rules=rules)


def test_hostile_text_is_shown_and_nothing_of_it_runs(opened: Opener, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(page_of([hostile_report(), many_reports()[0]], skipped=HOSTILE), encoding="utf-8")
    page = opened(path.as_uri() + "#?status=fail")
    assert page.title().endswith(" · Autograd conformance")
    assert HOSTILE[0] in page.locator("#table").inner_text()
    assert "⟨U+202E⟩gnp.exe⟨U+2066⟩" in page.locator("#table").inner_text()
    assert "⟨U+D800⟩ half a pair" in page.locator("#table").inner_text()
    links = page.locator("table.matrix tbody .case a")
    for at in range(links.count()):
        links.nth(at).click()
        expect(page.locator("#sheet h1")).not_to_have_text("Not in this report")
        assert page.locator("a[href^='javascript:' i], img, iframe, #sheet script").count() == 0
        page.go_back()
        expect(page.locator("#matrix")).to_be_visible()
    page.locator("table.matrix thead a").last.click()
    expect(page.locator("#sheet h1")).to_have_text(f"torch {HOSTILE[0]}")
    assert page.title().endswith("Autograd conformance")


def test_the_policy_of_the_page_stops_what_would_get_in(browser: Browser, address: str) -> None:
    page = browser.new_context().new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(address)
    page.wait_for_selector("#wait", state="detached")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title = 1\">')")
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = 2'}))")
    page.wait_for_timeout(100)
    assert page.title().endswith(" · Autograd conformance")
    assert any("Content Security Policy" in text for text in said)


def test_without_javascript_the_counts_are_there(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    text = page.locator("noscript").inner_text()
    context.close()
    assert "torch 2.13.0+cpu" in text
    assert "need JavaScript" in text


Shower = Callable[..., Page]


@pytest.fixture
def shown(opened: Opener, tmp_path: Path) -> Shower:
    """Give a function that opens the page of some reports."""

    def show(*reports: Report, fragment: str = "", own: Report | None = None) -> Page:
        path = tmp_path / "index.html"
        path.write_text(page_of(reports, suite=Suite(script_of=suite_of(*reports).get), own=own), encoding="utf-8")
        return opened(path.as_uri() + fragment)

    return show


ODD_IDS = [
    "__proto__", "constructor", "toString", "../..", "%2F", "%", "#", "?", "&", "=", "a/b", "a b", "a\nb", "a'\"b",
    "a+b", "\x00", "\r\n", "", "\ud800", "case", "\u202e",
]  # fmt: skip


def test_names_that_mean_something_elsewhere_are_names_here(shown: Shower) -> None:
    cases = [
        case(name, line=20 * at + 20, title=f"Case {at}", topic=name, rules=(name,)) for at, name in enumerate(ODD_IDS)
    ]
    target = "__proto__-constructor"
    page = shown(report({(name, target): failed(observed=name) for name in ODD_IDS}, cases=cases))
    while page.locator("button.toggle[aria-expanded=false]").count():
        page.locator("button.toggle[aria-expanded=false]").first.click()
    before = rows(page)
    assert sum("Case" in row for row in before) == len(ODD_IDS)
    page.wait_for_url("**flip=**")
    page.wait_for_timeout(300)
    page.reload()
    page.wait_for_selector("#wait", state="detached")
    assert rows(page) == before
    links = page.locator("table.matrix tbody th a").evaluate_all("links => links.map(a => [a.textContent, a.hash])")
    assert len({fragment for _, fragment in links}) == len(ODD_IDS)
    for title, fragment in links:
        page.goto(page.url.partition("#")[0] + fragment)
        expect(page.locator("#sheet h1")).to_have_text(title)
    page.goto(page.url.partition("#")[0] + "#")
    page.locator("table.matrix thead a").click()
    expect(page.locator("#sheet tbody th").first).to_have_text(target)


def test_rows_whose_names_are_alike_open_apart(shown: Shower) -> None:
    cases = [
        case("a", topic="t", rules=("r",)),
        case("b", topic="t/r", rules=("x",)),
        case("c", topic="r", rules=("t",)),
    ]
    page = shown(report({(name, CPU): GOOD for name in "abc"}, cases=cases))
    page.locator("button.toggle").nth(1).click()
    page.locator("button.toggle").first.click()
    assert [row for row in rows(page) if row[0] in "+-"] == [
        "- t 1", "+ The rule r. r 1", "- t/r 1", "+ The rule x. x 1", "+ r 1"
    ]  # fmt: skip


def test_a_case_without_a_title_or_a_rule_can_be_reached(shown: Shower) -> None:
    cases = [case("a", title=" "), case("b", rules=())]
    page = shown(report({(name, CPU): failed() for name in "ab"}, cases=cases), fragment="#?status=fail")
    assert [row for row in rows(page) if row[0] in "+-"] == [
        "- Tests 2",
        "- The rule r.one. r.one 1",
        "- Without a rule 1",
    ]
    page.get_by_role("link", name="Untitled").click()
    expect(page.locator("#sheet h1")).to_have_text("Untitled")
    page.go_back()
    page.get_by_role("link", name="The case b").click()
    expect(page.locator("#sheet h1")).to_have_text("The case b")


@pytest.mark.parametrize(
    ("plan", "item"),
    [({}, "a"), ({("b", CPU): GOOD}, "a"), ({("a", "cpu"): GOOD}, "a[cpu]"),
     ({("a", "my-npu-float32"): GOOD}, "a[my-npu-float32]")],
)  # fmt: skip
def test_the_command_for_a_case_names_what_there_is(shown: Shower, plan: Any, item: str) -> None:
    page = shown(report(plan, cases=[case("a"), case("b")]), fragment="#case/a")
    assert page.locator("pre.code").first.inner_text() == f"pytest 'cases/x.yaml::{item}'"


def test_the_command_for_a_case_is_that_of_a_run_in_which_it_is_red(shown: Shower) -> None:
    own = BackEnd(device="xla", modules=("torch_xla",), name="torch-xla", version="2.9.0")
    green = report({("a", CPU): GOOD}, cases=[valid_case("a")], torch="2.8.0")
    red = report(
        {("a", CPU): GOOD, ("a", "xla-float32"): broken()}, cases=[valid_case("a")], backends=(own,),
        arguments=("--profile", "my xla", "-q"), torch="2.9.0",
    )  # fmt: skip
    page = shown(green, red, fragment="#case/a")
    assert page.locator("pre.code").first.inner_text() == "pytest --profile 'my xla' 'cases/x.yaml::a[xla-float32]'"
    page = shown(green, without_machine(red), fragment="#case/a")
    told = "pytest --device xla --device-module torch_xla 'cases/x.yaml::a[xla-float32]'"
    assert page.locator("pre.code").first.inner_text() == told
    assert "'xla': (['torch_xla'], '')," in (page.locator("pre.script").first.text_content() or "")


def test_a_run_of_a_back_end_is_shown_beside_torch_alone(shown: Shower) -> None:
    own = BackEnd(device="xla", modules=("torch_xla",), name="torch-xla", version="2.9.0")
    others = [
        report({("a", CPU): GOOD}, cases=[valid_case("a")], torch=torch) for torch in ("2.8.0", "2.9.1", "2.10.0")
    ]
    mine = report({("a", "xla-float32"): broken()}, cases=[valid_case("a")], backends=(own,), torch="2.9.0")
    page = shown(*others, mine, own=mine)
    page.get_by_role("button", name="Show this run beside torch alone").click()
    assert page.locator("table.matrix thead tr:first-child th").all_inner_texts()[1:] == ["2.9.0", "2.9.1"]
    page.locator("table.matrix thead a").first.click()
    page.get_by_role("link", name="Beside torch alone").click()
    assert page.locator("table.matrix thead tr:first-child th").all_inner_texts()[1:] == ["2.9.0", "2.9.1"]


def test_the_verdict_on_a_run_says_what_holds_on_another_build_of_the_release(shown: Shower) -> None:
    cases = [valid_case("a"), valid_case("b")]
    last = report({("a", CPU): GOOD, ("b", CPU): GOOD}, cases=cases, torch="2.15.0")
    published = report({("a", CPU): GOOD, ("b", CPU): broken()}, cases=cases, torch="2.13.0+cu130")
    mine = report({("a", CPU): broken(), ("b", CPU): broken()}, cases=cases, torch="2.13.0+mine")
    page = shown(last, published, mine, own=mine)
    told = "torch 2.13.0+mine py3.11 mine this run: 2 red outcomes from 1 cause, 1 of which holds on torch 2.13.0+cu130"
    assert page.inner_text("#verdict").startswith(told)
    page.get_by_role("link", name="1 of which").click()
    assert page.locator("table.matrix thead tr:first-child th").all_inner_texts()[1:] == ["2.13.0"]
    assert page.locator("table.matrix thead tr").nth(1).locator("th").count() == 2
    page = shown(last, mine)
    assert page.inner_text("#verdict") == "torch 2.15.0 py3.11: no failures; 2 pass."
    known = report({("a", CPU): failed(status="known", issue=LATE), ("b", CPU): GOOD}, cases=cases, torch="2.15.0")
    page = shown(known)
    assert page.inner_text("#verdict") == "torch 2.15.0 py3.11: each failure is a known issue; 1 pass, 1 known."


def test_a_group_of_builds_is_called_all_only_if_it_is_and_by_its_dtypes_where_they_differ(shown: Shower) -> None:
    cases = [valid_case("a")]
    reports = [
        report({("a", CPU): GOOD, ("a", DOUBLE): GOOD}, cases=cases, torch="2.0.0"),
        report({("a", CPU): broken(), ("a", DOUBLE): broken()}, cases=cases, torch="2.1.0"),
    ]
    page = shown(*reports, fragment="#case/a")
    heads = page.locator("table.steps thead th")
    assert heads.all_inner_texts() == ["Line", "Step", "2.0.0 py3.11 cpu", "2.1.0 py3.11 cpu"]
    reports = [
        report({("a", CPU): GOOD, ("a", DOUBLE): broken()}, cases=cases, torch=torch) for torch in ("2.0", "2.1")
    ]
    page = shown(*reports, fragment="#case/a")
    heads = page.locator("table.steps thead th")
    assert heads.all_inner_texts() == ["Line", "Step", "all builds, float32", "all builds, float64"]


def steps_said(page: Page) -> list[str]:
    return [" ".join(text.split()) for text in page.locator("table.steps td:last-child").all_inner_texts()]


@pytest.mark.parametrize("line", [1, 4, 99, 10**9])
def test_an_outcome_whose_line_is_no_step_says_nothing_of_the_steps(shown: Shower, line: int) -> None:
    page = shown(report({("a", CPU): broken(line=line)}, cases=[valid_case("a")]), fragment="#case/a")
    assert steps_said(page) == ["unknown: fail"] * 5


def test_steps_that_a_build_never_ran_are_not_said_to_hold(shown: Shower) -> None:
    old = report({("a", CPU): GOOD}, cases=[valid_case("a", digest="old")], torch="2.0.0")
    new = report({("a", CPU): broken()}, cases=[valid_case("a", digest="new")])
    page = shown(old, new, fragment="#case/a")
    before = page.locator("table.steps td:nth-child(3)")
    assert before.all_inner_texts() == ["ran another revision"] * 5


def test_a_text_whose_steps_can_not_be_told_apart_is_shown_all_the_same(shown: Shower) -> None:
    text = "  - {id: a, title: x, why: w, rules: [r.one], steps: [a = 1, {expect: {a: 1}}]}\n"
    page = shown(report({("a", CPU): broken()}, cases=[valid_case("a", yaml=text)]), fragment="#case/a")
    assert page.locator("table.steps").count() == 0
    assert "can't be shown one by one" in page.locator("#sheet").inner_text()
    assert "steps: [a = 1" in page.locator("pre.code").last.inner_text()
    commented = valid_case("a").yaml.replace("steps:", "steps:  # three")
    page = shown(report({("a", CPU): broken()}, cases=[valid_case("a", yaml=commented)]), fragment="#case/a")
    assert page.locator("table.steps tbody tr").count() == 5


def test_texts_without_end_are_cut(shown: Shower) -> None:
    lines = "  - a = 1\n"
    steps = tuple(StepRecord(line=line, kind="do") for line in range(11, 2011))
    endless = case("a", title="T" * 10**6, yaml="    steps:\n" + lines * 200_000, steps=steps)
    long = Failure(line=1, path="p" * 10**6, expected="e" * 10**6, observed="o" * 10**6)
    failed = outcome("fail", failures=(long, *FAILURES * 750))
    page = shown(report({("a", CPU): failed}, cases=[endless]), fragment="#case/a")
    assert page.locator("#sheet h1").inner_text().endswith("… (950000 characters more)")
    assert page.locator("#sheet pre.code").last.inner_text().endswith("characters more)")
    assert page.locator("table.steps tbody tr").count() == 1001
    assert page.locator(".failure tbody tr").count() == 1001
    assert page.locator(".failure tbody tr").last.inner_text() == "and 501 more"


def test_long_names_need_no_sideways_scrolling_but_in_tables(shown: Shower) -> None:
    long = "n" * 3000
    cases = [case("a", title=long, topic=long, why=long, file=long)]
    reports = [
        report({("a", f"{long}-{long}"): failed()}, cases=cases, torch=torch, path=long) for torch in ("2.0", long)
    ]
    for fragment in ("", "#?status=fail", "#case/a", f"#build/{reports[1].build.slug}"):
        page = shown(*reports, fragment=fragment)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200, fragment


def test_the_skip_link_keeps_the_view(opened: Opener, address: str) -> None:
    page = opened(f"{address}#?status=fail")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    assert page.url.endswith("#?status=fail")
    page.goto(f"{address}#content")
    page.reload()
    page.wait_for_selector("#wait", state="detached")
    expect(page.locator("#matrix h1")).to_be_visible()


def test_an_issue_with_another_kind_of_link_or_none_has_no_link(shown: Shower) -> None:
    for link, said in (("javascript:alert(1)", "upstream: javascript:alert(1)"), ("", "Not known to be reported")):
        known = failed(status="known", issue=Issue(status="fail", reason="It is late.", link=link))
        page = shown(report({("a", CPU): known}, cases=[valid_case("a")]), fragment="#case/a")
        assert page.get_by_role("link", name="upstream").count() == 0
        assert f"It is late. {said}" in page.locator("#sheet").inner_text()


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,x", "//example.org", "ftp://x", "https://a b"])
def test_a_rule_with_another_kind_of_link_is_no_link(shown: Shower, link: str) -> None:
    made = report({("a", CPU): GOOD}, cases=[case("a")])
    page = shown(msgspec.structs.replace(made, rules={"r.one": rule("r.one", link=link)}), fragment="#case/a")
    assert page.get_by_role("link", name="documentation").count() == 0
    assert f"documentation: {link}" in page.locator("#sheet").inner_text()


def test_an_empty_report_says_that_there_is_nothing(shown: Shower) -> None:
    page = shown(report({}, devices=()))
    assert page.inner_text("#found") == "0 cases in 0 columns"
    assert "Nothing fits" in page.inner_text("#table")


def test_what_a_device_could_not_show_is_listed_and_the_rest_held(shown: Shower) -> None:
    hidden = Unobserved(line=6, path="a.stride", reason="npu keeps no strides")
    partly = outcome("pass", unobserved=(hidden,))
    page = shown(
        report({("a", CPU): partly, ("a", CUDA): outcome("pass")}, cases=[valid_case("a")]), fragment="#case/a"
    )
    text = page.locator("#sheet").inner_text()
    assert "Not observed" in text
    assert re.search(r"a\.stride\s+6\s+.*cpu.*\s+npu keeps no strides", text)
    assert "unknown" not in text
