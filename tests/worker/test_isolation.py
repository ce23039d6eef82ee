"""A case can't influence the next one: modes, random numbers, objects, names and the log begin anew."""

from __future__ import annotations

import gc
import json
import os
import random
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from forgeries import LATER, OFF
from loops import each
from running import case_of, judged, outcome_of_steps, request_of, running_engine, spoils_its_process
from shipped import spread, telling

from conformance.execution.program import program_of, why_unsupported
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.results.fingerprint import Fingerprint, fingerprint
from conformance.worker.diagnosis import Diagnosis
from conformance.worker.engine import Engine
from conformance.worker.isolation import GlobalState, forget, forget_compiled, global_hooks, name_user
from conformance.worker.state import autocast_nesting

TARGET = Target(device="cpu", dtype="float32")

READERS: dict[str, Callable[[], object]] = {
    "grad mode": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "default dtype": torch.get_default_dtype,
    "anomaly mode": torch.is_anomaly_enabled,
    "anomaly mode's check for nan": torch.is_anomaly_check_nan_enabled,
    "threads": torch.get_num_threads,
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "deterministic algorithms warn only": torch.is_deterministic_algorithms_warn_only_enabled,
    "warn always": torch.is_warn_always_enabled,
    "multithreading": torch.autograd.is_multithreading_enabled,
    "view replay": torch._C._is_view_replay_enabled,
    "policy of layouts": torch._C._is_grad_layout_enforcement_enabled,
    "hooks for all modules": lambda: {name: str(value) for name, value in global_hooks().items()},
    "forward-mode level": lambda: torch.autograd.forward_ad._current_level,
    "autocast": lambda: torch.is_autocast_enabled("cpu"),
    "blocks of autocast": autocast_nesting,
    "sparse invariants": torch.sparse.check_sparse_tensor_invariants.is_enabled,
    "saved-tensor hooks": lambda: torch._C._autograd._top_saved_tensors_default_hooks(True),
    "why saved-tensor hooks are off": torch._C._autograd._saved_tensors_hooks_get_disabled_error_message,
    "early stop of checkpoints": lambda: torch.utils.checkpoint._enable_checkpoint_early_stop,
    "warning of streams": torch._C._warn_on_accumulate_grad_stream_mismatch,
    "dtype of autocast": lambda: torch.get_autocast_dtype("cpu"),
    "cache of autocast": torch.is_autocast_cache_enabled,
    "kernels of attention": lambda: [
        getattr(torch._C, name)() for name in sorted(dir(torch._C)) if name.startswith("_get_") and "_sdp_" in name
    ],
}

