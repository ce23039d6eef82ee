"""The lists of names: one a line and sorted, each name once, and one list for each kind of factory."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.language import vocabulary

FILE = Path(vocabulary.__file__).with_name("vocabulary.json")


def test_names_stand_one_a_line_and_sorted() -> None:
    text = FILE.read_text(encoding="utf-8")
    data = json.loads(text)
    lists = [names for group in (*data["namespaces"].values(), data["attributes"]) for names in group.values()]
    assert [sorted(set(names)) for names in lists] == lists
    assert json.dumps(data, indent=1) + "\n" == text


def test_a_name_came_with_one_release() -> None:
    data = json.loads(FILE.read_text(encoding="utf-8"))
    for group in (*data["namespaces"].values(), data["attributes"]):
        names = [name for names in group.values() for name in names]
        assert len(names) == len(set(names))


def test_what_is_made_in_the_suites_own_way_is_in_the_vocabulary() -> None:
    torch = vocabulary.NAMESPACES["torch"].keys()
    assert torch >= vocabulary.RANDOM
    assert torch >= vocabulary.FACTORIES
    assert vocabulary.NAMESPACES["fft"].keys() >= vocabulary.FREQUENCIES
    assert vocabulary.NAMESPACES["nn"].keys() >= vocabulary.CONTAINERS
