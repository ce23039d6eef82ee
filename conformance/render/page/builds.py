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
from conformance.render.command import command_of
from conformance.render.page.causes import PageCauses
from conformance.render.text import run_lines

ALWAYS_TOLD = {"stage", "back-end", "python"}  # facts that labels have even where no other build differs in them


def release_key(build: Build) -> tuple[Version, bool, str, tuple[int, ...], str, list[str]]:
    """Return a sort key by release, without back-ends first; a version that can't be parsed comes before others."""
    try:
        version = versions.version_of(build.torch)
    except ValueError:
        version = Version("0")
    python = tuple(int(part) for part in build.python.split(".") if part.isdecimal() and len(part) < 9)
    public = Version(version.public)
    return public, bool(build.backends), build.torch, python, build.system, build.backend_titles


def builds_of(
    reports: Sequence[Report], outcomes: Sequence[Mapping[Pair, Outcome]], own: Report | None, causes: PageCauses
) -> list[dict[str, Any]]:
    """Return the records of builds for the page; `own` is the report of the run that has just ended."""
    taken: set[str] = set()
    builds: list[dict[str, Any]] = []
    for report, found, rows in zip(reports, outcomes, causes.rows, strict=True):
        name = free_name(report.build.slug, taken)
        taken.add(name)
        left = [outcome for outcome in found.values() if outcome.status == "not-run"]
        why = Counter((outcome.target, outcome.status, outcome.reason) for outcome in left)
        build = report.build
        builds.append({
            "id": name, "torch": build.torch, "name": build_title(build),
            "command": command_of(report.header.run, build),
            "release": release_of(build), "beside": "", "label": [], "facts": facts_of(report), "config": build.config,
            "devices": [DEVICE_FACTS, *map(device_row, build.devices)],
            "features": feature_rows(build),
            "runs": run_lines(report), "is_finished": report.footer is not None, "is_own": report is own,
            "counts": {target: dict(counts) for target, counts in report.counts().items()},
            "why": [[*key, count] for key, count in why.most_common()], "causes": rows,
        })  # fmt: skip
    label(builds, reports)
    for record, report in zip(builds, reports, strict=True):
        if report.build.backends:
            record["beside"] = beside(record["release"], builds, reports)
    return builds


def beside(release: str, builds: Sequence[dict[str, Any]], reports: Sequence[Report]) -> str:
    """Return the id of the build of torch alone that a back-end on a release is to be compared with; "" if none is.

    That is one of this release, or else the last of the same minor release.
    """
    alone = [build for build, report in zip(builds, reports, strict=True) if not report.build.backends]
    minor = release.split(".")[:2]
    of_minor = [build["id"] for build in alone if build["release"].split(".")[:2] == minor]
    of_release = [build["id"] for build in alone if build["release"] == release]
    return next(iter((*of_release, *reversed(of_minor))), "")


def build_title(build: Build) -> str:
    own = " with ".join([f"torch {build.torch}", *build.backend_titles])
    return f"{own}, Python {build.python}, {build.system}"


def facts_of(report: Report) -> list[tuple[str, str]]:
    """Return the facts of a build by name; all of them are displayed on the page of the build."""
    build, run, suite = report.build, report.header.run, report.header.suite
    toolkits = [f"{name} {version}" for name, version in (("CUDA", build.cuda), ("HIP", build.hip)) if version]
    facts = [
        ("torch", build.torch),
        ("commit", build.git),
        *(
            ("back-end", f"{title}, from {' and '.join(each.modules) or 'torch itself'}")
            for each, title in zip(build.backends, build.backend_titles, strict=True)
        ),
        ("compiled", ", ".join(["debug" if build.debug else "release", *toolkits])),
        ("Python", f"{build.implementation} {build.python}"),
        ("system", f"{build.system} ({build.platform})" if build.platform else build.system),
        ("installed in", build.path),
        ("interpreter", build.executable),
        ("run", f"{run.started} to {report.footer.finished if report.footer is not None else '…'}"),
        ("called with", " ".join([*([run.command] if run.command != "pytest" else []), *run.arguments]) or "nothing"),
        ("suite", f"{suite.version}, commit {suite.commit or 'unknown'}, cases {suite.cases}"),
    ]
    return [(name, value) for name, value in facts if value]


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
        build["label"] = [own[name] for name in own if name in telling | ALWAYS_TOLD and own[name]]
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
        "back-end": " ".join(" ".join(filter(None, (each.name, each.version))) for each in report.build.backends),
        "python": "py" + ".".join(report.build.python.split(".")[:2]),
        "local": local,
        "system": report.build.system,
        "implementation": report.build.implementation,
        "git": report.build.git[:8],
        "commit": " ".join(each.commit[:8] for each in report.build.backends),
        "hardware": " ".join(map(report.build.hardware_of, report.build.backends)).strip(),
        "started": report.header.run.started,
    }
