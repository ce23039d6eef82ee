"""Shards: a part of the cases that is the same on every machine and release, so that several runs add up to one."""

from __future__ import annotations

import hashlib
import re

import msgspec

ELSEWHERE = re.compile(r"not in shard (\d{1,9}) of (\d{1,9})")


class Shard(msgspec.Struct, frozen=True):
    """The `number`th, counted from 1, of `count` parts."""

    number: int
    count: int

    def holds(self, case: str) -> bool:
        """Whether the case with this id is in the shard; nothing but the id decides."""
        digest = hashlib.sha256(case.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1

    @property
    def elsewhere(self) -> str:
        """The reason why a case of another shard was not run."""
        return f"not in shard {self.number} of {self.count}"


def shard_of(reason: str) -> Shard | None:
    """Return the shard that gave `reason` for not running a case of another one; None for any other reason."""
    found = ELSEWHERE.fullmatch(reason)
    return Shard(int(found[1]), int(found[2])) if found else None


def shard(text: str) -> Shard:
    """Return the shard that `text` (`2/8`) names; raise ValueError when it names none."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"expected a shard such as 2/8, got {text!r}")
    return Shard(int(number), int(count))
