"""Tests of the JSON report: what is written can be read, and what doesn't hold together can't."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from loops import each
from samples import CPU, CUDA, HOSTILE, any_report, case, failed, outcome, report

from conformance.language.schema import load_schema
from conformance.model.case import Case
from conformance.model.graph import Graph, GraphEdge, GraphNode, GraphTensor, SavedTensor
from conformance.model.outcome import Outcome
from conformance.model.report import Report, case_record, cited_rules, set_digest
from conformance.model.rule import Level, Rule
from conformance.results.merge import merge_shards
from conformance.results.store import ReportError, load_report, text_of, write_whole
from conformance.results.update import updated

TENSOR = GraphTensor(
    name="a", line=3, shape=(2, 3), is_leaf=True, requires_grad=True, retains_grad=False, has_grad=True,
    accumulates=True, node=None, output_nr=0, shares_storage=None,
)  # fmt: skip
NODE = GraphNode(
    name="MulBackward0", next=(GraphEdge(node=None, tensor=0), None), saved=(SavedTensor(name="self", tensor=0),)
)
GRAPH = Graph(target=CPU, tensors=(TENSOR,), nodes=(NODE,), cut=True)
FULL = report(
    {("a", CPU): outcome("pass", seconds=0.5), ("a", CUDA): failed(traceback=((11, "<step>"), (12, "hook")))},
    cases=[case("a", source=("x.txt",)), case("b")],
)
FULL = Report(**{**{name: getattr(FULL, name) for name in FULL.__struct_fields__}, "graphs": {"a": GRAPH}})
CONTENT: dict[str, Any] = json.loads(text_of(FULL))
VALIDATOR = Draft202012Validator(load_schema("report.schema.json"))


def refusal(path: Path, content: bytes | str | dict[str, Any]) -> str:
    """Return why a file with `content` is refused, without its name."""
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ReportError) as caught:
        load_report(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    return text.removeprefix(f"{path}: ")


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    content = copy.deepcopy(CONTENT)
    change(content)
    return content


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.json"


def test_a_report_comes_back_from_its_text(path: Path) -> None:
    write_whole(path, text_of(FULL))
    assert load_report(path) == FULL
    assert text_of(load_report(path)) == text_of(FULL)
    VALIDATOR.validate(CONTENT)


@given(any_report())
def test_any_report_comes_back_from_its_text_and_fits_its_schema(tmp_path_factory: Any, made: Report) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    write_whole(path, text_of(made))
    assert load_report(path) == made
    assert text_of(load_report(path)) == path.read_text(encoding="utf-8")
    VALIDATOR.validate(json.loads(text_of(made)))


def test_a_finished_report_is_written_with_its_causes_which_are_not_read_back(path: Path) -> None:
    made = report({("a", CPU): failed("x.version", "1", "0"), ("b", CPU): outcome("unsupported", reason="no [1]")})
    content = json.loads(text_of(made))
    assert [(each["signatures"], each["counts"], each["case"], each["cases"]) for each in content["causes"]] == [
        (["version: too low"], {"fail": 1}, "a", ["a"]), (["no […]"], {"unsupported": 1}, "b", ["b"]),
    ]  # fmt: skip
    VALIDATOR.validate(content)
    content["causes"][0].update(signatures=["something else"], case="z")
    path.write_text(json.dumps(content))
    assert load_report(path) == made
    assert text_of(load_report(path)) == text_of(made)
    assert "causes" not in json.loads(text_of(msgspec.structs.replace(made, footer=None)))


def test_a_report_from_before_there_were_causes_is_read(path: Path) -> None:
    path.write_text(json.dumps({key: value for key, value in CONTENT.items() if key != "causes"}))
    assert "causes" in CONTENT
    assert load_report(path) == FULL


def test_what_several_runs_found_has_causes_of_its_own() -> None:
    whole = report({(name, CPU): failed("x.version", "1", "0") for name in "abc"})
    part = report({("a", CPU): outcome("pass"), ("b", CPU): outcome("timeout")})
    both = json.loads(text_of(updated(whole, part, ())))
    assert [(each["counts"], each["cases"]) for each in both["causes"]] == [
        ({"timeout": 1}, ["b"]),
        ({"fail": 1}, ["c"]),
    ]
    shards = [(name, report({(name, CPU): failed("x.version", "1", "0")})) for name in "ab"]
    (cause,) = json.loads(text_of(merge_shards(shards).report))["causes"]
    assert cause["counts"] == {"fail": 2}


def test_a_report_has_a_line_for_each_entry() -> None:
    text = text_of(report({("a", CPU): outcome("error", reason=HOSTILE), ("b", CPU): outcome("pass")}))
    text.encode()
    entries = [json.loads(line.rstrip(",")) for line in text.split("\n") if line.startswith('{"')]
    assert [entry.get("reason") for entry in entries if "status" in entry] == [HOSTILE, None]


def test_lone_surrogates_are_accepted_as_python_reads_them(path: Path) -> None:
    write_whole(path, text_of(report({("a", CPU): outcome("error", reason="\ud800")})))
    assert load_report(path).outcomes[0].reason == "\ud800"


def test_what_has_no_outcome_was_not_run() -> None:
    made = report({("a", CPU): outcome("pass"), ("b", CPU): None, ("b", CUDA): None}, finished=False)
    assert [known.status for known in made.by_pair().values()] == ["pass", "not-run", "not-run"]
    assert made.counts() == {CPU: {"pass": 1, "not-run": 1}, CUDA: {"not-run": 1}}
    assert made.targets == [CPU, CUDA]


@each(
    "content, message",
    [
        (b"", "can't be read as a report: Expecting value: line 1 column 1 (char 0); is it cut off?"),
        (b"{", "can't be read as a report: "),
        (b"\xff\xfe", "can't be read as a report: 'utf-8' codec can't decode byte 0xff"),
        (b"\xef\xbb\xbf{}", "can't be read as a report: "),
        (b"[" * 100_000, "can't be read as a report: "),
        (b'{"format": ' + b'{"a": ' * 100_000, "can't be read as a report: "),
        (b'{"format": 1' + b"0" * 5000 + b"}", "can't be read as a report: "),
        (b"[]", "not a report: no format number"),
        (b"null", "not a report: no format number"),
        (b"{}", "not a report: no format number"),
        (b'"format"', "not a report: no format number"),
        (b'{"format": 3}', "format 3, expected 2, or 1, which came before it"),
        (b'{"format": 0}', "format 0, expected 2"),
        (b'{"format": 2.0}', "format 2.0, expected 2"),
        (b'{"format": true}', "format True, expected 2"),
        (b'{"format": "1"}', "format '1', expected 2"),
        (b'{"format": 1}', "the report: Object missing required field `header`"),
    ],
)
def test_a_file_that_is_no_report_is_refused_with_its_name(path: Path, content: bytes, message: str) -> None:
    assert refusal(path, content).startswith(message)


def test_a_report_that_is_not_there_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"missing\.json: can't be read: No such file or directory"):
        load_report(tmp_path / "missing.json")
    with pytest.raises(ReportError, match="can't be read: Is a directory"):
        load_report(tmp_path)


def test_a_file_that_is_cut_off_anywhere_is_refused(path: Path) -> None:
    whole = text_of(FULL).encode()
    for length in range(0, len(whole) - 2, 7):
        assert "is it cut off?" in refusal(path, whole[:length])


@each(
    "change, message",
    [
        (lambda report: report.update(extra=1), "the report: Object contains unknown field `extra`"),
        (lambda report: report["header"].pop("build"), "header: Object missing required field `build`"),
        (lambda report: report["header"]["build"].update(torch=2), "header.build.torch: Expected `str`, got `int`"),
        (lambda report: report["header"]["build"].update(extra=2), "header.build: Object contains unknown field"),
        (lambda report: report["header"]["suite"].update(commit=1), "header.suite.commit: Expected `str | null`"),
        (lambda report: report["rules"]["r.one"].update(level="x"), "rules[...].level: Invalid enum value 'x'"),
        (lambda report: report.update(cases={}), "cases: Expected `array`, got `object`"),
        (lambda report: report["cases"][1].update(line=0), "cases[1].line: Expected `int` >= 1"),
        (lambda report: report["cases"][0].update(rules=[1]), "cases[0].rules[0]: Expected `str`, got `int`"),
        (lambda report: report["plan"][1].update(target=None), "plan[1].target: Expected `str`, got `null`"),
        (lambda report: report["outcomes"][0].update(status="ok"), "outcomes[0].status: Invalid enum value 'ok'"),
        (lambda report: report["outcomes"][0].update(seconds=-1), "outcomes[0].seconds: Expected `float` >= 0"),
        (lambda report: report["outcomes"][0].update(seconds="1"), "outcomes[0].seconds: Expected `float`, got `str`"),
        (
            lambda report: report["outcomes"][0].update(seconds=True),
            "outcomes[0].seconds: Expected `float`, got `bool`",
        ),
        (lambda report: report["outcomes"][1].update(step=-1), "outcomes[1].step: Expected `int` >= 0"),
        (
            lambda report: report["outcomes"][1]["failures"][0].pop("path"),
            "outcomes[1].failures[0]: Object missing required field `path`",
        ),
        (lambda report: report["outcomes"][1].update(traceback=[[1]]), "outcomes[1].traceback[0]: Expected `array`"),
        (lambda report: report["graphs"]["a"]["tensors"][0].update(node=-1), "graphs[...].tensors[0].node: Expected"),
        (lambda report: report["graphs"]["a"]["tensors"][0].update(shape=["x"]), "graphs[...].tensors[0].shape[0]: "),
        (lambda report: report["graphs"]["a"]["nodes"][0].update(next=[3]), "graphs[...].nodes[0].next[0]: Expected"),
        (lambda report: report["footer"].update(counts={"ok": 1}), "footer.counts: Invalid enum value 'ok'"),
        (lambda report: report["footer"].update(counts={"pass": 0}), "footer.counts[...]: Expected `int` >= 1"),
        (lambda report: report["footer"].update(exit_status=1.5), "footer.exit_status: Expected `int`, got `float`"),
        (lambda report: report.update(footer=[]), "footer: Expected `object"),
    ],
)
def test_what_has_the_wrong_type_is_refused_with_its_place(
    path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    assert refusal(path, changed(change)).startswith(message)


@each("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_seconds_are_a_number(path: Path, value: str) -> None:
    text = json.dumps(CONTENT).replace('"seconds": 0.5', f'"seconds": {value}')
    assert value in text
    refusal(path, text)


@each(
    "change, message",
    [
        (lambda report: report["cases"].append(report["cases"][0]), "cases[2]: a stands twice"),
        (lambda report: report["plan"].append(report["plan"][0]), "plan[2]: a[cpu-float32] stands twice"),
        (lambda report: report["outcomes"].append(report["outcomes"][1]), "outcomes[2]: a[cuda-float32] stands twice"),
        (lambda report: report["plan"][0].update(case="z"), "plan[0]: no case 'z' among the cases"),
        (lambda report: report["plan"].pop(), "outcomes[1]: a[cuda-float32] is not in the plan"),
        (lambda report: report["outcomes"][0].update(target="x"), "outcomes[0]: a[x] is not in the plan"),
        (lambda report: report["cases"][1].update(rules=["z"]), "cases[1]: no rule 'z' among the rules"),
        (lambda report: report["outcomes"][1].update(run=1), "outcomes[1].run: no run 1 among the partial runs"),
    ],
)
def test_what_does_not_hold_together_is_refused_with_its_place(
    path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    content = changed(change)
    VALIDATOR.validate(content)
    assert refusal(path, content) == message


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path to each value inside of `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


PLACES = [place for place in places(CONTENT) if place]
# Not 2.0, which a schema counts among the integers.
ODD = [None, True, 0, -1, 1.5, 10**30, "", "x", "pass", [], [0], {}, {"x": 1}, "\ud800"]


@pytest.mark.slow
@settings(max_examples=800)
@given(st.sampled_from(PLACES), st.sampled_from(["replace", "remove", "add"]), st.sampled_from(ODD))
def test_what_the_schema_refuses_is_refused_and_the_rest_only_where_it_does_not_hold_together(
    tmp_path_factory: Any, place: tuple[Any, ...], what: str, value: Any
) -> None:
    content = copy.deepcopy(CONTENT)
    inner: Any = content
    for key in place[:-1]:
        inner = inner[key]
    if what == "remove":
        del inner[place[-1]]
    elif what == "add" and isinstance(inner, dict):
        inner["another"] = value
    else:
        inner[place[-1]] = value
    path = tmp_path_factory.getbasetemp() / "odd.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    together = ("stands twice", "is not in the plan", "among the cases", "among the rules", "among the partial runs")
    refused = why_refused(path)
    if VALIDATOR.is_valid(content):
        assert not refused or refused.endswith(together)
    else:
        assert refused


def why_refused(path: Path) -> str:
    try:
        load_report(path)
    except ReportError as error:
        return str(error)
    return ""


def rule(name: str, level: Level) -> Rule:
    return Rule(id=name, text="A rule.", topic="Rules", level=level, link="https://example.org", since="1.13")


DOCUMENTED, OBSERVED = rule("a.b", "documented"), rule("a.c", "observed")
CASE = Case(
    file="x.yaml", line=3, topic="T", id="one", title="A", why="W", rules=("a.c", "a.b"), source=("s",),
    steps=(), text="- id: one\n", digest="0123",
)  # fmt: skip


def test_a_case_record_holds_its_level_and_text() -> None:
    record = case_record(CASE, {"a.b": DOCUMENTED, "a.c": OBSERVED})
    assert (record.level, record.rules, record.yaml) == ("observed", ("a.c", "a.b"), "- id: one\n")


def test_only_the_rules_that_are_cited_stand_in_a_report_in_order() -> None:
    rules = {"a.d": rule("a.d", "documented"), "a.c": OBSERVED, "a.b": DOCUMENTED}
    assert list(cited_rules(rules, [CASE])) == ["a.b", "a.c"]


def test_the_digest_of_a_set_does_not_depend_on_its_order() -> None:
    assert set_digest([("a", "1"), ("b", "2")]) == set_digest([("b", "2"), ("a", "1")])
    assert set_digest([("a", "1"), ("b", "2")]) != set_digest([("a", "1"), ("b", "3")])
    assert len(set_digest([("\ud800", "1")])) == 16


def test_a_file_is_written_whole_and_can_be_read_by_others(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "x.json"
    write_whole(path, "ö")
    write_whole(path, "öö")
    assert path.read_text(encoding="utf-8") == "öö"
    assert path.stat().st_mode & 0o777 == 0o644
    assert len(list(path.parent.iterdir())) == 1


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    write_whole(path, "old")

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        write_whole(path, "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]
    assert path.read_text(encoding="utf-8") == "old"


def test_an_outcome_in_a_report_says_whose_it_is() -> None:
    assert FULL.outcomes[0] == Outcome(case="a", target=CPU, status="pass", seconds=0.5)


def test_what_is_there_and_is_no_file_stays(tmp_path: Path) -> None:
    """In the place of /dev/null root would find a file from then on."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    stream = tmp_path / "stream"
    with (tmp_path / "output").open("w") as output:
        stream.symlink_to(f"/proc/self/fd/{output.fileno()}")  # as /dev/stdout is one
        for path in (pipe, link, stream):
            with pytest.raises(OSError, match="what is there is no file"):
                write_whole(path, "text")
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert stream.is_symlink()
    assert len(list(tmp_path.iterdir())) == 4


def test_what_is_no_file_or_too_large_is_no_report_and_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for place in (tmp_path / "pipe.json", tmp_path):
        with pytest.raises(ReportError, match="can't be read: "):
            load_report(place)
    write_whole(tmp_path / "x.json", text_of(FULL))
    monkeypatch.setattr("conformance.results.store.LONGEST_REPORT", (tmp_path / "x.json").stat().st_size - 1)
    with pytest.raises(ReportError, match="the most of a report"):
        load_report(tmp_path / "x.json")


def test_a_deeply_nested_text_is_no_report(tmp_path: Path) -> None:
    for text in ("[" * 100_000, '{"format": 2, "a": ' + "[" * 100_000, '{"format": 2, "graphs": ' + '{"a":' * 50_000):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(ReportError):
            load_report(tmp_path / "x.json")


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:7]))
    write_whole(tmp_path / "x.json", text_of(FULL), is_durable=True)
    assert load_report(tmp_path / "x.json") == FULL
