"""What the page says of each build: a name, a label that tells it from the others, and its facts. Plain data."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Any

import msgspec
from packaging.version import Version

from conformance.language import versions
from conformance.model.build import Build
from conformance.model.outcome import Outcome
from conformance.model.report import Pair, Report
from conformance.model.status import TABLE
from conformance.render.text import run_lines


def release_key(build: Build) -> tuple[Version, str, tuple[int, ...], str]:
    """Return what sorts builds by release; one whose version nobody understands comes first."""
    try:
        version = versions.version_of(build.torch)
    except ValueError:
        version = Version("0")
    python = tuple(int(part) for part in build.python.split(".") if part.isdecimal() and len(part) < 9)
    return version, build.torch, python, build.system


def builds_of(
    reports: Sequence[Report], outcomes: Sequence[Mapping[Pair, Outcome]], own: Report | None
) -> list[dict[str, Any]]:
    """Return what the page says of each build; `own` is the one that has just been tested."""
    taken: set[str] = set()
    builds = []
    for report, found in zip(reports, outcomes, strict=True):
        name = free_name(report.build.slug, taken)
        taken.add(name)
        why: Counter[tuple[str, str, str]] = Counter(
            (outcome.target, outcome.status, outcome.reason)
            for outcome in found.values()
            if not TABLE[outcome.status].is_run
        )
        builds.append(
            {
                "id": name,
                "release": release_of(report.build),
                "facts": msgspec.to_builtins(report.build),
                "suite": msgspec.to_builtins(report.header.suite),
                "run": msgspec.to_builtins(report.header.run),
                "runs": run_lines(report),
                "footer": msgspec.to_builtins(report.footer),
                "own": report is own,
                "counts": {target: dict(counts) for target, counts in report.counts().items()},
                "why": [[*key, count] for key, count in why.most_common()],
            }
        )
    label(builds)
    return builds


def free_name(slug: str, taken: Container[str]) -> str:
    """Return a name that no other build has, since two reports may be of one build."""
    names = itertools.chain([slug], (f"{slug}~{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


def release_of(build: Build) -> str:
    """Return the release that a build is of, or leads to; of one whose version nobody understands, that version."""
    try:
        return ".".join(map(str, versions.version_of(build.torch).release))
    except ValueError:
        return build.torch


def label(builds: Sequence[dict[str, Any]]) -> None:
    """Give each build the shortest label that tells it from the others of its release."""
    facts = ("stage", "python", "local", "system", "implementation", "git", "started")
    shown = {
        build["id"]: {
            "stage": build["facts"]["torch"].partition("+")[0].removeprefix(build["release"]).lstrip("."),
            "python": "py" + ".".join(build["facts"]["python"].split(".")[:2]),
            "local": build["facts"]["torch"].partition("+")[2],
            "system": build["facts"]["system"],
            "implementation": build["facts"]["implementation"],
            "git": build["facts"]["git"][:8],
            "started": build["run"]["started"],
        }
        for build in builds
    }
    alike: Counter[tuple[str, ...]] = Counter()
    for build in builds:
        own = shown[build["id"]]
        others = [shown[other["id"]] for other in builds if other["release"] == build["release"]]
        telling = {name for name in facts if len({other[name] for other in others}) > 1}
        build["label"] = [own[name] for name in facts if name in telling | {"stage", "python"} and own[name]]
        name = (build["release"], *build["label"])
        alike[name] += 1
        if alike[name] > 1:
            build["label"].append(f"~{alike[name]}")
        if build["own"]:
            build["label"].append("this run")
