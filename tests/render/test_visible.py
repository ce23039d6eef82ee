"""Tests that nothing in a text from a stranger stays unseen."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from loops import each

from conformance.render.visible import printable, visible

SURROGATES = st.characters(categories=["Cs"])


@each(
    "text",
    ["", "a.grad: expected 1", "größer", "b\u0301", "日本語", "👩\u200d👧", "\u06cc\u200c\u0647", "a\n\tb", "⟨U+202E⟩"],
)
def test_what_can_be_seen_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@each(
    "text, shown",
    [
        ("a\x1b[31mb", "a⟨U+001B⟩[31mb"),
        ("a\x00b\x07\x7f\x85\x9b", "a⟨U+0000⟩b⟨U+0007⟩⟨U+007F⟩⟨U+0085⟩⟨U+009B⟩"),
        ("line\r\nline", "line⟨U+000D⟩\nline"),
        ("a\u202egrad\u202c", "a⟨U+202E⟩grad⟨U+202C⟩"),
        ("\u2066\u2069\u200e\u200f\u061c", "⟨U+2066⟩⟨U+2069⟩⟨U+200E⟩⟨U+200F⟩⟨U+061C⟩"),
        ("\u2028\u2029\ufeff\u200b", "⟨U+2028⟩⟨U+2029⟩⟨U+FEFF⟩⟨U+200B⟩"),
        ("\ud800 \udfff", "⟨U+D800⟩ ⟨U+DFFF⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_its_code_point(text: str, shown: str) -> None:
    assert visible(text) == shown


@each(
    "text, shown",
    [
        ("a\n::error file=x::y", "a\n⟨::⟩error file=x::y"),
        ("  ::stop-commands::token", "  ⟨::⟩stop-commands::token"),
        ("##[error]x\n\t##vso[task.complete]", "⟨##⟩[error]x\n\t⟨##⟩vso[task.complete]"),
        ("\r::error::x", "⟨U+000D⟩::error::x"),
        ("in at::Tensor::sum\n## title\n:: and", "in at::Tensor::sum\n## title\n:: and"),
    ],
)
def test_no_line_is_a_command_to_a_ci_service(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_the_caller_says_which_characters_it_can_take() -> None:
    assert visible("a\n\tb", keep="") == "a⟨U+000A⟩⟨U+0009⟩b"
    assert visible("a\nb\tc\rd", keep="\r") == "a⟨U+000A⟩b⟨U+0009⟩c\rd"


@given(st.text() | st.text(SURROGATES))
def test_the_result_can_be_encoded_holds_no_control_and_stays_itself(text: str) -> None:
    shown = visible(text, keep="")
    shown.encode()
    assert not [character for character in shown if unicodedata.category(character) in ("Cc", "Cs")]
    assert len(shown.splitlines()) <= 1
    assert visible(shown, keep="") == shown
