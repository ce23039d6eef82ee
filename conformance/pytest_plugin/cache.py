"""Caches loaded cases and their stand-alone scripts, so that a case file that didn't change isn't parsed again.

An entry is valid for one content of the file, one set of rules and one state of this package. Entries are in pytest's
cache directory; one that can't be read or written is treated as missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
from collections.abc import Iterable
from pathlib import Path

from conformance.model.case import Case
from conformance.render.script.script import Script
from conformance.results.checkout import package_state

Loaded = list[tuple[Case, Script | None]]


class CaseCache:
    """The entries in `directory`; with None nothing is cached."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory

    def entry(self, content: bytes, name: str, rules: Iterable[str]) -> Path | None:
        """Return the path of the entry of a file with this content and name, or None without a cache."""
        if self.directory is None:
            return None
        digest = hashlib.sha256(content)
        digest.update("\0".join([name, package_state(), *sorted(rules)]).encode())
        return self.directory / f"{digest.hexdigest()[:32]}.pickle"

    def get(self, entry: Path | None) -> Loaded | None:
        if entry is None:
            return None
        try:
            loaded: Loaded = pickle.loads(entry.read_bytes())  # noqa: S301 - written by this suite, as Python writes a .pyc
        except Exception:  # noqa: BLE001 - an entry that can't be unpickled is made again
            return None
        return loaded

    def put(self, entry: Path | None, loaded: Loaded) -> None:
        if entry is None:
            return
        with contextlib.suppress(OSError):
            entry.parent.mkdir(parents=True, exist_ok=True)
            unfinished = entry.with_suffix(f".{os.getpid()}")
            try:
                unfinished.write_bytes(pickle.dumps(loaded, protocol=pickle.HIGHEST_PROTOCOL))
                unfinished.replace(entry)
            finally:
                unfinished.unlink(missing_ok=True)
