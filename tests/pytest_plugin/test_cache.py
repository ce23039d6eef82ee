"""Tests of the cases that are kept between runs."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path

import pytest

from conformance.model.case import Case
from conformance.pytest_plugin import cache
from conformance.pytest_plugin.cache import CaseCache, Loaded
from conformance.render.script.script import script_of
from conformance.results.checkout import package_state

CASE = Case(
    file="x.yaml", line=3, topic="T", id="one", title="A", why="W", rules=("a.b",),
    steps=({"line": 4, "do": "a = 1"},), text="", digest="0",
)  # fmt: skip
LOADED: Loaded = [(CASE, script_of(CASE))]


def test_what_was_put_comes_back(tmp_path: Path) -> None:
    kept = CaseCache(tmp_path / "deeper")
    entry = kept.entry(b"content", "x.yaml", ["a.b"])
    assert kept.get(entry) is None
    kept.put(entry, LOADED)
    assert kept.get(entry) == LOADED
    assert CaseCache(tmp_path / "deeper").get(entry) == LOADED


def test_nothing_but_entries_is_left_behind(tmp_path: Path) -> None:
    kept = CaseCache(tmp_path)
    for _ in range(2):
        kept.put(kept.entry(b"content", "x.yaml", ["a.b"]), LOADED)
    (path,) = tmp_path.iterdir()
    assert path.suffix == ".pickle"


def test_an_entry_holds_for_one_content_name_and_set_of_rules(tmp_path: Path) -> None:
    kept = CaseCache(tmp_path)
    entries = {
        kept.entry(b"content", "x.yaml", ["a.b"]),
        kept.entry(b"contents", "x.yaml", ["a.b"]),
        kept.entry(b"content", "y.yaml", ["a.b"]),
        kept.entry(b"content", "x.yaml", ["a.b", "a.c"]),
        kept.entry(b"content", "x.yaml", []),
    }
    assert len(entries) == 5


def test_the_order_of_the_rules_does_not_matter(tmp_path: Path) -> None:
    kept = CaseCache(tmp_path)
    assert kept.entry(b"", "x", ["a.b", "a.c"]) == kept.entry(b"", "x", iter(["a.c", "a.b"]))


@pytest.mark.parametrize("name", ["case.py", "vocabulary.json"])
def test_an_entry_holds_for_one_state_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).write_text("old")
    monkeypatch.setattr(cache, "package_state", partial(package_state.__wrapped__, tmp_path))
    before = CaseCache(tmp_path).entry(b"content", "x.yaml", ["a.b"])
    assert CaseCache(tmp_path).entry(b"content", "x.yaml", ["a.b"]) == before
    (tmp_path / name).write_text("newer")
    assert CaseCache(tmp_path).entry(b"content", "x.yaml", ["a.b"]) != before


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps(LOADED)[:-5], b"cnowhere\nnothing\n."])
def test_an_entry_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    kept = CaseCache(tmp_path)
    entry = kept.entry(b"content", "x.yaml", ["a.b"])
    assert entry is not None
    entry.write_bytes(content)
    assert kept.get(entry) is None
    kept.put(entry, LOADED)
    assert kept.get(entry) == LOADED


def test_a_directory_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    kept = CaseCache(tmp_path / "file")
    entry = kept.entry(b"content", "x.yaml", ["a.b"])
    kept.put(entry, LOADED)
    assert kept.get(entry) is None


def test_without_a_directory_nothing_is_kept() -> None:
    kept = CaseCache(None)
    assert kept.entry(b"content", "x.yaml", ["a.b"]) is None
    kept.put(None, LOADED)
    assert kept.get(None) is None
