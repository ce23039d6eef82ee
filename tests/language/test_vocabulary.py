"""The vocabulary holds together: each name has a release, and no list names what another forbids."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from loops import each

from conformance.language import vocabulary
from conformance.language.versions import version_of

FILE = Path(vocabulary.__file__).with_name("vocabulary.json")


def test_every_name_has_a_release_from_the_oldest_on() -> None:
    lists = {"": vocabulary.NAMES, "attributes": vocabulary.ATTRIBUTES, **vocabulary.NAMESPACES}
    releases = {release for names in lists.values() for release in names.values()}
    assert {release for release in releases if not re.fullmatch(r"\d+\.\d+", release)} == set()
    assert min(releases, key=version_of) == vocabulary.OLDEST


@each(
    "name, since",
    [("tensor", "1.13"), ("func.vmap", "2.0"), ("nn.Linear", "1.13"), ("_version", "1.13"), ("compiled", "2.0")],
)
def test_a_name_is_looked_up_bare_in_a_namespace_or_as_an_attribute(name: str, since: str) -> None:
    assert vocabulary.since(name) == since


def test_a_name_that_there_is_not_has_no_release() -> None:
    for name in ("open", "torch.load", "nowhere.sin"):
        with pytest.raises(KeyError):
            vocabulary.since(name)


def test_what_people_expect_and_miss_has_a_hint_and_is_no_name() -> None:
    for name in ("np", "open", "exec", "threading"):
        assert vocabulary.hint_for(name)
        assert name not in vocabulary.NAMES
    assert vocabulary.hint_for("tensor") == ""


def test_no_name_and_no_attribute_is_one_of_pythons_own() -> None:
    names = {name for names in vocabulary.NAMESPACES.values() for name in names}
    assert {name for name in {*names, *vocabulary.NAMES, *vocabulary.ATTRIBUTES} if name.startswith("__")} == set()


def test_a_namespace_inside_another_is_found_by_its_path() -> None:
    assert vocabulary.inner("torch", "nn") == "nn"
    assert vocabulary.inner("nn", "functional") == "nn.functional"
    assert vocabulary.inner("torch", "math") is None  # a module of Python
    assert vocabulary.inner("nn", "Linear") is None


def test_what_can_not_be_rebound_is_in_the_vocabulary() -> None:
    assert vocabulary.NAMES.keys() >= vocabulary.RESERVED
    assert {path.partition(".")[0] for path in vocabulary.NAMESPACES} >= vocabulary.TORCH_NAMESPACES
    assert set(vocabulary.ROOTS.values()) <= vocabulary.NAMESPACES.keys()


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