# What a case leaves behind when it ends; `held` names keep a suspended generator alive until the names go.
LEAVINGS = {
    "grad mode off": "torch.set_grad_enabled(False)",
    "default dtype": "torch.set_default_dtype(torch.float64)",
    "anomaly mode": "autograd.set_detect_anomaly(True)",
    "anomaly mode without its check for nan": "autograd.set_detect_anomaly(True, check_nan=False)",
    "a check for nan that is off": "autograd.set_detect_anomaly(False, check_nan=False)",
    "view replay": "autograd._force_original_view_tracking(True)",
    "the policy of layouts": "autograd.enforce_grad_layout_policy(False)",
    "no warning of streams": "graph.set_warn_on_accumulate_grad_stream_mismatch(False)",
    "a hook for all modules": "nn.modules.module.register_module_forward_hook(lambda *args: log('left'))",
    "a backward hook for all modules": (
        "nn.modules.module.register_module_full_backward_hook(lambda *args: log('left'))"
    ),
    "a removed backward hook for all modules": (
        "nn.modules.module.register_module_full_backward_hook(lambda *args: None).remove()"
    ),
    "a mode in a thread": "in_thread(lambda: torch.set_grad_enabled(False))",
    "warn always": "torch.set_warn_always(False)",
    "deterministic algorithms": "torch.use_deterministic_algorithms(True)",
    "deterministic algorithms that only warn": "torch.use_deterministic_algorithms(True, warn_only=True)",
    "no deterministic algorithms that would only warn": "torch.use_deterministic_algorithms(False, warn_only=True)",
    "multithreading": "autograd.set_multithreading_enabled(False)",
    "a forward-mode level": "fwAD.enter_dual_level()",
    "a forward-mode level after an error": "fwAD.enter_dual_level()\nzeros(2).view(3)",
    "a mode and an error": "torch.set_grad_enabled(False)\nzeros(2).view(3)",
    "random numbers drawn": "rand(3)\ntorch.bernoulli(ones(3))\nones(3).uniform_()",
    "another seed": "torch.manual_seed(5)",
    "a rebound name": "ones = zeros\nlog('left')",
    "a warning": "warnings.warn('left')",
}
MANAGERS = {
    "no_grad": "no_grad()",
    "inference_mode": "inference_mode()",
    "enable_grad": "enable_grad()",
    "set_grad_enabled": "set_grad_enabled(False)",
    "detect_anomaly": "autograd.detect_anomaly()",
    "dual_level": "fwAD.dual_level()",
    "saved_tensors_hooks": "graph.saved_tensors_hooks(lambda x: log('packed') or x, lambda x: x)",
    "disable_saved_tensors_hooks": "graph.disable_saved_tensors_hooks('left')",
    "save_on_cpu": "graph.save_on_cpu()",
    "multithreading": "autograd.set_multithreading_enabled(False)",
    "autocast": "torch.autocast('cpu')",
    "autocast off": "torch.autocast('cpu', enabled=False)",
    "sparse invariants": "sparse.check_sparse_tensor_invariants()",
    "device": "torch.device('meta')",
    "allow_mutation_on_saved_tensors": "graph.allow_mutation_on_saved_tensors()",
    "debugging of checkpoints": "torch.utils.checkpoint.set_checkpoint_debug_enabled(True)",
    "early stop": "torch.utils.checkpoint.set_checkpoint_early_stop(False)",
}
HELD = {
    "by a name": "g = left()\nnext(g)",
    "by a cycle": "g = left()\nnext(g)\nloop = [g]\nloop.append(loop)",
    "by its own frame": (
        "box = []\ndef left(box):\n    with MANAGER:\n        yield box\ng = left(box)\nnext(g)\nbox.append(g)"
    ),
    "by a cycle that a collection has left alone": "g = left()\nnext(g)\nloop = [g]\nloop.append(loop)\ngc.collect()",
    "by a closed one around it": "def outer():\n    yield from left()\ng = outer()\nnext(g)",
}

