"""The releases of torch that the matrix is made of, as `releases.json` lists them: the last patch of each minor one."""

from __future__ import annotations

import re
from importlib.resources import files

import msgspec
from packaging.version import Version

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

    def between(self, first: str, last: str) -> list[Release]:
        """Return two releases and those that lie between them, oldest first; raise ValueError for what is no release.

        The two need not be in the list; what one of them needs is taken from the next older release.
        """
        ends = sorted({Version(first), Version(last)})
        known = {Version(release.torch): release for release in self.releases}
        for end in ends:
            if end not in known:
                model = known[max((version for version in known if version < end), default=min(known))]
                known[end] = msgspec.structs.replace(model, torch=str(end))
        return [known[version] for version in sorted(known) if ends[0] <= version <= ends[-1]]


def load_releases() -> Releases:
    """Return the releases that come with the suite."""
    return msgspec.json.decode((files("conformance.releases") / FILE).read_bytes(), type=Releases)


def reason_in(log: str) -> str:
    """Return the line of an installer's output that says best why it failed."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", log).splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"\W*error", line, re.IGNORECASE)]
    return " ".join((telling or lines or ["the installer said nothing"])[-1].split())[:300]
