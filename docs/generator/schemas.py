"""Tells what a JSON Schema describes: for each object a table of its keys, with their types and descriptions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from generator.rendering import anchor, spans

Schema = Mapping[str, Any]
FORMS = ("anyOf", "oneOf", "allOf")
BY_RELEASE = "alternatives"  # the definition in the schema of cases
NAMES = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
    "object": "mapping",
}
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
    """Return the whole, called `name`, and each definition that has keys or a description; others are told in place."""
    definitions = schema.get("$defs", {})
    whole = {key: value for key, value in schema.items() if key != "$defs"}
    parts = {**({name: whole} if "$ref" not in whole else {}), **definitions}
    return [
        Described(
            name=part,
            text=one.get("description", ""),
            kind=kind_of(one, definitions),
            keys=list(keys_of(one, definitions)),
        )
        for part, one in parts.items()
        if part == name or is_told(part, one)
    ]


def is_told(name: str, schema: Schema) -> bool:
    return "description" in schema or name == BY_RELEASE or any(not is_by_release(one) for one in objects_in(schema))


def objects_in(schema: Schema) -> Iterator[Schema]:
    """Yield the forms of a value that are objects with keys."""
    if "properties" in schema:
        yield schema
    for form in FORMS:
        for one in schema.get(form, ()):
            yield from objects_in(one)


def is_by_release(schema: Schema) -> bool:
    """Whether an object gives alternatives by release, as any check can."""
    return set(schema["properties"]) == {"torch"}


def keys_of(schema: Schema, definitions: Schema, within: str = "") -> Iterator[Key]:
    """Yield the keys of an object, or of all the forms that it has, each once; below a key those of its own objects."""
    known: set[str] = set()
    for one in objects_in(schema):
        required = set(one.get("required", ()))
        for name, value in one["properties"].items():
            if name in known:
                continue
            known.add(name)
            text = spans(value.get("description", ""))
            yield Key(name=within + name, kind=kind_of(value, definitions), required=name in required, text=text)
            inner = [each for each in objects_in(value) if not is_by_release(each)]
            yield from keys_of({"anyOf": inner}, definitions, f"{within}{name}.")


def kind_of(schema: Schema, definitions: Schema, seen: tuple[str, ...] = ()) -> Markup:
    """Return in a few words, with links, what a value may be; `seen` are definitions that are being told."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        if is_told(name, definitions[name]):
            return Markup('<a href="#{}">{}</a>').format(anchor(name), name)
        return escape(name) if name in seen else kind_of(definitions[name], definitions, (*seen, name))
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        shown = [code(value) for value in schema["enum"][:MOST_VALUES]]
        return Markup(" or ").join([*shown, *([Markup("…")] if len(schema["enum"]) > MOST_VALUES else [])])
    for form in FORMS:
        if form in schema and "properties" not in schema:
            return Markup(" or ").join(dict.fromkeys(kind_of(one, definitions, seen) for one in schema[form]))
    if isinstance(schema.get("type"), list) and "title" not in schema:
        return Markup(" or ").join(kind_of({**schema, "type": one}, definitions, seen) for one in schema["type"])
    return kind_of_type(schema, definitions, seen)


def kind_of_type(schema: Schema, definitions: Schema, seen: tuple[str, ...]) -> Markup:
    """Return what a value of one type may be."""
    kind = schema.get("type")
    if "properties" in schema and is_by_release(schema):
        return Markup('<a href="#{}">by release</a>').format(anchor(BY_RELEASE))
    items = schema.get("prefixItems", [schema.get("items") or {}])
    if "title" in schema and "$ref" not in items[0]:  # a link says more
        return escape(schema["title"])
    if kind == "array":
        return Markup("list of ") + Markup(", ").join(kind_of(one, definitions, seen) for one in items)
    if kind == "object":
        values = schema.get("additionalProperties")
        return Markup("mapping") + (Markup(" to ") + kind_of(values, definitions, seen) if values else "")
    return escape(NAMES.get(kind, kind) if isinstance(kind, str) else "anything")


def code(value: Any) -> Markup:
    words = {None: "null", True: "true", False: "false"}
    return Markup("<code>{}</code>").format(words[value] if value is None or isinstance(value, bool) else value)