# A case that shows each of these influences.
PROBE = """
- a = rand(3)
- b = torch.bernoulli(full((8,), 0.5))
- c = zeros(4).uniform_()
- r = torch.randint(0, 1000, (4,))
- log(a, b, c, r, ones(2))
- x = ones(2, requires_grad=True)
- y = (x * x).sum()
- y.backward()
- s = x @ x
- expect:
    x: {grad: 2}
    y: {grad_fn: SumBackward0, dtype: target, is_inference: false}
    s: {dtype: target}
- do: (x * 2).grad
  warns: {type: UserWarning, match: .grad attribute of a Tensor that is not a leaf}
- do: fwAD.make_dual(x, x)
  raises: {type: RuntimeError, match: Trying to create a dual Tensor for forward AD but no level exists}
- expect: {log: []}
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def state() -> dict[str, object]:
    return {name: read() for name, read in READERS.items()}


def run(engine: Engine, case: Case, dtype: str = "float32") -> dict[str, Any]:
    outcome: dict[str, Any] = json.loads(json.dumps(engine.run(request_of(case, dtype=dtype))))
    del outcome["seconds"]
    return outcome


def probed(engine: Engine) -> dict[str, Any]:
    """Return what a case sees that begins now; its numbers stand in the failure of its last step."""
    outcome = run(engine, case_of(PROBE))
    assert [failure["path"] for failure in outcome["failures"]] == ["log"]
    return outcome


def leave(engine: Engine, text: str, dtype: str = "float32") -> dict[str, Any]:
    return run(engine, case_of(f"- {json.dumps(text)}\n- expect: {{int(2): 2}}\n"), dtype)


@contextmanager
def unseen(engine: Engine) -> Iterator[None]:
    """Hold that what the probe sees, and the modes, are the same after what is done in it."""
    seen, before = probed(engine), state()
    yield
    assert probed(engine) == seen
    assert state() == before
    assert probed(engine) == seen


@each("text", LEAVINGS.values(), ids=LEAVINGS)
@each("dtype", ["float32", "float64"])
def test_what_a_case_sets_is_put_back(engine: Engine, text: str, dtype: str) -> None:
    with unseen(engine):
        leave(engine, text, dtype)


@each("held", HELD.values(), ids=HELD)
@each("manager", MANAGERS.values(), ids=MANAGERS)
def test_a_generator_left_open_inside_a_context_is_closed(engine: Engine, manager: str, held: str) -> None:
    text = "def left():\n    with MANAGER:\n        yield 1\n" + held
    with unseen(engine):
        assert leave(engine, text.replace("MANAGER", manager))["status"] == "pass"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@each("name", [name for name in LATER if "for ever" not in name])
@each("act", [OFF, "torch.set_default_dtype(torch.float64)", "autograd.Function.mark_dirty(autograd.Function, 1)"])
def test_what_a_case_has_run_later_runs_before_the_next(engine: Engine, name: str, act: str) -> None:
    with unseen(engine):
        assert "must_restart" not in leave(engine, LATER[name].replace("DONE", act))
    assert "dirty_tensors" not in vars(torch.autograd.Function)


def test_two_generators_left_open_inside_one_another_are_closed(engine: Engine) -> None:
    text = "def left(manager):\n    with manager:\n        yield 1\n"
    opened = "a = left(no_grad())\nnext(a)\nb = left(enable_grad())\nnext(b)\nc = left(no_grad())\nnext(c)\n"
    with unseen(engine):
        assert leave(engine, text + opened)["status"] == "pass"


@each(
    "first, then", [("nn.attention.sdpa_kernel([])", "nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH)"),
                    ("nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH, set_priority=True)",) * 2,
                    ("torch.autocast('cpu', torch.float16, False)", "torch.autocast('cpu', enabled=False)"),
                    ("torch.autocast('cpu', None, False, False)", "torch.autocast('cpu', enabled=False)"),
                    ("no_grad()", "enable_grad()")],
)  # fmt: skip
def test_blocks_that_end_in_the_order_in_which_they_began_leave_no_mode(engine: Engine, first: str, then: str) -> None:
    text = "def block(manager):\n    with manager:\n        yield 1\n"
    ended = f"a = block({first})\nb = block({then})\nnext(a)\nnext(b)\nlist(a)\nlist(b)"
    with unseen(engine):
        assert leave(engine, text + ended)["status"] == "pass"


CLASSES = MANAGERS.keys() - {"early stop", "disable_saved_tensors_hooks"}  # those two are functions
# Whose setting nothing can end; the process must not run another case.
STAYING = {"saved_tensors_hooks", "save_on_cpu", "autocast", "autocast off", "sparse invariants", "device"}


def put_back() -> None:
    """Undo by hand what `STAYING` leaves, so that it is no other test's."""
    while torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
        torch._C._autograd._pop_saved_tensors_default_hooks()
    torch.set_autocast_enabled("cpu", False)
    for _ in range(autocast_nesting()):
        torch.autocast_decrement_nesting()
    torch.sparse.check_sparse_tensor_invariants.disable()
    while torch._C._len_torch_function_stack():
        torch._C._pop_torch_function_stack()
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@each("name", MANAGERS)
def test_a_generator_that_refuses_to_close_leaves_no_mode_to_the_next_case(engine: Engine, name: str) -> None:
    text = f"""
def left():
    with {MANAGERS[name]}:
        try:
            yield 1
        except GeneratorExit:
            yield 2
g = left()
next(g)
"""
    before = state()
    outcome = leave(engine, text)
    after = state()
    put_back()
    assert ("must_restart" in outcome) is (name in STAYING), name
    assert name in STAYING or after == before


