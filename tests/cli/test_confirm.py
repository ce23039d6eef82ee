"""Confirming a draft: what is accepted, refused, taken out and kept."""

from __future__ import annotations

from pathlib import Path

import forks
import pytest

from cli.drafts import confirmed, told
from conformance.cli import confirm
from conformance.cli.main import main
from conformance.language.files import load_cases
from conformance.language.yaml import read_document

DRAFT = """\
# A comment at the top.
topic: T
cases:
  - id: first
    title: ?
    why: {unconfirmed: It is so.}
    rules: {unconfirmed: [bwd.accumulates]}
    steps:
      - x = tensor([0.5, 2.0], requires_grad=True)
      - x.exp().sum().backward()
      - expect: {x: {grad: {unconfirmed: [1.648721, 7.389056]}, is_leaf: {unconfirmed: true}}}
      - do: x.add_(1)
        raises: {unconfirmed: {type: RuntimeError, match: a leaf Variable}}
      - expect: {x: {version: ?}}
  # A comment between two cases.
  - id: second
    title: T
    why: W
    rules: [bwd.accumulates]
    steps: ["y = ones(1)  # a comment of its own", expect: {y: {value: {unconfirmed: [1.0]}}}]
"""
WORDS = ("A title", "a", "a")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "draft.yaml").write_text(DRAFT, encoding="utf-8")
    return tmp_path


def test_a_draft_that_is_confirmed_loads_and_passes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert confirmed(place, *WORDS, "exp(x)", "a", "a", "0", "1") == 0
    assert "all is confirmed; 2 of 2 cases pass" in told(capsys)
    first, second = load_cases([place / "draft.yaml"])
    assert (first.title, first.why, first.rules) == ("A title", "It is so.", ("bwd.accumulates",))
    assert first.steps[2]["expect"][0]["checks"][0][1] == {"expr": "exp(x)"}
    assert second.steps[1]["expect"][0]["checks"][0][1] == 1
    text = (place / "draft.yaml").read_text(encoding="utf-8")
    assert "# A comment at the top." in text
    assert "# A comment between two cases." in text


def test_what_is_asked_is_told_with_where_it_stands(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert confirmed(place, *WORDS) == 1
    said = told(capsys)
    assert "draft.yaml:7: first\n  rules: \n    bwd.accumulates: " in said
    assert "draft.yaml:11: first  after x.exp().sum().backward()\n  x.grad: [1.648721, 7.389056]" in said
    assert "draft.yaml: kept; `confirm` goes on where you stopped" in said


def refused(place: Path, capsys: pytest.CaptureFixture[str], *answers: str) -> str:
    assert confirmed(place, *answers) == 2
    return told(capsys).partition("error: ")[2]


def test_a_number_can_not_be_accepted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(place, capsys, *WORDS, "a")
    assert said.startswith(
        "draft.yaml:11: a number that was computed needs a derivation: an expression, or the numbers"
    )


def test_a_formula_that_gives_something_else_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(place, capsys, *WORDS, "exp(x) + 1")
    assert (
        "that does not hold: x.grad: expected [2.648721, 8.389056] (exp(x) + 1), observed [1.648721, 7.389056]" in said
    )


def test_numbers_that_are_worked_out_are_taken_and_others_are_not(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "that does not hold" in refused(place, capsys, *WORDS, "[1.65, 7.39]")
    assert confirmed(place, "[1.6487213, 7.389056]") == 1
    case = read_document((place / "draft.yaml").read_text(encoding="utf-8"), "").plain["cases"][0]
    assert case["steps"][2]["expect"]["x"] == {"grad": [1.6487213, 7.389056], "is_leaf": {"unconfirmed": True}}


def test_what_is_no_expression_or_rule_or_is_not_there_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "there is nothing to accept" in refused(place, capsys, "a")
    assert "there is no rule no.such" in refused(place, capsys, "A title", "a", "no.such")
    assert "a case needs its rules" in refused(place, capsys, "r")
    assert "unknown name 'expp' (did you mean 'exp'?)" in refused(place, capsys, "a", "expp(x)")
    assert "is compared with itself" in refused(place, capsys, "x.grad")


def test_what_is_rejected_is_taken_out(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert confirmed(place, *WORDS, "r", "a", "a", "r", "r") == 0
    assert "second: expects nothing any more, and is taken out" in told(capsys)
    (case,) = load_cases([place / "draft.yaml"])
    assert [check[0] for step in case.steps if "expect" in step for check in step["expect"][0]["checks"]] == ["is_leaf"]


def test_answers_are_kept_where_somebody_quits(place: Path) -> None:
    assert confirmed(place, "A title", "q") == 1
    case = read_document((place / "draft.yaml").read_text(encoding="utf-8"), "").plain["cases"][0]
    assert (case["title"], case["why"]) == ("A title", {"unconfirmed": "It is so."})
    assert confirmed(place, "a", "a", "exp(x)", "a", "a", "0", "1") == 0


def test_at_a_terminal_an_answer_that_is_not_taken_is_asked_for_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([*WORDS, "a", "exp(x)", "q"])
    asked: list[str] = []

    def asking(prompt: str) -> str:
        asked.append(prompt)
        return next(answers)

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", asking)
    assert main(["confirm", str(place / "draft.yaml"), "--python", forks.python()]) == 1
    assert asked[3:] == [confirm.WHERE_FROM, confirm.WHERE_FROM, confirm.WHAT_TO_ANSWER]
    assert "a number that was computed needs a derivation" in told(capsys)


def test_an_observed_value_that_another_torch_does_not_have_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "draft.yaml").write_text(DRAFT.replace("is_leaf: {unconfirmed: true}", "is_leaf: {unconfirmed: false}"))
    assert "that does not hold: x.is_leaf: expected false, observed true" in refused(
        place, capsys, *WORDS, "exp(x)", "a"
    )


def test_a_file_that_is_not_there_or_no_draft_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["confirm", str(tmp_path / "absent.yaml"), "--python", forks.python()]) == 2
    assert "can't be read: No such file or directory\nhint: expected a case file" in told(capsys)
    (tmp_path / "draft.yaml").write_text(DRAFT.replace("title: ?", "titel: ?"), encoding="utf-8")
    assert "draft.yaml:5: an unconfirmed value can't stand here" in refused(tmp_path, capsys, "a")
