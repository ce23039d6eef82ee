"""Five people come to the page with a question; each finds the answer, by as many clicks as are counted here.

The page is of published releases, of which only some case files are kept, beside a build on which detach() copies.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import NEEDED, Opener
from msgspec.structs import replace
from places import ROOT
from playwright.sync_api import Locator, Page, expect
from samples import CPU, outcome, report
from shipped import rules

from conformance.language.files import load_cases, shipped_cases
from conformance.model.case import Case
from conformance.model.outcome import Failure, Outcome
from conformance.model.report import Report, case_record
from conformance.render.page.page import Suite, page_of
from conformance.results.compact import filled
from conformance.results.store import load_report

PUBLISHED = ROOT / "reports" / "published"
RELEASES = ("2.5.1", "2.6.0", "2.12.1", "2.13.0", "2.15.0")
FILES = (
    "autograd_grad backward checkpointing custom_function data detach leaves modules operations subgradients".split()
)
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}

pytestmark = NEEDED


class Clicks:
    """A reader who clicks, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def on(self, place: Locator) -> None:
        place.click()
        self.count += 1


def cut(report: Report, known: set[str]) -> Report:
    """Return a report of some of its cases."""
    return replace(
        report,
        cases=tuple(case for case in report.cases if case.id in known),
        plan=tuple(entry for entry in report.plan if entry.case in known),
        outcomes=tuple(outcome for outcome in report.outcomes if outcome.case in known),
    )


def copying(report: Report, cases: dict[str, Case]) -> Report:
    """Return the report of a vendor's build on which a detached tensor has memory of its own."""

    def broken(outcome: Outcome) -> Outcome:
        steps = cases[outcome.case].steps if outcome.case in cases else ()
        for number, step in enumerate(steps):
            for entry in step.get("expect", ()):
                for name, _, line in entry["checks"]:
                    if name == "shares_storage" and outcome.status == "pass":
                        path = f"{entry['subject']}.shares_storage"
                        failure = Failure(line=line, path=path, expected="b", observed="no tensor")
                        return replace(outcome, status="fail", step=number, line=line, failures=(failure,))
        return outcome

    build = replace(report.build, torch="2.13.0+vendor", git="f" * 40)
    run = replace(report.header.run, started="2026-01-01T00:00:00+00:00")
    header = replace(report.header, build=build, run=run)
    return replace(report, header=header, outcomes=tuple(map(broken, report.outcomes)))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the address of a page of the releases alone, and of one with the vendor's build."""
    place = shipped_cases()
    cases = load_cases([place / f"{name}.yaml" for name in FILES], place.parent)
    records = [case_record(case, rules()) for case in cases]
    read = [load_report(next(PUBLISHED.glob(f"torch-{release}*.json"))) for release in RELEASES]
    released = filled([cut(each, {case.id for case in cases}) for each in read], records, rules().values())
    newest = RELEASES.index("2.13.0")
    published = {record.id: record.digest for record in read[newest].cases}
    as_published = {case.id: case for case in cases if published.get(case.id) == case.digest}  # others have no script
    vendor = copying(released[newest], as_published)
    suite = Suite(case_of={(case.id, case.digest): case for case in cases}.get)
    directory = tmp_path_factory.mktemp("stories")
    made = {"released": page_of(released, suite=suite), "vendor": page_of([*released, vendor], suite=suite, own=vendor)}
    for name, text in made.items():
        (directory / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (directory / f"{name}.html").as_uri() for name in made}


def is_on_screen(page: Page, place: Locator) -> bool:
    """Whether the whole of something is on the first screen."""
    box, size = place.bounding_box(), page.viewport_size
    assert box is not None
    assert size is not None
    assert page.evaluate("scrollY") == 0
    return box["y"] >= 0 and box["y"] + box["height"] <= size["height"]


