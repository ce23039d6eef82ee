"""Tests that no text gets out of its place in Markdown, and that a cut leaves Markdown."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from loops import each
from samples import HOSTILE

from conformance.render.markdown import cell, code, environment, fitted, tagged

ANY = st.text() | st.text("`|\\<>@#[]()! \n\r\u2028\u202e\ud800ab")
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", re.DOTALL)


@each(
    "text, span",
    [
        ("a.grad", "`a.grad`"),
        ("a`b", "``a`b``"),
        ("`a`", "`` `a` ``"),
        ("a``b`c", "```a``b`c```"),
        ("", "` `"),
        (" a", "`  a `"),
        ("a\r\nb\nc\rd", "`a⏎b⏎c⟨U+000D⟩d`"),
        ("<b>@me</b> [a](b)", "`<b>@me</b> [a](b)`"),
    ],
)
def test_text_stands_in_a_code_span(text: str, span: str) -> None:
    assert str(code(text)) == span


@given(ANY)
def test_a_code_span_ends_where_its_text_ends(text: str) -> None:
    span = str(code(text))
    found = SPAN.fullmatch(span)
    assert found is not None
    assert "\n" not in span
    assert len(span.splitlines()) == 1
    span.encode()


@given(ANY)
def test_a_cell_holds_no_bar(text: str) -> None:
    assert "|" not in cell(text)


@given(ANY)
def test_inside_of_tags_only_the_tags_are_tags(text: str) -> None:
    inside = str(tagged(text)).removeprefix("<code>").removesuffix("</code>")
    assert not set("<>\n") & set(inside)


def test_a_template_escapes_what_it_prints_unless_it_is_ours() -> None:
    template = environment().from_string("{{ a }} {{ a|cell }} {{ a|tagged }} {{ n }} {{ b|ours }}")
    shown = template.render(a="x|<`", n=3, b="**fail**")
    assert shown == "`` x|<` `` `` x⟨U+007C⟩<` `` <code>x|&lt;`</code> 3 **fail**"


LINES = st.sampled_from(["text", "- `ö`", "", "<details><summary>x</summary>", "</details>", "| a |"])


@given(st.lists(LINES, max_size=30), st.integers(0, 300))
def test_a_cut_keeps_to_the_limit_and_whole_lines(lines: list[str], limit: int) -> None:
    text = "".join(f"{line}\n" for line in lines)
    short = fitted(text, limit)
    assert len(short.encode()) <= limit
    if len(text.encode()) <= limit:
        assert short == text
    elif short:
        kept, _, note = short.removesuffix(" more lines are left out.*\n").rpartition("*")
        assert text.startswith(kept.removesuffix("\n").removesuffix("\n</details>\n"))
        assert int(note) > 0


def test_a_cut_closes_what_is_open() -> None:
    text = "<details><summary>x</summary>\n\n- one\n- two\n- three\n\n</details>\n" + "text\n" * 20
    whole = "<details><summary>x</summary>\n\n- one\n\n</details>\n\n*24 more lines are left out.*\n"
    assert fitted(text, len(whole)) == whole
    assert fitted(text, 10) == ""


def test_hostile_text_is_one_line_of_code() -> None:
    assert str(code(HOSTILE)).startswith("```x|`` <img")
