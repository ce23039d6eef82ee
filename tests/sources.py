"""Copies the tracked files of the checkout, so that tests can build the package without writing into the checkout."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from places import ROOT

GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org")


def copy_sources(place: Path) -> Path:
    """Copy the files, without the published reports and the history, and return the place."""
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file() and not name.startswith("reports/"):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    return place


def commit(place: Path, *, tag: str | None = None) -> None:
    """Commit what is in a place, which becomes a repository if it is none, and put a tag on it."""
    commands = [("init", "-q"), ("add", "-A"), ("commit", "-q", "--allow-empty", "-m", "x")]
    for command in [*commands, *([("tag", tag)] if tag is not None else [])]:
        subprocess.run([*GIT, *command], cwd=place, check=True, capture_output=True)
