"""The releases of torch in the matrix, from `releases.json`: the last patch release of each minor version."""

import re
from importlib.resources import files

import msgspec
from packaging.version import Version

FILE = "releases.json"


class Release(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release, the oldest and the newest Python that it has wheels for, and what to install with it."""

    torch: str
    pythons: tuple[str, str]
    beside: tuple[str, ...] = msgspec.field(name="with")

    @property
    def requirements(self) -> list[str]:
        return [f"torch=={self.torch}", *self.beside]


class Releases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All releases, oldest first, and a version of Python for which each of them has wheels."""

    python: str
    releases: tuple[Release, ...]

    def between(self, first: str, last: str) -> list[Release]:
        """Return two releases and those between them, oldest first; raise ValueError for what is not a version.

        The two need not be in the list: the requirements of one that isn't are those of the next older release.
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
    """Return the line of an installer's output that best says why it failed: the last error, or the last line."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", log).splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"\W*error", line, re.IGNORECASE)]
    return " ".join((telling or lines or ["the installer said nothing"])[-1].split())[:300]
