"""Tests of what is kept between runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from samples import report

from conformance.language.reader import parse_cases
from conformance.model.rule import Rule
from conformance.pytest_plugin import cache
from conformance.pytest_plugin.cache import Cache, PageCache
from conformance.pytest_plugin.case_set import Loaded, loaded_from
from conformance.render.script.script import Script, script_for
from conformance.results.checkout import package_state

RULE = Rule(id="a.b", text="It holds.", topic="T", level="observed", link="https://pytorch.org", since="1.13")
TEXT = """\
topic: T
cases:
  - id: one
    title: A
    why: W
    rules: [a.b]
    steps:
      - x = tensor([0.5], requires_grad=True)
      - do: x.numpy()
        raises:
          - {type: RuntimeError, match: [{regex: "a|b"}, c], torch: "<2.8"}
          - {type: RuntimeError, match: d, torch: ">=2.8"}
      - expect: {x: {is_leaf: true, value: [.inf]}, "(x.dim(), None, (2, 3))": [1, null, [2, 3]]}
"""
CASES = parse_cases(TEXT, "x.yaml", {"a.b": RULE})
LOADED = loaded_from(TEXT.encode(), "x.yaml", {"a.b": RULE}, covered=False)
SCRIPTS = [script_for(case) for case in CASES]
FACTS = (TEXT.encode(), "x.yaml", "a.b observed")


def refuse() -> Any:
    raise AssertionError("it is in the cache")


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Loaded, LOADED), (list[Script], SCRIPTS), (dict[str, Rule], {"a.b": RULE})],
    ids=["cases", "scripts", "rules"],
)
def test_what_was_made_comes_back_as_it_was(tmp_path: Path, kind: type[Any], value: Any) -> None:
    assert Cache(tmp_path / "deeper").kept(kind, FACTS, lambda: value) is value
    assert Cache(tmp_path / "deeper").kept(kind, FACTS, refuse) == value


def test_entries_of_long_ago_are_removed_when_one_is_made(tmp_path: Path) -> None:
    kept = Cache(tmp_path)
    for number, age in enumerate((0, cache.KEPT_SECONDS - 60, cache.KEPT_SECONDS + 60)):
        entry = kept.entry(int, (str(number),))
        kept.put(entry, number)
        assert entry is not None
        os.utime(entry, (time.time() - age,) * 2)
    (tmp_path / "durations.json").touch()
    os.utime(tmp_path / "durations.json", (0, 0))
    kept.put(kept.entry(int, ("3",)), 3)
    assert [kept.get(kept.entry(int, (str(number),)), int) for number in range(4)] == [0, 1, None, 3]
    assert (tmp_path / "durations.json").exists()


def test_nothing_but_entries_is_left_behind(tmp_path: Path) -> None:
    kept = Cache(tmp_path)
    for _ in range(2):
        kept.put(kept.entry(Loaded, FACTS), LOADED)
    (path,) = tmp_path.iterdir()
    assert path.suffix == ".msgpack"


def test_an_entry_holds_for_one_kind_and_the_same_facts_in_order(tmp_path: Path) -> None:
    kept = Cache(tmp_path)
    facts: list[tuple[str | bytes, ...]] = [(b"content", "x"), (b"contents", "x"), (b"content", "y"), ("x", "content"),
                                            (b"content", "x", ""), (b"contentx",), ()]  # fmt: skip
    entries = {kept.entry(kind, each) for each in facts for kind in (Loaded, list[Script])}
    assert len(entries) == 2 * len(facts)


@pytest.mark.parametrize("name", ["case.py", "vocabulary.json"])
def test_an_entry_holds_for_one_state_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).write_text("old")
    monkeypatch.setattr(cache, "package_state", partial(package_state.__wrapped__, tmp_path))
    before = Cache(tmp_path).entry(Loaded, FACTS)
    assert Cache(tmp_path).entry(Loaded, FACTS) == before
    (tmp_path / name).write_text("newer")
    assert Cache(tmp_path).entry(Loaded, FACTS) != before


def cut_off(value: object) -> bytes:
    return msgspec.msgpack.encode(value)[:-5]


@pytest.mark.parametrize(
    "content", [b"", b"no entry", cut_off(LOADED), msgspec.msgpack.encode(SCRIPTS), b"\x81\xa1\xff\x01"]
)
def test_an_entry_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    kept = Cache(tmp_path)
    entry = kept.entry(Loaded, FACTS)
    assert entry is not None
    entry.write_bytes(content)
    assert kept.kept(Loaded, FACTS, lambda: LOADED) is LOADED
    assert kept.get(entry, Loaded) == LOADED


def in_the_way(tmp_path: Path) -> Cache:
    (tmp_path / "file").write_text("in the way")
    return Cache(tmp_path / "file")


@pytest.mark.parametrize("made", [in_the_way, lambda _: Cache(None)], ids=["unwritable", "none"])
def test_without_a_directory_everything_is_made_again(tmp_path: Path, made: Callable[[Path], Cache]) -> None:
    kept = made(tmp_path)
    assert kept.kept(Loaded, FACTS, lambda: LOADED) is LOADED
    with pytest.raises(AssertionError, match="in the cache"):
        kept.kept(Loaded, FACTS, refuse)


@pytest.mark.parametrize("value", [[2**70], ["\ud800"]], ids=["a large number", "half of a surrogate pair"])
def test_what_no_entry_can_hold_is_made_again(tmp_path: Path, value: list[Any]) -> None:
    kept = Cache(tmp_path)
    assert kept.kept(list[Any], FACTS, lambda: value) is value
    assert not list(tmp_path.iterdir())


def part_of(name: str) -> Any:
    return None if name == "n" else {"x": [name, 1.5]}


def page(directory: Path | None, names: str, *, forgets: bool = False, torch: str = "2.13.0") -> str:
    """Make a page of parts, and return the names of those that no earlier one had."""
    made: list[str] = []
    build = report({}, torch=torch).build
    parts = PageCache[Any](Cache(directory), Any, build, forgets=forgets)

    def make(name: str) -> Any:
        made.append(name)
        return part_of(name)

    for name in names:
        assert parts.of(name, partial(make, name)) == part_of(name)
        assert parts.of(name, refuse) == part_of(name)
    parts.keep()
    return "".join(made)


def test_parts_of_earlier_pages_of_a_build_are_not_made_again(tmp_path: Path) -> None:
    assert page(tmp_path, "abn") == "abn"
    assert page(tmp_path, "") == page(tmp_path, "nb") == ""
    assert page(tmp_path, "cb") == "c"
    assert page(tmp_path, "abcn") == ""
    assert page(tmp_path, "a", torch="2.12.0") == "a"
    assert page(None, "a") == page(None, "a") == "a"


def test_parts_that_the_last_page_did_not_have_may_be_forgotten(tmp_path: Path) -> None:
    assert page(tmp_path, "ab", forgets=True) == "ab"
    assert page(tmp_path, "bc", forgets=True) == "c"
    assert page(tmp_path, "a", forgets=True) == "a"
