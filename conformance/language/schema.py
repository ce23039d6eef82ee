"""Validates a document against a JSON Schema, with messages for the author of the document.

The schemas are the published ones (`case.schema.json`, `rules.schema.json`), so that editors and the loader agree. Only
the keywords that these use are implemented; a test compares the verdicts with those of `jsonschema`. A branch of
`anyOf` is chosen by type and required keys, so that a mistake is reported against the branch that was meant.
"""

import json
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from conformance.language.errors import CaseFileError, Problem, did_you_mean, quoted_value
from conformance.language.yaml import Node

Reporter = Callable[..., None]  # of a place (a node, or line and column), path, message and, optionally, hint
Validator = Callable[[Node, str, Reporter], None]

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,),
    "number": (int, float), "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
MAPPING = "a mapping with "  # how the titles of branches begin
TYPE_NAMES = {
    "object": "a mapping", "array": "a list", "string": "text", "integer": "a whole number",
    "number": "a number", "boolean": "true or false", "null": "null",
}  # fmt: skip


def load_schema(name: str) -> dict[str, Any]:
    """Return one of the package's schemas, such as `case.schema.json`."""
    schema: dict[str, Any] = json.loads((files("conformance") / name).read_text(encoding="utf-8"))
    return schema


MOST_PROBLEMS = 500  # that are told of a file: the hint for each takes milliseconds


def problems_of(root: Node, schema: dict[str, Any], file: str) -> list[Problem]:
    """Return every difference between `root` and `schema`, in no particular order."""
    problems: list[Problem] = []
    validator_of(schema)(root, "", reporter(file, problems))
    return problems


def reporter(file: str, problems: list[Problem]) -> Reporter:
    """Return a function that adds a problem of `file` to `problems`."""

    def report(place: Node | tuple[int, int], path: str, message: str, hint: str = "") -> None:
        line, column = place if isinstance(place, tuple) else (place.line, place.column)
        problems.append(Problem(file=file, line=line, column=column, path=path, message=message, hint=hint))
        if len(problems) > MOST_PROBLEMS:
            message = f"there are more than {MOST_PROBLEMS} problems; the file is read no further"
            last = Problem(file=file, line=line, column=column, message=message)
            raise CaseFileError([*problems, last])

    return report


