"""How cases stood on each release, as published reports have it."""

from __future__ import annotations

from pathlib import Path

import msgspec
from generator.published import MIXED, columns_of, heaviest, in_words, issues_of, load_reports, spans_of, stretches_of
from loops import each
from samples import CPU, CUDA, case, failed, outcome, report

from conformance.model.build import BackEnd
from conformance.model.outcome import Issue, Outcome
from conformance.model.report import Report
from conformance.results.store import text_of

ISSUE = Issue(status="fail", reason="It rounds.", link="https://x")


def of(torch: str, first: Outcome) -> Report:
    return report({("a", CPU): first, ("a", CUDA): failed(), ("b", CPU): outcome("pass")}, torch=torch)


OLD = of("1.13.1+cu117", outcome("unsupported", reason="no a"))
MIDDLE = of("2.6.0+cpu", outcome("known", issue=ISSUE))
NEW = of("2.13.0", outcome("pass"))
COLUMNS = columns_of([OLD, MIDDLE, NEW])


def test_a_release_says_of_a_case_how_it_stood_on_the_cpu() -> None:
    assert [column.release for column in COLUMNS] == ["1.13.1", "2.6.0", "2.13.0"]
    assert [column.word("a", None) for column in COLUMNS] == ["not there", "known issue", "holds"]
    assert [column.word("b", "digest-b") for column in COLUMNS] == ["holds"] * 3


def test_another_revision_and_a_case_that_is_not_there_are_not_published() -> None:
    assert [column.word("b", "another") for column in COLUMNS] == ["not published"] * 3
    assert COLUMNS[0].word("c", None) == "not published"


def test_a_status_that_should_not_be_published_is_told_as_it_is() -> None:
    (column,) = columns_of([of("2.13.0", failed())])
    assert column.word("a", None) == "fail"


@each(
    "words, found",
    [
        (["holds", "not there"], "holds"), (["holds", "known issue"], "holds but for known issues"),
        (["known issue", "not there"], "known issue"), (["holds but for known issues", "known issue"], MIXED),
        (["known issue", "crash", "holds"], "crash"), (["not published", "not there"], "not there"),
        ([], "not published"),
    ],
)  # fmt: skip
def test_what_weighs_most_counts_of_several_cases(words: list[str], found: str) -> None:
    assert heaviest(words) == found


@each(
    "words, told",
    [
        ("holds holds holds", "holds on each of 3 builds"),
        ("known known holds", "1.13.1\N{EN DASH}2.6.0 known; 2.13.0\N{EN DASH} holds"),
        ("known holds known", "1.13.1 known; 2.6.0 holds; 2.13.0\N{EN DASH} known"),
    ],
)
def test_stretches_are_told_in_a_line(words: str, told: str) -> None:
    assert in_words(stretches_of(COLUMNS, words.split())) == told


def test_a_known_issue_is_told_once_with_its_releases() -> None:
    assert issues_of(COLUMNS, {"a": None, "b": None}) == [("2.6.0", "It rounds.", "https://x")]
    assert issues_of(COLUMNS, {"a": "another"}) == []
    assert spans_of(COLUMNS, {"1.13.1", "2.13.0"}) == "1.13.1, 2.13.0"


def test_reports_of_pytorch_alone_are_read_the_oldest_first(tmp_path: Path) -> None:
    with_back_end = msgspec.structs.replace(
        NEW.build, backends=(BackEnd(device="npu", modules=("torch_npu",), name="torch_npu"),)
    )
    header = msgspec.structs.replace(NEW.header, build=with_back_end)
    beside = msgspec.structs.replace(NEW, header=header)
    for name, made in {"a": NEW, "b": beside, "c": OLD}.items():
        (tmp_path / f"{name}.json").write_text(text_of(made), encoding="utf-8")
    assert [each.build.torch for each in load_reports(tmp_path)] == ["1.13.1+cu117", "2.13.0"]
    assert load_reports(tmp_path / "nowhere") == []


def test_digests_are_those_of_the_report() -> None:
    made = report({("a", CPU): outcome("pass")}, cases=[case("a", digest="other")])
    assert columns_of([made])[0].digests == {"a": "other"}
