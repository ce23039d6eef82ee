"""Drafts entries of known issues for what is red in reports, each with the releases that were seen to fail so.

Somebody has to look at each of them, say what is wrong and where it is kept track of: a list that wrote itself would
excuse anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import msgspec
import yaml
from packaging.version import Version

from conformance.language.versions import version_of
from conformance.model.outcome import Outcome
from conformance.model.report import Report
from conformance.model.status import BROKEN
from conformance.results.fingerprint import Fingerprint, fingerprint

REVIEW = timedelta(days=182)
OLDEST = "1.13"  # nobody asks for releases before it

Seen = Fingerprint | None  # how a pair failed on a release; None where it held
History = Mapping[Version, Seen]


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """How a case fails on some targets of the releases for which a condition holds."""

    case: str
    targets: tuple[str, ...]
    torch: str
    fails: Fingerprint


def drafts_text(reports: Iterable[Report], today: date) -> str:
    """Return drafted entries as YAML; none loads before somebody has given its reason."""
    entries = [entry_for(draft, today + REVIEW) for draft in drafts_of(reports)]
    return yaml.dump({"issues": entries}, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)


def entry_for(draft: Draft, review: date) -> dict[str, Any]:
    fails: dict[str, Any] = {"status": draft.fails.status}
    if draft.fails.step is not None:
        fails["step"] = draft.fails.step
    return {
        "case": draft.case, "targets": Flow(draft.targets), "torch": draft.torch,
        "fails": FlowMapping(fails | {"kind": Flow(draft.fails.kind)}),
        "reason": None, "link": None, "review": review.isoformat(),
    }  # fmt: skip


def drafts_of(reports: Iterable[Report]) -> list[Draft]:
    """Return a draft for each way in which a case is red, or known, in one of `reports`."""
    tables: dict[str, dict[str, dict[Version, Seen]]] = {}  # by case, target and release
    for report in reports:
        version = Version(version_of(report.build.torch).public)
        for (case, target), outcome in report.by_pair().items():
            if outcome.status == "pass" or is_failure(outcome):
                seen = fingerprint(outcome) if is_failure(outcome) else None
                history = tables.setdefault(case, {}).setdefault(target, {})
                history[version] = seen or history.get(version)  # of two builds of a release the one that fails counts
    drafts = []
    for case, table in tables.items():
        for targets, releases in by_device(table):
            drafts += [
                Draft(case=case, targets=targets, torch=condition, fails=fails)
                for fails, condition in ranges_of(releases)
            ]
    return drafts


def is_failure(outcome: Outcome) -> bool:
    return outcome.status == "known" or outcome.status in BROKEN


def by_device(table: Mapping[str, History]) -> list[tuple[tuple[str, ...], History]]:
    """Return the targets that share a history, as patterns; the dtypes of a device that all do are one pattern.

    Releases on which a target could not run the case are no difference: what did not run is neither known nor fixed.
    """
    devices: dict[str, list[str]] = {}
    for target in table:
        devices.setdefault(target.rpartition("-")[0], []).append(target)
    shared: list[tuple[list[str], History]] = []
    for device, targets in devices.items():
        histories: dict[str, History] = {target: table[target] for target in targets}
        whole = one_history(histories.values())
        for name, history in histories.items() if whole is None else [(device, whole)]:
            for place, (names, other) in enumerate(shared):
                both = one_history([other, history])
                if both is not None:
                    shared[place] = [*names, name], both
                    break
            else:
                shared.append(([name], history))
    return [(tuple(names), history) for names, history in shared]


def one_history(histories: Iterable[History]) -> History | None:
    """Return what several histories tell together; None where they contradict each other."""
    found: dict[Version, Seen] = {}
    for history in histories:
        if any(found.get(version, seen) != seen for version, seen in history.items()):
            return None
        found.update(history)
    return found


def ranges_of(releases: History) -> list[tuple[Fingerprint, str]]:
    """Return each way of failing with a condition on torch for the releases in a row that failed so."""
    ordered = sorted(releases)
    found = []
    begin = 0
    for end in range(1, len(ordered) + 1):
        if end < len(ordered) and releases[ordered[end]] == releases[ordered[begin]]:
            continue
        fails = releases[ordered[begin]]
        if fails is not None:
            upper = f",<{bound(ordered, end)}" if end < len(ordered) else ""
            found.append((fails, f">={bound(ordered, begin)}{upper}".removeprefix(f">={OLDEST},")))
        begin = end
    return found


def bound(ordered: Sequence[Version], place: int) -> str:
    """Return the release from which an outcome was seen: the minor release, unless another patch of it differs."""
    version = ordered[place]
    minor = f"{version.major}.{version.minor}"
    return minor if place == 0 or not ordered[place - 1].base_version.startswith(f"{minor}.") else version.base_version


class Flow(list[Any]):
    """A list that YAML writes in one line."""


class FlowMapping(dict[str, Any]):
    """A mapping that YAML writes in one line."""


class Dumper(yaml.SafeDumper):
    """Writes lists with an indent, as the suite's own files have it."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - as PyYAML calls it
        super().increase_indent(flow, False)


Dumper.add_representer(Flow, lambda dumper, flow: dumper.represent_sequence("tag:yaml.org,2002:seq", flow, True))
Dumper.add_representer(
    FlowMapping, lambda dumper, flow: dumper.represent_mapping("tag:yaml.org,2002:map", flow.items(), True)
)