def validator_of(schema: dict[str, Any]) -> Validator:
    """Return a function that validates a node at a path, and passes each problem to a reporter."""
    validators: dict[int, Validator] = {}  # by the identity of the part, since a schema may refer to itself

    def resolved(part: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in part:
            part = schema["$defs"][part["$ref"].rpartition("/")[2]]
        return part

    def build(part: dict[str, Any]) -> Validator:
        part = resolved(part)
        key = id(part)
        if key not in validators:
            # Looked up at each call: a part that refers to itself needs a validator before there is one.
            validators[key] = lambda node, path, report: validators[key](node, path, report)  # noqa: PLW0108 - see above
            validators[key] = build_part(part)
        return validators[key]

    def build_part(part: dict[str, Any]) -> Validator:
        if "anyOf" in part:
            return any_of([(leaf, build(leaf)) for leaf in leaves(part)])
        types = types_of(part) if "type" in part else []
        steps: list[Validator] = []
        if "enum" in part:
            steps.append(enum(part["enum"]))
        if "pattern" in part or "minLength" in part:
            steps.append(pattern(part))
        if "minimum" in part:
            steps.append(minimum(part["minimum"]))
        if "items" in part or "minItems" in part:
            steps.append(items(part, build(part["items"]) if "items" in part else None))
        if "object" in types:
            properties = {name: build(value) for name, value in part.get("properties", {}).items()}
            other = part.get("additionalProperties", True)
            steps.append(mapping(part, properties, build(other) if isinstance(other, dict) else None))
        return typed(part, types, steps)

    def leaves(part: dict[str, Any]) -> list[dict[str, Any]]:
        part = resolved(part)
        return [leaf for branch in part["anyOf"] for leaf in leaves(branch)] if "anyOf" in part else [part]

    return build(schema)


def typed(part: dict[str, Any], types: list[str], steps: list[Validator]) -> Validator:
    accepted = {cls for name in types for cls in TYPES[name]}
    wanted = " or ".join(TYPE_NAMES[name] for name in types)

    def check(node: Node, path: str, report: Reporter) -> None:
        whole = "integer" in types and type(node.value) is float and node.value.is_integer()
        if accepted and type(node.value) not in accepted and not whole:
            hint = "quote it" if "string" in types and type(node.value) in (int, float, bool) else ""
            report(node, path, f"expected {part.get('title', wanted)}, got {quoted_value(node.plain)}", hint)
            return
        for step in steps:
            step(node, path, report)

    return check


def types_of(part: dict[str, Any]) -> list[str]:
    types: str | list[str] = part.get("type", list(TYPES))
    return [types] if isinstance(types, str) else types


def alternatives(names: list[str]) -> str:
    """Join what may stand in a place; of mappings that are known by one key, the keys alone are told apart."""
    keys = sorted(name.removeprefix(MAPPING) for name in names if name.startswith(MAPPING) and " and " not in name)
    others = [name for name in names if not name.startswith(MAPPING) or " and " in name]
    if keys:
        others.append(MAPPING + " or ".join(filter(None, [", ".join(keys[:-1]), keys[-1]])))
    return ", or ".join(others) if len(keys) > 1 else " or ".join(others)


def any_of(branches: list[tuple[dict[str, Any], Validator]]) -> Validator:
    """Choose the branch that a value was meant for: by type, then among mappings by required key."""
    mappings = [branch for branch, _ in branches if types_of(branch) == ["object"]]
    names = [branch.get("title", "") for branch in mappings]
    for branch, _ in branches:
        if branch not in mappings:
            names += [branch["title"]] if "title" in branch else [TYPE_NAMES[name] for name in types_of(branch)]
    wider = [name for name in names if name and not any(name in other and name != other for other in names)]
    wanted = alternatives(list(dict.fromkeys(reversed(wider))))

    choices = [
        (frozenset(cls for name in types_of(branch) for cls in TYPES[name]), branch.get("required", ()), inner)
        for branch, inner in branches
    ]

    def check(node: Node, path: str, report: Reporter) -> None:
        kind = type(node.value)
        for accepted, required, inner in choices:
            if kind in accepted and (kind is not dict or all(key in node.value for key in required)):
                inner(node, path, report)
                return
        keys = [key for branch in mappings for key in branch.get("required", ())]
        given = node.value if kind is dict else ()
        hint = next(filter(None, [did_you_mean(key, keys) for key in given]), "")
        if not all(key.isidentifier() for key in given):
            hint = "quote text that holds ': '"
        report(node, path, f"expected {wanted}, got {quoted_value(node.plain)}", hint)

    return check


def enum(choices: list[Any]) -> Validator:
    words = ", ".join(map(str, choices))

    def check(node: Node, path: str, report: Reporter) -> None:
        if node.value not in choices:
            hint = did_you_mean(node.value, map(str, choices)) if isinstance(node.value, str) else ""
            report(node, path, f"expected one of {words}; got {quoted_value(node.plain)}", hint)

    return check


def pattern(part: dict[str, Any]) -> Validator:
    expression = re.compile(re.sub(r"\$$", r"\\Z", part.get("pattern", "")))  # $ in a schema is the end
    wanted = part.get("title", "text that isn't empty")

    def check(node: Node, path: str, report: Reporter) -> None:
        if type(node.value) is str and not (node.value.strip() and expression.search(node.value)):
            report(node, path, f"expected {wanted}, got {quoted_value(node.value)}")

    return check


def minimum(least: int) -> Validator:
    def check(node: Node, path: str, report: Reporter) -> None:
        if type(node.value) in (int, float) and not node.value >= least:
            report(node, path, f"expected a number of at least {least}, got {quoted_value(node.value)}")

    return check


def items(part: dict[str, Any], inner: Validator | None) -> Validator:
    least = part.get("minItems", 0)

    def check(node: Node, path: str, report: Reporter) -> None:
        if type(node.value) is not list:
            return
        if len(node.value) < least:
            report(node, path, f"expected a list of at least {least}, got {quoted_value(node.plain)}")
        if inner is not None:
            for index, item in enumerate(node.value):
                inner(item, f"{path}[{index}]", report)

    return check


def mapping(part: dict[str, Any], properties: dict[str, Validator], other: Validator | None) -> Validator:
    required = part.get("required", [])
    closed = part.get("additionalProperties") is False
    least = part.get("minProperties", 0)
    either = [branch["required"][0] for branch in part.get("oneOf", ())]

    def check(node: Node, path: str, report: Reporter) -> None:
        value = node.value
        if type(value) is not dict:
            return
        for name, inner in value.items():
            below = f"{path}.{name}" if path else name
            known = properties.get(name)
            if known is not None:
                known(inner, below, report)
            elif closed:
                hint = did_you_mean(name, properties) or "it takes " + ", ".join(properties)
                report(node.keys[name], below, f"unknown key {quoted_value(name)}", hint)
            elif other is not None:
                other(inner, below, report)
        for name in required:
            if name not in value:
                report(node, path, f"the key {quoted_value(name)} is missing")
        there = [name for name in either if name in value]
        if either and not there:
            report(node, path, f"the key {' or '.join(map(quoted_value, either))} is missing")
        for name in there[1:]:
            below = f"{path}.{name}" if path else name
            report(node.keys[name], below, f"can't stand beside {quoted_value(there[0])}")
        if len(value) < least:
            report(node, path, f"expected at least {least} key{'s'[least == 1 :]}, got {quoted_value(node.plain)}")

    return check
