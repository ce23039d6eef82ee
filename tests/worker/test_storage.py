"""Whether tensors share memory is told in the way that a device answers, without a trace, or not told at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from loops import each

from conformance.worker import storage
from conformance.worker.storage import (
    has_addresses,
    keeps_strides,
    notes_conjugation,
    shares_storage,
    way_of,
    why_hidden,
    write_is_seen,
)
from conformance.worker.values import Unobservable

VALUES = {
    "floats": [1.0, -2.0, 0.0],
    "special floats": [float("nan"), float("inf"), -0.0],
    "complex": [1 + 2j, 0j, -1j],
    "integers": [0, 1, -7],
    "bools": [True, False, True],
}


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    """Forget what devices answered, before and after a test that gives them other answers."""
    for known in (way_of, has_addresses, keeps_strides, notes_conjugation):
        known.cache_clear()
    yield
    for known in (way_of, has_addresses, keeps_strides, notes_conjugation):
        known.cache_clear()


@pytest.fixture
def other_device(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let the CPU stand for a device of which nothing is known."""
    monkeypatch.setattr(storage, "FULL_DEVICES", frozenset())
    return monkeypatch


def refuse(*_: Any) -> int:
    raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


def addresses_of_their_own(tensor: torch.Tensor) -> int:
    return id(tensor)


@each("name", VALUES)
def test_a_write_is_seen_in_an_alias_and_leaves_no_trace(name: str) -> None:
    first = torch.tensor(VALUES[name])
    for second, is_shared in ((first.detach(), True), (first.view(3, 1), True), (first.clone(), False)):
        before = str([first.tolist(), second.tolist()])
        assert write_is_seen(first, second) is is_shared
        assert str([first.tolist(), second.tolist()]) == before
        assert (first._version, second._version) == (0, 0)


def test_a_write_is_no_step_of_the_graph() -> None:
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    result = leaf * leaf
    assert write_is_seen(leaf, leaf.detach())
    assert not write_is_seen(leaf, result)
    result.sum().backward()  # what it saved is unchanged
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2.0, 4.0]


def test_parts_of_one_memory_are_not_told_from_memory_of_their_own() -> None:
    base = torch.zeros(4)
    with pytest.raises(Unobservable, match="different parts"):
        write_is_seen(base[:2], base[2:])
    assert base.tolist() == [0.0] * 4


def test_a_device_with_addresses_is_asked_for_them(other_device: pytest.MonkeyPatch) -> None:
    other_device.setattr(storage, "are_aliases", refuse)
    assert way_of("cpu") is storage.have_one_address


def test_addresses_of_views_that_are_their_own_are_not_believed(other_device: pytest.MonkeyPatch) -> None:
    other_device.setattr(storage, "are_aliases", refuse)
    other_device.setattr(storage, "storage_pointer", addresses_of_their_own)
    assert way_of("cpu") is write_is_seen
    base = torch.zeros(2)
    assert shares_storage(base, base.view(2, 1))
    assert not shares_storage(base, torch.zeros(2))


def test_addresses_that_are_all_the_same_are_not_believed(other_device: pytest.MonkeyPatch) -> None:
    other_device.setattr(storage, "are_aliases", refuse)
    other_device.setattr(storage, "storage_pointer", lambda _: 7)
    assert way_of("cpu") is write_is_seen


def test_without_addresses_and_writes_nothing_is_told(other_device: pytest.MonkeyPatch) -> None:
    for name in ("are_aliases", "storage_pointer", "write_is_seen"):
        other_device.setattr(storage, name, refuse)
    assert way_of("cpu") is None
    with pytest.raises(Unobservable, match="in no way"):
        shares_storage(torch.zeros(2), torch.zeros(2))


def test_tensors_that_can_not_be_asked_are_unobservable(other_device: pytest.MonkeyPatch) -> None:
    assert way_of("cpu") is not None
    other_device.setattr(storage, "way_of", lambda _: refuse)
    with pytest.raises(Unobservable, match="doesn't have storage"):
        shares_storage(torch.zeros(2), torch.zeros(2))


def test_on_the_cpu_an_error_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "storage_pointer", refuse)
    with pytest.raises(RuntimeError, match="doesn't have storage"):
        shares_storage(torch.zeros(2), torch.zeros(2))


def test_tensors_of_two_devices_share_nothing() -> None:
    assert not shares_storage(torch.zeros(2, device="meta"), torch.zeros(2))


def test_a_device_without_contents_is_asked_whether_tensors_are_aliases() -> None:
    base = torch.zeros(2, device="meta")
    assert shares_storage(base, base.view(2, 1))
    assert not shares_storage(base, torch.zeros(2, device="meta"))


def test_an_expression_looks_at_addresses_and_strides_only_where_there_are_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert why_hidden("a.data_ptr() == place and a.stride()", "cpu") == ""
    assert why_hidden("a.data_ptr() == place", "meta:0") == "meta shows no addresses"
    assert why_hidden("(a.stride(), a.data)", "meta") == ""
    monkeypatch.setattr(storage, "keeps_strides", lambda _: False)
    for text in ("list(a.stride())", "a.storage_offset()", "a.is_contiguous()"):
        assert why_hidden(text, "meta") == "meta keeps no strides"
    assert why_hidden("a.strides", "meta") == ""


def test_a_device_that_conjugates_at_once_shows_no_note_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("a.is_conj()", "torch.stack([a, b]).is_neg()"):
        assert why_hidden(text, "cpu") == why_hidden(text, "meta") == why_hidden(text, "nothing") == ""
    notes_conjugation.cache_clear()
    monkeypatch.setattr(torch.Tensor, "conj", torch.Tensor.clone)
    assert why_hidden("a.is_conj()", "meta") == "meta notes no conjugation"
    assert why_hidden("a.is_conj()", "cpu") == why_hidden("a.is_conjugate()", "meta") == ""