@each("manager", [MANAGERS[name] for name in sorted(CLASSES)], ids=sorted(CLASSES))
def test_a_context_that_is_entered_and_never_left_leaves_no_mode(engine: Engine, manager: str) -> None:
    name, _, arguments = manager.partition("(")
    own = "class A(Base):\n    def enter(self):\n        return super().__enter__()\n"
    text = f"Base = {name}\n{own}A({arguments}.enter()"
    before = state()
    leave(engine, text)
    after = state()
    put_back()
    assert after == before


def test_forward_mode_levels_can_be_entered_again(engine: Engine) -> None:
    steps = """
    - l = fwAD.enter_dual_level()
    - d = fwAD.make_dual(ones(1), full((1,), 3.0))
    - expect: {l: 0, fwAD.unpack_dual(d).tangent: 3}
    """
    assert [outcome_of_steps(engine, steps)["status"] for _ in range(3)] == ["pass"] * 3


@each("dtype", ["float16", "float32", "float64"])
def test_the_targets_dtype_is_the_default_however_cases_alternate(engine: Engine, dtype: str) -> None:
    steps = f"- a = ones(2) * 1.5\n- expect: {{a: {{dtype: target}}, torch.get_default_dtype(): torch.{dtype}}}\n"
    leave(engine, "torch.set_default_dtype(torch.float64)", dtype="bfloat16")
    assert outcome_of_steps(engine, steps, dtype=dtype)["status"] == "pass"


CYCLES = {
    "a list in itself": "x = [ones(3)]\nx.append(x)\nw = weakref.ref(x[0])",
    "a graph that a leaf's hook holds": (
        "x = ones(3, requires_grad=True)\ny = x * 2\nx.register_hook(lambda g: y)\nw = weakref.ref(x)"
    ),
    "an object that knows itself": "m = nn.Linear(1, 1)\nm.own = [m]\nw = weakref.ref(m)",
    "an error that was raised": (
        "def f():\n    x = ones(3)\n    x.own = weakref.ref(x)\n    x.view(7)\nf()"
    ),
    "a name": "x = ones(3)\nw = weakref.ref(x)",
}  # fmt: skip


@each("text", CYCLES.values(), ids=CYCLES)
def test_what_a_case_made_is_gone_when_it_ends(engine: Engine, text: str) -> None:
    leave(engine, "x = 1")
    gc.collect()
    before = {id(thing) for thing in alive()}
    leave(engine, text)
    assert [thing for thing in alive() if id(thing) not in before] == []


def alive() -> list[object]:
    """Return the tensors and modules of this process that no collection has taken."""
    gc.unfreeze()  # what is left after a case is taken from collections
    return [thing for thing in gc.get_objects() if type(thing) in (torch.Tensor, torch.nn.Linear)]


def test_the_log_begins_empty(engine: Engine) -> None:
    assert outcome_of_steps(engine, "- log(1)\n- expect: {log: [1]}\n")["status"] == "pass"
    assert outcome_of_steps(engine, "- x = 1\n- expect: {log: []}\n")["status"] == "pass"


def test_the_names_of_a_case_are_gone(engine: Engine) -> None:
    request = request_of(case_of("- left = 1\n- expect: {left: 1}\n"))
    assert engine.run(request)["status"] == "pass"
    second = {**request, "steps": request["steps"][1:]}  # the parent would refuse this one
    outcome = engine.run(second)
    assert outcome["failures"][0]["observed"] == "NameError: name 'left' is not defined"


