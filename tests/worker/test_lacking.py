"""What counts as lacking: on which device, with which dtype, and in which words of torch."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from conformance.worker.lacking import (
    NOTHING_DECLARED,
    declared_by,
    is_out_of_memory,
    may_be_lacking,
    why_lacking,
    why_left_out,
)

NO_KERNEL = "Could not run 'aten::sort' with arguments from the 'XPU' backend."


@pytest.mark.parametrize(
    "error",
    [
        NotImplementedError(NO_KERNEL),
        NotImplementedError("whatever it says"),
        RuntimeError("The operator is not currently implemented for the MPS device"),
        RuntimeError("Operator 'aten::exp.out' is not implemented for torch_mcpu"),
        KeyError("Operator with name aten::angle has no lowering"),
        ValueError("FlexAttention is only supported on CUDA, CPU, HPU, or MPS devices. Found input tensors on npu"),
        RuntimeError("Batching rule not implemented for aten::x. We could not generate a fallback."),
        RuntimeError("_make_dual() during the functionalization pass. For now, this is not supported."),
        RuntimeError("User specified an unsupported autocast device_type 'npu'"),
        AssertionError("Tried to use AMP with the `npu` backend, but the backend has not registered a module"),
        AssertionError("Backend not supported for npu"),
        RuntimeError("x.cpp:139: SymIntArrayRef expected to contain only concrete integers"),
        RuntimeError("mutating a non-functional tensor with a functional tensor is not allowed. Please ensure"),
        RuntimeError("FakeTensor Device Propagation for aten.mul.Tensor, found two different devices npu, npu:0"),
        RuntimeError("FakeTensor Device Propagation for aten.mul.Tensor, found two different devices npu:1, npu"),
        RuntimeError("Expected tensor to have CPU Backend, but got tensor with PrivateUseOne Backend (while checking)"),
        AttributeError("module 'torch' has no attribute 'mps'"),
        RuntimeError("fake tensors: AttributeError(\"module 'torch.mps' has no attribute 'is_initialized'\")"),
    ],
)
def test_a_device_beyond_the_cpu_may_lack_something(error: Exception) -> None:
    for device in ("mps",) if "mps" in str(error) else ("mps", "cuda:1"):
        assert why_lacking(error, device, "float32") == f"{type(error).__name__}: {error}"
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        assert why_lacking(error, "cpu", dtype) is None


@pytest.mark.parametrize(
    "error",
    [
        NotImplementedError("\"histogramdd\" not implemented for 'BFloat16'"),
        RuntimeError("\"addmv_impl_cpu\" not implemented for 'Half'"),
        RuntimeError("Unsupported dtype BFloat16"),
        RuntimeError("grid_sampler_2d_cpu not implemented for BFloat16"),
        RuntimeError(
            "'weight' to have one of the following scalar types: Half, Float, Double; but got CPUBFloat16Type"
        ),
        RuntimeError("invalid default scalar type for complex"),
        RuntimeError("Expected both inputs to be Half, Float or Double tensors but got BFloat16 and BFloat16"),
        ValueError("hann expects float32 or float64 dtypes, got: torch.bfloat16"),
        RuntimeError("linalg.inv: Low precision dtypes not supported. Got Half"),
    ],
)
def test_the_cpu_lacks_what_names_half_precision_and_in_half_precision_alone(error: Exception) -> None:
    for device, dtype in [("cpu", "float16"), ("cpu", "bfloat16"), ("cuda", "float32")]:
        assert why_lacking(error, device, dtype) == f"{type(error).__name__}: {error}"
    assert why_lacking(error, "cpu", "float32") is None
    assert why_lacking(error, "cpu", "float64") is None


@pytest.mark.parametrize(
    "error",
    [
        NotImplementedError("You must implement either the backward or vjp method for your custom Function"),
        RuntimeError("element 0 of tensors does not require grad"),
        ValueError("float64 is not supported on this device"),
        RuntimeError("abs does not support automatic differentiation for outputs with complex dtype."),
        AttributeError("module 'torch' has no attribute 'tensr'"),
        RuntimeError("this hook is only supported on Tensors that require grad"),
        RuntimeError("FakeTensor Device Propagation for aten.mul.Tensor, found two different devices npu:0, npu:1"),
        RuntimeError("FakeTensor Device Propagation for aten.mul.Tensor, found two different devices npu:0, cpu"),
        AttributeError("module 'torch.nn' has no attribute 'mps'"),
    ],
)
def test_what_is_wrong_with_autograd_or_the_case_is_nothing_lacking(error: Exception) -> None:
    assert why_lacking(error, "mps", "float16") is None


@pytest.mark.parametrize(
    "text",
    [
        "Calling eig on a CPU tensor requires compiling PyTorch with LAPACK.",
        "Numpy is not available",
        "ModuleNotFoundError: No module named 'setuptools'",  # of which the compiler makes an error of its own
    ],
)
def test_a_library_that_a_build_was_made_without_is_lacking_everywhere(text: str) -> None:
    assert why_lacking(RuntimeError(text), "cpu", "float32") == text


@pytest.mark.parametrize("name", ["torch", "torch.fx.experimental", "torch._dynamo", "torchgen.model", "functorch"])
def test_a_part_of_torch_that_is_missing_is_none_of_the_environment(name: str) -> None:
    assert why_lacking(ModuleNotFoundError(f"No module named '{name}'"), "cpu", "float32") is None


@pytest.mark.parametrize("separator", ["\n", " "])
def test_an_autocast_that_is_left_out_is_lacking_on_its_device_alone(separator: str) -> None:
    text = f"In NPU autocast, but the target dtype is not supported. Disabling autocast.{separator}NPU Autocast only …"
    assert why_left_out(["another", text], "npu:0") == text.replace("\n", " ")
    assert why_left_out([text.replace("NPU", "npu")], "npu") is not None
    assert why_left_out(["another", text.replace("NPU", "CPU")], "npu") is None
    assert why_left_out([], "npu") is None


def test_what_a_profile_calls_not_implemented_is_lacking_whatever_raises_it() -> None:
    declared = declared_by({"absent": ["sparse"], "not_implemented": [r"^OperatorNotFound", r"no kernel for \w+"]})
    assert declared.absent == ("sparse",)
    for error in (KeyError("no kernel for exp"), type("OperatorNotFound", (Exception,), {})("aten::exp")):
        assert why_lacking(error, "npu", "float32") is None
        assert why_lacking(error, "npu", "float32", declared) == f"{type(error).__name__}: {error}"
    assert why_lacking(RuntimeError("kernel for exp"), "npu", "float32", declared) is None
    assert declared_by({}) == NOTHING_DECLARED


def test_a_reason_is_one_line_of_bounded_length() -> None:
    told = why_lacking(NotImplementedError("one\n  two " + "x" * 900), "mps", "float32")
    assert told is not None
    assert told.startswith("NotImplementedError: one two xxx")
    assert len(told) == len("NotImplementedError: ") + 200


def test_words_that_may_be_about_a_call_count_where_no_operation_is_missing_and_elsewhere_after_a_look() -> None:
    error = TypeError("Cannot convert to float64: the framework doesn't support float64")
    assert why_lacking(error, "cuda", "float32") is not None
    assert why_lacking(error, "npu", "float32") is None
    assert may_be_lacking(error)
    assert not may_be_lacking(RuntimeError("abs does not support automatic differentiation"))
    assert not may_be_lacking(ValueError(str(error)))
    of_mps = "Trying to convert ComplexDouble to the MPS backend but it does not have support for that dtype."
    assert may_be_lacking(TypeError(of_mps))


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: out of memory. Note that the driver is not currently supported for this card"),
        NotImplementedError("MPS backend out of memory (MPS allocated: 9 GB)"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        MemoryError(),
    ],
)
def test_memory_that_runs_out_is_nothing_that_a_device_lacks(error: Exception) -> None:
    assert is_out_of_memory(error)
    for device in ("cuda", "mps", "npu"):
        assert why_lacking(error, device, "float32") is None
    assert not is_out_of_memory(RuntimeError("expected a tensor in host memory"))


def messages() -> list[dict[str, Any]]:
    """Return errors of real back-ends, each with whether something was missing there, as somebody found who looked."""
    text = (Path(__file__).parent / "messages.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def error_of(row: dict[str, Any]) -> Exception:
    kind = getattr(builtins, row["exception"], None) or type(row["exception"], (Exception,), {})
    made: Exception = kind(row["message"])
    return made


@pytest.mark.parametrize("part", ["known", "set aside"])
def test_words_of_real_back_ends_never_excuse_what_is_wrong_and_tell_most_of_what_is_missing(part: str) -> None:
    """What they don't tell is found by trying."""
    rows = [row for row in messages() if row["part"] == part]
    told = [row for row in rows if why_lacking(error_of(row), row["device"], "float32") is not None]
    assert [row["message"] for row in told if not row["is_missing"]] == []
    assert len(told) > 0.6 * sum(row["is_missing"] for row in rows)
