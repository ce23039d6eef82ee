"""Targets: where a case runs, a device and a dtype; and builds: the torch that has the device."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

IN_TREE = ("cpu", "cuda", "mps", "xpu")
DTYPES = ("float16", "bfloat16", "float32", "float64")
# Lines of torch's account of itself that the host decides: its processor, and whether it has a graphics card.
OF_HOST = re.compile(
    r" *- (CPU capability usage|CUDA Runtime|NVCC architecture|CuDNN|Built with CuDNN|Magma|HIP Runtime|MIOpen)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A device (`cuda`) and the dtype that is the default there while a case runs (`float32`)."""

    device: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.device}-{self.dtype}"


def target_of(text: str) -> Target:
    """Return the target that `text` (`cpu-float32`) names; raise ValueError when it names none."""
    device, _, dtype = text.rpartition("-")
    if not device or dtype not in DTYPES:
        raise ValueError(f"expected a device and a dtype such as cpu-float32, got {text!r}")
    return Target(device=device, dtype=dtype)


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device of a build: `absent` says why it can't be used, `unknown` whether torch knows no such device."""

    type: str
    name: str
    count: int
    driver: str | None
    absent: str | None
    unknown: bool


class Build(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The torch under test, as its worker describes it; `report.schema.json` says what each field is."""

    torch: str
    git: str
    debug: bool
    cuda: str | None
    hip: str | None
    config: str
    path: str
    python: str
    implementation: str
    executable: str
    system: str
    platform: str
    devices: tuple[Device, ...]

    @property
    def present(self) -> list[str]:
        return [device.type for device in self.devices if device.absent is None]

    @property
    def present_in_tree(self) -> list[str]:
        return [name for name in self.present if name in IN_TREE]

    def why_absent(self, name: str) -> str:
        """Return why a device can't be used, or an empty string when it can."""
        return next((device.absent or "" for device in self.devices if device.type == name), f"no device {name}")

    def is_unknown(self, name: str) -> bool:
        """Whether this torch doesn't even know such a device; a slip of the pen, most likely."""
        return any(device.type == name and device.unknown for device in self.devices)

    @property
    def slug(self) -> str:
        """A name for files: version, commit, Python and system, so that two builds of one version differ."""
        python = ".".join(self.python.split(".")[:2])
        return f"torch-{self.torch}-{self.git[:8]}-py{python}-{self.system}".replace("/", "_")

    def header(self) -> list[str]:
        """Return the lines that name this build at the head of a run."""
        present = [f"{device.type} ({device.name})" for device in self.devices if device.absent is None]
        absent = [device.type for device in self.devices if device.absent is not None]
        git = f"git {self.git[:10]}{', debug' if self.debug else ''}"
        return [
            f"torch: {self.torch} ({git}), Python {self.python}, {self.path}",
            f"devices: {', '.join(present)}" + (f"; absent: {', '.join(absent)}" if absent else ""),
        ]
