"""Tests of compact reports: what they keep, what they leave out, and where the words of their cases come from."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from loops import each
from samples import CPU, CUDA, any_report, case, failed, outcome, report, rule, valid_case

from conformance.language.schema import load_schema
from conformance.model.outcome import Issue, Retry
from conformance.model.report import Report
from conformance.render.page.matrix import matrix_of
from conformance.results.compact import Compact, CompactError, compact_of, filled, has_bare, report_of
from conformance.results.diff import compare
from conformance.results.store import ReportError, load_report, text_of

GOOD = outcome("pass", seconds=1.5)
KNOWN = failed(status="known", issue=Issue(status="fail", reason="A bug.", link="https://example.org/1"))
WHOLE = report(
    {
        ("a", CPU): GOOD, ("a", CUDA): failed(), ("b", CPU): KNOWN, ("b", CUDA): outcome("unsupported", reason="no"),
    },
    cases=[valid_case("a"), valid_case("b", line=30)], arguments=("--python", "/elsewhere/python"),
)  # fmt: skip

ELSEWHERE = report({}, torch="2.99.0")


def written(tmp_path: Path, made: Report) -> Path:
    path = tmp_path / "compact.json"
    path.write_text(text_of(compact_of(made)), encoding="utf-8")
    return path


def test_a_compact_report_says_what_each_case_did(tmp_path: Path) -> None:
    read = load_report(written(tmp_path, WHOLE))
    assert read.pairs == WHOLE.pairs
    assert [(each.case, each.target, each.status) for each in read.outcomes] == [
        (each.case, each.target, each.status) for each in WHOLE.outcomes
    ]
    assert read.outcomes[2].issue == KNOWN.issue
    assert read.footer == WHOLE.footer
    assert {record.id: record.digest for record in read.cases} == {record.id: record.digest for record in WHOLE.cases}
    difference = compare(WHOLE, read)
    assert (difference.changes, difference.unchanged) == ((), 4)


def test_it_fits_its_schema_and_says_nothing_of_the_machine(tmp_path: Path) -> None:
    text = written(tmp_path, WHOLE).read_text(encoding="utf-8")
    Draft202012Validator(load_schema("compact.schema.json")).validate(json.loads(text))
    for word in ("/elsewhere", "/torch", "/python", "AVX2", "seconds", '"yaml":'):
        assert word not in text
    assert '"a"' in text
    assert text.count('"case":"a","target":"cpu-float32"') == 0  # a pass isn't mentioned


def test_what_workers_printed_is_left_out_also_of_the_second_try(tmp_path: Path) -> None:
    printed = failed(stderr="File /elsewhere/one.py")
    tried_again = msgspec.structs.replace(printed, retry=Retry(status="fail", alone=printed))
    made = report({("a", CPU): tried_again}, cases=[valid_case("a")])
    kept = load_report(written(tmp_path, made)).outcomes[0]
    assert kept.retry is not None
    assert (kept.stderr, kept.retry.alone.stderr) == ("", "")
    assert "/elsewhere" not in (tmp_path / "compact.json").read_text(encoding="utf-8")


def test_its_words_come_from_a_report_that_has_the_case(tmp_path: Path) -> None:
    read = load_report(written(tmp_path, WHOLE))
    assert has_bare([read])
    (again, _) = filled([read, WHOLE])
    assert again.cases == WHOLE.cases
    assert again.rules == WHOLE.rules


def test_of_a_case_that_has_changed_the_words_are_said_but_not_the_text(tmp_path: Path) -> None:
    read = load_report(written(tmp_path, WHOLE))
    newer = report({("a", CPU): GOOD}, cases=[case("a", title="Newer words", digest="another", rules=("r.two",))])
    newer = msgspec.structs.replace(newer, rules={"r.two": rule("r.two")})
    (again, _) = filled([read, newer])
    record = again.cases[0]
    assert (record.title, record.digest, record.yaml) == ("Newer words", WHOLE.cases[0].digest, "")
    assert set(again.rules) == {"r.two"}
    assert compare(again, newer).counts["edited"] == 1


def test_of_two_revisions_the_page_shows_the_one_that_has_words(tmp_path: Path) -> None:
    newest = load_report(written(tmp_path, msgspec.structs.replace(WHOLE, header=ELSEWHERE.header)))
    own = report({("a", CPU): GOOD}, cases=[valid_case("a", digest="another")], torch="2.6.0")
    matrix = matrix_of(filled([newest, own]))
    assert [each.build.torch for each in matrix.reports] == ["2.6.0", "2.99.0"]
    assert next((record.id, record.digest) for record in matrix.cases) == ("a", "another")


def test_what_nobody_knows_keeps_its_id(tmp_path: Path) -> None:
    (again,) = filled([load_report(written(tmp_path, WHOLE))])
    assert [record.title for record in again.cases] == ["a", "b"]


def test_an_unfinished_report_stays_unfinished(tmp_path: Path) -> None:
    unfinished = report({("a", CPU): GOOD, ("b", CPU): None}, finished=False)
    read = load_report(written(tmp_path, unfinished))
    assert [each.case for each in read.outcomes] == ["a"]
    assert read.footer is None
    assert read.by_pair()["b", CPU].status == "not-run"


@given(any_report())
def test_what_can_be_made_compact_comes_back(made: Report) -> None:
    try:
        compact = compact_of(made)
    except CompactError:
        return
    read = report_of(msgspec.json.decode(msgspec.json.encode(compact), type=Compact)) if is_text(made) else None
    if read is not None:
        assert read.pairs == made.pairs
        assert {(each.case, each.target): each.status for each in read.outcomes} == {
            (each.case, each.target): each.status for each in made.outcomes
        }


def is_text(made: Report) -> bool:
    """Whether a report holds nothing that JSON in UTF-8 can't, such as half of a pair."""
    try:
        msgspec.json.encode(made)
    except UnicodeEncodeError:
        return False
    return True


