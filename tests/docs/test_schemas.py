"""What a JSON Schema describes, told as tables of keys."""

from __future__ import annotations

from typing import Any

from generator.schemas import described, kind_of
from loops import each

from conformance.language.schema import load_schema

FILES = [f"{name}.schema.json" for name in "case known-issues modes profile renames rules report compact".split()]
DEFINITIONS = {
    "told": {"type": "object", "description": "It is told.", "properties": {"a": {"type": "string"}}},
    "short": {"type": "boolean"},
    "nested": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/nested"}}]},
    "alternatives": {"type": "object", "properties": {"torch": {"type": "object"}}},
}


def names_in(value: Any) -> set[str]:
    """Return the keys of all objects in a schema."""
    if isinstance(value, list):
        return {name for each in value for name in names_in(each)}
    if not isinstance(value, dict):
        return set()
    own = set(value["properties"]) if isinstance(value.get("properties"), dict) else set()
    return own | {name for each in value.values() for name in names_in(each)}


@each("file", FILES)
def test_each_key_of_a_schema_is_told(file: str) -> None:
    schema = load_schema(file)
    parts = described(schema, "whole")
    told = {key.name.rpartition(".")[2] for part in parts for key in part.keys}
    assert told == names_in({name: value for name, value in schema.items() if name != "examples"})
    assert parts[0].keys


def test_keys_of_an_object_within_are_told_below_its_key() -> None:
    case = next(part for part in described(load_schema("case.schema.json"), "case file") if part.name == "case")
    assert {"suspends", "suspends.warnings"} <= {key.name for key in case.keys}


def test_the_description_and_the_need_of_a_key_are_told() -> None:
    case = next(part for part in described(load_schema("case.schema.json"), "case file") if part.name == "case")
    keys = {key.name: key for key in case.keys}
    assert keys["why"].required
    assert not keys["torch"].required
    assert keys["title"].text == load_schema("case.schema.json")["$defs"]["case"]["properties"]["title"]["description"]


@each(
    "schema, words",
    [
        ({"$ref": "#/$defs/told"}, '<a href="#told">told</a>'),
        ({"$ref": "#/$defs/short"}, "true or false"),
        ({"$ref": "#/$defs/nested"}, "null or list of nested"),
        ({"type": "array", "items": {"$ref": "#/$defs/told"}, "title": "a list"}, 'list of <a href="#told">told</a>'),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}, "list of text, whole number"),
        ({"type": "string", "title": "a <name>"}, "a &lt;name&gt;"),
        ({"type": ["number", "null"]}, "number or null"),
        ({"enum": ["a", 2, None]}, "<code>a</code> or <code>2</code> or <code>null</code>"),
        ({"enum": list(range(13))}, " or ".join(f"<code>{n}</code>" for n in range(12)) + " or …"),
        ({"const": True}, "<code>true</code>"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "mapping to text"),
        ({"type": "object"}, "mapping"),
        ({"type": "object", "properties": {"torch": {}}}, '<a href="#alternatives">by release</a>'),
        ({}, "anything"),
    ],
)
def test_a_value_is_told_in_a_few_words(schema: dict[str, Any], words: str) -> None:
    assert kind_of(schema, DEFINITIONS) == words
