"""Prints the builds of the nightly matrix as JSON, for `strategy.matrix` of a workflow.

Each build has a name, which is the same every night, the version of Python, the arguments of `uv pip install`, the
device and the dtypes to test and the label of the runner. The releases are those of `releases.json`. On the CPU each is
tested with the oldest and the newest Python for which it has wheels, and with one that is common to all, there in other
dtypes too. `CUDA_RUNNER` in the environment is the label of the runners with a GPU; without it CUDA is not tested.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

LIST = Path(__file__).parent.parent / "conformance" / "releases" / "releases.json"
RELEASES = json.loads(LIST.read_text(encoding="utf-8"))
WHEELS = "https://download.pytorch.org/whl"
UNRELEASED = {"nightly": f"{WHEELS}/nightly", "candidate": f"{WHEELS}/test"}
CUDA = "cu130"  # of the unreleased builds
DTYPES = "float32 float64 bfloat16"  # of a release on the CPU, with one Python


def build(device: str, torch: str, python: str, runner: str, install: str) -> dict[str, str]:
    name = f"{device}-{torch}-py{python}"
    dtypes = DTYPES if (device, python) == ("cpu", RELEASES["python"]) else "float32"
    return {
        "name": name, "device": device, "dtypes": dtypes, "torch": torch, "python": python, "runner": runner,
        "install": install,
    }  # fmt: skip


def builds(cuda_runner: str) -> Iterator[dict[str, str]]:
    """Yield the builds; those on the CPU first."""
    common = RELEASES["python"]
    newest = RELEASES["releases"][-1]["pythons"][1]
    for release in RELEASES["releases"]:
        install = " ".join([f"torch=={release['torch']}", *release["with"]])
        for python in dict.fromkeys([release["pythons"][0], common, release["pythons"][1]]):
            yield build("cpu", release["torch"], python, "ubuntu-latest", f"--index {WHEELS}/cpu {install}")
        yield build("mps", release["torch"], common, "macos-latest", install)
        if cuda_runner:
            yield build("cuda", release["torch"], common, cuda_runner, install)
    for name, index in UNRELEASED.items():
        install = "--prerelease allow torch numpy"
        for python in (common, newest):
            yield build("cpu", name, python, "ubuntu-latest", f"--index {index}/cpu {install}")
        yield build("mps", name, common, "macos-latest", f"--index {index}/cpu {install}")
        if cuda_runner:
            yield build("cuda", name, common, cuda_runner, f"--index {index}/{CUDA} {install}")


if __name__ == "__main__":
    json.dump(list(builds(os.environ.get("CUDA_RUNNER", ""))), sys.stdout)
