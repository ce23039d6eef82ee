"""Tells what a JSON Schema describes: for each object a table of its keys, with their types and descriptions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from generator.rendering import anchor, spans

Schema = Mapping[str, Any]
MOST_VALUES = 12  # of an enumeration that is written out


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of an object: what it may be, and whether it has to be there."""

    name: str
    kind: Markup
    required: bool
    text: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A definition of a schema: an object with keys, or a value of some kind."""

    name: str
    text: str
    kind: Markup
    keys: Sequence[Key]


def described(schema: Schema, name: str) -> list[Described]:
    """Return the whole, called `name`, and each definition that says more than its name."""
    definitions = schema.get("$defs", {})
    parts = {name: {key: value for key, value in schema.items() if key != "$defs"}, **definitions}
    if set(parts[name]) <= {"$schema", "$ref", "title", "description"}:
        del parts[name]
    return [
        Described(
            name=part, text=one.get("description") or one.get("title", ""), kind=kind_of(one), keys=list(keys_of(one))
        )
        for part, one in parts.items()
    ]


def keys_of(schema: Schema) -> Iterator[Key]:
    """Yield the keys of an object, also of one that has several forms."""
    required = set(schema.get("required", ()))
    for name, value in schema.get("properties", {}).items():
        yield Key(
            name=name, kind=kind_of(value), required=name in required, text=spans(value.get("description", ""))
        )
    for form in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(form, ()):
            if isinstance(one, Mapping) and "properties" in one:
                yield from keys_of(one)


def kind_of(schema: Any) -> Markup:
    """Return in a few words, with links, what a value may be."""
    if not isinstance(schema, Mapping):
        return Markup("anything")
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return Markup('<a href="#{}">{}</a>').format(anchor(name), name)
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        shown = [code(value) for value in schema["enum"][:MOST_VALUES]]
        return Markup(" or ").join([*shown, *([Markup("…")] if len(schema["enum"]) > MOST_VALUES else [])])
    for form in ("anyOf", "oneOf"):
        if form in schema:
            return Markup(" or ").join(dict.fromkeys(map(kind_of, schema[form])))
    return kind_of_type(schema)


def kind_of_type(schema: Schema) -> Markup:
    kind = schema.get("type")
    if isinstance(kind, list):
        return Markup(" or ").join(kind_of({**schema, "type": one}) for one in kind)
    if kind == "array":
        several = schema.get("prefixItems")
        inner = Markup(", ").join(map(kind_of, several)) if several else kind_of(schema.get("items", {}))
        return Markup("list of ") + inner
    if kind == "object":
        values = schema.get("additionalProperties")
        if "properties" not in schema and isinstance(values, Mapping):
            return Markup("mapping to ") + kind_of(values)
        return escape(schema.get("title", "mapping"))
    names = {"string": "text", "integer": "whole number", "null": "null", "boolean": "true or false"}
    return escape(schema.get("title") or names.get(str(kind), kind or "anything"))


def code(value: Any) -> Markup:
    words = {None: "null", True: "true", False: "false"}
    return Markup("<code>{}</code>").format(words[value] if value is None or isinstance(value, bool) else value)
