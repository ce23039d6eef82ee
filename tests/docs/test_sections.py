"""Pages that are made of sections of other documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from generator.sections import (
    EXCERPTS,
    Addresses,
    Excerpt,
    addresses_of,
    excerpt_of,
    excerpt_pages,
    relinked,
    section_of,
)
from loops import each
from places import ROOT

TEXT = """\
# Title

## First

Some text.

```
## no heading
```

### Inner

More.

## Second

Others.
"""
ADDRESSES = Addresses(repository="https://host/suite", site="https://site/suite/")


def test_a_section_ends_where_the_next_of_its_level_begins() -> None:
    assert section_of(TEXT, "First") == TEXT[TEXT.index("## First") : TEXT.index("\n## Second")]
    assert section_of(TEXT, "Second") == "## Second\n\nOthers.\n"


def test_a_section_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no section 'no heading'"):
        section_of(TEXT, "no heading")


def test_a_section_alone_gives_the_page_its_title() -> None:
    page = excerpt_of(TEXT, Excerpt(page="p", source="s", headings=["First"]))
    assert page.startswith("# First\n")
    assert "\n## Inner\n" in page
    assert "\n## no heading\n" in page  # as the code has it
    assert excerpt_of(TEXT, Excerpt(page="p", source="s", title="T", headings=["Second"])).startswith(
        "# T\n\n## Second"
    )


@each(
    "link, found",
    [
        ("[a](docs/modes.md)", "[a](../modes.md)"),
        ("[a](docs/modes.md#b)", "[a](../modes.md#b)"),
        ("![a](docs/matrix.png)", "![a](../matrix.png)"),
        ("[`a`](conformance/case.schema.json)", "[`a`](https://host/suite/blob/main/conformance/case.schema.json)"),
        ("[a](cases/ops)", "[a](https://host/suite/tree/main/cases/ops)"),
        ("[a](https://site/suite/book/leaves.html#b)", "[a](../book/leaves.md#b)"),
        ("[a](https://site/suite/)", "[a](../index.md)"),
        ("[a](https://site/suite/running/how.html)", "[a](how.md)"),
        ("[a](https://other/x)", "[a](https://other/x)"),
        ("[a](#b)", "[a](#b)"),
    ],
)
def test_a_link_leads_to_a_page_or_the_repository(link: str, found: str) -> None:
    assert relinked(link, "README.md", "docs/running/ways.md", ROOT, ADDRESSES) == found
    assert relinked(f"```\n{link}\n```\n", "README.md", "docs/running/ways.md", ROOT, ADDRESSES).splitlines()[1] == link


def test_a_link_of_a_document_is_seen_from_its_folder() -> None:
    text = relinked("[a](../tests) [b](sandbox.md)", "docs/a.md", "docs/a.md", ROOT, ADDRESSES)
    assert text == "[a](https://host/suite/tree/main/tests) [b](sandbox.md)"


def test_all_excerpts_and_guides_are_pages() -> None:
    pages = excerpt_pages(ROOT)
    guides = sorted(f"upgrading/{path.stem}" for path in (ROOT / "reports/published/upgrading").glob("*.md"))
    assert sorted(pages) == sorted([*(each.page for each in EXCERPTS), *guides, "upgrading/index"])
    assert all(text.startswith("# ") for text in pages.values())
    newest, *_, oldest = [line for line in pages["upgrading/index"].splitlines() if line.startswith("- ")]
    assert "(torch-2.15.0.md)" in newest
    assert "(torch-1.13.1.md)" in oldest


def test_the_addresses_are_those_of_the_package(tmp_path: Path) -> None:
    text = '[project.urls]\nRepository = "https://a/b"\nDocumentation = "https://c/"\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert addresses_of(tmp_path) == Addresses(repository="https://a/b", site="https://c/")
    assert addresses_of(ROOT).site.endswith("/")
