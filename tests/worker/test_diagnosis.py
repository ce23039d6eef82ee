"""What a device lacks is told from its faults: by what raised, by what a case caught, by what else it shows."""

from __future__ import annotations

import contextlib
import shutil
from typing import Any

import pytest
import torch
from running import case_of, request_of
from torch._dynamo.exc import InternalTorchDynamoError

from conformance.worker.diagnosis import Diagnosis, fails_as, text_behind
from conformance.worker.features import FEATURES
from conformance.worker.isolation import GlobalState
from conformance.worker.lacking import message_of
from conformance.worker.notes import Notes
from conformance.worker.probing import Call, Prober
from conformance.worker.runner import Runner


def run_on_meta(*statements: str) -> tuple[Runner, dict[str, Any], dict[str, Any]]:
    """Return a runner, the program of these steps, and its answer to it."""
    runner = Runner("meta", GlobalState(), Notes(), {})
    steps = [{"number": number, "line": 1, "do": each} for number, each in enumerate(statements)]
    program = {"file": "a.yaml", "dtype": "float32", "steps": steps}
    return runner, program, runner.run(program)


@pytest.mark.parametrize(
    "seen", [None, Call(torch.ops.aten.clone.default, ((torch.ones(1),), {}), RuntimeError("another"))]
)
def test_an_operation_that_is_not_seen_to_fail_is_found_by_its_function(
    seen: Call | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Seeing(contextlib.nullcontext):  # type: ignore[type-arg]
        """Stands for a recorder under which the device raises no error, or another."""

        raised = seen

        def __init__(self, *_: object) -> None:
            self.used: set[str] = set()
            super().__init__()

    runner, program, answer = run_on_meta("x = zeros(())\nx.item()")
    assert answer["status"] == "error"
    monkeypatch.setattr("conformance.worker.diagnosis.Recorder", Seeing)
    why = Diagnosis(runner).why_lacking(program, answer, lambda *_: None)
    assert why is not None
    assert why.startswith("torch.Tensor.item does not work on meta in float32: ")


def test_what_is_missing_is_found_behind_an_error_that_a_case_expects() -> None:
    steps = """
        - x = ones((), requires_grad=True)
        - do: x.add_(1)
          raises: {type: RuntimeError, match: leaf}
        - y = x.item()
        """
    runner, program = Runner("meta", GlobalState(), Notes(), {}), request_of(case_of(steps), "meta")
    answer = runner.run(program)
    assert (answer["status"], answer["step"]) == ("error", 2)
    why = Diagnosis(runner).why_lacking(program, answer, lambda *_: None) or ""
    assert "does not work on meta in float32: " in why


CAUGHT = """
    - 'fast = compiled(lambda t: t * 2)'
    - |
      def refused():
          try:
              fast(ones(2))
          except RuntimeError:
              return True
          return False
    - expect: {refused(): false}
    """


def test_a_compiled_function_that_raises_is_excused_where_the_compiler_does_not_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise InternalTorchDynamoError("no storage")

    def why(*statements: str) -> str | None:
        runner, program, answer = run_on_meta(*statements)
        assert answer["status"] == "error"
        return Diagnosis(runner).why_lacking(program, answer, lambda *_: None)

    lacks = "meta lacks compiler: InternalTorchDynamoError: no storage"
    compiles = "fast = compiled(lambda t: t * 2)"
    monkeypatch.setattr(torch, "compile", lambda *_, **__: refuse)
    monkeypatch.setitem(FEATURES, "compiler", refuse)
    assert why(compiles, "y = fast(ones(2))") == lacks
    assert why_on_meta(CAUGHT) == lacks
    assert why(compiles, "raise ValueError('of something else')") is None
    monkeypatch.setitem(FEATURES, "compiler", lambda _: True)
    assert why(compiles, "y = fast(ones(2))") is None
    monkeypatch.setitem(FEATURES, "generated-code", refuse)
    assert why(compiles, "y = fast(ones(2))") is None
    for backend in ("inductor", "aot_eager_decomp_partition"):
        compiles = f"fast = compiled(lambda t: t * 2, '{backend}')"
        assert why(compiles, "y = fast(ones(2))") == lacks.replace("compiler", "generated-code")


def test_generated_code_that_the_environment_does_not_let_load_is_no_fault_of_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise InternalTorchDynamoError("no code")

    def why(error: Exception | None, backend: str = "inductor") -> str | None:
        def generates(_: str) -> bool:
            if error is not None:
                try:
                    raise error
                except (OSError, RuntimeError):
                    raise InternalTorchDynamoError("of the compiler") from None
            return True

        monkeypatch.setattr("conformance.worker.features.generates_code", generates)
        runner = Runner("cpu", GlobalState(), Notes(), {})
        steps = [f"fast = compiled(lambda t: t * 2, '{backend}')", "y = fast(ones(2))"]
        numbered = [{"number": number, "line": 1, "do": each} for number, each in enumerate(steps)]
        program = {"file": "a.yaml", "dtype": "float32", "steps": numbered}
        return Diagnosis(runner).why_lacking(program, runner.run(program), lambda *_: None)

    monkeypatch.setattr(torch, "compile", lambda *_, **__: fails)
    told = "no generated code can be built or loaded here:"
    assert why(OSError("main.so: failed to map segment from shared object")) == (
        f"{told} InternalTorchDynamoError: of the compiler"
    )
    assert why(RuntimeError("C++ compile error\n\nCommand:\nno-compiler main.cpp -o main.so\n\nOutput:\n")) == (
        f"{told} FileNotFoundError: [Errno 2] No such file or directory: 'no-compiler'"
    )
    assert why(RuntimeError("main.cpp:7:1: error: expected a semicolon")) is None
    assert why(None) is None
    assert why(OSError("main.so: failed to map segment from shared object"), "aot_eager") is None


def test_an_error_of_an_operation_that_works_is_excused_where_nothing_that_was_traced_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = AttributeError("'int' object has no attribute 'item'")

    def refuse(_: str) -> None:
        raise error

    def why() -> str | None:
        diagnosis = Diagnosis(Runner("meta", GlobalState(), Notes(), {}))
        call = Call(torch.ops.aten.neg.default, ((torch.ones(1),), {}), error)
        return diagnosis.why_raised({message_of(error): False}, call, None)

    assert why() is None
    monkeypatch.setitem(FEATURES, "tracing", refuse)
    assert why() == f"meta lacks tracing: {message_of(error)}"


@pytest.mark.parametrize("feature", ["compiler", "generated-code"])
def test_the_compiler_is_there_on_the_cpu(feature: str) -> None:
    if feature == "generated-code" and shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler here")
    assert Prober("cpu").tried(feature) == ""


CATCHES = """
    - n = 2
    - |
      def refused():
          try:
              ones(2).nonzero()
          except RuntimeError:
              return True
          return False
    - expect: {refused(): false}
    """


def why_on_meta(steps: str) -> str | None:
    """Return what the suite says that this device lacks for a case that fails there."""
    runner, program = Runner("meta", GlobalState(), Notes(), {}), request_of(case_of(steps), "meta")
    answer = runner.run(program)
    assert answer["status"] == "fail"
    return Diagnosis(runner).why_lacking(program, answer, lambda *_: None)


def test_a_missing_operation_whose_error_a_case_has_caught_is_missing() -> None:
    assert (why_on_meta(CATCHES) or "").startswith("NotImplementedError: The register_meta function")
    assert why_on_meta(CATCHES.replace("false}", "true}") + "- expect: {n: 3}") is None


NO_MODULE = """
    - caught, own = [], ValueError("mine")
    - |
      def attempt():
          try:
              raise AttributeError("module 'torch' has no attribute 'meta'")
          except Exception as error:
              caught.append(error)
    - attempt()
    - expect: {"caught[0]": {is: own}}
    """


def test_a_missing_module_of_the_device_whose_error_a_case_has_caught_is_missing() -> None:
    assert "has no attribute 'meta'" in (why_on_meta(NO_MODULE) or "")
    assert why_on_meta(NO_MODULE.replace("attribute 'meta'", "attribute 'other'")) is None
    assert why_on_meta(NO_MODULE.replace("is: own}", "is: own}, len(caught): 2")) is None


def test_an_error_that_comes_only_while_operations_are_looked_at_excuses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nonzero = torch.Tensor.nonzero
    monkeypatch.setattr(
        torch.Tensor, "nonzero", lambda each: nonzero(each) if torch._C._len_torch_dispatch_stack() else each
    )
    assert why_on_meta(CATCHES.replace("false}", "true}")) is None


HOLDS = """
    - x = ones(2)
    - y = x + x
    - seen = weakref.ref(x)
    - del x
    - expect: {seen() is None: true}
    """


def test_what_a_device_holds_until_it_is_done_is_not_asked_to_be_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[object] = []
    add = torch.Tensor.__add__

    def held_add(*args: Any) -> Any:
        held.append(args)
        return add(*args)

    monkeypatch.setattr(torch.Tensor, "__add__", held_add)
    assert why_on_meta(HOLDS) is None
    monkeypatch.setattr("conformance.worker.probing.finish", lambda *_: held.clear())
    assert why_on_meta(HOLDS) == "meta holds what it computes with until that is done"
    assert why_on_meta(HOLDS.replace("true", "3")) is None
    number = HOLDS.replace("{seen() is None: true}", "{'1.5 if seen() is None else 2.5': 1.5}")
    assert why_on_meta(number) is None  # numbers may be wrong because they were read too early


def test_behind_an_expression_stand_the_statements_that_made_its_names() -> None:
    steps = ["def f():\n    return a", "a = 1", "b = 2", "c = f()", "d = c + b", "log(e)"]
    program: list[dict[str, Any]] = [*({"do": each} for each in steps), {"expect": []}]
    assert text_behind("c.grad", program) == "c.grad\nc = f()\ndef f():\n    return a\na = 1"
    assert set(text_behind("d", program).splitlines()) == {"d", *"\n".join(steps[:-1]).splitlines()}
    assert text_behind("x", program) == "x"
    assert text_behind("log", program) == "\n".join(["log", *steps])
    program.append({"do": "d.sum().backward()"})
    assert text_behind("b.grad", program) == "\n".join(
        ["b.grad", "b = 2", "d = c + b", "c = f()", "def f():\n    return a", "a = 1"]
    )
    assert text_behind("b", program) == "b\nb = 2"


def test_a_case_that_is_unsupported_while_it_is_looked_at_fails_in_another_way() -> None:
    answer = {"status": "error", "step": 2, "failures": [{"path": "", "exception": "KeyError"}]}
    assert fails_as(answer, answer)
    assert not fails_as(answer, {"status": "unsupported", "step": 2, "reason": "no double precision"})
