"""Builds of torch, and targets: the device and dtype with which a case runs, and the mode around it."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from typing import Annotated

import msgspec
from msgspec import Meta

IN_TREE = ("cpu", "cuda", "mps", "xpu")
DTYPES = ("float16", "bfloat16", "float32", "float64")
# Lines of torch.__config__.show() that depend on the host: its processor and its GPU.
OF_HOST = re.compile(
    r" *- (CPU capability usage|CUDA Runtime|NVCC architecture|CuDNN|Built with CuDNN|Magma|HIP Runtime|MIOpen)"
)
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.+]+")
NOT_IN_FILES = re.compile(r"[^A-Za-z0-9.+_-]")
LONGEST_SLUG = 180  # file systems take names of 255 bytes, and partial and unfinished files add to this one
IN_MODE = "+"  # between the names of a device and a mode
LONGEST_FACT = 40  # characters of a fact in the name of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A device (`cuda`), the default dtype while a case runs (`float32`), and the mode in which it does, if any."""

    device: str
    dtype: str
    mode: str = ""

    def __str__(self) -> str:
        return name_of_target(self.place, self.dtype)

    @property
    def place(self) -> str:
        """The device, with the mode: `cpu+anomaly`."""
        return f"{self.device}{IN_MODE}{self.mode}" if self.mode else self.device

    @property
    def without_mode(self) -> "Target":
        return Target(device=self.device, dtype=self.dtype)


@cache
def name_of_target(place: str, dtype: str) -> str:
    """Return the name of a target: one text, which many outcomes have in common."""
    return f"{place}-{dtype}"


def target_of(text: str) -> Target:
    """Return the target that `text` (`cpu-float32`, `cpu+anomaly-float32`) names; raise ValueError if it names none."""
    place, _, dtype = text.rpartition("-")
    device, _, mode = place.partition(IN_MODE)
    if not device or dtype not in DTYPES:
        raise ValueError(f"expected a device and a dtype such as cpu-float32, got {text!r}")
    return Target(device=device, dtype=dtype, mode=mode)


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A device of a build."""

    type: Annotated[str, Meta(description="cpu, cuda, …")]
    name: Annotated[str, Meta(description="The device's own name.")]
    count: int
    driver: Annotated[str | None, Meta(description="The version of its run-time library.")]
    absent: Annotated[str | None, Meta(description="Why it can't be used; null when it can.")]
    unknown: Annotated[bool, Meta(description="Whether torch knows no such device at all.")]
    features: Annotated[
        dict[str, str],
        Meta(description="What was tried of tensors, dtypes and the device's module: empty, or why it failed."),
    ] = {}


def is_usual(device: Device) -> bool:
    """Whether that a device is absent needs no word: torch was not built for it, or finds none."""
    return device.unknown or device.absent == f"torch.{device.type} is not available"


class BackEnd(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What brought a device to torch, or changed one, from outside."""

    device: Annotated[str, Meta(description="The type of its device.")]
    modules: Annotated[tuple[str, ...], Meta(description="What is imported for it.")]
    name: Annotated[str, Meta(description="The distribution that it is from, or its module.")]
    version: Annotated[str, Meta(description="Its version; empty if it doesn't say.")] = ""
    commit: Annotated[str, Meta(description="The commit that it was built from; empty if it doesn't say.")] = ""
    setup: Annotated[str, Meta(description="The function that is called after the import, as module:function.")] = ""

    @property
    def title(self) -> str:
        """Its name, version and commit, such as `torch_xla 2.9.0 (5fab7053)`."""
        return " ".join(filter(None, (self.name, self.version, self.commit and f"({self.commit[:8]})")))


class Build(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The torch under test, as its worker describes it."""

    torch: Annotated[str, Meta(description="torch.__version__")]
    git: Annotated[str, Meta(description="The commit that torch was built from, or unknown.")]
    debug: bool
    cuda: Annotated[str | None, Meta(description="The version of CUDA that torch was built with.")]
    hip: Annotated[str | None, Meta(description="The version of HIP that torch was built with.")]
    config: Annotated[str, Meta(description="torch.__config__.show(): compiler, flags and libraries.")]
    path: Annotated[str, Meta(description="Where torch is installed.")]
    python: Annotated[str, Meta(description="The version of Python.")]
    implementation: Annotated[str, Meta(description="Which Python, such as CPython.")]
    executable: Annotated[str, Meta(description="The interpreter.")]
    system: Annotated[str, Meta(description="Operating system and processor, such as linux-x86_64.")]
    platform: Annotated[str, Meta(description="The platform in full.")]
    devices: tuple[Device, ...]
    backends: Annotated[
        tuple[BackEnd, ...], Meta(description="What was imported besides torch; none for a build of torch alone.")
    ] = ()
    problems: Annotated[tuple[str, ...], Meta(description="What torch could not tell of itself, and the errors.")] = ()

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
        """Whether torch has no device type of this name, which is probably misspelled."""
        return any(device.type == name and device.unknown for device in self.devices)

    def hardware_of(self, backend: BackEnd) -> str:
        """Return the name of a back-end's device, or an empty string if it has none of its own."""
        names = [device.name for device in self.devices if device.type == backend.device != "cpu"]
        return next((name for name in names if name != backend.device), "")

    @property
    def backend_titles(self) -> list[str]:
        """The back-ends with the hardware that they run on, such as `torch_xla 2.9.0 (5fab7053) on TPU`."""
        return [" on ".join(filter(None, (each.title, self.hardware_of(each)))) for each in self.backends]

    @property
    def slug(self) -> str:
        """A name for files: version, commit, Python and system, and the same of back-ends, so that builds differ."""
        python = ".".join(self.python.split(".")[:2])
        own = NOT_IN_FILES.sub("_", f"torch-{self.torch}-{self.git[:8]}-py{python}-{self.system}")
        facts = [(each.name, each.version, each.commit[:8], self.hardware_of(each)) for each in self.backends]
        words = [NOT_IN_NAMES.sub("_", fact)[:LONGEST_FACT].strip("_") for given in facts for fact in given if fact]
        name = "-".join([own, *words])
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return name if len(name) <= LONGEST_SLUG else f"{name[:LONGEST_SLUG]}-{digest}"

    def header(self) -> list[str]:
        """Return the lines about this build in pytest's header."""
        lacks = [
            f"{device.type} lacks: {', '.join(missing)}"
            for device in self.devices
            if (missing := [name for name, why in device.features.items() if why])
        ]
        present = [f"{device.type} ({device.name})" for device in self.devices if device.absent is None]
        absent = [device.type for device in self.devices if device.absent is not None]
        lacks += [f"{each.type}: {each.absent}" for each in self.devices if each.absent and not is_usual(each)]
        git = f"git {self.git[:10]}{', debug' if self.debug else ''}"
        return [
            f"torch: {self.torch} ({git}), Python {self.python}, {self.path}",
            *(f"problem: {problem}" for problem in self.problems),
            *(f"back-end: {title}" for title in self.backend_titles),
            f"devices: {', '.join(present)}" + (f"; absent: {', '.join(absent)}" if absent else ""),
            *lacks,
        ]
