"""The command that keeps what each night was like, and the page that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import CPU, outcome, report

from conformance.cli import main as cli
from conformance.results.nights import load_nights
from conformance.results.store import text_of


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tonight").mkdir()
    Path("tonight/cpu-nightly.json").write_text(text_of(report({("a", CPU): outcome("pass")})), encoding="utf-8")


def test_each_report_is_added_to_the_record_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["nights", "-o", "nights", "tonight"]) == 0
    assert capsys.readouterr().out == f"{Path('nights', 'cpu-nightly.json')}\n"
    assert load_nights(Path("nights/cpu-nightly.json")).stretches() == {("a", CPU): [("pass", 1)]}


def test_a_record_that_is_none_is_not_written_over(capsys: pytest.CaptureFixture[str]) -> None:
    record = Path("nights/cpu-nightly.json")
    record.parent.mkdir()
    record.write_text("{}", encoding="utf-8")
    for command in (["nights", "-o", "nights", "tonight"], ["report", "-o", "x.html", "--nights", "nights", "tonight"]):
        assert cli.main(command) == 2
        told = capsys.readouterr().err
        assert told.startswith(f"error: {record}: no record of nights: ")
        assert "hint: expected a record that `nights` wrote; remove it to begin anew\n" in told
    assert record.read_text(encoding="utf-8") == "{}"


def test_a_directory_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "-o", "x.html", "--nights", "none", "tonight"]) == 2
    assert "error: none: there is no such directory" in capsys.readouterr().err
