"""Keeps what was read from a case file, as Python keeps compiled modules, so that it is checked once.

Beside each case stands its script, which takes about as long to write as a file takes to be read again.

An entry holds for one content of the file, one set of known rules and one state of this package. It lies in
pytest's cache directory; one that can't be read or written is as good as none.
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
    """Loaded cases and their scripts by content, below `directory`; None keeps nothing."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory

    def entry(self, content: bytes, name: str, rules: Iterable[str]) -> Path | None:
        """Return where the cases of a file with this content and name are kept, or None."""
        if self.directory is None:
            return None
        digest = hashlib.sha256(content)
        digest.update("\0".join([name, package_state(), *sorted(rules)]).encode())
        return self.directory / f"{digest.hexdigest()[:32]}.pickle"

    def get(self, entry: Path | None) -> Loaded | None:
        if entry is None:
            return None
        try:
            loaded: Loaded = pickle.loads(entry.read_bytes())  # noqa: S301 - our own, as a .pyc is Python's own
        except Exception:  # noqa: BLE001 - whatever is wrong with it, the file itself can be read
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
