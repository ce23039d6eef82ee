"""Tests of reading YAML into values that remember where they stand."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from conformance.language.errors import CaseFileError, Problem
from conformance.language.yaml import MAX_BYTES, MAX_DEPTH, Node, content_of, read_document


def test_what_is_read_of_a_file_is_bounded_and_of_what_is_no_file_nothing(tmp_path: Path) -> None:
    large, pipe = tmp_path / "large", tmp_path / "pipe"
    with large.open("wb") as file:
        file.truncate(2**36)  # takes no room
    assert len(content_of(large)) == MAX_BYTES + 1
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match=r"it is no file|Is a directory"):
            content_of(path)


def problems_in(text: str) -> list[str]:
    with pytest.raises(CaseFileError) as caught:
        read_document(text, "x")
    return [str(problem) for problem in caught.value.problems]


def root_or_problems(text: str) -> tuple[Problem, ...]:
    """Return the problems of `text`, of which there is at least one unless it has a root."""
    try:
        root = read_document(text, "x")
    except CaseFileError as error:
        return error.problems or (Problem(file="x", line=0, column=0),)
    return () if isinstance(root, Node) else (Problem(file="x", line=0, column=0),)


@each(
    "text, value",
    [
        ("1", 1), ("-3", -3), ("+4", 4), ("007", 7), ("1.5", 1.5), ("-.5", -0.5), ("1.", 1.0), ("1e3", 1000.0),
        ("2E-1", 0.2), ("true", True), ("False", False), ("null", None), ("~", None), ("''", ""), ("'1'", "1"),
        ('"true"', "true"),
        ("yes", "yes"), ("on", "on"), ("1:30", "1:30"), ("0x10", "0x10"), ("1_000", "1_000"),
        ("2.1.0", "2.1.0"), ("-", None),
        ("1e", "1e"), ("2001-01-01", "2001-01-01"), (".inf", math.inf), ("-.inf", -math.inf), ("'~'", "~"),
        ("e5", "e5"),
    ],
)  # fmt: skip
def test_a_scalar_means_this(text: str, value: Any) -> None:
    read = read_document(f"key: {text}" if text != "-" else "key:", "x").plain["key"]
    assert read == value
    assert type(read) is type(value)


def test_nan_is_a_number() -> None:
    assert math.isnan(read_document(".nan", "x").plain)


def test_a_node_knows_where_it_and_its_keys_stand() -> None:
    root = read_document("topic: T\ncases:\n  - id: one\n    steps: [a, {do: b}]\n", "x")
    case = root.find("cases", 0)
    assert (root.line, root.column) == (1, 1)
    assert root.keys == {"topic": (1, 1), "cases": (2, 1)}
    assert (case.line, case.column) == (3, 5)
    assert case.keys == {"id": (3, 5), "steps": (4, 5)}
    step = root.find("cases", 0, "steps", 1, "do")
    assert (step.value, step.line, step.column) == ("b", 4, 21)


def test_find_stops_at_the_last_node_that_exists() -> None:
    root = read_document("a: [1, {b: 2}]", "x")
    assert root.find("a", 1, "b").value == 2
    assert root.find("a", 5) is root.value["a"]
    assert root.find("a", 0, "b").value == 1
    assert root.find("c", "d") is root


def test_a_node_knows_the_lines_of_all_that_it_holds() -> None:
    assert set(read_document("a: [1, {b: 2}]\nc:\n  d: x\n", "x").lines()) == {1, 2, 3}


def test_all_problems_of_a_document_are_told_at_once() -> None:
    lines = problems_in("a: &x 1\nb: *x\nc: !!int 1\na: 2\n5: 1\n")
    assert [line.split(": ")[0] for line in lines] == ["x:1:4", "x:2:4", "x:3:4", "x:4:1", "x:5:1"]


@each(
    "text, problem",
    [
        ("a: 1\n--- \nb: 2", "x:2:1: expected one document, got a second one (remove the line ---)"),
        ("a: 1\na: 2", "x:2:1: the key 'a' stands twice (first in line 1)"),
        ("null: 1", "x:1:1: expected text as the key, got nothing (null) (quote it)"),
        ("true: 1", "x:1:1: expected text as the key, got true (quote it)"),
        ("{a: 1}: 1", "x:1:1: expected text as the key, got a mapping with the keys a"),
        ("a: !x 1", "x:1:4: a tag (!x) is not part of the case language (remove it)"),
        ("a: !x {}", "x:1:4: a tag (!x) is not part of the case language (remove it)"),
        ("a: \u0007", "x:1:4: can't be read as YAML: the character U+0007 can't stand in it"),
        ("ok: 1\nb: \ufffe", "x:2:4: can't be read as YAML: the character U+FFFE can't stand in it"),
        (
            "ok: 1\nb: 'x\u2028'",
            "x:2:6: expected lines that end with a newline, got U+2028, at which YAML breaks them, too "
            "(no editor shows it as one; write it as an escape in double quotes, or break the line)",
        ),
    ],
)
def test_what_the_language_leaves_out_is_refused_with_its_place(text: str, problem: str) -> None:
    assert problems_in(text) == [problem]


@each("text", ["a: 1\nb: [1\nc: 2", "a: 1\nb: c: d", "a:\n- b\n  c: 1", "a: 1\n---\nb: 2", "a: \t1\n\tb: 2"])
def test_problems_are_in_the_same_places_however_lines_end(text: str) -> None:
    told = problems_in(text)
    assert told
    assert problems_in(text.replace("\n", "\r\n")) == problems_in(text.replace("\n", "\r")) == told


def test_an_escape_may_stand_for_any_end_of_a_line() -> None:
    assert read_document(r'a: "x\u2028\N\r"', "x").plain == {"a": "x\u2028\x85\r"}


def test_a_quoted_ampersand_and_star_are_text() -> None:
    assert read_document("['&a', \"*b\", a & b, a * b]", "x").plain == ["&a", "*b", "a & b", "a * b"]


def test_an_exclamation_mark_alone_makes_text() -> None:
    assert read_document("a: '!x'", "x").plain == {"a": "!x"}


@each("opening, closing", [("[", "]"), ("{a: ", "}")])
def test_nesting_has_a_limit_and_no_recursion(opening: str, closing: str) -> None:
    read_document(opening * MAX_DEPTH + "1" + closing * MAX_DEPTH, "x")
    assert "stand inside one another" in problems_in(opening * (MAX_DEPTH + 1) + "1" + closing * (MAX_DEPTH + 1))[-1]
    assert "stand inside one another" in problems_in(opening * 5_000)[-1]


def test_a_block_inside_a_list_remembers_how_far_it_is_indented() -> None:
    node = read_document("- a\n- |\n    b\n    c\n", "x").find(1)
    assert (node.style, node.indent, node.value) == ("|", 4, "b\nc\n")


def test_a_document_without_places_is_plain() -> None:
    root = read_document("a: [1, {b: null}]", "x")
    assert root.plain == {"a": [1, {"b": None}]}
    assert Node("text", 1, 1).plain == "text"


@given(st.text())
def test_any_text_is_a_document_or_a_list_of_problems(text: str) -> None:
    assert all(problem.line >= 1 and problem.column >= 1 for problem in root_or_problems(text))


SIGNS = [
    "- ",
    "a: ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "\n",
    "  ",
    "|",
    ">",
    "&a ",
    "*a",
    "!!x ",
    "1",
    "'",
    '"',
    "\t",
    "#",
    "---",
]


@given(st.lists(st.sampled_from(SIGNS)))
def test_any_heap_of_yaml_signs_is_a_document_or_a_list_of_problems(signs: list[str]) -> None:
    assert all(problem.line >= 1 and problem.column >= 1 for problem in root_or_problems("".join(signs)))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("abc:#'\"-[]{}&*!|> \n", max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~:1 ", max_size=4), inner, max_size=3),
        max_leaves=8,
    )
)
def test_json_is_read_as_it_stands(value: Any) -> None:
    assert read_document(json.dumps(value), "x").plain == value
