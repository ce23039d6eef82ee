"""The shipped cases: each can fail, each cites a rule that exists, and each rule has a case."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from running import judged, running_engine, spoils_its_process
from sessions import Session
from shipped import CASES, all_cases, loaded, rules, spread, telling

from conformance.execution.mutation import mutants
from conformance.execution.program import program_of, why_unsupported
from conformance.language.operations import PREFIX, is_of_operation
from conformance.language.remarks import remarks_on
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.worker.engine import Engine

TARGET = Target(device="cpu", dtype="float32")
PARTS = 2  # so that several processes can share the work

GREEN = ("pass", "known", "unsupported")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def why_an_expectation_can_not_fail(case: Case, engine: Engine) -> str:
    """Change the expectations of a case, one at a time; return what then fails though it shouldn't, or doesn't."""
    program = {"n": 0, **program_of(case, TARGET, torch.__version__)}
    counts = judged(case, engine.run(program), TARGET)
    if counts.status == "unsupported":
        return ""
    if counts.status not in ("pass", "known"):
        return f"it is {counts.status}"
    if counts.status == "known":  # what comes behind the step that fails is never reached
        program["steps"] = [step for step in program["steps"] if step["number"] < (counts.step or 0)]
        if engine.run(program)["status"] != "pass":
            return "it does not pass up to the step of its known issue"
    wrongs = list(mutants(program))
    if not wrongs and counts.status == "pass":
        return "it has no expectation"
    for line, path, wrong in wrongs:
        outcome = engine.run(wrong)
        if outcome["status"] != "fail" or not outcome["failures"]:
            return f"line {line} {path} was changed and the case comes to {outcome['status']}"
    return ""


def test_the_expectations_of_some_cases_can_fail(engine: Engine) -> None:
    prove([case for case in telling()[::40] if not is_of_operation(case)], engine)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_expectation_of_a_case_can_fail(part: int, engine: Engine) -> None:
    prove([case for case in spread(400, telling())[part::PARTS] if not is_of_operation(case)], engine)


def test_every_expectation_of_an_operation_can_fail(engine: Engine) -> None:
    prove([case for case in all_cases() if case.id in (f"{PREFIX}add-with-alpha", f"{PREFIX}erfc")], engine)


def prove(cases: list[Case], engine: Engine) -> None:
    """Hold that each expectation of these cases can fail, as far as this torch can run them."""
    runs = [case for case in cases if not why_unsupported(case, TARGET, torch.__version__)]
    here = [case for case in runs if not spoils_its_process(case, TARGET)]
    assert len(here) > 0.9 * len(cases)
    found = {case.id: why_an_expectation_can_not_fail(case, engine) for case in here}
    assert {case: why for case, why in found.items() if why} == {}


def test_every_rule_has_a_case_or_says_why_not() -> None:
    cited = {rule for case in all_cases() for rule in case.rules}
    assert cited == {name for name, rule in rules().items() if not rule.untested}
    assert len(cited) >= 0.98 * len(rules())


def test_ids_are_unique() -> None:
    assert len({case.id for case in all_cases()}) == len(all_cases())
    assert loaded().covered_in.keys().isdisjoint(case.id for case in all_cases())


@pytest.mark.slow
def test_nothing_is_remarked_on() -> None:
    assert [str(problem) for case in telling() for problem in remarks_on(case)] == []


@pytest.mark.slow
def test_a_changed_row_fails_alone_and_is_explained(tmp_path: Path) -> None:
    session = Session(tmp_path)
    shutil.copytree(CASES, tmp_path, dirs_exist_ok=True)
    detach = tmp_path / "detach.yaml"
    text = detach.read_text(encoding="utf-8")
    row = "b: {is_leaf: false, requires_grad: true, version: "
    assert text.count(f"{row}1") == 1
    line = text.partition(f"{row}1")[0].count("\n") + 1
    detach.write_text(text.replace(f"{row}1", f"{row}2"), encoding="utf-8")
    result = session.run("detach.yaml", "inplace.yaml", "views.yaml")
    assert len(result.outcomes) > 100
    red = {case: outcome for case, outcome in result.outcomes.items() if outcome["status"] not in GREEN}
    assert list(red) == ["detached-alias-zeroed-after-sigmoid"]
    assert red["detached-alias-zeroed-after-sigmoid"]["failures"][0] == {
        "line": line, "path": "b.version", "expected": "2", "observed": "1",
    }  # fmt: skip
    assert f"b.version:{line}  2         1" in result.output
