"""The page for all: by keyboard, in few pixels, on paper, by what axe and those who hear it find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import NEEDED, Opener
from playwright.sync_api import Browser, Page, expect
from samples import (
    CPU,
    case,
    failed,
    outcome,
    report,
)

from conformance.model.status import STATUSES, TABLE
from conformance.render.page.page import page_of
from render.page.pages import (
    NEW_BUILD,
    OLD_BUILD,
    Shower,
    cells,
    rows,
)

pytestmark = NEEDED


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


def test_every_row_keeps_the_focus_when_what_is_found_is_drawn_again(opened: Opener, address: str) -> None:
    page = opened(f"{address}#?q=holds")
    page.get_by_role("button", name="dtypes").first.click()
    labels = page.locator("table.matrix tbody .label")
    told = labels.all_text_contents()
    assert told[0].startswith("All of these")
    assert "float32" in told
    for at, text in enumerate(told):
        labels.nth(at).focus()
        page.evaluate("drawMatrix()")
        assert page.evaluate("document.activeElement.textContent") == text


def test_arrows_open_and_close_a_row_and_keep_the_focus(opened: Opener, address: str) -> None:
    page = opened(address)
    page.get_by_role("button", name="Second").focus()
    page.keyboard.press("ArrowRight")
    assert "- Second 2" in rows(page)
    assert page.evaluate("document.activeElement.textContent").startswith("Second")
    page.keyboard.press("ArrowLeft")
    assert "+ Second 2" in rows(page)


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


def test_axe_finds_nothing_where_a_case_fails_in_two_ways(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    reports = [report({("a", CPU): failed(where)}, torch=torch) for where, torch in (("b", "2.0.1"), ("c", "2.1.2"))]
    path.write_text(page_of(reports), encoding="utf-8")
    page = browser.new_context(bypass_csp=True).new_page()
    page.goto(f"{path.as_uri()}#case/a")
    page.wait_for_selector("#wait", state="detached")
    assert page.locator(".failure").count() == 2
    assert violations(page) == []
    page.context.close()


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
