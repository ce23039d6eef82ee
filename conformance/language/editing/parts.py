"""Finds what the schema of case files says of a place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from conformance.language.editing.place import ITEM, Place
from conformance.language.schema import load_schema, types_of

Part = dict[str, Any]  # of the schema
OF_CODE = ("an expression", "an expression or null", "statements")  # titles of text that is code
CODE = frozenset({"do", "op", "result"})  # keys of such text


@cache
def schema() -> Part:
    return load_schema("case.schema.json")


def resolved(part: Part) -> Part:
    """Return the part that another refers to, with the description that stands beside the reference."""
    while "$ref" in part:
        own = {"description": part["description"]} if "description" in part else {}
        part = {**schema()["$defs"][part["$ref"].rpartition("/")[2]], **own}
    return part


def leaves(part: Part) -> Iterator[Part]:
    """Yield what a part offers to choose from."""
    part = resolved(part)
    if "anyOf" in part:
        for branch in part["anyOf"]:
            yield from leaves(branch)
    else:
        yield part


def parts_at(path: tuple[str, ...]) -> list[Part]:
    """Return the parts of the schema that hold for what is below a path, with all that they offer."""
    parts = [schema()]
    for key in path:
        parts = [inner for part in parts for leaf in leaves(part) for inner in inside(leaf, key)]
    return parts


def inside(part: Part, key: str) -> list[Part]:
    """Return what a part says of one of its keys, or of its entries."""
    if key == ITEM:
        return [part["items"]] if "items" in part else []
    if key in part.get("properties", {}):
        return [part["properties"][key]]
    other = part.get("additionalProperties")
    return [other] if isinstance(other, dict) else []


def choices_at(place: Place) -> list[Part]:
    """Return what can stand in a place: of mappings those that take the keys before it."""
    found = [leaf for part in parts_at(place.path) for leaf in leaves(part)]
    if not place.keys:
        return found
    return [leaf for leaf in found if all(inside(leaf, key) for key in place.keys)]


def keys_at(place: Place) -> dict[str, Part]:
    """Return the keys that can stand in a place, each with what the schema says of it."""
    return {
        key: resolved(part)
        for choice in choices_at(place)
        for key, part in choice.get("properties", {}).items()
        if key not in place.keys
    }


def words_at(place: Place) -> list[str]:
    """Return the words that a value can be."""
    found: dict[str, None] = {}
    for choice in choices_at(place):
        types = types_of(choice) if "type" in choice else []
        found |= dict.fromkeys(map(str, choice.get("enum", ())))
        found |= dict.fromkeys(["true", "false"] * ("boolean" in types) + ["null"] * ("null" in types))
    return list(found)


def named(place: Place) -> str:
    """Return the key that a place is the value of, or in whose list it stands."""
    return next((key for key in reversed(place.path) if key != ITEM), "")


def takes_names(place: Place) -> bool:
    """Whether the keys that stand in a place are expressions: those of what is expected."""
    return place.is_key and place.path[-1:] == ("expect",)


def is_code(place: Place) -> bool:
    """Whether the text in a place is of the language of steps."""
    titles = {leaf.get("title") for leaf in choices_at(place)}
    return takes_names(place) or (place.is_text and (named(place) in CODE or not titles.isdisjoint(OF_CODE)))
