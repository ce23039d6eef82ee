"""The shipped cases: each can fail, each cites a rule that exists, and each rule has a case."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from running import judged, running_engine
from sessions import Session

from conformance.execution.program import program_of, why_unsupported
from conformance.language.files import case_files, load_cases, shipped_cases
from conformance.language.rules import load_rules
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.worker.engine import Engine

CASES = shipped_cases()
RULES = load_rules(CASES / "rules.yaml", "rules.yaml")
ALL = load_cases(case_files([CASES]), CASES.parent)
# Of what is written out from one equivalence, one case; the others differ from it in their program alone.
TELLING = list({(case.file, case.line): case for case in ALL}.values())
TARGET = Target(device="cpu", dtype="float32")

GREEN = ("pass", "known", "unsupported")
OPPOSITES = {"is": "is_not", "is_not": "is", "shares_storage": "not_shares_storage"}
OPPOSITES["not_shares_storage"] = "shares_storage"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def changed(name: str, value: Any) -> Any:
    """Return an expectation that the same observation can't meet."""
    if name == "view_of":
        return {"expr": "3"}
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value + 0.5
    if value is None:
        return "Other" if name == "grad_fn" else [0.125]
    if isinstance(value, dict) and "expr" in value:
        return {"expr": f"({value['expr']}, 'something else')"}
    if isinstance(value, dict) and "checks" in value:
        return {"checks": [[inner, changed(inner, expected), line] for inner, expected, line in value["checks"]]}
    if isinstance(value, list):
        return [*value, value[-1]] if value else [1]
    return f"{value}Other"


def sabotaged(program: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the program with each of its expectations changed, one at a time."""
    for index, step in enumerate(program["steps"]):
        for key in ("raises", "warns"):
            if key in step:
                wrong = copy.deepcopy(program)
                expected = wrong["steps"][index][key]
                if expected["type"] is None:
                    expected.update(type="RuntimeError", match=["something else"])
                else:
                    expected["match"] = [*expected["match"], "and something else"]
                yield f"line {step['line']} {key}", wrong
        for number, entry in enumerate(step.get("expect", ())):
            for place, (name, value, _) in enumerate(entry["checks"]):
                if name in ("rtol", "atol"):
                    continue
                wrong = copy.deepcopy(program)
                check = wrong["steps"][index]["expect"][number]["checks"][place]
                if name in OPPOSITES:
                    check[0] = OPPOSITES[name]
                else:
                    check[1] = changed(name, value)
                yield f"line {step['line']} {entry['subject']}.{name}", wrong


@pytest.mark.parametrize("case", TELLING, ids=lambda case: case.id)
def test_every_expectation_of_a_case_can_fail(case: Case, engine: Engine) -> None:
    program = {"n": 0, **program_of(case, TARGET, torch.__version__)}
    outcome = engine.run(program) if not why_unsupported(case, TARGET, torch.__version__) else {"status": "unsupported"}
    if outcome["status"] == "unsupported":
        pytest.skip("not on this torch")
    counts = judged(case, outcome, TARGET)
    assert counts.status in ("pass", "known")
    if counts.status == "known":  # what comes behind the step that fails is never reached
        program["steps"] = [step for step in program["steps"] if step["number"] < (counts.step or 0)]
        assert engine.run(program)["status"] == "pass"
    wrongs = dict(sabotaged(program))
    assert wrongs or counts.status == "known"
    for place, wrong in wrongs.items():
        outcome = engine.run(wrong)
        assert outcome["status"] == "fail", f"{place} was changed and nothing failed"
        assert outcome["failures"]


def test_every_rule_has_a_case_or_says_why_not() -> None:
    cited = {rule for case in ALL for rule in case.rules}
    assert cited == {name for name, rule in RULES.items() if not rule.untested}
    assert len(cited) >= 0.98 * len(RULES)


def test_ids_are_unique() -> None:
    assert len({case.id for case in ALL}) == len(ALL)


def test_a_changed_row_fails_alone_and_is_explained(tmp_path: Path) -> None:
    session = Session(tmp_path)
    shutil.copytree(CASES, tmp_path, dirs_exist_ok=True)
    detach = tmp_path / "detach.yaml"
    text = detach.read_text(encoding="utf-8")
    row = "b: {is_leaf: false, requires_grad: true, version: "
    detach.write_text(text.replace(f"{row}1", f"{row}2"), encoding="utf-8")
    result = session.run()
    red = {case: outcome for case, outcome in result.outcomes.items() if outcome["status"] not in GREEN}
    assert list(red) == ["detached-alias-zeroed-after-sigmoid"]
    assert red["detached-alias-zeroed-after-sigmoid"]["failures"][0] == {
        "line": 54, "path": "b.version", "expected": "2", "observed": "1",
    }  # fmt: skip
    assert "b.version:54  2         1" in result.output
