"""The pages of the book: each rule with its cases, in chapters that link one another."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

from generator.book import book_pages, section_of
from generator.rendering import anchor, fenced, plain, spans, write_changed
from loops import each

from conformance.language.parsing import parse_code
from docs.books import BOOK, COLUMNS, TOLD

PAGES = book_pages(BOOK)
ONE, TWO = PAGES["book/one"], PAGES["book/two"]


def test_the_index_leads_to_each_chapter() -> None:
    index = PAGES["book/index"]
    assert "- [Rules of R\\(\\)](one.md), 2 rules. Of \\*R\\*\\." in index
    assert "stated by 2 small" in index
    assert "The builds are 2.1.2 to 2.13.0" in index
    assert "Pictures show the graph" in index
    assert "built without pictures" in book_pages(replace(BOOK, cases=TOLD[1:]))["book/index"]


def test_a_rule_has_its_sentence_level_link_and_status() -> None:
    assert '\n## r\\.one\n\n<p class="rule">The rule r.one.</p>\n' in ONE
    assert '<span class="level documented">documented</span> since 1.13' in ONE
    assert '<a class="external" href="https://x">where PyTorch says so</a>' in ONE
    assert ONE.index("r\\.one") < ONE.index("r\\.none")
    assert "where PyTorch shows it" in ONE
    assert (
        '<i class="known-issue"></i><i class="holds"></i></span> 2.1.2 known issue; 2.13.0\N{EN DASH} holds</p>' in ONE
    )


def test_an_upgrade_note_and_why_a_rule_has_no_case_are_told() -> None:
    assert "<strong>Upgrading:</strong> Write <code>a.b</code> &lt;now&gt;.</p>" in ONE
    assert "<strong>No case:</strong> It can&#x27;t be seen.</p>" in ONE


def test_a_case_is_told_in_full_under_its_first_rule_alone() -> None:
    whole = '<details class="case" id="case-first-case"><summary>A &lt;tensor&gt; &amp; its &#34;leaf&#34;</summary>'
    assert whole in ONE
    assert "```{code-block} python\n:force:\n\na = tensor([1.0], requires_grad=True)\n" in ONE
    assert whole not in TWO
    assert '<a href="one.html#case-first-case">A &lt;tensor&gt;' in TWO
    assert 'also <a href="two.html#s-two">s.two</a></p>' in ONE


def test_several_cases_are_told_as_yaml_with_a_link_to_their_file() -> None:
    assert "```{code-block} yaml\n:force:\n\n  - id: several\n" in TWO
    assert 'href="https://host/suite/blob/main/cases/tests.yaml#L11"' in TWO


def test_a_known_issue_and_a_behaviour_change_are_told() -> None:
    assert "<li>known issue on 2.1.2: It &lt;rounds&gt;. <a" in ONE
    assert "<li>since 2.6, <code>b.output_nr</code>: <code>0</code>, before <code>1</code></li>" in ONE


def test_a_graph_is_drawn_from_what_the_page_of_reports_draws() -> None:
    found = re.search(r'<figure class="graph-of" data-graph="([^"]+)"></figure>', ONE)
    assert found is not None
    drawing = TOLD[0].drawing
    assert json.loads(html.unescape(found[1])) == json.loads(json.dumps(drawing))


def test_operations_are_counted_and_told_elsewhere() -> None:
    assert 'And 1 <a href="../reference/operations.html">operations</a>' in TWO
    assert "cumsum" not in TWO


def test_a_rule_without_published_reports_has_no_status() -> None:
    assert (
        '<p class="status">'
        not in book_pages(replace(BOOK, columns=[], cases=TOLD[1:]))["book/two"].split("details")[0]
    )
    assert section_of(BOOK.rules["r.none"], [], COLUMNS).status == "not published on each of 2 builds"


def test_no_block_of_html_has_a_blank_line() -> None:
    assert '<p class="rule">The rule s.two.</p>' in TWO
    for block in re.findall(r"^<(?:p|ul|figure).*?</(?:p|ul|figure)>$", ONE + TWO, re.MULTILINE | re.DOTALL):
        assert "\n\n" not in block


@each("text", ["a_b *c* `d` <e> [f](g) #h ~~i~~ $j$ {k}`l`", "1. x", "- x", "\\"])
def test_text_for_markdown_has_no_markup(text: str) -> None:
    assert re.sub(r"\\(\W|_)", r"\1", str(plain(text))) == text
    assert not re.search(r"(?<!\\)[*`<\[#]", plain(text).replace("\\\\", ""))


def test_code_may_have_backticks_and_be_no_code() -> None:
    assert fenced("a\n```\nb\n", "text") == "````{code-block} text\n:force:\n\na\n```\nb\n````"


@each("text, found", [("a `b<` c", "a <code>b&lt;</code> c"), ("a ` b", "a ` b"), ("a\n  b", "a b")])
def test_what_stands_in_backquotes_is_code(text: str, found: str) -> None:
    assert spans(text) == found


def test_an_anchor_is_that_of_a_heading() -> None:
    assert [anchor(name) for name in ("detach_.view-error", "sthook.a", "Kinks & ties")] == [
        "detach-view-error", "sthook-a", "kinks-ties",
    ]  # fmt: skip


def test_a_page_that_has_not_changed_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "book" / "one.md"
    write_changed(path, ONE)
    written = path.stat().st_mtime_ns
    write_changed(path, ONE)
    assert path.stat().st_mtime_ns == written
    write_changed(path, TWO)
    assert path.read_text(encoding="utf-8") == TWO


def test_the_text_of_a_case_is_python() -> None:
    assert parse_code(TOLD[0].text).tree is not None


def test_what_holds_everywhere_is_told_before_what_is_a_known_issue() -> None:
    broken = replace(TOLD[0], words=("known issue", "holds"))
    fine = replace(broken, words=("holds", "holds"))
    section = section_of(BOOK.rules[broken.home], [broken, fine], COLUMNS)
    assert list(section.own) == [fine, broken]
    assert section.status == "2.1.2 holds but for known issues; 2.13.0\N{EN DASH} holds"
