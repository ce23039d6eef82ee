"""What a device lacks is found out by trying: an operation that fails alone is missing, one that works there is not."""

from __future__ import annotations

import threading
import types
from typing import Any

import pytest
import torch
from loops import each

from conformance.worker.features import FEATURES, WRONG, LessPrecise, why_missing
from conformance.worker.probing import (
    Call,
    FunctionRecorder,
    Prober,
    Recorder,
    features_of,
    finish,
    waiter,
    why_failing,
)


def idle() -> None:
    """Wait for a device on which everything happens at once."""


class Fake:
    """Stands for an operation that works on the CPU and, where `fails` says so of its tensors, not on the device."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: Any) -> None:
        self.fails = fails
        self.device = "cpu"
        monkeypatch.setattr("conformance.worker.probing.attempt", self.attempt)

    def attempt(self, operation: Any, arguments: Any, device: str, _: Any) -> Exception | None:
        try:
            operation(*arguments[0], **arguments[1])
        except (RuntimeError, IndexError) as error:
            return error
        tensors = [each for each in arguments[0] if isinstance(each, torch.Tensor)]
        return RuntimeError("not here") if device == "fake" and self.fails(*tensors) else None


def call(operation: Any, *arguments: Any) -> Call:
    return Call(operation, (arguments, {}), RuntimeError("not here"))


def test_an_operation_that_fails_on_all_that_the_cpu_accepts_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch, lambda *_: True)
    assert why_failing(call(torch.exp, torch.ones(3)), "fake", idle) == "RuntimeError: not here"
    assert why_failing(call(torch.mm, torch.ones(2, 3), torch.ones(3, 2)), "fake", idle) == "RuntimeError: not here"


@pytest.mark.parametrize(
    "works",
    [
        lambda x: x.is_contiguous(),
        lambda x: bool((x == 1).all()),
        lambda x: x.dim() == 1,
        lambda x: x.shape == (2, 2),
    ],
)
def test_an_operation_that_works_for_some_plain_input_is_not(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch, lambda x: not works(x))
    assert why_failing(call(torch.exp, torch.arange(6.0).reshape(2, 3).t()), "fake", idle) == ""


def test_what_the_cpu_refuses_too_is_no_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch, lambda *_: True)
    assert why_failing(call(torch.mm, torch.ones(2, 3), torch.ones(4)), "fake", idle) == ""
    assert why_failing(call(torch.linalg.cholesky, torch.ones(3)), "fake", idle) == ""


def test_indices_keep_their_values_and_tensors_that_belong_together_their_shapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[Any, ...]] = []

    def fails(*tensors: torch.Tensor) -> bool:
        seen.append(tuple(each.tolist() for each in tensors))
        return True

    Fake(monkeypatch, fails)
    assert why_failing(call(torch.take, torch.arange(6.0), torch.tensor([5, 0])), "fake", idle)
    assert seen == [([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [5, 0]), ([1.0] * 6, [5, 0])]


def test_a_failure_on_empty_tensors_alone_is_no_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch, lambda x: x.numel() == 0)
    assert why_failing(call(torch.exp, torch.ones(0, 3)), "fake", idle) == ""


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        (torch.ops.aten.sort.values, {"values": torch.ones(3), "indices": torch.empty(0, dtype=torch.int64)}),
        (torch.cumsum, {"out": torch.empty(0)}),
    ],
)
def test_tensors_that_are_there_to_be_filled_may_be_empty(
    operation: Any, arguments: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Fake(monkeypatch, lambda *_: True)
    error = RuntimeError("not here")
    assert why_failing(Call(operation, ((torch.ones(3), 0), arguments), error), "fake", idle)
    Fake(monkeypatch, lambda x: x.numel() == 0)
    assert why_failing(Call(operation, ((torch.ones(0), 0), arguments), error), "fake", idle) == ""


def test_the_operation_that_raised_is_recorded() -> None:
    recorder = Recorder("cpu", lambda: None)
    x = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError), recorder:
        (x.exp() @ x).sum().backward()
    assert recorder.raised is not None
    assert str(recorder.raised.operation) == "aten.mm.default"
    assert [tuple(each.shape) for each in recorder.raised.tensors] == [(2, 3), (2, 3)]
    assert recorder.raised.dtypes == ["float32"]


def test_an_error_that_comes_late_belongs_to_the_operation_that_made_it() -> None:
    late: list[str] = []

    def wait() -> None:
        if late:
            raise RuntimeError(late.pop())

    recorder = Recorder("cpu", wait)
    x = torch.ones(2)
    late.append("of exp")
    with pytest.raises(RuntimeError, match="of exp"), recorder:
        x.exp().sum()
    assert recorder.raised is not None
    assert str(recorder.raised.operation) == "aten.exp.default"


def test_the_cpu_has_the_features_of_tensors() -> None:
    about_devices = {"device-module", "streams", "random-state"}
    assert {name: why_missing(name, "cpu") for name in FEATURES if name not in about_devices} == dict.fromkeys(
        FEATURES.keys() - about_devices, ""
    )


def test_a_device_that_torch_does_not_know_has_none() -> None:
    assert {why_missing(name, "nothing") for name in FEATURES}.isdisjoint({"", WRONG})


def test_a_feature_that_gives_other_results_excuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FEATURES, "strides", lambda _: False)
    assert why_missing("strides", "cpu") == WRONG
    assert Prober("cpu").why_lacking(call(torch.exp, torch.ones(2, 3).t())) is None


def test_a_dtype_that_a_device_lacks_is_the_reason_rather_than_the_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise KeyError("torch.complex64")

    monkeypatch.setitem(FEATURES, "complex64", refuse)
    told = Prober("cpu").why_lacking(call(torch.exp, torch.ones(2, dtype=torch.complex64)))
    assert told == "cpu lacks complex64: KeyError: 'torch.complex64'"


def test_memory_that_runs_out_while_looking_is_no_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setitem(FEATURES, "int64", refuse)
    assert why_missing("int64", "cpu") == ""
    monkeypatch.setattr(
        "conformance.worker.probing.attempt",
        lambda *given: None if given[2] == "cpu" else RuntimeError("CUDA out of memory"),
    )
    assert why_failing(call(torch.exp, torch.ones(3)), "fake", idle) == ""


def test_functions_are_looked_at_where_tensors_have_a_class_that_may_do_without_the_dispatcher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Own(torch.Tensor):  # type: ignore[misc]  # torch has no types for it
        """All tensors of a device."""

    def raised_call(*, is_on: bool = False) -> Call | None:
        recorder = FunctionRecorder("meta", is_on=is_on)
        with recorder, pytest.raises(RuntimeError):
            torch.ones(2).view(5)
        return recorder.raised

    assert raised_call() is None
    asked = raised_call(is_on=True)
    assert asked is not None
    assert asked.operation is torch.Tensor.view
    move = torch.Tensor.to
    monkeypatch.setattr(torch.Tensor, "to", lambda *given: move(*given).as_subclass(Own))
    raised = raised_call()
    assert raised is not None
    assert raised.operation is torch.Tensor.view
    monkeypatch.undo()
    Fake(monkeypatch, lambda *_: True)
    told = Prober("fake").why_not_working(call(torch.Tensor.resize_, torch.ones(2), 3))
    assert told == "torch.Tensor.resize_ does not work on fake in float32: RuntimeError: not here"
    Fake(monkeypatch, lambda *_: False)
    assert Prober("fake").why_not_working(call(torch.Tensor.resize_, torch.ones(2), 3)) is None


def test_the_name_of_a_device_among_arguments_gives_way_to_the_cpu() -> None:
    def refusing(tensor: torch.Tensor, device: Any) -> torch.Tensor:
        if torch.device(device).type == "meta":
            raise RuntimeError("not here")
        return tensor

    there = Call(refusing, ((torch.ones(2),), {"device": "meta"}), RuntimeError("not here"))
    assert why_failing(there, "meta", idle) == "RuntimeError: not here"
    elsewhere = Call(refusing, ((torch.ones(2),), {"device": "cpu"}), RuntimeError("not here"))
    assert why_failing(elsewhere, "meta", idle) == ""


def test_a_device_without_a_function_to_wait_is_waited_for_as_the_accelerator_that_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[str] = []
    current = types.SimpleNamespace(type="fake")
    accelerator = types.SimpleNamespace(
        current_accelerator=lambda: current, synchronize=lambda: waited.append("accelerator")
    )
    monkeypatch.setattr(torch, "accelerator", accelerator, raising=False)
    waiter("fake:1")()
    assert waited == ["accelerator"] * 2  # once to try it
    waiter("other")()
    monkeypatch.setattr(accelerator, "current_accelerator", lambda: None)
    waiter("fake")()
    monkeypatch.setattr(torch, "accelerator", None)
    waiter("fake")()
    assert len(waited) == 2


def test_tensors_of_the_cpu_beside_those_of_a_device_need_none_of_its_features() -> None:
    there = torch.ones(2, device="meta")
    wide = torch.ones(2, dtype=torch.float64)
    assert list(features_of(call(torch.Tensor.copy_, torch.ones(2, device="meta", dtype=torch.float16), wide))) == [
        "float16"
    ]
    assert list(features_of(call(torch.Tensor.copy_, there, wide))) == []
    assert list(features_of(call(torch.Tensor.to, wide, torch.device("meta")))) == ["float64"]


def test_a_class_of_tensors_with_a_repr_of_its_own_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(torch.Tensor):  # type: ignore[misc]  # torch has no types for it
        def __repr__(self, *, tensor_contents: Any = None) -> str:
            return "Own()"

    assert why_missing("repr", "cpu") == ""
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, _: tensor.as_subclass(Own))
    why = "OwnWords: test_probing.Own has a repr() of its own"
    assert why_missing("repr", "fake") == why.replace("test_probing", __name__)
    prober = Prober("fake")
    assert prober.limits({"repr"})["unshown"] == f"fake lacks repr: {prober.why_missing('repr')}"
    assert "unshown" not in prober.limits(set())


def test_a_device_is_waited_for_with_what_its_module_has_if_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    works = types.SimpleNamespace(synchronize=lambda: waited.append("here"))
    monkeypatch.setattr(torch, "fake", works, raising=False)
    waiter("fake:1")()
    assert waited == ["here"] * 2  # once to try it
    monkeypatch.setattr(torch, "fake", types.SimpleNamespace(synchronize=lambda: 1 / 0), raising=False)
    waiter("fake")()
    waiter("nothing")()


@pytest.mark.parametrize(
    ("shift", "told"),
    [(0.0, ""), (3e-8, "LessPrecise: computed in single precision"), (0.1, WRONG)],
)
def test_double_precision_is_judged_by_digits(shift: float, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    exp = torch.exp
    made: list[Any] = []

    def off(tensor: torch.Tensor) -> torch.Tensor:
        made.append(tensor)
        return exp(tensor) + (shift if len(made) == 2 else 0.0)  # the second is that of the device in this dtype

    monkeypatch.setattr(torch, "exp", off)
    assert why_missing("float64", "cpu") == told


def test_a_case_in_double_precision_says_nothing_of_a_device_that_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise TypeError("no double here")

    prober = Prober("cpu")
    assert {prober.why_missing(name) for name in ("float64", "complex128", "aliasing-views")} == {""}
    assert prober.why_silent({"float32", "float64"}) is None
    monkeypatch.setitem(FEATURES, "float64", refuse)
    prober = Prober("cpu")
    assert prober.why_silent({"float32", "float64"}) == "cpu lacks float64: TypeError: no double here"
    assert prober.why_silent({"float32", "complex128"}) is None
    monkeypatch.setitem(FEATURES, "float64", lambda _: False)
    assert Prober("cpu").why_silent({"float64"}) is None  # it has them, and they are wrong


def test_what_a_profile_declares_absent_is_believed_where_a_case_uses_it() -> None:
    prober = Prober("cpu", ["aliasing-views", "complex64"])
    recorder = Recorder("cpu", lambda: None)
    x = torch.zeros(2, 2)
    y = torch.zeros(2)
    with recorder:
        x[0].exp()
        y.detach().exp_()
    assert "copying" not in prober.limits(recorder.used)
    with recorder:
        x[0].exp_()
    assert prober.limits(recorder.used)["copying"] == "cpu lacks aliasing-views: by design, as its profile says"
    told = prober.why_lacking(call(torch.exp, torch.ones(2, dtype=torch.complex64)))
    assert told == "cpu lacks complex64: by design, as its profile says"


def test_an_operation_that_refuses_its_arguments_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch, lambda *_: True)
    made = call(torch.exp, torch.ones(2))
    assert Prober("fake").why_lacking(made) is not None
    assert Prober("fake").why_lacking(made._replace(error=TypeError("expected an npu tensor, but got cpu"))) is None
    lowering = RuntimeError("Operands to IsNan must be real-valued floating-point, but got C64: ")
    assert Prober("fake").why_lacking(made._replace(error=lowering)) is not None


def test_a_message_by_which_an_operation_was_found_missing_is_known_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch, lambda *_: True)
    prober = Prober("fake")
    assert prober.why_as_before("RuntimeError: not here") is None
    assert prober.why_lacking(call(torch.exp, torch.ones(2))) is not None
    assert prober.why_as_before("RuntimeError: not here") is not None
    assert prober.why_as_before("RuntimeError: another") is None


def test_an_operation_that_is_missing_altogether_says_nothing_of_a_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: torch.Tensor) -> None:
        raise RuntimeError("error 17")

    for name in ("exp", "square", "add"):
        monkeypatch.setattr(torch, name, missing)
    monkeypatch.setattr(torch.Tensor, "__add__", missing)
    assert {why_missing(name, "cpu") for name in ("float64", "complex128", "float16", "int64")} == {""}
    assert Prober("cpu").why_silent({"float64", "complex128"}) is None


def test_what_is_computed_beside_a_device_is_no_use_of_it() -> None:
    recorder = Recorder("meta:0", lambda: None)
    wide = torch.ones(2, dtype=torch.float64)
    there = torch.ones(2, device="meta")
    with recorder:
        wide.exp().to(torch.complex128)
        there.exp()
    assert recorder.used == {"float32"}
    with recorder:
        wide.to("meta")
    assert recorder.used == {"float32", "float64"}
    recorder.used.clear()
    with recorder:
        torch.empty(2, dtype=torch.complex64, device="meta")
    assert recorder.used == {"complex64"}


def test_a_device_that_lays_out_each_tensor_anew_lacks_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.worker.features.keeps_strides", lambda _: False)
    assert why_missing("strides", "cpu") == "Contiguous: a transposed tensor has the strides of any other"


def test_a_feature_is_missing_that_raises_the_error_of_a_case_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise AttributeError("no node")

    assert Prober("cpu").why_raising({"AttributeError: no node": False}) is None
    monkeypatch.setitem(FEATURES, "nested", refuse)
    assert Prober("cpu").why_raising({"AttributeError: no node": False}) == "cpu lacks nested: AttributeError: no node"
    assert Prober("cpu").why_raising({"RuntimeError: no node": False}) is None


class Bare:
    """Stands for a tensor of a device that has nothing but its values."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("cannot pickle 'Holder' object")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("<Record object at 0x7f2eb98b710> is not pickleable.")

    def requires_grad_(self) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("in a thread")
        return torch.ones(2, requires_grad=True)

    def as_subclass(self, _: type) -> Any:
        raise AssertionError("only in the environment")


