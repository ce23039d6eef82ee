"""The page in a real browser where a file is cut off or damaged, or a report is hostile, empty or odd."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from chromium import NEEDED, Opener
from playwright.sync_api import Browser, Page, expect
from samples import (
    CPU,
    FAILURES,
    broken,
    case,
    failed,
    outcome,
    report,
    rule,
    valid_case,
)

from conformance.model.outcome import Failure, Issue
from conformance.model.report import Report, StepRecord
from conformance.render.page.page import page_of
from render.page.pages import (
    GOOD,
    HOSTILE,
    NEW_BUILD,
    OLD_BUILD,
    Shower,
    many_reports,
    rows,
    steps_said,
)

ODD_IDS = [
    "__proto__", "constructor", "toString", "../..", "%2F", "%", "#", "?", "&", "=", "a/b", "a b", "a\nb", "a'\"b",
    "a+b", "\x00", "\r\n", "", "\ud800", "case", "\u202e",
]  # fmt: skip

pytestmark = NEEDED


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


def test_a_view_that_does_not_exist_says_so(opened: Opener, address: str) -> None:
    for fragment in ("#case/none", "#build/none", "#changes?from=a&to=b", "#nothing/%E0%A4%A", "#case/%00"):
        page = opened(address + fragment)
        expect(page.locator("#sheet h1")).to_have_text("Not in this report")


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


@pytest.mark.parametrize("line", [1, 4, 99, 10**9])
def test_an_outcome_whose_line_is_no_step_says_nothing_of_the_steps(shown: Shower, line: int) -> None:
    page = shown(report({("a", CPU): broken(line=line)}, cases=[valid_case("a")]), fragment="#case/a")
    assert steps_said(page) == ["unknown: fail"] * 5


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