def test_a_vocabulary_name_that_a_case_takes_is_the_vocabularys_again(engine: Engine) -> None:
    text = "def f():\n    global zeros\n    zeros = 1\nf()\nones = 2\ndevice = 3\ndtype = 4\n"
    leave(engine, text)
    steps = "- a = ones(1) + zeros(1)\n- expect: {a: 1, device: {text: cpu}, dtype: torch.float32}\n"
    assert outcome_of_steps(engine, steps)["status"] == "pass"


def test_the_warnings_of_a_case_come_again_in_the_next(engine: Engine) -> None:
    steps = """
    - x = (ones(1, requires_grad=True) * 1)
    - do: x.grad
      warns: {type: UserWarning, match: not a leaf Tensor}
    """
    assert [outcome_of_steps(engine, steps)["status"] for _ in range(3)] == ["pass"] * 3


def verdict(engine: Engine, case: Case) -> tuple[str, Fingerprint]:
    """Return what a shipped case comes to, and how it fails if it does; numbers from unwritten memory are no matter."""
    outcome = judged(case, run(engine, case), TARGET)
    return outcome.status, fingerprint(outcome)


@pytest.fixture(scope="module")
def in_order(engine: Engine) -> list[tuple[Case, tuple[str, Fingerprint]]]:
    """Some of the cases that this process outlives, with what each comes to in the order of the files."""
    cases = [case for case in spread(250, telling()) if not why_unsupported(case, TARGET, torch.__version__)]
    cases = [case for case in cases if not spoils_its_process(case, TARGET)]
    assert len(cases) > 200
    return [(case, verdict(engine, case)) for case in cases]


@pytest.mark.slow
def test_shipped_cases_hold_in_one_process_on_this_torch(in_order: list[tuple[Case, tuple[str, Fingerprint]]]) -> None:
    assert {case.id: found for case, found in in_order if found[0] not in ("pass", "known")} == {}


@pytest.mark.slow
@each("seed", [1, 2])
def test_the_order_of_the_cases_changes_no_outcome(
    engine: Engine, in_order: list[tuple[Case, tuple[str, Fingerprint]]], seed: int
) -> None:
    shuffled = in_order[:]
    random.Random(seed).shuffle(shuffled)
    assert {case.id: verdict(engine, case) for case, _ in shuffled} == {case.id: found for case, found in in_order}


@pytest.mark.slow
def test_what_a_case_leaves_behind_changes_no_outcome_of_the_shipped_cases(
    engine: Engine, in_order: list[tuple[Case, tuple[str, Fingerprint]]]
) -> None:
    leavings = list(LEAVINGS.values())
    for index, (case, found) in enumerate(in_order):
        leave(engine, leavings[index % len(leavings)])
        assert verdict(engine, case) == found


def test_a_program_is_run_as_it_is_sent(engine: Engine) -> None:
    case = case_of("- a = ones(1)\n- expect: {a: 1}\n")
    sent = json.dumps(program_of(case, TARGET, torch.__version__))
    engine.run({"n": 1, **json.loads(sent)})
    assert json.dumps(program_of(case, TARGET, torch.__version__)) == sent


def test_names_are_forgotten_but_for_those_of_the_compiler() -> None:
    names = {"x": 1, "f_1": 2, "__compiled_fn_1": 3, "left_140737350_c0": 4}
    forget(names)
    assert names == {"__compiled_fn_1": 3, "left_140737350_c0": 4}


def test_a_compiler_asks_of_modules_what_it_asked_in_the_first_case(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"dynamic_classes": {torch.nn.Linear: True}, "generation_values": {1: 2}}
    tracker = types.SimpleNamespace(GenerationTracker=types.SimpleNamespace(**kept))
    monkeypatch.setitem(sys.modules, "torch._dynamo.mutation_guard", tracker)
    forget_compiled()
    assert kept == {"dynamic_classes": {}, "generation_values": {}}


