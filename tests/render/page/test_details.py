"""Tests of the page of one case: outcomes and their lines, steps left out, and whose graph is shown."""

from __future__ import annotations

from typing import Any

import msgspec
from samples import CPU, CUDA, FAILURES, GRAPH, broken, outcome, report, suite_of, valid_case

from conformance.model.graph import Graph, GraphTensor
from conformance.model.outcome import Unobserved
from conformance.model.report import Report, StepRecord
from conformance.render.page.details import details_of
from conformance.render.page.matrix import matrix_of

GOOD = outcome("pass")
PAIR = ("a", CPU)
BY_VERSION = """\
  - id: a
    title: The case a
    why: To test.
    rules: [r.one]
    steps:
      - a = tensor([1.0], requires_grad=True)
      - when:
          torch: ">=2.6"
          steps:
            - b = a * 2
      - when:
          torch: "<2.1"
          steps:
            - |
              c = a * 3
      - expect: {a: [1.0]}
"""


def with_graph(made: Report, graph: Graph = GRAPH) -> Report:
    return msgspec.structs.replace(made, graphs={"a": graph})


def details(*reports: Report) -> dict[str, Any]:
    matrix = matrix_of(reports)
    return details_of(matrix, matrix.cases[0], None)


def test_a_pass_says_nothing_beyond_itself() -> None:
    shown = details(report({PAIR: GOOD, ("a", CUDA): GOOD}))
    assert (shown["outcomes"], shown["places"]) == ([], [])


def test_an_outcome_that_several_builds_share_is_listed_once() -> None:
    cases = [valid_case("a")]
    reports = [
        report({PAIR: broken(seconds=1.0), ("a", CUDA): broken(seconds=2.0)}, cases=cases, torch="2.0.0"),
        report({PAIR: GOOD, ("a", CUDA): outcome("not-run", reason="no cuda")}, cases=cases, torch="2.1.0"),
        report({PAIR: broken(), ("a", CUDA): broken("error")}, cases=cases, torch="2.2.0"),
    ]
    shown = details(*reports)
    assert [each["status"] for each in shown["outcomes"]] == ["fail", "not-run", "error"]
    assert shown["places"] == [
        [0, "float32", 0], [1, "float32", 0], [3, "float32", 1], [4, "float32", 0], [5, "float32", 2]
    ]  # fmt: skip
    assert not {"case", "target", "seconds"} & set(shown["outcomes"][0])


def test_lines_are_those_of_the_case_that_is_shown() -> None:
    failed = broken(traceback=((9, "<case>"), (10, "inner")))
    old = report({PAIR: failed}, cases=[valid_case("a", line=1)], torch="2.0.0")
    new = report({PAIR: GOOD}, cases=[valid_case("a", line=31)], torch="2.1.0")
    (shown,) = details(old, new)["outcomes"]
    assert shown["line"] == 39
    assert [each["line"] for each in shown["failures"]] == [each.line + 30 for each in FAILURES]
    assert shown["traceback"] == ((39, "<case>"), (40, "inner"))
    (unmoved,) = details(old)["outcomes"]
    assert unmoved["line"] == 9
    assert [each["line"] for each in unmoved["failures"]] == [each.line for each in FAILURES]


def test_outcomes_that_differ_in_nothing_but_their_place_are_one() -> None:
    moved = broken(line=19, failures=tuple(msgspec.structs.replace(each, line=each.line + 10) for each in FAILURES))
    old = report({PAIR: moved}, cases=[valid_case("a", line=11)], torch="2.0.0")
    new = report({PAIR: broken()}, cases=[valid_case("a", line=1)], torch="2.1.0")
    shown = details(old, new)
    assert len(shown["outcomes"]) == 1
    assert shown["places"] == [[0, "float32", 0], [1, "float32", 0]]


def test_an_outcome_without_a_line_gets_none() -> None:
    old = report({PAIR: outcome("crash", reason="SIGSEGV")}, cases=[valid_case("a")], torch="2.0.0")
    new = report({PAIR: GOOD}, cases=[valid_case("a", line=31)], torch="2.1.0")
    assert details(old, new)["outcomes"] == [{"status": "crash", "reason": "SIGSEGV"}]


