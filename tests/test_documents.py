"""The tables of documents that are made of data have all of it."""

from __future__ import annotations

import pytest
from documents import TABLES, filled
from loops import each
from places import ROOT

HEAD = "| a | b |"


@each("name", list(TABLES))
def test_a_document_has_its_table(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == filled(text, *TABLES[name]), "run `python tests/documents.py`"


def test_a_table_is_replaced_and_all_else_stays() -> None:
    text = f"Before.\n\n{HEAD}\n|---|---|\n| old | row |\n\nAfter.\n\n| c |\n|---|\n"
    assert filled(text, HEAD, ["| 1 | 2 |", "| 3 | 4 |"]) == text.replace("| old | row |", "| 1 | 2 |\n| 3 | 4 |")


def test_a_document_without_the_table_is_refused() -> None:
    with pytest.raises(AssertionError, match="there is no table"):
        filled("Before.\n", HEAD, [])
