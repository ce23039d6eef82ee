"""The builds of the page as plain data: a name, a label that distinguishes it, and its facts."""

import itertools
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Any

from packaging.version import Version

from conformance.language import versions
from conformance.model.build import Build, Device
from conformance.model.outcome import Outcome
from conformance.model.report import Pair, Report
from conformance.render.page.causes import PageCauses
from conformance.render.text import run_lines


def release_key(build: Build) -> tuple[Version, str, tuple[int, ...], str]:
    """Return a sort key by release; a version that can't be parsed comes first."""
    try:
        version = versions.version_of(build.torch)
    except ValueError:
        version = Version("0")
    python = tuple(int(part) for part in build.python.split(".") if part.isdecimal() and len(part) < 9)
    return version, build.torch, python, build.system


def builds_of(
    reports: Sequence[Report], outcomes: Sequence[Mapping[Pair, Outcome]], own: Report | None, causes: PageCauses
) -> list[dict[str, Any]]:
    """Return the records of builds for the page; `own` is the report of the run that has just ended."""
    taken: set[str] = set()
    builds = []
    for report, found, rows in zip(reports, outcomes, causes.rows, strict=True):
        name = free_name(report.build.slug, taken)
        taken.add(name)
        left = [outcome for outcome in found.values() if outcome.status == "not-run"]
        why = Counter((outcome.target, outcome.status, outcome.reason) for outcome in left)
        build = report.build
        builds.append({
            "id": name, "torch": build.torch, "name": f"torch {build.torch}, Python {build.python}, {build.system}",
            "release": release_of(build), "label": [], "facts": facts_of(report), "config": build.config,
            "devices": [DEVICE_FACTS, *map(device_row, build.devices)],
            "features": feature_rows(build),
            "runs": run_lines(report), "is_finished": report.footer is not None, "is_own": report is own,
            "counts": {target: dict(counts) for target, counts in report.counts().items()},
            "why": [[*key, count] for key, count in why.most_common()], "causes": rows,
        })  # fmt: skip
    label(builds, reports)
    return builds


def facts_of(report: Report) -> list[tuple[str, str]]:
    """Return the facts of a build by name; all of them are displayed on the page of the build."""
    build, run, suite = report.build, report.header.run, report.header.suite
    toolkits = [f"{name} {version}" for name, version in (("CUDA", build.cuda), ("HIP", build.hip)) if version]
    return [
        ("torch", build.torch),
        ("commit", build.git),
        ("compiled", ", ".join(["debug" if build.debug else "release", *toolkits])),
        ("Python", f"{build.implementation} {build.python}"),
        ("system", f"{build.system} ({build.platform})"),
        ("installed in", build.path),
        ("interpreter", build.executable),
        ("run", f"{run.started} to {report.footer.finished if report.footer is not None else '…'}"),
        ("called with", " ".join(run.arguments) or "nothing"),
        ("suite", f"{suite.version}, commit {suite.commit or 'unknown'}, cases {suite.cases}"),
    ]


DEVICE_FACTS = ("Device", "Name", "How many", "Driver", "Why absent")


def device_row(device: Device) -> tuple[str, ...]:
    name = device.name if device.absent is None else "absent"
    return device.type, name, str(device.count), device.driver or "—", device.absent or ""


def feature_rows(build: Build) -> list[list[str]]:
    """Return the table of what devices can do: a row of names, and one for each feature with why it is missing."""
    devices = [device for device in build.devices if device.features]
    names = dict.fromkeys(name for device in devices for name in device.features)
    rows = [[name, *(device.features.get(name, "not tried") for device in devices)] for name in names]
    return [["Feature", *(device.type for device in devices)], *rows] if rows else []


def free_name(slug: str, taken: Container[str]) -> str:
    """Return a name that no other build has, since two reports may be of one build."""
    names = itertools.chain([slug], (f"{slug}~{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


def release_of(build: Build) -> str:
    """Return the release that a build is of, or leads to; or its version where that can't be parsed."""
    try:
        return ".".join(map(str, versions.version_of(build.torch).release))
    except ValueError:
        return build.torch


def label(builds: Sequence[dict[str, Any]], reports: Sequence[Report]) -> None:
    """Give each build the shortest label that distinguishes it from the others of its release."""
    facts = {build["id"]: label_facts(report, build["release"]) for build, report in zip(builds, reports, strict=True)}
    alike: Counter[tuple[str, ...]] = Counter()
    for build in builds:
        own = facts[build["id"]]
        others = [facts[other["id"]] for other in builds if other["release"] == build["release"]]
        telling = {name for name in own if len({other[name] for other in others}) > 1}
        build["label"] = [own[name] for name in own if name in telling | {"stage", "python"} and own[name]]
        name = (build["release"], *build["label"])
        alike[name] += 1
        if alike[name] > 1:
            build["label"].append(f"~{alike[name]}")
        if build["is_own"]:
            build["label"].append("this run")


def label_facts(report: Report, release: str) -> dict[str, str]:
    """Return the facts that labels are made of, the most important first."""
    public, _, local = report.build.torch.partition("+")
    return {
        "stage": public.removeprefix(release).lstrip("."),
        "python": "py" + ".".join(report.build.python.split(".")[:2]),
        "local": local,
        "system": report.build.system,
        "implementation": report.build.implementation,
        "git": report.build.git[:8],
        "started": report.header.run.started,
    }
