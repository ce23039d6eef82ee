"""Caches what was read from YAML and what pages are made of, so that what didn't change isn't made again.

An entry is valid for the facts that it was made of and one state of this package. Entries are in pytest's cache
directory; one that can't be read or written is treated as missing.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from conformance.model.build import Build
from conformance.results.checkout import package_state

KEPT_SECONDS = 14 * 24 * 3600  # an entry that is still valid then is made again

Kept = TypeVar("Kept")


def digest_of(facts: Iterable[str | bytes]) -> str:
    """Return a digest of texts in their order."""
    digest = hashlib.sha256()
    for fact in facts:
        content = fact.encode("utf-8", "surrogatepass") if isinstance(fact, str) else fact
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


class Cache:
    """The entries in `directory`; with None nothing is cached."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory

    def kept(self, kind: type[Kept], facts: tuple[str | bytes, ...], make: Callable[[], Kept]) -> Kept:
        """Return what `make` makes of these facts, from its entry if there is one."""
        entry = self.entry(kind, facts)
        found = self.get(entry, kind)
        if found is None:
            found = make()
            self.put(entry, found)
        return found

    def entry(self, kind: type[object], facts: tuple[str | bytes, ...]) -> Path | None:
        """Return the path of the entry of this kind for these facts, or None without a cache."""
        if self.directory is None:
            return None
        return self.directory / f"{digest_of((repr(kind), package_state(), *facts))[:32]}.msgpack"

    def get(self, entry: Path | None, kind: type[Kept]) -> Kept | None:
        if entry is None:
            return None
        try:
            return msgspec.msgpack.decode(entry.read_bytes(), type=kind)
        except (OSError, msgspec.MsgspecError, UnicodeError):
            return None

    def put(self, entry: Path | None, value: object) -> None:
        if entry is None:
            return
        # Numbers beyond 64 bits and halves of surrogate pairs have no place in an entry.
        with contextlib.suppress(OSError, OverflowError, UnicodeError):
            content = msgspec.msgpack.encode(value)
            entry.parent.mkdir(parents=True, exist_ok=True)
            unfinished = entry.with_suffix(f".{os.getpid()}")
            try:
                unfinished.write_bytes(content)
                unfinished.replace(entry)
            finally:
                unfinished.unlink(missing_ok=True)
            for old in entry.parent.glob(f"*{entry.suffix}"):
                if time.time() - old.stat().st_mtime > KEPT_SECONDS:
                    old.unlink()


class PageCache(Generic[Kept]):
    """Parts of a build's pages, by what they are made of; if it `forgets`, those of the last page alone are cached.

    All are encoded until they are asked for: as objects the drawings of many cases take ten times the memory.
    """

    def __init__(self, cache: Cache, kind: Any, build: Build, *, forgets: bool) -> None:
        self.cache = cache
        self.kind = kind
        self.entry = cache.entry(PageCache[kind], (build.slug,))
        self.forgets = forgets
        self.asked: dict[bytes, msgspec.Raw] = {}

    @cached_property
    def before(self) -> dict[bytes, msgspec.Raw]:
        return self.cache.get(self.entry, dict[bytes, msgspec.Raw]) or {}

    def of(self, made_of: str, make: Callable[[], Kept]) -> Kept:
        """Return the part that `make` makes of this."""
        key = hashlib.sha256(made_of.encode()).digest()
        known = self.asked.get(key) or self.before.get(key)
        if known is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                self.asked[key] = known
                return msgspec.msgpack.decode(known, type=self.kind)  # type: ignore[no-any-return]
        made = make()
        with contextlib.suppress(OverflowError, UnicodeError):
            self.asked[key] = msgspec.Raw(msgspec.msgpack.encode(made))
        return made

    def keep(self) -> None:
        """Cache what has been made."""
        if self.asked and not self.asked.keys() <= self.before.keys():
            self.cache.put(self.entry, self.asked if self.forgets else {**self.before, **self.asked})