def test_keys_of_the_dispatcher_that_a_case_leaves_turned_off_end_the_process() -> None:
    """So does torch itself, when printing a tensor fails in inference mode: nothing is recorded any more."""
    with running_engine() as engine:
        assert engine.global_state.is_clean()
        torch._C._dispatch_tls_set_dispatch_key_excluded("AutogradOther", True)
        try:
            outcome = outcome_of_steps(engine, "- a = ones(1)\n- expect: {a: 1}\n")
        finally:
            torch._C._dispatch_tls_set_dispatch_key_excluded("AutogradOther", False)
        assert outcome["must_restart"] == "it left a mode in force that nothing can end"
        assert "must_restart" not in outcome_of_steps(engine, "- a = ones(1)\n- expect: {a: 1}\n")


def test_an_error_that_comes_late_is_that_of_the_case_that_has_just_ended() -> None:
    def late() -> None:
        raise RuntimeError("an index was out of range")

    with running_engine() as engine:
        runner = engine.runners["cpu"]
        runner.shared = runner.shared._replace(wait=late)
        outcome = outcome_of_steps(engine, "- a = ones(1)\n- expect: {a: 1}\n")
    assert (outcome["status"], outcome["step"]) == ("error", 1)
    assert outcome["failures"][0]["observed"] == "RuntimeError: an index was out of range"


def test_a_device_that_does_not_answer_is_not_asked_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    with running_engine() as engine:
        engine.runners["cpu:0"] = engine.runners["cpu"]
        monkeypatch.setattr(Diagnosis, "why_lacking", lambda *_: asked.append({}))
        for answers in (True, False):
            monkeypatch.setattr("conformance.worker.build.answers", lambda _, answers=answers: answers)
            outcome = outcome_of_steps(engine, "- a = ones(1)\n- expect: {a: 2}\n", "cpu:0")
            assert outcome["status"] == "fail"
            assert ("must_restart" in outcome) is not answers
    assert len(asked) == 1


def test_a_mark_of_the_compiler_stays_on_classes_that_cases_share() -> None:
    shared = type("Shared", (), {})
    state = GlobalState()
    state.share([shared])
    shared.___patched, shared.of_a_case = True, 1  # type: ignore[attr-defined]
    state.restore_shared()
    assert "___patched" in vars(shared)
    assert "of_a_case" not in vars(shared)
    assert not state.overwritten


def test_distributions_check_what_they_are_given_after_a_case_that_compiles(engine: Engine) -> None:
    compiles = "- 'f = compiled(lambda t: t * 2)'\n- expect: {f(ones(2)): 2.0}"
    wrong = "- do: distributions.Normal(tensor(0.0), tensor(-1.0))\n  raises: {type: ValueError, match: scale}"
    assert [outcome_of_steps(engine, steps)["status"] for steps in (compiles, wrong)] == ["pass", "pass"]


def test_what_is_set_on_classes_that_cases_share_is_put_back_and_told_unless_torch_sets_it() -> None:
    shared = type("Shared", (), {"rate": 1, "step": None, "_checks": True})
    state = GlobalState()
    state.share([shared])
    shared.step, shared._checks = torch.nn.functional.dropout, False  # type: ignore[attr-defined]
    state.restore_shared()
    assert (shared.step, shared._checks) == (torch.nn.functional.dropout, False)  # type: ignore[attr-defined]
    assert not state.overwritten
    shared.rate = torch.ones(2)  # type: ignore[attr-defined]
    state.restore_shared()
    assert shared.rate == 1  # type: ignore[attr-defined]
    assert str(state.overwritten) == "it has set Shared.rate, which all cases share"


