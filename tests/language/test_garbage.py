"""No garbage is collected in a block, and afterwards as before."""

from __future__ import annotations

import gc

import pytest

from conformance.language.garbage import without_collections


def test_collections_go_on_after_the_block_also_after_an_error() -> None:
    def fail() -> None:
        with without_collections():
            assert not gc.isenabled()
            raise KeyError

    assert gc.isenabled()
    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled()


def test_what_was_off_stays_off() -> None:
    gc.disable()
    try:
        with without_collections():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
