"""Brings a back-end to torch as its profile says: imports its modules and calls its setup."""

from __future__ import annotations

import importlib
from typing import Any, Dict, List


def named(place: str) -> Any:
    """Return the object that `module:attribute` names."""
    module, _, attribute = place.partition(":")
    found = importlib.import_module(module)
    for name in attribute.split("."):
        found = getattr(found, name)
    return found


def set_up(modules: List[str], setup: str) -> None:
    """Import the modules that register a back-end, and call the function that `setup` names, if any."""
    for name in modules:
        importlib.import_module(name)
    if setup:
        named(setup)()


def prepare(modules: List[str], profile: Dict[str, Any]) -> None:
    """Set up what a profile describes, and find out now whether there is the function by which it synchronizes."""
    set_up(modules, profile["setup"])
    if profile["synchronize"]:
        named(profile["synchronize"])
