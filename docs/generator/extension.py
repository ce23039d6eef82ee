"""The Sphinx extension: writes the generated pages before Sphinx reads any, and looks at the links of all pages."""

import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ConfigError
from sphinx.util import logging

from conformance.results.store import ReportError
from generator.book import book_pages, load_book
from generator.chapters import ChaptersError
from generator.links import broken_links
from generator.reference import reference_pages
from generator.rendering import write_changed
from generator.sections import addresses_of, excerpt_pages, relinked

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "conformance" / "render" / "page" / "templates"  # of the page of reports, whose drawings the book has
GENERATED = ("book", "cases", "reference", "running", "upgrading")
MATRIX = "matrix"  # the folder with the page of the published reports
DIAGRAM = re.compile(r"^```mermaid\n.*?^```\n\n(The same in words:\n\n)?", re.MULTILINE | re.DOTALL)
log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    app.connect("source-read", lead_out)
    app.connect("html-page-context", add_drawing)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Sphinx) -> None:
    """Write all generated pages, and remove those that were written before and are no more."""
    try:
        book = load_book(ROOT)
    except (ChaptersError, ReportError) as error:
        raise ConfigError(str(error)) from None
    pages = {**book_pages(book), **reference_pages(book), **excerpt_pages(ROOT)}
    for name, text in pages.items():
        write_changed(app.srcdir / f"{name}.md", text)
    wanted = {app.srcdir / f"{name}.md" for name in pages}
    for folder in GENERATED:
        for path in {*(app.srcdir / folder).glob("*.md")} - wanted:
            path.unlink()
    static = app.outdir / "_static"
    scripts = [(PAGE / name).read_text(encoding="utf-8") for name in ("dom.js", "graph.js")]
    write_changed(static / "drawing.js", "\n".join(scripts))
    style = (PAGE / "page.css").read_text(encoding="utf-8").splitlines()
    write_changed(static / "drawing.css", "\n".join(line for line in style if line.startswith(".graph")) + "\n")


def lead_out(_app: Sphinx, name: str, source: list[str]) -> None:
    """Lead links of documents out of `docs` to the repository; those of generated pages do so already.

    Diagrams that only GitHub draws are left out; the text says the same.
    """
    if name.partition("/")[0] not in GENERATED:
        text = DIAGRAM.sub("", source[0])
        source[0] = relinked(text, f"docs/{name}.md", f"docs/{name}.md", ROOT, addresses_of(ROOT))


def add_drawing(app: Sphinx, name: str, _template: str, _context: dict[str, Any], _doctree: Any) -> None:
    """Let the chapters of the book draw graphs."""
    if name.startswith("book/"):
        app.add_css_file("drawing.css")
        app.add_js_file("drawing.js")
        app.add_js_file("book.js")


def finish(app: Sphinx, error: Exception | None) -> None:
    """Put the page of the published reports beside the documentation, and warn of links that lead nowhere."""
    if error is not None or app.builder.format != "html":
        return
    published = ROOT / "reports" / "published" / "index.html"
    if published.is_file():
        (app.outdir / MATRIX).mkdir(exist_ok=True)
        shutil.copy(published, app.outdir / MATRIX)
    for line in broken_links(app.outdir, skipped=MATRIX):
        log.warning("a link leads nowhere: %s", line)
