"""Tests of the schema checker, whose verdicts must be those of the `jsonschema` library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from loops import each
from places import ROOT

from conformance.language.errors import CaseFileError
from conformance.language.files import case_files
from conformance.language.schema import load_schema, problems_of
from conformance.language.yaml import Node, read_document, read_text
from language.snippets import MISTAKES

SCHEMAS = tuple(f"{name}.schema.json" for name in ("case", "rules", "known-issues", "renames", "modes"))
CASE_FILES = list(case_files([ROOT / "cases"]))
# What the loader refuses beyond JSON Schema, to which 1.0 is a whole number and which knows no NaN.
STRICTER = frozenset({"nan-tolerance"})
KEYWORDS = frozenset(
    """$schema $defs $ref title description type enum pattern minLength minimum maximum items minItems properties
    additionalProperties required minProperties anyOf oneOf examples""".split()
)
CASE_SCHEMA = load_schema("case.schema.json")


def documents(contents: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, Node]]:
    for name, content in contents:
        try:
            yield name, read_document(read_text(content, name), name)
        except CaseFileError:
            continue


def node_of(value: Any) -> Node:
    node = Node(value, 1, 1)
    if isinstance(value, dict):
        node.value = {key: node_of(inner) for key, inner in value.items()}
        node.keys = dict.fromkeys(value, (1, 1))
    elif isinstance(value, list):
        node.value = [node_of(inner) for inner in value]
    return node


def messages(value: Any, schema: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in sorted(problems_of(node_of(value), schema, "x"))]


def parts_of(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for name in ("$defs", "properties"):
        for part in schema.get(name, {}).values():
            yield from parts_of(part)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from parts_of(schema[name])
    for part in schema.get("anyOf", ()):
        yield from parts_of(part)


@each("name", SCHEMAS)
def test_a_shipped_schema_is_a_json_schema(name: str) -> None:
    Draft202012Validator.check_schema(load_schema(name))


@each("name", SCHEMAS)
def test_a_shipped_schema_uses_only_what_the_checker_knows(name: str) -> None:
    for part in parts_of(load_schema(name)):
        assert part.keys() <= KEYWORDS, part


@each("name", SCHEMAS)
def test_every_mapping_of_a_shipped_schema_is_closed(name: str) -> None:
    for part in parts_of(load_schema(name)):
        if part.get("type") == "object":
            assert part.get("additionalProperties") is not None, part


def test_each_key_of_the_case_language_says_what_it_is_for() -> None:
    keys = [item for part in every_part(CASE_SCHEMA) for item in part.get("properties", {}).items()]
    assert len(keys) > 90
    assert [name for name, part in keys if not part.get("description")] == []


def every_part(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield each mapping in a schema, the definitions among them."""
    if isinstance(schema, dict):
        yield schema
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from every_part(inner)


@pytest.mark.slow
def test_both_accept_the_cases_of_the_suite() -> None:
    read = dict(documents((path.name, path.read_bytes()) for path in CASE_FILES))
    assert len(read) == len(CASE_FILES) > 30
    for name, root in read.items():
        assert problems_of(root, CASE_SCHEMA, name) == []
        assert list(Draft202012Validator(CASE_SCHEMA).iter_errors(root.plain)) == [], name


@each("name", ["rules", "known-issues"])
def test_both_accept_the_lists_of_the_suite(name: str) -> None:
    schema = load_schema(f"{name}.schema.json")
    root = read_document((ROOT / "cases" / f"{name}.yaml").read_text(encoding="utf-8"), name)
    assert problems_of(root, schema, name) == []
    assert list(Draft202012Validator(schema).iter_errors(root.plain)) == []


def test_both_give_the_same_verdict_on_every_bad_case() -> None:
    validator = Draft202012Validator(CASE_SCHEMA)
    read = dict(documents((mistake.name, mistake.content) for mistake in MISTAKES))
    assert len(read) >= 50
    verdicts = {stem: bool(problems_of(root, CASE_SCHEMA, stem)) for stem, root in read.items()}
    expected = {stem: stem in STRICTER or not validator.is_valid(root.plain) for stem, root in read.items()}
    assert verdicts == expected
    assert len(set(verdicts.values())) == 2


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.5, "", " ", "a", "two words", "float32", "<2", "a.b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["torch", "value", "grad", "is_leaf", "rtol", "shape", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
CASE: dict[str, Any] = {"id": "one", "title": "A title", "why": "A reason", "rules": ["a.b"], "steps": ["a = 1"]}
VALID = Draft202012Validator(CASE_SCHEMA)


