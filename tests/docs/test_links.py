"""Links between built pages: those that lead nowhere are found, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from generator.links import broken_links
from loops import each

PAGES = {
    "index.html": '<h1 id="top-of-all">x</h1><a class="y" href="book/a.html#b">a</a>',
    "book/a.html": '<p id="b">x</p><a href="../index.html">up</a>',
    "matrix/index.html": '<a href="#case/made-by-a-script">x</a>',
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, text in PAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_links_that_lead_somewhere_are_fine(site: Path) -> None:
    assert broken_links(site, skipped="matrix") == []
    assert broken_links(site) == ["matrix/index.html: #case/made-by-a-script"]


@each("target", ["nowhere.html", "book/a.html#c", "#c", "book/", "book/a%20b.html", "a&amp;b.html"])
def test_a_link_that_leads_nowhere_is_told(site: Path, target: str) -> None:
    (site / "other.html").write_text(f'<a href="{target}">x</a>', encoding="utf-8")
    assert broken_links(site, skipped="matrix") == [f"other.html: {target.replace('&amp;', '&')}"]


@each(
    "target",
    ["https://docs.pytorch.org/#x", "//x.org", "mailto:a@b", "#", "#top", "book/a.html", "index.html#top-of-all",
     "matrix/index.html#case/made-by-a-script"],
)  # fmt: skip
def test_other_sites_and_pages_of_scripts_are_not_asked(site: Path, target: str) -> None:
    (site / "other.html").write_text(f'<a href="{target}">x</a>', encoding="utf-8")
    assert broken_links(site, skipped="matrix") == []
