"""Whole cases in modes that are not to change what autograd does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from loops import each
from running import case_of, judged, known_issues, running_engine
from samples import build
from shipped import all_cases

from conformance.execution.graphs import is_long
from conformance.execution.program import outcome_without_run, program_of
from conformance.language import versions
from conformance.language.files import shipped_exemptions
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.model.mode import MODES
from conformance.model.outcome import Outcome
from conformance.results.exempt import exempted
from conformance.worker.engine import Engine
from conformance.worker.modes import MODES as OF_THE_WORKER
from conformance.worker.modes import in_mode_of

THERE = [name for name, (_, torch_bound) in MODES.items() if versions.holds(torch_bound, torch.__version__)]
PRODUCTS = """
- a = tensor([1.0, -2.0], requires_grad=True)
- b = tensor([3.0, 0.5], requires_grad=True)
- (a * b).sum().backward()
- expect:
    a.grad: b
    b.grad: a
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as made:
        yield made


def run_in(engine: Engine, mode: str, case: Case) -> Outcome:
    target = Target(device="cpu", dtype="float32", mode=mode)
    answer = engine.run({"n": 1, **program_of(case, target, torch.__version__)})
    return exempted(judged(case, answer, target), case.id, target, shipped_exemptions())


def why_unusable(engine: Engine, mode: str) -> str:
    return str(engine.run({"n": 1, "device": "cpu", "enters": mode})["reason"])


def test_both_sides_know_the_same_modes() -> None:
    assert MODES.keys() == OF_THE_WORKER.keys()


@each("mode", THERE)
def test_a_mode_can_be_entered_and_a_plain_case_holds_in_it(engine: Engine, mode: str) -> None:
    assert why_unusable(engine, mode) == ""
    assert run_in(engine, mode, case_of(PRODUCTS)).status == "pass"


@each("mode", THERE)
def test_a_sample_of_the_suite_holds_in_each_mode(engine: Engine, mode: str) -> None:
    target = Target(device="cpu", dtype="float32", mode=mode)
    chosen = [case for case in all_cases() if not is_long(case)]
    found = [
        (case.id, run_in(engine, mode, case).summary)
        for case in chosen[:: len(chosen) // 60]
        if outcome_without_run(case, target, build(torch=torch.__version__)) is None
        and not any(
            not entry.is_pattern for entry in known_issues().about(case.id, target, build(torch=torch.__version__))
        )
        and run_in(engine, mode, case).status not in ("pass", "unsupported", "known")
    ]
    assert found == []


def test_a_mode_of_ones_own_is_named_by_its_module(engine: Engine) -> None:
    assert why_unusable(engine, "planted_modes:that_does_nothing") == ""
    assert run_in(engine, "planted_modes:that_does_nothing", case_of(PRODUCTS)).status == "pass"


@pytest.mark.parametrize(
    ("mode", "wrong"), [("that_drops_a_gradient", "b.grad"), ("that_swaps_saved_tensors", "b.grad")]
)
def test_a_mode_that_changes_gradients_is_caught(engine: Engine, mode: str, wrong: str) -> None:
    assert why_unusable(engine, f"planted_modes:{mode}") == ""
    outcome = run_in(engine, f"planted_modes:{mode}", case_of(PRODUCTS))
    assert outcome.status == "fail"
    assert wrong in [failure.path for failure in outcome.failures]


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("that_forgets_to_restore", "leaves get_default_dtype changed"),
        (
            "that_forgets_to_restore_after_an_error",
            "leaves get_default_dtype changed when there is an error inside",
        ),
        ("that_is_none", "OSError: on purpose"),
        ("that_is_not_there", "AttributeError: module 'planted_modes' has no attribute 'that_is_not_there'"),
    ],
)
def test_a_mode_that_no_case_can_run_in_is_refused(engine: Engine, mode: str, why: str) -> None:
    assert why_unusable(engine, f"planted_modes:{mode}") == why
    assert torch.get_default_dtype() is torch.float32


def test_what_is_expected_is_computed_out_of_reach_of_the_mode(engine: Engine) -> None:
    case = case_of("- y = tensor([1.0]) * tensor([2.0])\n- expect: {y: 'tensor([1.0]) * tensor([2.0])'}\n")
    assert run_in(engine, "planted_modes:that_doubles_products", case).status == "fail"


def test_compiled_autograd_traces_a_backward_and_an_unknown_mode_is_an_error() -> None:
    counters = pytest.importorskip("torch._dynamo.utils").counters["compiled_autograd"]
    in_mode, before = in_mode_of("cpu"), counters["captures"]
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    with in_mode("compiled-autograd"):
        (x * x).sum().backward()
    assert x.grad is not None
    assert (x.grad.tolist(), counters["captures"]) == ([2.0, -4.0], before + 1)
    (x * x).sum().backward()
    assert counters["captures"] == before + 1
    with pytest.raises(ValueError, match="no mode 'compiled'"), in_mode("compiled"):
        pass