def test_steps_of_other_releases_are_left_out_by_the_line_of_the_text() -> None:
    for line in (1, 2, 70, 10**6):
        record = valid_case("a", yaml=BY_VERSION, line=line)
        reports = [
            report({PAIR: GOOD}, cases=[record], torch=torch) for torch in ("unheard of", "2.0.1", "2.5.0", "2.6.0")
        ]
        shown = details(*reports)
        assert shown["left_out"] == [(9, [0, 1, 2]), (13, [0, 2, 3])], line
        assert shown["steps"] == [5, 9, 13, 15], line


def test_lines_that_do_not_tell_steps_apart_are_not_shown_as_steps() -> None:
    record = valid_case("a", line=30)
    for lines in ((1, 35), (35, 33), (33, 33), (33, 10**9)):
        steps = tuple(StepRecord(line=line, kind="do") for line in lines)
        made = report({PAIR: GOOD}, cases=[msgspec.structs.replace(record, steps=steps)])
        assert details(made)["steps"] == [], lines


def test_where_steps_stand_is_not_read_out_of_the_text() -> None:
    record = msgspec.structs.replace(valid_case("a", yaml=BY_VERSION), steps=())
    shown = details(report({PAIR: GOOD}, cases=[record], torch="2.0.0"))
    assert (shown["steps"], shown["left_out"]) == ([], [])


def test_a_text_that_is_no_case_leaves_nothing_out_and_has_no_script() -> None:
    shown = details(report({PAIR: GOOD}, cases=[valid_case("a", yaml="not a case")]))
    assert shown["left_out"] == []
    assert shown["script"] is None
    assert shown["yaml"] == "not a case"


def test_a_script_is_the_names_of_its_parts_and_the_text_of_its_own() -> None:
    record = valid_case("a")
    made = report({PAIR: GOOD}, cases=[record])
    (script,) = suite_of(made).values()
    assert script is not None
    parts, body = details_of(matrix_of([made]), record, script)["script"]
    assert parts == script.parts
    assert body == script.body


def test_the_graph_is_of_the_newest_build_that_has_one_of_this_revision() -> None:
    cases = [valid_case("a")]
    other = msgspec.structs.replace(GRAPH, target=CUDA)
    old = with_graph(report({PAIR: GOOD}, cases=cases, torch="2.0.0"))
    middle = with_graph(report({PAIR: GOOD}, cases=cases, torch="2.1.0"), other)
    new = report({PAIR: GOOD}, cases=cases, torch="2.2.0")
    graph = details(new, old, middle)["graph"]
    assert (graph["build"], graph["target"]) == (1, CUDA)
    assert len(graph["boxes"]) == 4


def test_the_graph_of_another_revision_is_not_shown() -> None:
    new = report({PAIR: GOOD}, cases=[valid_case("a", digest="new")], torch="2.1.0")
    old = with_graph(report({PAIR: GOOD}, cases=[valid_case("a", digest="old")], torch="2.0.0"))
    assert details(old, new)["graph"] is None
    assert details(old)["graph"] is not None


def test_a_graph_that_is_empty_or_too_large_is_none() -> None:
    made = report({PAIR: GOOD}, cases=[valid_case("a")])
    for tensors in ((), (GraphTensor(shape=(1,)),) * 500):
        assert details(with_graph(made, Graph(target=CPU, tensors=tensors, nodes=())))["graph"] is None


def test_a_pass_of_which_something_was_left_out_says_what() -> None:
    hidden = Unobserved(line=6, path="a.stride", reason="npu keeps no strides")
    cases = [valid_case("a")]
    matrix = matrix_of([report({PAIR: outcome("pass", unobserved=(hidden,)), ("a", CUDA): GOOD}, cases=cases)])
    details = details_of(matrix, matrix.cases[0], None)
    assert [list(each["unobserved"]) for each in details["outcomes"]] == [
        [{"line": 6, "path": "a.stride", "reason": "npu keeps no strides"}]
    ]
    assert details["places"] == [[0, "float32", 0]]
