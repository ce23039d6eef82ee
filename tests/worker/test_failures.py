"""What a failure says is the same everywhere; which warnings count as autograd's."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from loops import each

from conformance.worker import failures
from conformance.worker.failures import TORCH, failures_of_warnings, portable_message


def test_what_a_failure_says_is_the_same_on_every_machine() -> None:
    """pybind11 adds the calls that led to an error, with the paths of this machine; torch names its own files."""
    told = "RuntimeError: RuntimeError: no\n\nAt:\n  /a/b.py(3): f\n  cases/c.yaml(4): <lambda>\n"
    assert portable_message(told) == "RuntimeError: RuntimeError: no"
    own = "RuntimeError: RuntimeError: no\n\nAt:\n  cases/c.yaml (no source)(4): <lambda>\n"
    assert portable_message(own) == "RuntimeError: RuntimeError: no"
    assert portable_message(" ".join(told.split())) == "RuntimeError: RuntimeError: no"
    assert portable_message(f'File "{torch.__path__[0]}/autograd/graph.py"') == 'File "torch/autograd/graph.py"'
    own = f'File "{failures.__file__}", line 3, in f\n  File "/a b/conformance/worker/x.py", line 4'
    shown = 'File "conformance/worker/failures.py", line 3, in f\n  File "conformance/worker/x.py", line 4'
    assert portable_message(own) == shown
    assert portable_message("expected 3 (found 4): At: most 5") == "expected 3 (found 4): At: most 5"


def warned(text: str, file: str = "t.yaml") -> warnings.WarningMessage:
    return warnings.WarningMessage(UserWarning(text), UserWarning, file, 1)


OF_BACK_ENDS = [
    warned(
        "The operator 'aten::x' is not currently supported on the MPS backend and will fall back to run on the CPU."
    ),
    warned("Fallback to CPU: aten::x"),
    warned("Slow. (Triggered internally at /build/torch_npu/csrc/aten/ops.cpp:7.)"),
    warned("Slow. (Triggered internally at /pytorch/aten/src/ATen/native/mps/operations/x.mm:7.)"),
    warned("The given NumPy array is not writable, and … (Triggered internally at /pytorch/torch/csrc/utils/x.cpp:7.)"),
]
OF_A_PACKAGE = warned("jax says", "/env/lib/python3.11/site-packages/jax/core.py")
OF_TORCH = [
    warned("The .grad attribute (Triggered internally at /pytorch/build/aten/src/ATen/core/TensorBody.h:4.)"),
    warned("Error detected (Triggered internally at ../torch/csrc/autograd/python_anomaly_mode.cpp:7.)"),
    warned("deprecated", f"{TORCH}/nn/modules.py"),
    warned("of the case itself"),
]


@each("warning", OF_BACK_ENDS, ids=[str(each.message) for each in OF_BACK_ENDS])
def test_a_warning_of_a_back_end_is_none_of_autograd(warning: warnings.WarningMessage) -> None:
    nothing: dict[str, Any] = {"type": None, "match": [], "line": 1}
    assert failures_of_warnings(nothing, [warning], "mps") == []
    assert failures_of_warnings(nothing, [warning], "cpu") != []


def test_a_warning_of_another_package_is_none_of_autograd_on_any_device() -> None:
    nothing: dict[str, Any] = {"type": None, "match": [], "line": 1}
    assert failures_of_warnings(nothing, [OF_A_PACKAGE], "mps") == []
    assert failures_of_warnings(nothing, [OF_A_PACKAGE], "cpu") == []
    from_torch = warned("jax calls torch (Triggered internally at /pytorch/torch/csrc/x.cpp:7.)", OF_A_PACKAGE.filename)
    assert failures_of_warnings(nothing, [from_torch], "cpu") != []


def test_a_suite_that_is_installed_is_no_package_whose_warnings_count_for_nothing() -> None:
    nothing: dict[str, Any] = {"type": None, "match": [], "line": 1}
    from_suite = warned("of torch", "/env/lib/python3.11/site-packages/conformance/worker/factories.py")
    for device in ("cpu", "mps"):
        assert failures_of_warnings(nothing, [from_suite], device) != []


@each("warning", OF_TORCH, ids=[str(each.message) for each in OF_TORCH])
def test_a_warning_of_torch_counts_on_every_device(warning: warnings.WarningMessage) -> None:
    nothing: dict[str, Any] = {"type": None, "match": [], "line": 1}
    assert failures_of_warnings(nothing, [*OF_BACK_ENDS, warning], "mps") != []


def test_a_warning_of_strides_is_one_of_a_device_that_keeps_none(monkeypatch: pytest.MonkeyPatch) -> None:
    where = "(Triggered internally at /pytorch/torch/csrc/autograd/functions/accumulate_grad.h:252.)"
    contract = warned(f"grad and param do not obey the gradient layout contract. grad.sizes() = [1] {where}")
    nothing: dict[str, Any] = {"type": None, "match": [], "line": 1}
    assert failures_of_warnings(nothing, [contract], "meta") != []
    monkeypatch.setattr(failures, "keeps_strides", lambda _: False)
    assert failures_of_warnings(nothing, [contract], "meta") == []
    assert failures_of_warnings(nothing, [contract], "cpu") != []
