"""Lists that are kept in compressed blocks, and read entry by entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from conformance.model.outcome import Failure
from conformance.pytest_plugin.packed import BLOCK, Blocks, Packed, blocks_of, opened


def restored(blocks: Blocks) -> Blocks:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(blocks), type=Blocks)


@pytest.mark.parametrize("count", [0, 1, BLOCK, 2 * BLOCK + 1])
def test_every_entry_comes_back_as_it_was(count: int) -> None:
    entries = [Failure(line=number + 1, path=f"p{number}", expected="1", observed="é") for number in range(count)]
    for blocks in (blocks_of(entries), restored(blocks_of(entries))):
        found = Packed(Failure, blocks)
        assert list(found) == entries
        assert len(found) == count
        assert list(found[1:-1]) == entries[1:-1]
        assert [found[number] for number in range(-count, count)] == [*entries, *entries]
        for beyond in (count, -count - 1):
            with pytest.raises(IndexError):
                found[beyond]


def test_what_cannot_be_encoded_is_kept_as_it_is() -> None:
    entries: Sequence[Any] = [0] * BLOCK + [2**70, "\ud800"] + [1] * BLOCK
    blocks = blocks_of(entries)
    assert list(Packed[Any](Any, blocks)) == entries
    assert [type(block) for block in blocks.blocks] == [bytes, list, bytes]


def test_an_entry_is_read_with_its_block_alone_and_neighbours_are_read_once() -> None:
    entries = Packed(str, blocks_of([f"entry {number}" for number in range(100 * BLOCK)]))
    opened.cache_clear()
    assert [entries[50 * BLOCK + number] for number in range(BLOCK)][-1] == f"entry {51 * BLOCK - 1}"
    assert opened.cache_info().misses == 1


def test_alike_entries_take_a_fraction_of_their_size() -> None:
    texts = [
        f"- y = x.sin() * {number}\n- expect: {{y: {{is_leaf: false, requires_grad: true}}}}\n" for number in range(500)
    ]
    assert sum(len(block) for block in blocks_of(texts).blocks) < sum(map(len, texts)) / 5
