"""What an interrupted run has found counts for the run that resumes it, if nothing is different."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from samples import CPU, report
from samples import outcome as outcome_of

from conformance.model.build import Build
from conformance.model.outcome import Outcome
from conformance.model.report import Pair, Report, Run
from conformance.results.journal import Journal
from conformance.results.resume import past_runs, resumed

PLAN: list[Pair] = [("a", CPU), ("b", CPU), ("c", CPU)]
BEGIN = report(dict.fromkeys(PLAN), finished=False)
DIGESTS = {case.id: case.digest for case in BEGIN.cases}


def of(pair: Pair, status: Any = "pass") -> Outcome:
    return outcome_of(status, case=pair[0], target=pair[1])


def killed(directory: Path, *pairs: Pair, begin: Report = BEGIN, exit_status: int | None = None) -> None:
    """Run some of the plan, and leave the report as a run that is killed does, or one that ends with a status."""
    journal = Journal(directory, begin)
    journal.begin()
    for pair in pairs:
        journal.add(of(pair))
    if exit_status is not None:
        journal.finish({}, exit_status, {})
    journal.file.close()


def found(
    directory: Path, *, build: Build = BEGIN.build, run: Run = BEGIN.header.run, digests: dict[str, str] = DIGESTS
) -> tuple[list[str], str]:
    """Return the cases that are taken over from the reports below a directory, and the line about it."""
    again = resumed(past_runs(directory), build, BEGIN.header.suite, run, digests)
    return sorted(case for case, _ in again.outcomes), again.line


@pytest.mark.parametrize("exit_status", [None, 2])
def test_what_an_interrupted_run_found_is_taken_over(tmp_path: Path, exit_status: int | None) -> None:
    killed(tmp_path, *PLAN[:2], exit_status=exit_status)
    cases, line = found(tmp_path)
    assert cases == ["a", "b"]
    assert line == f"resumed: the run of {BEGIN.header.run.started}, 2 outcomes"


def test_interrupted_runs_add_up(tmp_path: Path) -> None:
    killed(tmp_path, PLAN[0])
    later = replace(BEGIN.header.run, started="2026-05-02T03:04:05+00:00")
    killed(tmp_path, PLAN[1], begin=replace(BEGIN, header=replace(BEGIN.header, run=later)))
    assert found(tmp_path)[0] == ["a", "b"]


def test_a_case_that_has_been_edited_is_run_again(tmp_path: Path) -> None:
    killed(tmp_path, *PLAN)
    cases, line = found(tmp_path, digests={**DIGESTS, "b": "new"})
    assert cases == ["a", "c"]
    assert line.endswith("2 outcomes; 1 cases have been edited since, and are run again")


@pytest.mark.parametrize("exit_status", [0, 1])
def test_a_run_that_came_to_its_end_is_not_resumed(tmp_path: Path, exit_status: int) -> None:
    killed(tmp_path, *PLAN, exit_status=exit_status)
    cases, line = found(tmp_path)
    assert cases == []
    assert line.endswith("was not interrupted")


def test_a_run_that_goes_on_is_not_resumed(tmp_path: Path) -> None:
    journal = Journal(tmp_path, BEGIN)
    journal.begin()
    journal.add(of(PLAN[0]))
    assert found(tmp_path)[0] == []
    journal.file.close()
    assert found(tmp_path)[0] == ["a"]


def test_another_run_is_not_resumed_and_what_is_different_is_told(tmp_path: Path) -> None:
    assert found(tmp_path) == (
        [],
        "resumed: nothing, all cases are run: there is no report of an earlier run of this build",
    )
    killed(tmp_path, *PLAN)
    run = BEGIN.header.run
    cases, line = found(tmp_path, run=replace(run, arguments=(*run.arguments, "--dtype", "float64")))
    assert cases == []
    assert "was another one: the arguments: " in line
    assert found(tmp_path, run=replace(run, arguments=(*run.arguments, "--junitxml", "x.xml")))[0] == ["a", "b", "c"]
    assert "no report of an earlier run of this build" in found(tmp_path, build=replace(BEGIN.build, git="f" * 40))[1]
    assert "the interpreter" in found(tmp_path, build=replace(BEGIN.build, executable="/elsewhere/python"))[1]
