"""How a mistake is told: place, path, message and hint, in the order of the file, each once."""

from __future__ import annotations

from loops import each

from conformance.language.errors import CaseFileError, Problem, did_you_mean, quoted_value


def problem(line: int, column: int = 1, **more: str) -> Problem:
    return Problem(file="x.yaml", line=line, column=column, **more)


def test_a_problem_names_its_place_its_path_and_a_hint() -> None:
    whole = problem(3, 7, path="expect.a", message="expected true", hint="did you mean it?")
    assert str(whole) == "x.yaml:3:7: expect.a: expected true (did you mean it?)"
    assert str(problem(1, message="expected a mapping")) == "x.yaml:1:1: expected a mapping"


def test_the_problems_of_a_file_come_in_order_and_each_once() -> None:
    error = CaseFileError([problem(10, message="c"), problem(9, 20, message="b"), problem(9, 3, message="a")] * 2)
    assert str(error).splitlines() == ["x.yaml:9:3: a", "x.yaml:9:20: b", "x.yaml:10:1: c"]


def test_the_nearest_word_is_proposed_and_a_far_one_is_not() -> None:
    assert did_you_mean("is_leef", ["is_leaf", "grad"]) == "did you mean 'is_leaf'?"
    assert did_you_mean("colour", ["is_leaf", "grad"]) == ""


@each(
    "value, text",
    [
        (None, "nothing (null)"), (True, "true"), (False, "false"), (1, "1"), ("a", "'a'"), ([], "an empty list"),
        ([None, None], "a list of 2"), ({}, "an empty mapping"), ({"a": 1, 2: 3}, "a mapping with the keys a, 2"),
        ("x" * 100, "'" + "x" * 58 + "…"),
    ],
)  # fmt: skip
def test_a_value_is_quoted_in_the_words_of_a_case_file(value: object, text: str) -> None:
    assert quoted_value(value) == text
