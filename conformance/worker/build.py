"""Describes the torch of this interpreter: version, build, devices."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any, Dict, List

import torch

from conformance.worker.identity import IN_TREE, backends, told_by
from conformance.worker.values import one_line


def describe(requested: List[str], modules: List[str], profile: Dict[str, Any]) -> Dict[str, Any]:
    """Return the description of the build, with the in-tree devices and those in `requested`.

    `modules` have been imported besides torch, and `profile` says what to ask them.
    """
    names = list(dict.fromkeys((*IN_TREE, *requested)))
    return {
        "torch": str(torch.__version__),
        "git": str(getattr(torch.version, "git_version", None) or "unknown"),
        "debug": bool(getattr(torch.version, "debug", False)),
        "cuda": getattr(torch.version, "cuda", None),
        "hip": getattr(torch.version, "hip", None),
        "config": torch.__config__.show(),
        "path": os.path.dirname(os.path.abspath(str(torch.__file__))),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "system": f"{platform.system()}-{platform.machine()}".lower(),
        "platform": platform.platform(),
        "devices": [
            device(name, profile["hardware"] if name.partition(":")[0] == profile["device"] else "") for name in names
        ],
        "backends": backends(profile, modules, requested),
    }


def device(name: str, hardware: str) -> Dict[str, Any]:
    """Return the description of a device; `hardware` names what gives its name, if not its own module does.

    `absent` is the reason why it can't be used, or None; `unknown` is true when torch has no device of that name.
    """
    facts: Dict[str, Any] = {"type": name, "name": "", "count": 0, "driver": None, "absent": None, "unknown": False}
    try:
        torch.device(name)
    except RuntimeError as error:
        return {**facts, "absent": f"no device {name!r}: {one_line(str(error))[:200]}", "unknown": True}
    if name == "cpu":
        return {**facts, "name": platform.processor() or platform.machine(), "count": 1}
    backend: Any = getattr(torch.backends if name == "mps" else torch, name.partition(":")[0], None)
    try:
        if name in IN_TREE and (backend is None or not backend.is_available()):
            return {**facts, "absent": f"torch.{name} is not available"}
        torch.ones(1, device=name).add(1).cpu()
        count = getattr(backend, "device_count", lambda: 1)()
        title = told_by(hardware) or (backend.get_device_name(0) if hasattr(backend, "get_device_name") else name)
        driver = torch.version.cuda if name == "cuda" else None
    except Exception as error:
        return {**facts, "absent": f"{type(error).__name__}: {one_line(str(error))[:200]}"}
    return {**facts, "name": str(title), "count": int(count), "driver": driver}


def answers(name: str) -> bool:
    """Whether the device still computes, after a case failed on it."""
    try:
        return bool(torch.ones(2, device=name).sum().item() == 2.0)
    except Exception:
        return False
