"""The CPU under the limits of a device fails as that has to, and only then is a failure there put down to the limit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from running import case_of, request_of, running_engine

from conformance.worker.beside import Beside
from conformance.worker.diagnosis import limits_of_copies, why_limited
from conformance.worker.limited import LIMITS, is_alike

DIGITS = """
    - x = tensor([0.1], dtype=torch.float64, requires_grad=True)
    - y = x * 3
    - y.add_(x)
    - y.sum().backward()
    - expect: {x: {version: 0, grad: 4.0}, y: {version: 1}}
    - expect: {y: {value: 0.4, rtol: 1.0e-12, atol: 0.0}}
    """
TYPE = """
    - x = tensor([0.5], dtype=torch.float64, requires_grad=True)
    - (x.double() * 3).sum().backward()
    - expect: {x: {dtype: float64, grad: 3.0}}
    """
DEFAULT = """
    - torch.set_default_dtype(torch.float64)
    - x = tensor([0.3], requires_grad=True)
    - expect: {x: {dtype: float64}}
    """
DEFAULT_AT_EACH_CALL = """
    - 'fast = compiled(lambda t: t * torch.ones(2))'
    - x = tensor([0.5, 2.0])
    - found = []
    - |
      for each in [torch.float64, torch.float32]:
          torch.set_default_dtype(each)
          found.append(fast(x).dtype == each)
    - expect: {x: {value: [0.5, 2.0]}}
    - expect: {found: [true, true]}
    """
VIEW = """
    - x = tensor([1.0, 2.0])
    - x[0].mul_(5)
    - expect: {x: {value: [5.0, 2.0]}}
    """
WHOLE = """
    - x = tensor([1, 2, 3])
    - picked = torch.take(tensor([5.0, 6.0, 7.0, 8.0]), x)
    - expect: {picked: {value: [6.0, 7.0, 8.0]}}
    - expect: {x.argmax().dtype == torch.int64: {value: true}}
    """
DRAWN = """
    - x = ones(64, requires_grad=True)
    - 'f = lambda t: F.dropout(t) * t'
    - y = checkpoint(f, x, use_reentrant=False)
    - expected = 2 * y.detach()
    - y.sum().backward()
    - expect: {"(x.grad - expected).abs().max().item()": 0.0}
    """
CHECKED = """
    - x = tensor([0.3], dtype=torch.float64, requires_grad=True)
    - expect: {"autograd.gradcheck(lambda t: t.exp().sin() * 7, x)": true}
    """
SHOWN = """
    - x = ones(2, requires_grad=True)
    - shown = [repr(x), repr(Parameter(x.detach()))]
    - expect: {"['requires_grad=True' in text for text in shown]": [true, true]}
    """
ZEROS = """
    - x, k = tensor([0.5, 2.0]), tensor([True, False])
    - |
      def slope():
          with forward_ad.dual_level():
              return forward_ad.unpack_dual(k / forward_ad.make_dual(x, ones(2))).tangent
    - expect: {slope(): [-4.0, 0.0]}
    """


def limited(steps: str, *names: str) -> dict[str, Any]:
    with running_engine() as engine:
        return engine.limited(request_of(case_of(steps), device="toy"), names) or {}


@pytest.mark.parametrize(
    ("steps", "limit", "paths"),
    [
        (DIGITS, "rounding", ["y"]),
        (TYPE, "narrowing", ["x.dtype"]),
        (DEFAULT, "narrowing", ["x.dtype"]),
        (DEFAULT_AT_EACH_CALL, "narrowing", ["found"]),
        (VIEW, "copying", ["x"]),
        (WHOLE, "narrowing", ["x.argmax().dtype == torch.int64"]),
        (DRAWN, "forgetting", ["(x.grad - expected).abs().max().item()"]),
        (CHECKED, "rounding", ["autograd.gradcheck(lambda t: t.exp().sin() * 7, x)"]),
        (ZEROS, "filling", ["slope()"]),
        (SHOWN, "unshown", ["['requires_grad=True' in text for text in shown]"]),
    ],
)
def test_what_a_limit_changes_fails_and_nothing_else(steps: str, limit: str, paths: list[str]) -> None:
    for name in LIMITS:
        found = limited(steps, name)
        if name == limit:
            assert [failure["path"] for failure in found["failures"]] == paths
        elif {name, limit} != {"rounding", "narrowing"}:
            assert found["status"] == "pass", found


CANCELLED = """
    - x = tensor([0.0009765625], dtype=torch.float64)
    - y = x + 1 - 1
    - z = tensor([3.0, 1 + 2j], dtype=torch.complex128) * 2
    - expect: {y: {value: 0.0009765625, rtol: 1.0e-05}, z: {value: [6.0, 2 + 4j], rtol: 1.0e-12}}
    """


def test_where_terms_cancel_a_few_units_in_the_last_place_show_and_whole_numbers_have_none() -> None:
    assert limited(CANCELLED, "rounding")["status"] == "pass"
    assert [failure["path"] for failure in limited(CANCELLED, "rounding 4")["failures"]] == ["y"]


def test_single_precision_sets_the_default_dtype_where_it_is_set_and_at_no_other_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[torch.dtype] = []
    put = torch._C._set_default_dtype

    def noting(dtype: torch.dtype) -> None:
        found.append(dtype)
        put(dtype)

    monkeypatch.setattr(torch._C, "_set_default_dtype", noting)
    with LIMITS["narrowing"]():
        found.clear()
        torch.set_default_dtype(torch.float64)
        assert (torch.ones(2) / 3).dtype is torch.get_default_dtype() is torch.float32
        assert found == [torch.float32]
    assert torch.get_default_dtype() is torch.float32


PARTS = """
    - x = tensor([1.0, 2.0, 3.0, 4.0])
    - x[0].mul_(5)
    - x.unfold(0, 2, 1)[1].zero_()
    - expect: {x: {value: [5.0, 0.0, 0.0, 4.0]}}
    """


def test_only_views_of_operations_that_a_device_has_copies_for_are_copies() -> None:
    failures = limited(PARTS.replace("0.0, 0.0", "2.0, 3.0"), "copying aten::select")["failures"]
    assert [(failure["path"], failure["observed"]) for failure in failures] == [("x", "[1.0, 2.0, 3.0, 4.0]")]
    assert limited(PARTS, "copying aten::view_as_real")["status"] == "pass"


def test_the_fallback_of_pytorch_tells_which_views_are_copies() -> None:
    words = (
        '0The operator aten::{} appears to be a view operator, but it has no implementation for the backend "toy:0".'
    )
    given = [words.format("unfold"), words.format("select.int"), words.format("unfold"), "it is slow"]
    assert limits_of_copies(given, "toy") == {
        "copying aten::select aten::unfold": "toy lacks aten::select, aten::unfold, and copies in place of views"
    }
    assert limits_of_copies(given[3:], "toy") == {}


def test_what_fails_on_the_cpu_without_a_limit_is_not_put_down_to_one() -> None:
    failed, passed = outcome("a"), {"status": "pass"}
    reasons = {"rounding": "no double", "forgetting": "no state"}

    def told(*names: str) -> str | None:
        return why_limited({}, failed, reasons, lambda _, given: failed if given == list(names) else passed)

    assert told("rounding") == "no double"
    assert told("rounding", "forgetting") == "no double; no state"
    reasons["rounding 4"] = "no double"
    assert told("rounding", "forgetting", "rounding 4") == "no double; no state"
    assert told("copying") is None
    assert why_limited({}, failed, reasons, lambda *_: failed) is None
    assert why_limited({}, failed, {}, lambda *_: failed) is None


def outcome(*paths: str, step: int = 3, exception: str = "", status: str = "fail") -> dict[str, Any]:
    failures = [{"path": path, **({"exception": exception} if exception else {})} for path in paths]
    return {"status": status, "step": step, "failures": failures}


def test_only_the_same_failure_is_alike() -> None:
    assert is_alike(outcome("a"), outcome("a", "b"))
    assert not is_alike(outcome("a", "b"), outcome("a"))
    assert not is_alike(outcome("a"), outcome("a", step=4))
    assert not is_alike(outcome("a"), outcome("a", status="error"))
    assert not is_alike(outcome("a"), outcome("a", exception="ValueError"))
    assert not is_alike(outcome("a"), {"status": "pass"})
    assert not is_alike(outcome("a"), None)


def test_differences_of_rounded_values_are_seen_by_any_gradcheck() -> None:
    checked = outcome("gradcheck(f)", exception="GradcheckError")
    assert is_alike(checked, outcome("gradgradcheck(f)", step=4, exception="GradcheckError"))
    assert is_alike(checked, outcome("", exception="GradcheckError", status="error"))
    assert is_alike(
        outcome("gradcheck(f)", exception="RuntimeError"), outcome("gradcheck(g)", exception="RuntimeError")
    )
    assert not is_alike(outcome("gradcheck(f)", exception="IndexError"), checked)  # no difference of values
    assert not is_alike(checked, outcome("f"))
    assert not is_alike(outcome("gradcheck(f)", "f"), checked)


def test_a_process_beside_this_one_answers_until_it_ends() -> None:
    other = Beside()
    request = {**request_of(case_of(VIEW)), "limits": ["copying"]}
    assert [failure["path"] for failure in (other.run(request) or {})["failures"]] == ["x"]
    assert (other.run({**request, "limits": []}) or {})["status"] == "pass"
    assert other.run({}) is None  # it ends over that
    assert other.run(request) is None
    other.close()
