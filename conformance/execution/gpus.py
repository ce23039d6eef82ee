"""Gives each of several processes a graphics card of its own, as far as there are enough."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")  # what the three vendors' drivers read
CARDS = Path("/proc/driver/nvidia/gpus")


def share_of_gpus(number: int, environment: Mapping[str, str], cards: Path = CARDS) -> dict[str, str]:
    """Return the variables that leave the process with this number, counted from 0, one of the cards that it may see.

    Which these are the environment says, or for NVIDIA's the driver; nothing is changed where there is one or none. It
    has to be done before the driver is loaded: torch must find its card as the first and only one, since a case's
    threads and torch's own begin on the first.
    """
    for name in VISIBLE:
        if name in environment:
            given = [entry.strip() for entry in environment[name].split(",") if entry.strip()]
            return {name: given[number % len(given)]} if len(given) > 1 else {}
    count = len(list(cards.iterdir())) if cards.is_dir() else 0
    return {VISIBLE[0]: str(number % count)} if count > 1 else {}