def test_who_upgrades_from_2_6_to_2_13_sees_each_change_of_behaviour_on_one_screen(
    opened: Opener, pages: dict[str, str]
) -> None:
    page, clicks = opened(pages["released"], viewport=WIDE), Clicks()
    clicks.on(page.locator("#upgrade").get_by_role("link", name="2.6.0"))
    clicks.on(page.locator(".pairs").get_by_role("link", name="2.13.0", exact=True))
    expect(page.locator("#sheet h1")).to_have_text("What changes from torch 2.6.0+cu124 to torch 2.13.0+cpu")
    assert clicks.count == 2
    changed = [kind for kind in page.locator("details.kind").all() if "hanged" in kind.locator("h2").inner_text()]
    behaviour, types = changed[:2]
    told = behaviour.locator("tbody tr").count(), types.locator("tbody tr").count()
    assert told[0] > 10
    assert told[1] == 2
    for rows in (behaviour, types):
        assert is_on_screen(page, rows.locator("tbody tr").last)
        for row in rows.locator("tbody tr").all():
            assert "→" in row.locator("td").last.inner_text()
    advice = "Pass the values of a dict, not the dict, where older releases must work too."
    assert advice in (behaviour.text_content() or "")


def test_axe_finds_nothing_where_each_change_stands_open(opened: Opener, pages: dict[str, str]) -> None:
    page = opened(pages["released"], viewport=WIDE, bypass_csp=True)
    page.locator("#upgrade").get_by_role("link", name="2.6.0").click()
    expect(page.get_by_role("region", name="behaviour changed")).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.locator(".words[open]").count() > 10
    assert [(entry["id"], entry["nodes"][0]["html"]) for entry in Axe().run(page).response["violations"]] == []


def test_a_vendor_with_a_red_column_gets_to_lines_that_show_the_largest_cause(
    opened: Opener, pages: dict[str, str]
) -> None:
    page, clicks = opened(pages["vendor"], viewport=WIDE), Clicks()
    assert page.locator("#verdict").inner_text().startswith("torch 2.13.0+vendor")
    assert page.locator("table.matrix thead th").nth(1).inner_text() == "2.13.0"
    clicks.on(page.locator("#verdict").get_by_role("link", name="cause"))
    first = page.get_by_role("region", name="Causes").locator("tbody tr").first
    assert "shares_storage" in first.inner_text()
    clicks.on(first.get_by_role("link").last)
    script = page.locator(".failure pre.script").first
    expect(script).to_be_visible()
    assert clicks.count == 2
    assert is_on_screen(page, script)
    lines = script.inner_text().splitlines()
    assert len(lines) <= 15
    assert any(line.startswith("assert ") for line in lines)
    compile("\n".join(lines), "reproduction", "exec")


def test_a_release_manager_gets_a_verdict_and_one_click_away_what_is_new(opened: Opener, pages: dict[str, str]) -> None:
    page, clicks = opened(pages["vendor"], viewport=WIDE), Clicks()
    verdict = page.locator("#verdict")
    assert is_on_screen(page, verdict)
    told = verdict.inner_text()
    count = int(told.partition(": ")[2].split()[0])
    assert f"{count} red outcomes from 1 cause, {count} of which hold on torch 2.13.0+cpu" in told
    clicks.on(verdict.get_by_role("link", name=f"{count} of which"))
    expect(page.locator("#found")).to_contain_text(f"{count} of")
    assert clicks.count == 1
    assert [each.inner_text() for each in page.locator("table.matrix thead tr").first.locator("th").all()][1:] == [
        "2.13.0"
    ]
    again = opened(page.url, viewport=WIDE)
    assert again.locator("#found").inner_text() == page.locator("#found").inner_text()
    page.go_back()
    expect(page.locator("#found")).not_to_contain_text("of", use_inner_text=True)