def test_compiling_in_many_cases_patches_no_class_once_more(engine: Engine) -> None:
    steps = "- 'f = compiled(lambda t: t * 2)'\n- expect: {f(ones(2)): 2.0}"

    def patched() -> Any:
        outcome = outcome_of_steps(engine, steps)
        assert (outcome["status"], outcome.get("must_restart")) == ("pass", None)
        return torch.nn.Module.__init__

    assert patched() is patched()


def test_a_transform_that_an_error_left_in_force_is_ended(engine: Engine) -> None:
    level = getattr(getattr(torch._C, "_functorch", None), "maybe_current_level", None)
    if level is None:
        pytest.skip("this torch has no transforms of its own")
    torch._C._functorch._grad_increment_nesting()
    outcome = outcome_of_steps(engine, "- a = ones(1)\n- expect: {a: 1}\n")
    assert not level()
    assert "must_restart" not in outcome


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 7"), OSError("No username set")])
def test_a_user_whom_the_system_does_not_know_has_a_name(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise error

    monkeypatch.setenv("USER", "anna")
    name_user()
    assert os.environ["USER"] == "anna"
    monkeypatch.setattr("getpass.getuser", unknown)
    name_user()
    assert os.environ["USER"] == f"uid_{os.getuid()}"


@pytest.mark.parametrize(
    "owner", ["checkpoint", "F.relu", "distributions.constraints.real", "optim.lr_scheduler.StepLR"]
)
def test_what_a_borrowed_method_sets_on_what_cases_share_is_gone_in_the_next(engine: Engine, owner: str) -> None:
    sets = f"- do: nn.Module.train({owner}, False)\n  raises: {{type: AttributeError, match: children}}\n"
    for steps in (sets, f"- expect: {{'hasattr({owner}, \"training\")': false}}\n"):
        assert outcome_of_steps(engine, steps)["status"] == "pass"


@pytest.mark.parametrize(
    ("raises", "observed"),
    [
        ("ValueError(10 ** 5000)", "ValueError: its text can't be had, for that raises ValueError"),
        ("ValueError(nested)", "ValueError: its text can't be had, for that raises RecursionError"),
        ("ValueError(M())", "ValueError: its text can't be had, for that raises GeneratorExit"),
    ],
)
def test_an_error_whose_text_can_not_be_had_is_that_of_the_case(engine: Engine, raises: str, observed: str) -> None:
    outcome = outcome_of_steps(
        engine,
        f"""
        - |
          class M(nn.Module):
              def extra_repr(self):
                  raise GeneratorExit('x')
        - |
          def f():
              nested = []
              for _ in range(100000):
                  nested = [nested]
              raise {raises}
        - f()
        - expect: {{f: 1}}
        """,
    )
    assert (outcome["status"], outcome["step"]) == ("error", 2)
    assert outcome["failures"][0]["observed"].startswith(observed)


def test_a_warning_whose_text_can_not_be_had_leaves_no_modes_on(engine: Engine) -> None:
    steps = """
        - |
          asked = []
          class M(nn.Module):
              def extra_repr(self):
                  asked.append(1)
                  if len(asked) > 1:
                      raise GeneratorExit('x')
                  return ''
        - torch.set_grad_enabled(False)
        - warnings.warn(UserWarning(M()))
        - x = ones(1)
        - expect: {x: 1.0}
        """
    assert outcome_of_steps(engine, steps)["status"] == "pass"
    assert torch.is_grad_enabled()


def test_numbers_of_thousands_of_digits_are_compared_and_shown(engine: Engine) -> None:
    steps = "- x = 10 ** 5000\n- expect: {x: 10 ** 5000}\n- expect: {x: 10 ** 5000 + 1}\n"
    outcome = outcome_of_steps(engine, steps)
    assert (outcome["status"], outcome["step"]) == ("fail", 2)
    assert outcome["failures"][0]["observed"][:1000] == hex(10**5000)[:1000]
