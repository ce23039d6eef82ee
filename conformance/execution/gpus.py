"""Distributes the GPUs of a machine over several processes."""

from collections.abc import Mapping
from pathlib import Path

VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")  # what the three vendors' drivers read
CARDS = Path("/proc/driver/nvidia/gpus")


def share_of_gpus(number: int, environment: Mapping[str, str], cards: Path = CARDS) -> dict[str, str]:
    """Return the environment variables that leave one GPU visible to the process with this number, counted from 0.

    The visible GPUs are those that `environment` names, or else those of NVIDIA's driver. With one GPU or none the
    result is empty. The variables must be set before the driver is loaded: new threads, of a case or of torch, use
    device 0, so that must be the process's own.
    """
    for name in VISIBLE:
        if name in environment:
            given = [entry.strip() for entry in environment[name].split(",") if entry.strip()]
            return {name: given[number % len(given)]} if len(given) > 1 else {}
    count = len(list(cards.iterdir())) if cards.is_dir() else 0
    return {VISIBLE[0]: str(number % count)} if count > 1 else {}
