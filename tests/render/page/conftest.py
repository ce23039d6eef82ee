"""A browser for the tests of the page, and what opens the page in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, FLAGS, Opener
from playwright.sync_api import Browser, Page, sync_playwright
from samples import suite_of

from conformance.model.report import Report
from conformance.render.page.page import Suite, page_of
from render.page.pages import Shower, many_reports, nights_of


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None, "install Debian's chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opener]:
    """Give a function that opens an address; whatever the page says on the console fails the test."""
    contexts = []
    said: list[str] = []

    def open_page(address: str, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: said.extend([] if request.url.startswith("file:") else [request.url]))
        page.goto(address)
        page.wait_for_selector("#wait", state="detached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "index.html"
    reports = many_reports()
    text = page_of(reports, suite=Suite(script_of=suite_of(*reports).get), nights=[nights_of(reports[0])])
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def shown(opened: Opener, tmp_path: Path) -> Shower:
    """Give a function that opens the page of some reports."""

    def show(*reports: Report, fragment: str = "", own: Report | None = None) -> Page:
        path = tmp_path / "index.html"
        path.write_text(page_of(reports, suite=Suite(script_of=suite_of(*reports).get), own=own), encoding="utf-8")
        return opened(path.as_uri() + fragment)

    return show