@each(
    "made, message",
    [
        (report({("a", CPU): GOOD, ("b", CUDA): GOOD}), "it doesn't plan each case on each target"),
        (
            report(
                {("a", CPU): GOOD, ("b", CPU): GOOD, ("c", CPU): GOOD},
                cases=[case("a", file="x"), case("b", file="y"), case("c", file="x")],
            ),
            "the cases of a file don't stand together in it",
        ),
        (
            report({("a", CPU): GOOD, ("b", CPU): GOOD}, cases=[case("a"), case("b", topic="Other")]),
            "the cases of a file have several topics",
        ),
    ],
)
def test_what_has_no_compact_form_is_refused(made: Report, message: str) -> None:
    with pytest.raises(CompactError, match=message):
        compact_of(made)


@each(
    "change, message",
    [
        ({"compact": 2}, "compact: Invalid enum value 2"),
        ({"targets": [1]}, "targets[0]: Expected `str`, got `int`"),
        ({"more": 1}, "Object contains unknown field `more`"),
        ({"targets": [CPU, CPU]}, "plan[1]: a[cpu-float32] stands twice"),
        ({"outcomes": [{"case": "x", "target": CPU, "status": "fail"}]}, "x[cpu-float32] is not in the plan"),
        ({"outcomes": [{"case": "a", "target": CPU, "status": "fail"}] * 2}, "a[cpu-float32] has two outcomes"),
        ({"missing": [{"case": "x", "target": CPU}]}, "x[cpu-float32] is missing, and not in the plan"),
        ({"targets": [str(number) for number in range(1_001)]}, "it stands for more than 1,000 outcomes"),
    ],
)
def test_a_compact_report_is_read_with_suspicion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], message: str
) -> None:
    monkeypatch.setattr("conformance.results.compact.MOST_PAIRS", 1_000)
    path = written(tmp_path, report({("a", CPU): GOOD}))
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    with pytest.raises(ReportError) as error:
        load_report(path)
    assert message in str(error.value)
