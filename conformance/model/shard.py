"""Shards: parts of the cases that are the same on every machine and release, so that their reports can be merged."""

import hashlib
from typing import Annotated

import msgspec

Positive = Annotated[int, msgspec.Meta(ge=1)]


class Shard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `number`th, counted from 1, of `count` parts."""

    number: Positive
    count: Positive

    def includes(self, case: str) -> bool:
        """Whether the case with this id is in the shard, which depends on the id alone."""
        digest = hashlib.sha256(case.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1

    @property
    def elsewhere(self) -> str:
        """The reason why a case of another shard was not run."""
        return f"not in shard {self.number} of {self.count}"


def shard(text: str) -> Shard:
    """Return the shard that `text` (`2/8`) names; raise ValueError when it names none."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"expected a shard such as 2/8, got {text!r}")
    return Shard(int(number), int(count))
