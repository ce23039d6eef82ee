"""Asks the back-ends of a build who they are: name, version and commit.

What a profile says comes as a mapping, in which attributes are named as `module:attribute`.
"""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any, Dict, List

import torch

from conformance.worker.backend import named

IN_TREE = ("cpu", "cuda", "mps", "xpu")
COMMITS = ("version:git_version", "version:__git_version__", ":__git_version__", ":git_version", ":__commit__")


def backends(profile: Dict[str, Any], modules: List[str], requested: List[str]) -> List[Dict[str, Any]]:
    """Return the identities of the back-ends: one for each device from outside of torch among `requested`.

    Modules that bring no device of their own are one back-end of the first device.
    """
    types = [name.partition(":")[0] for name in ([profile["device"]] if profile["device"] else []) + requested]
    outside = list(dict.fromkeys(name for name in types if name not in IN_TREE and is_device(name)))
    if not outside and modules:
        outside = [types[0] if types else "cpu"]
    found = []
    for device in outside:
        own = modules or modules_of(device)
        main = next((name for name in own if device in name), own[0] if own else "")
        is_described = device == profile["device"]
        identity = identity_of(main, profile if is_described else {}) if main else {"name": device}
        setup = profile["setup"] if is_described else ""
        found.append({"device": device, "modules": own, "setup": setup, **identity})
    return found


def is_device(name: str) -> bool:
    try:
        return str(torch.device(name)) == name
    except Exception:
        return False


def modules_of(device: str) -> List[str]:
    """Return the module that has registered itself as that of a device, which torch may have loaded by itself."""
    module = getattr(torch, device, None)
    name = str(getattr(module, "__name__", "")).partition(".")[0]
    return [name] if name not in ("", "torch") else []


def identity_of(module: str, profile: Dict[str, Any]) -> Dict[str, str]:
    """Return the name, version and commit of the back-end in `module`; those of its distribution if nothing else."""
    package = module.partition(".")[0]
    distribution = distribution_of(package)
    name = distribution.metadata["Name"] if distribution is not None else package
    version = told_by(profile.get("version", "")) or (distribution.version if distribution is not None else "")
    version = version or told_by(f"{package}:__version__")
    commit = told_by(profile.get("commit", ""))
    for place in COMMITS if not commit else ():
        inner, _, attribute = place.partition(":")
        commit = commit or told_by(f"{package}{'.' if inner else ''}{inner}:{attribute}")
    return {"name": name, "version": version, "commit": commit or commit_of(distribution)}


def distribution_of(package: str) -> Any:
    """Return the distribution that has a package, or None; of several the one of that name."""
    try:
        return metadata.distribution(package)
    except metadata.PackageNotFoundError:
        packages: Any = getattr(metadata, "packages_distributions", dict)  # not before Python 3.10
        names = packages().get(package)
        return metadata.distribution(names[0]) if names else None


def commit_of(distribution: Any) -> str:
    """Return the commit that a distribution was installed from, or "" if it was not installed from a repository."""
    try:
        return str(json.loads(distribution.read_text("direct_url.json"))["vcs_info"]["commit_id"])
    except Exception:
        return ""


def told_by(place: str) -> str:
    """Return what an attribute says as text, or what the function says that it is; "" where that fails."""
    try:
        found = named(place) if place else ""
        return str(found() if callable(found) else found)
    except Exception:
        return ""
