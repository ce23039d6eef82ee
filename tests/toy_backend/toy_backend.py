"""A device outside PyTorch, to test the suite with: after `import toy_backend`, `torch.ones(2, device="toy")` works.

The device itself is in `toy_backend.cpp`, which is compiled when this is first imported with a torch, in some ten
seconds, and kept in `$TOY_BUILD` or the user's cache. This module is also `torch.toy`, where PyTorch looks for what
it must ask of a device in Python.

`TOY_FAULT=1` in the environment makes the derivative of sigmoid() wrong on this device, `TOY_FAULT=2` makes mul()
refuse operands that are not contiguous, `TOY_WORDS=1` gives what is missing an error without words, and
`TOY_DELAY=1000` makes each operation take 1000 microseconds longer. `TOY_LIKE=mps`, `TOY_LIKE=cuda`, `TOY_LIKE=vulkan`
and `TOY_MEMORY=1000000` give it restrictions of such devices, which `toy_backend.cpp` describes; that there is no
autocast to bfloat16 with `TOY_LIKE=vulkan` is said here.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "toy"
SOURCE = Path(__file__).with_suffix(".cpp")


def build() -> Path:
    """Return the shared library for this torch; compile it if that hasn't been done before."""
    torch_path = Path(torch.__file__).resolve().parent
    compiler = os.environ.get("CXX", "g++")
    command = [
        compiler, "-std=c++20", "-O0", "-shared", "-fPIC", "-w", str(SOURCE),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
        f"-I{torch_path / 'include'}", f"-L{torch_path / 'lib'}", "-ltorch_cpu", "-lc10",
    ]  # fmt: skip
    facts = "\0".join([torch.__version__, SOURCE.read_text("utf-8"), *command])
    place = Path(os.environ.get("TOY_BUILD") or Path.home() / ".cache" / "toy_backend")
    library = place / f"toy-{torch.__version__}-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.so"
    if not library.exists():
        place.mkdir(parents=True, exist_ok=True)
        unfinished = library.with_suffix(f".{os.getpid()}")  # several workers may be at it at once
        done = subprocess.run([*command, "-o", str(unfinished)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ImportError(f"{compiler} can't compile {SOURCE}:\n{done.stderr}")
        unfinished.replace(library)
    return library


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    """Whether the device is in use, which PyTorch asks before it makes fake tensors of it, as a compiler does."""
    return True


def device_count() -> int:
    return 1


def current_device() -> int:
    return 0


def synchronize(_device: Any = None) -> None:
    """Wait for the device; errors that come late are raised here, and ever after."""
    late = wait()
    if late is not None:
        raise RuntimeError(late.decode())


@contextlib.contextmanager
def device(_index: Any) -> Iterator[None]:
    """Make a device the current one for a while."""
    yield


def get_device_name(_index: Any = 0) -> str:
    return "toy device in host memory"


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16] if os.environ.get("TOY_LIKE") == "vulkan" else [torch.bfloat16, torch.float16]


# Random numbers are drawn on the CPU, from its default generator.


def _is_in_bad_fork() -> bool:
    return False


def manual_seed_all(seed: int) -> None:
    torch.default_generator.manual_seed(seed)


def get_rng_state(_index: Any = 0) -> torch.Tensor:
    return torch.get_rng_state()


def set_rng_state(state: torch.Tensor, _index: Any = 0) -> None:
    torch.set_rng_state(state)


torch.utils.rename_privateuse1_backend(NAME)
torch._register_device_module(NAME, sys.modules[__name__])
torch.ops.load_library(str(LIBRARY := build()))
wait = ctypes.CDLL(str(LIBRARY)).toy_wait
wait.restype = ctypes.c_char_p
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
