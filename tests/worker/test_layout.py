"""A device without strides is not held to the copies that strides force, and to everything else it is."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from loops import each

from conformance.worker import layout
from conformance.worker.layout import Layouts, may_be_of_layout

SAME = {"path": "c.is_not", "expected": "another object than t", "observed": "the same object"}
SHARED = {"path": "c.not_shares_storage", "expected": "not to share memory with x", "observed": "the same memory"}
VIEW = {"path": "c.view_of", "expected": "null: no view", "observed": "a view of a tensor of shape [2, 3]"}
BASE = {"path": "c._base is b", "expected": "false", "observed": "true"}
NODE = {"path": "c.grad_fn", "expected": "CloneBackward0", "observed": "TBackward0"}
REFUSED = {"path": "raises", "expected": "RuntimeError: … with stride 0 …", "observed": "nothing was raised"}
REPLAYED = {"path": "names", "expected": "[AsStridedBackward0]", "observed": "[ViewBackward0]"}
APART = {"path": "a.shares_storage", "expected": "to share memory with b", "observed": "memory of its own"}
VALUE = {"path": "b", "expected": "[20.0]", "observed": "[2.0]"}
WRONG = {
    "a value": VALUE,
    "a gradient": {"path": "x.grad", "expected": "[2.0]", "observed": "[3.0]"},
    "a version": {"path": "x.version", "expected": "0", "observed": "1"},
    "an alias that is none": APART,
    "a view that is none": {"path": "c.view_of", "expected": "a view of x", "observed": "no view"},
    "another node": {"path": "c.grad_fn", "expected": "MulBackward0", "observed": "TBackward0"},
    "a truth": {"path": "fine(x)", "expected": "true", "observed": "false"},
    "no error": {"path": "raises", "expected": "RuntimeError: … leaf …", "observed": "nothing was raised"},
    "one element for many": {
        "path": "raises", "expected": "RuntimeError: … refers to a single memory location …", "observed": "nothing",
    },
}  # fmt: skip


def seen(func: Any, *args: Any) -> set[str]:
    """Return what is dropped in the call of an operation by a device for which the CPU stands."""
    layouts = Layouts("cpu")
    layouts.__torch_function__(func, (), args)
    return layouts.dropped


def without_strides(way: Any) -> Any:
    """Return a view as a device without strides has it: with the shape and the memory alone."""
    return lambda tensor: (
        way(tensor) if tensor.is_meta else torch.as_strided(tensor, way(tensor).shape, [1] * way(tensor).dim())
    )


@each(
    "way",
    [torch.t, lambda t: t[:, 1:], lambda t: t[:1].expand(2, 3), lambda t: t.diagonal(), lambda t: t.permute(1, 0)],
)
def test_a_view_without_its_strides_is_noticed(way: Any) -> None:
    assert "strides" in seen(without_strides(way), torch.zeros(2, 3))
    assert seen(way, torch.zeros(2, 3)) == set()


def test_strides_that_were_dropped_are_noticed_where_no_storage_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise NotImplementedError("Cannot access storage")

    monkeypatch.setattr(torch.ops.aten, "_has_same_storage_numel", refuse)
    assert seen(without_strides(torch.t), torch.zeros(2, 3)) == {"strides"}
    assert seen(torch.t, torch.zeros(2, 3)) == set()


def test_a_conjugation_that_is_done_at_once_is_noticed() -> None:
    tensor = torch.zeros(2, dtype=torch.complex64)
    assert seen(lambda t: t.conj() if t.is_meta else t.view(2), tensor) == {"conjugation"}
    assert seen(torch.conj, tensor) == set()


def test_a_part_without_the_memory_of_the_whole_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen(lambda t: t[:4].detach(), torch.zeros(5)) == set()
    knows = layout.has_storage_of_its_size
    monkeypatch.setattr(layout, "has_storage_of_its_size", lambda t: True if not t.is_meta else knows(t))
    assert seen(lambda t: t[:4].detach(), torch.zeros(5)) == {"storage"}
    assert seen(lambda t: t.view(5, 1), torch.zeros(5)) == set()


@each(
    "func", [torch.clone, torch.relu_, lambda t: t, lambda t: t.sum().item(), lambda t: [t], lambda t: t.T.contiguous()]
)
def test_what_is_no_view_drops_nothing(func: Any) -> None:
    assert seen(func, torch.zeros(2, 3)) == set()


def test_a_call_that_can_not_be_compared_drops_nothing() -> None:
    assert seen(lambda t: t.t() if not t.is_meta else 1 / 0, torch.zeros(2, 3)) == set()


def test_other_devices_beside_it_are_not_looked_at() -> None:
    layouts = Layouts("npu:1")
    layouts.__torch_function__(without_strides(torch.t), (), (torch.zeros(2, 3),))
    assert layouts.dropped == set()


def test_the_cpu_drops_nothing_in_a_case() -> None:
    layouts = Layouts("cpu")
    with layouts:
        base = torch.arange(6.0).reshape(2, 3).requires_grad_()
        (base.t().contiguous() * base[:, 1:].sum()).sum().backward()
        copy.deepcopy([base, base.detach()])
        torch.ones(2, dtype=torch.complex64).conj().imag.resolve_neg()
        torch.ones(2, dtype=torch.complex64).conj().conj().real.view(2)
    assert layouts.dropped == set()


@each("failures", [[SAME], [SHARED, VIEW], [BASE, SHARED], [NODE, SAME], [REFUSED]])
def test_what_was_not_copied_is_explained_by_strides_that_were_dropped_and_by_nothing_else(failures: Any) -> None:
    layouts = Layouts("fake:0")
    assert may_be_of_layout(failures)
    assert layouts.why_different(failures) is None
    layouts.dropped = {"sharing"}
    assert layouts.why_different(failures) is None
    layouts.dropped = {"strides", "storage"}
    assert (
        layouts.why_different(failures) == "fake:0 keeps no storage and strides of views, for which others are copied"
    )


@each("name", WRONG)
def test_what_is_wrong_is_never_explained_by_strides(name: str) -> None:
    assert not all(map(layout.is_uncopied, [WRONG[name]]))
    assert not may_be_of_layout([SAME, {**WRONG[name], "observed": "else"}])
    assert not may_be_of_layout([])


def test_a_node_of_strides_is_asked_for_where_there_are_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert may_be_of_layout([REPLAYED])
    for keeps, told in ((True, None), (False, "fake keeps no strides of views, for which others are copied")):
        monkeypatch.setattr(layout, "keeps_strides", lambda _, keeps=keeps: keeps)
        assert Layouts("fake").why_different([REPLAYED]) == told


def test_copies_that_do_not_share_are_noticed_where_the_tensors_did() -> None:
    base = torch.zeros(3)
    memo: dict[int, Any] = {}
    parts = [base[:2], base[1:], torch.zeros(3)]
    layouts = Layouts("cpu")
    for part in (parts[0], parts[2]):
        layouts.compare_copies(memo, part, part.clone())
    assert layouts.dropped == set()
    layouts.compare_copies({}, parts[1], parts[1].clone())  # of another call
    assert layouts.dropped == set()
    layouts.compare_copies(memo, parts[1], parts[1].clone())
    assert layouts.dropped == {"sharing"}


def test_copies_that_share_are_fine() -> None:
    base = torch.zeros(3)
    memo: dict[int, Any] = {}
    layouts = Layouts("cpu")
    layouts.compare_copies(memo, base, base.clone())
    layouts.compare_copies(memo, base.detach(), layouts.copies[0][2].detach())
    assert layouts.dropped == set()


def test_copies_explain_memory_that_is_not_shared_and_values_that_were_not_written_through_it() -> None:
    layouts = Layouts("fake")
    assert layouts.why_different([APART, VALUE]) is None
    layouts.dropped = {"strides"}
    assert layouts.why_different([APART, VALUE]) is None
    layouts.dropped = {"sharing"}
    assert may_be_of_layout([APART, VALUE])
    assert layouts.why_different([APART, VALUE]) == "fake has no storage that copies can share"
    for wrong in ({**VALUE, "exception": "RuntimeError"}, WRONG["a gradient"], WRONG["a version"], WRONG["no error"]):
        assert not may_be_of_layout([APART, wrong])
    assert not may_be_of_layout([VALUE])