@each(
    "feature, message",
    {
        "strides": "RuntimeError: Error while lowering: aten::as_strided",
        "int64": "RuntimeError: torch.take_along_dim(): dtype of indices should be Long but got Int",
        "subclasses": "RuntimeError: Creating a new Tensor subclass Labelled but the raw Tensor object is already …",
    }.items(),
)
def test_an_error_about_a_feature_is_excused_where_the_feature_is_missing(
    feature: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> None:
        raise RuntimeError("in other words")

    assert Prober("cpu").why_raising([message]) is None
    monkeypatch.setitem(FEATURES, feature, refuse)
    assert Prober("cpu").why_raising([message]) == f"cpu lacks {feature}: {message}"
    assert Prober("cpu").why_raising(["RuntimeError: Error while lowering: aten::expand"]) is None


def test_what_a_device_lacks_outside_of_operations_is_told_by_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "to", lambda *_: Bare())
    errors = {
        "deepcopy": "TypeError: cannot pickle 'Holder' object",
        "pickle": "RuntimeError: <Record object at 0x…> is not pickleable.",
        "threads": "RuntimeError: in a thread",
        "subclasses": "AssertionError: only in the environment",
    }
    for name, error in errors.items():
        assert Prober("cpu").why_raising([error]) == f"cpu lacks {name}: {error}"


