"""Tests of the page in a real browser: what it shows, finds and links to."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from chromium import NEEDED, Opener
from playwright.sync_api import expect
from samples import (
    CPU,
    CUDA,
    FAILURES,
    broken,
    case,
    failed,
    outcome,
    read_case,
    report,
    suite_of,
    valid_case,
)

from conformance.model.build import BackEnd
from conformance.model.outcome import Issue, Retry, Unobserved
from conformance.model.report import Report, without_machine
from conformance.render.page.matrix import matrix_of
from conformance.render.page.page import Suite, page_of
from conformance.results.diff import compare
from render.page.pages import (
    DOUBLE,
    GOOD,
    HOSTILE,
    LATE,
    NEW_BUILD,
    Shower,
    cells,
    many_reports,
    rows,
)

pytestmark = NEEDED


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


def test_both_outcomes_of_a_flaky_case_are_told_and_the_second_one_of_another_is_not(shown: Shower) -> None:
    alone = failed("b.grad", "3", "4")
    flaky = failed(status="flaky", retry=Retry(status="fail", alone=outcome("known", failures=alone.failures)))
    steady = failed(retry=Retry(status="fail", alone=alone))
    page = shown(report({("a", CPU): flaky, ("b", CPU): steady}), fragment="#case/a")
    (told,) = page.locator(".failure").all_inner_texts()
    assert (
        "Among other cases: ✗ fail. Once more, alone in a fresh worker: ≈ known: b.grad: expected 3, observed 4" in told
    )
    page = shown(report({("a", CPU): flaky, ("b", CPU): steady}), fragment="#case/b")
    (told,) = page.locator(".failure").all_inner_texts()
    assert "Once more" not in told
    assert "b.grad" not in told


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


def test_steps_that_a_build_never_ran_are_not_said_to_hold(shown: Shower) -> None:
    old = report({("a", CPU): GOOD}, cases=[valid_case("a", digest="old")], torch="2.0.0")
    new = report({("a", CPU): broken()}, cases=[valid_case("a", digest="new")])
    page = shown(old, new, fragment="#case/a")
    before = page.locator("table.steps td:nth-child(3)")
    assert before.all_inner_texts() == ["ran another revision"] * 5


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
