"""Lists in compressed blocks: a tenth of their size in memory, and an entry is read when it is asked for."""

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar, overload

import msgspec

BLOCK = 32  # entries in a block: enough that they compress well, few enough that reading one of them is fast
LEVEL = 3  # of compression
OPENED = 8  # blocks that are kept as they were read: those at which a run is, and sends ahead

Entry = TypeVar("Entry")


class Blocks(msgspec.Struct, frozen=True, kw_only=True):
    """A list as it is kept; a block that can't be encoded is kept as it is."""

    length: int
    blocks: tuple[bytes | list[Any], ...]


def blocks_of(entries: Sequence[object]) -> Blocks:
    places = range(0, len(entries), BLOCK)
    return Blocks(length=len(entries), blocks=tuple(block_of(list(entries[at : at + BLOCK])) for at in places))


def block_of(entries: list[object]) -> bytes | list[Any]:
    try:
        return zlib.compress(msgspec.msgpack.encode(entries), LEVEL)
    except (OverflowError, UnicodeError):  # numbers beyond 64 bits, and halves of surrogate pairs
        return entries


@lru_cache(maxsize=OPENED)
def opened(block: bytes, kind: Any) -> list[Any]:
    found: list[Any] = msgspec.msgpack.decode(zlib.decompress(block), type=list[kind])
    return found


class Packed(Sequence[Entry]):
    """The entries of blocks, each of which is of one kind."""

    __slots__ = ("blocks", "kind")

    def __init__(self, kind: type[Entry], blocks: Blocks) -> None:
        self.kind: Any = kind
        self.blocks = blocks

    def __len__(self) -> int:
        return self.blocks.length

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        number, place = divmod(range(len(self))[index], BLOCK)
        block = self.blocks.blocks[number]
        entry: Entry = (opened(block, self.kind) if isinstance(block, bytes) else block)[place]
        return entry