def test_zeros_that_formulas_cannot_skip_are_a_limit_where_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Recorder("cpu", lambda: None) as recorder:
        torch._efficientzerotensor((2,), device="cpu")
    assert "filling" not in Prober("cpu").limits(recorder.used)
    monkeypatch.setattr(torch, "_efficientzerotensor", lambda size, device: torch.zeros(size, device=device))
    why = "cpu lacks zero-tensors: Filled: zeros without memory are tensors like any others"
    assert Prober("cpu").limits(recorder.used)["filling"] == why
    assert "filling" not in Prober("cpu").limits(set())


def test_a_device_that_fails_outside_of_threads_too_does_not_lack_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "__mul__", lambda *_: torch.ones(2) @ torch.ones(3))
    assert Prober("cpu").tried("threads") == ""
    assert Prober("cpu").tried("functionalization") == ""
    assert Prober("cpu").tried("tracing") == ""


def test_a_device_on_which_what_was_traced_raises_lacks_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    def replayed(_: torch.Tensor) -> None:
        raise AttributeError("'int' object has no attribute 'item'")

    assert Prober("cpu").tried("tracing") == ""
    monkeypatch.setattr(torch.jit, "trace", lambda *_, **__: replayed)
    error = "AttributeError: 'int' object has no attribute 'item'"
    assert Prober("cpu").why_raising([error]) == f"cpu lacks tracing: {error}"
    assert Prober("cpu").why_raising(["RuntimeError: element 0 of tensors does not require grad"]) is None


