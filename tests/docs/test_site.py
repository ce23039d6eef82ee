"""The site of the documentation is built without a warning, and its pages and anchors are where they should be.

It costs some 25 s of CPU time, and is built once.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from generator import extension
from generator.chapters import ChaptersError
from loops import each
from places import ROOT
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

from conformance.results.store import ReportError

LARGEST = 60_000_000  # bytes of the whole site
KEY_PAGES = {
    "index.html": ["autograd-conformance"],
    "tutorial.html": ["draft-it", "run-it-on-three-releases"],
    "book/leaves.html": ["leaf-created-by-user", "case-user-tensor-is-leaf-result-is-not"],
    "book/detach.html": ["detach-shares-version-counter", "case-detached-alias-zeroed-after-sigmoid"],
    "book/in-place.html": ["inplace-leaf-forbidden"],
    "book/hooks.html": ["order-full-sequence-leaf"],
    "reference/case-language.html": ["checks", "step", "op"],
    "reference/commands.html": ["diff", "known-issues"],
    "reference/pytest-options.html": ["markers"],
    "reference/vocabulary.html": ["torch-func"],
    "reference/report-file.html": ["outcome"],
    "reference/profile-file.html": [],
    "upgrading/torch-2.6.0.html": ["what-got-worse"],
    "cases/ways.html": [],
    "glossary.html": [],
    "matrix/index.html": [],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-d", str(place / "doctrees"), "docs", str(place / "html")]
    done = subprocess.run(command, cwd=ROOT, check=False, text=True, capture_output=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return place / "html"


@pytest.mark.slow
def test_key_pages_and_anchors_are_there(site: Path) -> None:
    missing = []
    for name, anchors in KEY_PAGES.items():
        ids = set(re.findall(r'\sid="([^"]+)"', (site / name).read_text(encoding="utf-8")))
        ids |= {re.sub(r"-\d+$", "", each) for each in ids}  # a heading may end with a count
        missing += [f"{name}#{anchor}" for anchor in anchors if anchor not in ids]
    assert missing == []


@pytest.mark.slow
def test_the_site_is_not_large_and_needs_no_network(site: Path) -> None:
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < LARGEST
    loaded = re.compile(r'<(?:script|img|iframe)\b[^>]*\ssrc="(?:https?:)?//|<link\b[^>]*rel="stylesheet"[^>]*"https?:')
    assert [path.name for path in site.rglob("*.html") if loaded.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.slow
def test_chapters_bring_what_draws_their_graphs(site: Path) -> None:
    page = (site / "book" / "hooks.html").read_text(encoding="utf-8")
    for name in ("drawing.js", "book.js", "drawing.css"):
        assert f"_static/{name}" in page
        assert (site / "_static" / name).is_file()
    assert "function graphOf" in (site / "_static" / "drawing.js").read_text(encoding="utf-8")
    assert "_static/drawing.js" not in (site / "gate.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_search_finds_rules(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "detach.shares-version-counter" in index
    assert '"book/detach"' in index


def test_a_link_that_leads_nowhere_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(extension, "log", SimpleNamespace(warning=lambda text, line: told.append(text % line)))
    (tmp_path / "a.html").write_text('<a href="b.html">b</a>', encoding="utf-8")
    app = cast("Sphinx", SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html")))
    extension.finish(app, None)
    assert told == ["a link leads nowhere: a.html: b.html"]
    extension.finish(app, RuntimeError())
    assert len(told) == 1


@each("error", [ChaptersError("topic 'x' stands in no chapter"), ReportError("r.json: expected a report")])
def test_what_can_not_be_read_has_no_traceback(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def load(_: Path) -> None:
        raise error

    monkeypatch.setattr(extension, "load_book", load)
    with pytest.raises(ConfigError, match=str(error)):
        extension.write_pages(cast("Sphinx", None))


def test_diagrams_that_only_github_draws_are_left_out_and_links_lead_to_the_repository() -> None:
    source = [(ROOT / "docs" / "architecture.md").read_text(encoding="utf-8") + "\n[a](../tests)\n"]
    extension.lead_out(cast("Sphinx", None), "architecture", source)
    assert "mermaid" not in source[0]
    assert "\n```\ncases/*.yaml" in source[0]
    assert source[0].endswith("[a](https://github.com/OWNER/autograd-conformance/tree/main/tests)\n")
    before = ["[a](../tests)"]
    extension.lead_out(cast("Sphinx", None), "book/leaves", before)
    assert before == ["[a](../tests)"]
