"""Describes the torch of this interpreter: version, build, devices."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional

import torch

from conformance.worker.identity import IN_TREE, backends, told_by
from conformance.worker.messages import message_line

LONGEST_FACT = 200


def describe(
    requested: List[str],
    modules: List[str],
    profile: Dict[str, Any],
    absent: Mapping[str, str] = {},
    asks: Callable[[str], Any] = bool,
) -> Dict[str, Any]:
    """Return the description of the build, with the in-tree devices and those in `requested`.

    `modules` have been imported besides torch, and `profile` says what to ask them. Devices that are known to be
    `absent` aren't touched; of each other one `asks` is told before. What can't be told is among the `problems`.
    """
    names = list(dict.fromkeys((*IN_TREE, *requested)))
    problems: List[str] = []

    def told(what: str, tell: Callable[[], Any], otherwise: str) -> str:
        try:
            return str(tell())
        except Exception as error:
            problems.append(f"{what}: {message_line(error, LONGEST_FACT)}")
            return otherwise

    def version(name: str) -> Optional[str]:
        found = getattr(getattr(torch, "version", None), name, None)
        return None if found is None else str(found)[:LONGEST_FACT]

    def described(name: str) -> Dict[str, Any]:
        if name in absent:
            return {**NOTHING, "type": name, "absent": absent[name]}
        asks(name)
        return device(name, profile["hardware"] if name.partition(":")[0] == profile["device"] else "")

    facts = {
        "torch": told("torch.__version__", lambda: torch.__version__, "unknown")[:LONGEST_FACT],
        "git": version("git_version") or "unknown",
        "debug": bool(getattr(getattr(torch, "version", None), "debug", False)),
        "cuda": version("cuda"),
        "hip": version("hip"),
        "config": told("torch.__config__.show()", lambda: torch.__config__.show(), ""),  # noqa: PLW0108 - where it is missing, too
        "path": os.path.dirname(os.path.abspath(told("torch.__file__", lambda: torch.__file__, ""))),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "system": f"{platform.system()}-{platform.machine()}".lower(),
        "platform": platform.platform(),
        "devices": [described(name) for name in names],
        "backends": backends(profile, modules, requested),
    }
    return {**facts, "problems": problems}


NOTHING: Dict[str, Any] = {"name": "", "count": 0, "driver": None, "absent": None, "unknown": False}


def device(name: str, hardware: str) -> Dict[str, Any]:
    """Return the description of a device; `hardware` names what gives its name, if not its own module does.

    `absent` is the reason why it can't be used, or None; `unknown` is true when torch has no device of that name.
    """
    facts = {**NOTHING, "type": name}
    try:
        torch.device(name)
    except RuntimeError as error:
        return {**facts, "absent": f"no device {name!r}: {message_of(error)}", "unknown": True}
    except Exception as error:
        return {**facts, "absent": message_line(error, LONGEST_FACT)}
    if name == "cpu":
        return {**facts, "name": platform.processor() or platform.machine(), "count": 1}
    try:
        backend: Any = getattr(torch.backends if name == "mps" else torch, name.partition(":")[0], None)
        if name in IN_TREE and (backend is None or not backend.is_available()):
            return {**facts, "absent": f"torch.{name} is not available"}
        torch.ones(1, device=name).add(1).cpu()
        count = int(getattr(backend, "device_count", lambda: 1)())
        title = told_by(hardware) or (backend.get_device_name(0) if hasattr(backend, "get_device_name") else name)
        driver = torch.version.cuda if name == "cuda" else None
        return {**facts, "name": str(title), "count": count, "driver": None if driver is None else str(driver)}
    except Exception as error:
        return {**facts, "absent": message_line(error, LONGEST_FACT)}


def message_of(error: BaseException) -> str:
    """Return the text of an error without its type."""
    return message_line(error, LONGEST_FACT).partition(": ")[2]


def answers(name: str) -> bool:
    """Whether the device still computes, after a case failed on it."""
    try:
        return bool(torch.ones(2, device=name).sum().item() == 2.0)
    except Exception:
        return False