def test_another_dtype_than_was_asked_for_is_told_by_the_check_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def become(_: str) -> None:
        raise LessPrecise("tensors become int32")

    def failure(path: str, expected: str, observed: str) -> dict[str, str]:
        return {"path": path, "expected": expected, "observed": observed}

    other = failure("x.dtype", "int64", "int32")
    assert Prober("cpu").why_other_dtype([other]) is None
    assert "narrowing" not in Prober("cpu").limits(set())
    monkeypatch.setitem(FEATURES, "int64", become)
    prober = Prober("cpu")
    assert prober.why_other_dtype([other, other]) == "cpu lacks int64: LessPrecise: tensors become int32"
    assert prober.limits(set())["narrowing"] == "cpu lacks int64: LessPrecise: tensors become int32"
    for wrong in (
        failure("x.dtype", "int64", "float32"),
        failure("x.grad", "1", "2"),
        failure("x.dtype", "int32", "int64"),
    ):
        assert prober.why_other_dtype([other, wrong]) is None
    assert prober.why_other_dtype([]) is None


def test_what_a_device_does_only_when_it_is_read_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, place: read.append((tensor.shape, place)))
    monkeypatch.setattr(torch.Tensor, "device", types.SimpleNamespace(type="lazy"))
    finish([torch.ones(2), 3, (torch.ones(1, 2), None)], idle)
    assert read == [((2,), "cpu"), ((1, 2), "cpu")]


@pytest.mark.skipif(not hasattr(torch.nested, "nested_tensor_from_jagged"), reason="this torch has none")
def test_a_jagged_tensor_is_nested_and_not_sparse() -> None:
    jagged = torch.nested.nested_tensor_from_jagged(torch.ones(3), offsets=torch.tensor([0, 1, 3]))
    assert list(features_of(call(torch.exp, jagged))) == ["nested"]
