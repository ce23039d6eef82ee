"""The command that writes guides for those who upgrade."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import CPU, CUDA, HOSTILE, broken, failed, outcome, report, rule, valid_case

from conformance.cli import main as cli
from conformance.model.outcome import Issue, Outcome
from conformance.model.report import Report
from conformance.render.upgrade import MOST_WORDS, guide_of
from conformance.results.diff import Expectation, compare
from conformance.results.store import text_of

GOOD = outcome("pass")
CASES = [valid_case(name, line=20 * at + 1, title=f"What {name} does") for at, name in enumerate("abcd")]


def made(torch: str, **outcomes: Outcome) -> Report:
    return report({(name, CPU): outcomes.get(name, GOOD) for name in "abcd"}, cases=CASES, torch=torch)


def test_a_guide_begins_with_what_behaves_otherwise_and_what_to_do() -> None:
    known = failed(status="known", issue=Issue(status="fail", reason="Late.", link="https://example.org/1"))
    both = {**made("2.6.0").rules, "r.one": rule("r.one", upgrade="Call it twice.")}
    old, new = made("2.6.0", d=broken()), made("2.7.0", c=known)
    new.rules.update(both)
    words = tuple((f"x{number}", "1", "2") for number in range(MOST_WORDS + 2))
    expected: dict[str, Expectation] = {"a": ("behaviour-changed", words), "b": ("message-changed", (("", "o", "n"),))}
    text = guide_of(compare(old, new, expectation=lambda case, *_: expected.get(case.id)))
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Upgrading from torch `2.6.0` to `2.7.0`", "## What behaves otherwise: 1", "## What got worse: 1",
        "## What is right now: 1", "## Errors and warnings in other words: 1",
    ]  # fmt: skip
    first = text.partition("## What got worse")[0].splitlines()
    assert "- `What a does`" in first
    assert "  - `x0`: `1` → `2`" in first
    assert "  - and 2 more" in first
    assert "  - **to do:** `Call it twice.`" in first
    assert "  - upstream: `https://example.org/1`" in text
    assert "<details><summary>1 cases</summary>" in text.partition("in other words")[2]


def test_a_case_of_several_targets_is_told_once_and_strangers_text_is_text() -> None:
    old = report({("a", CPU): GOOD, ("a", CUDA): GOOD}, cases=[valid_case("a", title=HOSTILE)], torch="2.6.0")
    new = report({("a", CPU): broken(), ("a", CUDA): broken()}, cases=[valid_case("a", title=HOSTILE)], torch="2.7.0")
    text = guide_of(compare(old, new))
    assert "## What got worse: 1\n" in text
    assert not [line for line in text.splitlines() if "<img" in line and "`" not in line]
    assert "Nothing that they observe changes." in guide_of(compare(old, old))


def test_two_reports_are_printed_and_a_directory_has_a_guide_for_each_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("all").mkdir()
    for torch in ("2.10.0+cpu", "2.9.0", "2.6.0"):
        Path(f"all/{torch}.json").write_text(text_of(made(torch)), encoding="utf-8")
    assert cli.main(["upgrade", "all/2.6.0.json", "all/2.9.0.json"]) == 0
    assert capsys.readouterr().out.startswith("# Upgrading from torch `2.6.0` to `2.9.0`\n")
    assert cli.main(["upgrade", "-o", "out", "all"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(Path("out", f"torch-{each}.md")) for each in ("2.9.0", "2.10.0")
    ]
    assert "from torch `2.9.0` to `2.10.0+cpu`" in Path("out/torch-2.10.0.md").read_text(encoding="utf-8")
    for path in Path("all").glob("2.9*.json"):
        path.unlink()
    Path("all/2.6.0.json").unlink()
    for command, told in (
        (["upgrade", "all"], "error: one report alone\nhint: name two reports, or a directory of"),
        (["upgrade", "-o", "out", "all"], "error: all: there are not two releases\n"),
    ):  # fmt: skip
        assert cli.main(command) == 2
        assert told in capsys.readouterr().err
