"""The releases of torch that the matrix is made of, as `releases.json` lists them: the last patch of each minor one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

import msgspec

FILE = "releases.json"


class Release(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release, the oldest and the newest Python that it has wheels for, and what to install beside it."""

    torch: str
    pythons: tuple[str, str]
    beside: tuple[str, ...] = msgspec.field(name="with")

    @property
    def requirements(self) -> list[str]:
        return [f"torch=={self.torch}", *self.beside]


class Releases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of them, oldest first, and a Python that each has wheels for."""

    python: str
    releases: tuple[Release, ...]

    def between(self, first: str, last: str) -> Sequence[Release]:
        """Return the releases from `first` to `last`; raise KeyError for one that is none of them."""
        names = [release.torch for release in self.releases]
        for name in (first, last):
            if name not in names:
                raise KeyError(name)
        return self.releases[names.index(first) : names.index(last) + 1]


def load_releases() -> Releases:
    """Return the releases that come with the suite."""
    return msgspec.json.decode((files("conformance") / FILE).read_bytes(), type=Releases)


def reason_in(log: str) -> str:
    """Return the line of an installer's output that says best why it failed."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", log).splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"\W*error", line, re.IGNORECASE)]
    return " ".join((telling or lines or ["the installer said nothing"])[-1].split())[:300]