def agree(document: Any) -> None:
    assert bool(problems_of(node_of(document), CASE_SCHEMA, "x")) is not VALID.is_valid(document)


@given(VALUES)
def test_both_give_the_same_verdict_on_any_check(value: Any) -> None:
    agree({"topic": "T", "cases": [{**CASE, "steps": [{"expect": {"a": value, "log": []}}]}]})


@given(st.sampled_from(sorted(CASE_SCHEMA["$defs"]["checks"]["properties"])), VALUES)
def test_both_give_the_same_verdict_on_any_value_of_a_check(name: str, value: Any) -> None:
    agree({"topic": "T", "cases": [{**CASE, "steps": [{"expect": {"a": {name: value}}}]}]})


@given(st.sampled_from(["do", "raises", "warns", "torch", "expect", "log"]), VALUES)
def test_both_give_the_same_verdict_on_any_step(name: str, value: Any) -> None:
    agree(
        {
            "topic": "T",
            "cases": [{**CASE, "steps": [{name: value}, {"do": "a", name: value}, {"expect": {name: value}}]}],
        }
    )


@given(st.sampled_from([*CASE, "source", "torch", "dtypes", "devices", "colour"]), VALUES)
def test_both_give_the_same_verdict_on_any_field_of_a_case(name: str, value: Any) -> None:
    agree({"topic": "T", "cases": [{**CASE, name: value}]})


@given(VALUES)
def test_both_give_the_same_verdict_on_any_root(value: Any) -> None:
    agree(value)


def test_every_difference_is_reported_and_not_only_the_first() -> None:
    schema = {
        "type": "object",
        "required": ["a", "b"],
        "additionalProperties": False,
        "properties": {"c": {"type": "string"}},
    }
    assert messages({"c": 1, "d": 2}, schema) == [
        "x:1:1: the key 'a' is missing",
        "x:1:1: the key 'b' is missing",
        "x:1:1: c: expected text, got 1 (quote it)",
        "x:1:1: d: unknown key 'd' (it takes c)",
    ]


def test_a_mistake_is_reported_against_the_branch_that_was_meant() -> None:
    schema = {
        "anyOf": [
            {
                "type": "object",
                "required": ["do"],
                "additionalProperties": False,
                "properties": {"do": {"type": "string"}},
            },
            {"type": "object", "required": ["expect"], "properties": {"expect": {"type": "object"}}},
            {"type": "string"},
        ]
    }
    assert messages({"do": 1}, schema) == ["x:1:1: do: expected text, got 1 (quote it)"]
    assert messages({"expect": 1}, schema) == ["x:1:1: expect: expected a mapping, got 1"]
    assert messages({"expct": {}}, schema)[0].endswith("got a mapping with the keys expct (did you mean 'expect'?)")
    assert messages("text", schema) == []


@each(
    "schema, value, message",
    [
        (
            {"enum": ["float32", "float64"]},
            "float23",
            "expected one of float32, float64; got 'float23' (did you mean 'float32'?)",
        ),
        ({"type": "string", "pattern": "^a+$", "title": "only a"}, "ab", "expected only a, got 'ab'"),
        ({"type": "string", "minLength": 1}, "", "expected text that isn't empty, got ''"),
        ({"type": "number", "minimum": 0}, -1, "expected a number of at least 0, got -1"),
        ({"type": "number", "maximum": 9}, 10, "expected a number of at most 9, got 10"),
        ({"type": "array", "minItems": 1}, [], "expected a list of at least 1, got an empty list"),
        ({"type": "object", "minProperties": 1}, {}, "expected at least 1 key, got an empty mapping"),
        ({"type": ["string", "null"]}, True, "expected text or null, got true (quote it)"),
        ({"type": "integer"}, True, "expected a whole number, got true"),
        ({"type": "boolean"}, 0, "expected true or false, got 0 (write false)"),
    ],
)
def test_a_difference_says_what_was_expected_and_what_was_got(schema: dict[str, Any], value: Any, message: str) -> None:
    assert messages(value, schema) == [f"x:1:1: {message}"]


def test_a_path_leads_through_lists_and_mappings() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}
    assert messages({"a": [1, "b"]}, schema) == ["x:1:1: a[1]: expected a whole number, got 'b'"]


def test_a_schema_may_refer_to_itself() -> None:
    schema = {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
    assert messages([[], [[1]]], schema) == ["x:1:1: [1][0][0]: expected a list, got 1"]
