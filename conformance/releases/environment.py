"""Makes environments with a release of torch and nothing of this suite, by uv where that is installed, else by pip."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.releases.catalogue import Release, reason_in


class NotInstalled(Exception):
    """Why an environment can't be had, in the installer's words."""


def create(directory: Path, release: Release, python: str) -> Path:
    """Return the interpreter of a new environment with `release` below `directory`; raise NotInstalled.

    `python` is the version of the interpreter. An environment that is there already is taken as it is.
    """
    place = directory / f"torch-{release.torch}"
    interpreter = place / "bin" / "python"
    finished = place / "installed"  # written last, so that half an environment is not taken for a whole one
    if finished.is_file():
        return interpreter
    shutil.rmtree(place, ignore_errors=True)
    uv = shutil.which("uv")
    if uv is not None:
        call([uv, "venv", "--python", python, str(place)])
        call([uv, "pip", "install", "--python", str(interpreter), *release.requirements])
    else:
        call([interpreter_of(python), "-m", "venv", str(place)])
        call([str(interpreter), "-m", "pip", "install", *release.requirements])
    finished.touch()
    return interpreter


def interpreter_of(version: str) -> str:
    """Return an interpreter of this version."""
    if version == ".".join(map(str, sys.version_info[:2])):
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is None:
        raise NotInstalled(f"there is no python{version} here; uv would bring one")
    return found


def call(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        raise NotInstalled(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise NotInstalled(reason_in(done.stdout))
