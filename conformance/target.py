"""Targets: where a case runs, a device and a dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

IN_TREE = ("cpu", "cuda", "mps", "xpu")
DTYPES = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A device (`cuda`) and the dtype that is the default there while a case runs (`float32`)."""

    device: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.device}-{self.dtype}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """The torch under test, as its worker describes it; `facts` is that description whole."""

    facts: dict[str, Any]

    @property
    def torch(self) -> str:
        return str(self.facts["torch"])

    @property
    def present(self) -> list[str]:
        return [device["type"] for device in self.facts["devices"] if device["absent"] is None]

    @property
    def present_in_tree(self) -> list[str]:
        return [name for name in self.present if name in IN_TREE]

    def why_absent(self, name: str) -> str:
        """Return why a device can't be used, or an empty string when it can."""
        return next((str(d["absent"] or "") for d in self.facts["devices"] if d["type"] == name), f"no device {name}")

    def is_unknown(self, name: str) -> bool:
        """Whether this torch doesn't even know such a device; a slip of the pen, most likely."""
        return any(d["type"] == name and d["unknown"] for d in self.facts["devices"])

    @property
    def slug(self) -> str:
        """A name for files: version, commit, Python and system, so that two builds of one version differ."""
        python = ".".join(self.facts["python"].split(".")[:2])
        return f"torch-{self.torch}-{self.facts['git'][:8]}-py{python}-{self.facts['system']}".replace("/", "_")

    def header(self) -> list[str]:
        """Return the lines that name this build at the head of a run."""
        present = [f"{d['type']} ({d['name']})" for d in self.facts["devices"] if d["absent"] is None]
        absent = [d["type"] for d in self.facts["devices"] if d["absent"] is not None]
        debug = ", debug" if self.facts["debug"] else ""
        git = f"git {self.facts['git'][:10]}{debug}"
        return [
            f"torch: {self.torch} ({git}), Python {self.facts['python']}, {self.facts['path']}",
            f"devices: {', '.join(present)}" + (f"; absent: {', '.join(absent)}" if absent else ""),
        ]
