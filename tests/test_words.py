"""Holds the words: each term of the glossary is in use, and the synonyms that it replaced are not.

The glossary says one name for one thing. A name that the suite once had for it stays out of the package.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from places import ROOT

PACKAGE = ROOT / "conformance"
GLOSSARY = ROOT / "docs" / "glossary.md"
TEXTS = {".py", ".js", ".css", ".j2", ".md", ".json", ".txt"}
FOREIGN = {PACKAGE / "language" / "vocabulary.json"}  # torch's own names, `tile` among them

# What a thing is not called (in any case, as a word or a part of a name), and what it is called.
BANNED = {
    r"\bfeeds?\b|Feed\b": "scheduler",
    r"hello": "handshake",
    r"\bworlds?\b|World\b": "global state",
    r"\bsettled?\b|\bsettles\b": "synchronize",
    r"red.entr": "known-issue drafts",
    r"\babsence\b": "placeholder report",
    r"\btiles?\b|\btiling\b": "exhaustive and disjoint",
    r"\beditions?\b": "revision",
    r"\bperhaps\b": "may fail on",
    r"\bspent\b": "must restart",
    r"newly.known": "expected failure",
    r"what is said\b": "message",
    r"\bnaps?\b": "poll interval",
}

# Files that still have a banned word. Nothing is to be added; what has become clean is to be taken out.
ALLOWED: dict[str, set[str]] = {}


def texts() -> dict[str, str]:
    paths = [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in TEXTS and path not in FOREIGN]
    return {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def terms() -> dict[str, str]:
    """Return the terms of the glossary with their meanings."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    return {term: meaning for term, meaning in rows if term != "term" and not term.startswith("-")}


@pytest.mark.parametrize("word", BANNED)
def test_a_banned_word_is_in_no_file_but_those_that_are_to_be_mended(word: str) -> None:
    found = {name for name, text in texts().items() if re.search(word, text, re.IGNORECASE)}
    assert found == ALLOWED.get(word, set()), f"say {BANNED[word]!r}"


def test_allowances_are_for_banned_words() -> None:
    assert ALLOWED.keys() <= BANNED.keys()


def test_the_glossary_is_in_order_and_has_one_sentence_for_each_term() -> None:
    found = terms()
    assert len(found) > 50
    assert list(found) == sorted(found, key=str.casefold)
    for term, meaning in found.items():
        assert meaning.endswith("."), term
        assert not re.search(r"[a-z)`]\. [A-Z]", meaning), f"{term}: more than one sentence"


def test_each_term_is_in_use_in_the_code_or_the_other_documents() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *ROOT.glob("*.py")]
    said = "\n".join([*texts().values(), *(path.read_text("utf-8") for path in documents if path != GLOSSARY)])
    said = re.sub(r"[\s_-]+", " ", said).casefold()
    words = {term: re.escape(term.casefold().replace("-", " ")) for term in terms()}
    assert [term for term, word in words.items() if not re.search(rf"\b{word}", said)] == []


def test_the_documents_do_not_use_the_banned_words() -> None:
    for path in (GLOSSARY, Path(ROOT / "docs" / "architecture.md")):
        for word, instead in BANNED.items():
            assert not re.search(word, path.read_text(encoding="utf-8"), re.IGNORECASE), (path.name, word, instead)
