"""Validates a document against a JSON Schema, with messages for the author of the document.

The schemas are the published ones (`case.schema.json`, `rules.schema.json`), so that editors and the loader agree. Only
the keywords that these use are implemented; a test compares the verdicts with those of `jsonschema`. A branch of
`anyOf` is chosen by type and required keys, so that a mistake is reported against the branch that was meant.
"""

import json
import re
from collections.abc import Callable, Iterable
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


TRUTHS = {**dict.fromkeys(("true", "yes", "on"), "true"), **dict.fromkeys(("false", "no", "off"), "false")}
NOTHINGS = dict.fromkeys(("none", "null", "nil"), "null")
LONGEST_SHOWN = 40  # characters of a value that a hint repeats
BARE = re.compile(r'"([\w][\w .()*-]*)"')  # text that YAML needs no quotes for
WORD = re.compile(r"\w+")
PLAIN_KEY = re.compile(r"[^(){}\[\]\n]*")
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
        if "maximum" in part:
            steps.append(maximum(part["maximum"]))
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
            hint = hint_for(node.value, types) or such_as(part) or quoting(node.value, types)
            report(node, path, f"expected {part.get('title', wanted)}, got {quoted_value(node.plain)}", hint)
            return
        for step in steps:
            step(node, path, report)

    return check


def hint_for(value: Any, types: Iterable[str]) -> str:
    """Return the hint for a value of another type than those that can stand in its place, or an empty string."""
    if "boolean" in types and value in (0, 1):
        return f"write {'true' if value else 'false'}"
    if not isinstance(value, str):
        return ""
    for name, words in (("boolean", TRUTHS), ("null", NOTHINGS)):
        if name in types and value.lower() in words:
            return f"write {words[value.lower()]}, without quotes"
    is_item = PLAIN_KEY.fullmatch(value) and len(value) < LONGEST_SHOWN and "string" not in types
    return f"write [{value}]" if "array" in types and is_item else ""


def quoting(value: Any, types: Iterable[str]) -> str:
    return "quote it" if "string" in types and type(value) in (int, float, bool) else ""


def such_as(part: dict[str, Any]) -> str:
    """Return the hint that shows what can stand in a place, or an empty string where the schema has no example."""
    example = json.dumps(part["examples"][0], ensure_ascii=False) if "examples" in part else ""
    return example and "such as " + BARE.sub(r"\1", example)


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
        (frozenset(cls for name in types_of(branch) for cls in TYPES[name]), branch, inner)
        for branch, inner in branches
    ]
    shown = [branch for branch, _ in branches if "examples" in branch]
    every = [name for branch, _ in branches for name in types_of(branch)]
    heads = {key: branch for branch in mappings for key in branch.get("required", ())}

    def check(node: Node, path: str, report: Reporter) -> None:
        kind = type(node.value)
        for accepted, branch, inner in choices:
            if kind not in accepted or (
                kind is dict and not all(key in node.value for key in branch.get("required", ()))
            ):
                continue
            others = (
                [key for key in heads if key in node.value and key not in branch["properties"]] if kind is dict else ()
            )
            for key in others:
                message = f"can't stand beside {quoted_value(branch['required'][0])}"
                report(node.keys[key], f"{path}.{key}", message, "begin an entry of its own with it")
            if not others:
                fallback = such_as(likeliest(shown, ())) if kind is str else ""
                inner(node, path, hinting(report, fallback) if fallback else report)
            return
        given = node.value if kind is dict else ()
        hint = next(filter(None, [did_you_mean(key, heads) for key in given]), "")
        if not all(key.isidentifier() for key in given):
            hint = "quote text that holds ': ', or write it in the lines below a |"
        hint = hint or hint_for(node.value, every) or such_as(likeliest(shown, given)) or quoting(node.value, every)
        report(node, path, f"expected {wanted}, got {quoted_value(node.plain)}", hint)

    return check


def likeliest(branches: list[dict[str, Any]], given: Iterable[str]) -> dict[str, Any]:
    """Return the branch that has most of the keys that are given, or the first."""
    keys = set(given)
    return max(branches, key=lambda branch: len(keys & branch.get("properties", {}).keys()), default={})


def hinting(report: Reporter, fallback: str) -> Reporter:
    """Return a reporter that gives a hint where there is none."""
    return lambda place, path, message, hint="": report(place, path, message, hint or fallback)


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
    types = types_of(part)

    def check(node: Node, path: str, report: Reporter) -> None:
        if type(node.value) is str and not (node.value.strip() and expression.search(node.value)):
            slug = "-".join(re.findall("[a-z0-9]+", node.value.lower()))
            words = [slug] if "(-" in part.get("pattern", "") else reversed(WORD.findall(node.value))
            near = next((word for word in words if expression.search(word) and len(node.value) < 2 * len(word)), "")
            hint = hint_for(node.value, types) or (f"did you mean {near!r}?" if near and "title" in part else "")
            report(node, path, f"expected {wanted}, got {quoted_value(node.value)}", hint)

    return check


def minimum(least: int) -> Validator:
    def check(node: Node, path: str, report: Reporter) -> None:
        if type(node.value) in (int, float) and not node.value >= least:
            report(node, path, f"expected a number of at least {least}, got {quoted_value(node.value)}")

    return check


def maximum(most: int) -> Validator:
    def check(node: Node, path: str, report: Reporter) -> None:
        if type(node.value) in (int, float) and node.value > most:
            report(node, path, f"expected a number of at most {most}, got {quoted_value(node.value)}")

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
    described = {name: inner.get("description", "") for name, inner in part.get("properties", {}).items()}
    belonging = {name: f"{text[:1].lower()}{text[1:]}".removesuffix(".") for name, text in described.items()}

    def check(node: Node, path: str, report: Reporter) -> None:
        value = node.value
        if type(value) is not dict:
            return
        for name, inner in value.items():
            below = f"{path}.{name}" if path else name
            known = properties.get(name)
            if known is not None:
                known(inner, below, report if inner.value is not None else hinting(report, belonging.get(name, "")))
            elif closed:
                report(
                    node.keys[name], below, f"unknown key {quoted_value(name)}", hint_for_key(name, path, properties)
                )
            elif other is not None:
                other(inner, below, report)
        for name in required:
            if name not in value:
                report(node, path, f"the key {quoted_value(name)} is missing", belonging.get(name, ""))
        there = [name for name in either if name in value]
        if either and not there:
            missing = " or ".join(map(quoted_value, either))
            report(node, path, f"the key {missing} is missing", belonging.get(either[0], ""))
        for name in there[1:]:
            below = f"{path}.{name}" if path else name
            report(node.keys[name], below, f"can't stand beside {quoted_value(there[0])}")
        if len(value) < least:
            report(node, path, f"expected at least {least} key{'s'[least == 1 :]}, got {quoted_value(node.plain)}")

    return check


def hint_for_key(name: str, path: str, known: Iterable[str]) -> str:
    """Return the hint for a key that can't stand at a path, where the `known` ones can."""
    near, around = did_you_mean(name, known), path.rpartition(".")[2]
    if around in known and not near:  # as in is_leaf: {a: true}
        return f"turn it round: {name}: {{{around}: …}}"
    if not PLAIN_KEY.fullmatch(name):
        return "quote text that holds a comma or a bracket"
    return near or "it takes " + ", ".join(known)