def test_a_learner_finds_the_case_and_its_twin(opened: Opener, pages: dict[str, str]) -> None:
    page, clicks = opened(pages["released"], viewport=WIDE), Clicks()
    page.locator("#q").focus()  # which reads what cases do
    page.fill("#q", "detach vs data")
    links = page.locator("table.matrix tr.case th a")
    twins = ("Writing through .data to a saved output", "Zeroing a detached alias of a saved output")
    expect(links.filter(has_text=twins[0])).to_be_visible()
    found = links.all_inner_texts()[:3]
    place = next(place for place, title in enumerate(found) if title.startswith(twins))
    clicks.on(links.nth(place))
    related = page.locator("section", has_text="Related cases").last
    other = next(twin for twin in twins if not found[place].startswith(twin))
    entry = related.locator("li", has_text=other)
    expect(entry).to_contain_text("the same program, but for c = b.")
    clicks.on(entry.get_by_role("link"))
    expect(page.locator("#sheet h1")).to_contain_text(other)
    assert clicks.count == 2


def test_a_phone_shows_the_build_that_one_came_for_and_leads_to_each_message(
    opened: Opener, pages: dict[str, str]
) -> None:
    page = opened(pages["vendor"], viewport=PHONE, has_touch=True, is_mobile=True)
    assert is_on_screen(page, page.locator("#verdict"))
    heads = page.locator("table.matrix thead tr").last.locator("th")
    assert right_of(heads.nth(1)) <= PHONE["width"]  # this build's column, and that of the newest release
    assert "vendor" in heads.nth(0).inner_text()
    page.locator("#verdict").get_by_role("link", name="red outcome").tap()
    page.locator("table.matrix tr.case td a").first.tap()
    expect(page.locator(".failure").first).to_contain_text("shares_storage")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.goto(f"{pages['released']}#")
    page.locator("#upgrade").get_by_role("link", name="2.6.0").tap()
    rows = page.locator("table.changes tbody tr")
    expect(rows.first).to_be_visible()
    heights = [box["height"] for box in (row.bounding_box() for row in rows.all()[:20]) if box]
    assert max(heights) < PHONE["height"] / 2


def test_the_keyboard_gets_to_each_cell_and_back(opened: Opener, pages: dict[str, str]) -> None:
    page = opened(f"{pages['vendor']}#?status=fail", viewport=WIDE)
    page.locator("#q").press("ArrowDown")
    reached = {page.evaluate("document.activeElement.textContent")}
    rows = page.locator("table.matrix tbody tr").count()
    for _ in range(rows - 1):
        page.keyboard.press("ArrowDown")
        reached.add(page.evaluate("document.activeElement.textContent"))
    assert len(reached) > rows / 2
    cells = page.locator("table.matrix tbody tr").last.locator("td a")
    for number in range(cells.count()):
        page.keyboard.press("ArrowRight")
        expect(cells.nth(number)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(cells.nth(cells.count() - 2)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#sheet h1")).to_be_focused()
    page.keyboard.press("Escape")
    expect(cells.nth(cells.count() - 2)).to_be_focused()


def test_paper_has_all_builds_that_were_chosen(opened: Opener, tmp_path: Path) -> None:
    many = [report({("a", CPU): outcome("pass")}, torch=f"2.{minor}.0") for minor in range(18)]
    path = tmp_path / "index.html"
    path.write_text(page_of(many), encoding="utf-8")
    page = opened(path.as_uri())
    page.emulate_media(media="print")
    width = 718  # of A4 upright, or of A5 on its side, without margins
    page.set_viewport_size({"width": width, "height": 700})
    for fragment, count in (("#", 8), ("#?all=1", 18)):
        page.goto(path.as_uri() + fragment)
        heads = page.locator("table.matrix thead tr").last.locator("th")
        expect(heads).to_have_count(count)
        assert right_of(heads.last) <= width, fragment


def test_at_200_percent_the_page_scrolls_one_way_and_begins_with_the_own_build(
    opened: Opener, pages: dict[str, str]
) -> None:
    page = opened(pages["vendor"], viewport={"width": 720, "height": 450})  # half of 1440 by 900
    assert page.evaluate("document.documentElement.scrollWidth") <= 720
    assert is_on_screen(page, page.locator("#verdict"))
    assert right_of(page.locator("table.matrix thead tr").last.locator("th").first) <= 720


def right_of(place: Locator) -> float:
    box = place.bounding_box()
    assert box is not None
    return box["x"] + box["width"]
