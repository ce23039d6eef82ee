"""The command that writes compact reports: from files and directories, each under the name of its build."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import CPU, CUDA, outcome, report

from conformance.cli import main as cli
from conformance.results.compact import compact_of
from conformance.results.store import text_of

GOOD = outcome("pass")
NEW, OLD = (report({("a", CPU): GOOD}, torch=torch) for torch in ("2.13.0", "2.6.0"))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_reports_of_files_and_directories_are_written_small(capsys: pytest.CaptureFixture[str]) -> None:
    Path("many").mkdir()
    Path("many/x.json").write_text(text_of(OLD), encoding="utf-8")
    Path("one.json").write_text(text_of(NEW), encoding="utf-8")
    assert cli.main(["compact", "-o", "out", "one.json", "many"]) == 0
    places = [Path("out", f"{made.build.slug}.json") for made in (NEW, OLD)]
    assert capsys.readouterr().out.splitlines() == [str(place) for place in places]
    assert [place.read_text(encoding="utf-8") for place in places] == [text_of(compact_of(each)) for each in (NEW, OLD)]


def test_what_has_no_compact_form_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    shard = report({("a", CPU): GOOD, ("b", CPU): GOOD, ("b", CUDA): GOOD})
    Path("shard.json").write_text(text_of(shard), encoding="utf-8")
    assert cli.main(["compact", "-o", "out", "shard.json"]) == 2
    told = capsys.readouterr()
    message = "error: shard.json: it doesn't plan each case on each target\nhint: shards are merged first\n"
    assert told.err == message
    assert told.out == ""
    assert not Path("out").exists()
