"""Copies the tracked files of the checkout, so that tests can build the package without writing into the checkout."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml
from places import ROOT

from conformance.language.files import load_cases

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


def keep_topics(cases: Path, topics: Collection[str]) -> None:
    """Remove the other case files of a copy, and the known issues and renames of what was in them."""
    kept = {path for path in cases.iterdir() if path.stem in (*topics, "rules")}
    ids = {case.id for case in load_cases(path for path in kept if path.stem in topics)}
    issues = yaml.safe_load((cases / "known-issues.yaml").read_text(encoding="utf-8"))
    listed = issues["issues"]
    issues["issues"] = [
        of_cases(entry, ids) for entry in listed if ids.intersection(entry.get("cases", [entry.get("case")]))
    ]
    for path in set(cases.iterdir()) - kept:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (cases / "known-issues.yaml").write_text(yaml.safe_dump(issues), encoding="utf-8")
    (cases / "renames.yaml").write_text("renames: {}\n", encoding="utf-8")
    (cases / "modes.yaml").write_text("exemptions: []\n", encoding="utf-8")


def of_cases(entry: dict[str, Any], ids: Collection[str]) -> dict[str, Any]:
    """Return an entry of known issues about those cases alone that there are."""
    return {**entry, "cases": [case for case in entry["cases"] if case in ids]} if "cases" in entry else entry


def commit(place: Path, *, tag: str | None = None) -> None:
    """Commit what is in a place, which becomes a repository if it is none, and put a tag on it."""
    commands = [("init", "-q"), ("add", "-A"), ("commit", "-q", "--allow-empty", "-m", "x")]
    for command in [*commands, *([("tag", tag)] if tag is not None else [])]:
        subprocess.run([*GIT, *command], cwd=place, check=True, capture_output=True)
