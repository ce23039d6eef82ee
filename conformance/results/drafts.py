"""Drafts entries of known issues for what is red in reports: one for each cause, with the releases that have it.

Somebody has to look at each of them, say what is wrong and where it is kept track of: a list that wrote itself would
excuse anything.
"""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace
from packaging.version import Version

from conformance.language.operations import PREFIX
from conformance.language.versions import version_of
from conformance.model.build import BackEnd, target_of
from conformance.model.outcome import Outcome
from conformance.model.report import Cause, Report
from conformance.model.status import AT_A_STEP, BROKEN, TABLE
from conformance.results.causes import groups_of
from conformance.results.fingerprint import Fingerprint, fingerprint
from conformance.results.known_issues import KnownIssues
from conformance.results.signature import signature

REVIEW = timedelta(days=182)
TOLD_OF = {"held", "expected"}  # verdicts that say how far a failure reaches
FAILED = BROKEN | {"flaky"}
HELD = {"held", "outdated"}  # verdicts on what did not fail
OLDEST = "1.13"  # nobody asks for releases before it

Seen = Fingerprint | None  # how a pair failed on a release; None where it held, or somebody knows of it
History = Mapping[Version, Seen]
Place = tuple[str, str, Version]  # a case, a target and a release


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """How cases fail for one cause on some targets of the releases for which a condition holds.

    Those that don't fail at one step and place are described by `signatures`; `titles` are those of the causes. What
    one build has failed and held `is_unsteady`.
    """

    cases: tuple[str, ...]
    targets: tuple[str, ...]
    torch: str
    back_ends: tuple[tuple[str, str], ...] = ()
    fails: Fingerprint
    signatures: tuple[str, ...]
    titles: tuple[str, ...]
    is_unsteady: bool = False


def drafts_text(reports: Iterable[Report], today: date, known: KnownIssues | None = None, include: str = "") -> str:
    """Return drafted entries as YAML, in a list that includes another; none loads before it is given its reason."""
    drafts = drafts_of(reports, known)
    head = f"include: [{include}]\n" if include else ""
    entries = [entry_text(draft, today + REVIEW) for draft in drafts]
    return head + ("issues:\n" + "".join(entries) if entries else "issues: []\n")


def entry_text(draft: Draft, review: date) -> str:
    single = len(draft.cases) == 1
    fails: dict[str, Any] = {"status": draft.fails.status}
    if draft.fails.step is not None:
        fails["step"] = draft.fails.step
    if draft.signatures:
        fails["signature"] = Flow(draft.signatures)
    else:
        fails["kind"] = Flow(draft.fails.kind)
    entry = {
        **({"case": draft.cases[0]} if single else {"cases": Flow(draft.cases)}),
        "targets": Flow(() if draft.is_unsteady else draft.targets), "torch": draft.torch,
        **({"back_ends": FlowMapping(draft.back_ends)} if draft.back_ends else {}),
        **({"may_fail_on": Flow(draft.targets)} if draft.is_unsteady else {}),
        "fails": FlowMapping(fails), "reason": None, "link": None, "review": review.isoformat(),
    }  # fmt: skip
    title = "".join(each if each.isprintable() else "?" for each in "; ".join(draft.titles))
    count = "" if single else f"{len(draft.cases)} cases: "
    written = yaml.dump([entry], Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
    return textwrap.indent(f"# {count}{title}\n{escaped(written)}", "  ")


def escaped(written: str) -> str:
    """Return YAML in which direction marks and the like, which all stand within quotes, are escapes."""
    return "".join(each if each.isprintable() or each == "\n" else f"\\U{ord(each):08x}" for each in written)


def drafts_of(reports: Iterable[Report], known: KnownIssues | None = None) -> list[Draft]:
    """Return a draft for each cause of what is red in `reports`, that with the most cases first.

    What is known, or described by `known`, is left out; nothing is where that is None.
    """
    tables: dict[str, dict[str, dict[Version, Seen]]] = {}  # by case, target and release
    said: dict[Place, tuple[str, Cause]] = {}
    newest: dict[Place, Version] = {}  # the versions of back-ends that failed last
    ends: dict[tuple[Place, str], set[bool]] = {}  # whether a build has failed, in each of its reports
    for report in reports:
        version = Version(version_of(report.build.torch).public)
        outcomes = [unknown(outcome, report, known) for outcome in report.outcomes]
        own_versions = dict(versions_of(report.build.backends))
        failed: dict[tuple[str, str], tuple[str, Cause]] = {}
        for cause, own in groups_of(outcomes, {record.id: record for record in report.cases}):
            failed.update((outcome.pair, (signature(outcome), cause)) for outcome in own if outcome.status in FAILED)
        for outcome in outcomes:
            if outcome.pair in failed or TABLE[outcome.status].verdict in HELD:
                of_build = (outcome.case, outcome.target, version), report.build.slug
                ends.setdefault(of_build, set()).add(outcome.pair in failed)
                if outcome.status == "flaky":
                    ends[of_build].add(False)
            if outcome.pair in failed or TABLE[outcome.status].verdict in TOLD_OF:
                seen = fingerprint(outcome) if outcome.pair in failed else None
                history = tables.setdefault(outcome.case, {}).setdefault(outcome.target, {})
                history[version] = seen or history.get(version)  # of two builds of a release the one that fails counts
                if seen:
                    place = outcome.case, outcome.target, version
                    said[place] = failed[outcome.pair]
                    own_version = own_versions.get(target_of(outcome.target).device)
                    if own_version is not None:
                        newest[place] = max(own_version, newest.get(place, own_version))
    unsteady = {place for (place, _), failures in ends.items() if len(failures) > 1}
    groups: dict[Any, list[Draft]] = {}
    for case, table in tables.items():
        for patterns, targets, releases in by_device(table):
            for fails, condition, among in ranges_of(releases):
                places = [(case, target, version) for target in targets for version in among]
                found = [said[place] for place in places if place in said]
                causes = {cause.id: cause.title for _, cause in found}
                draft = Draft(
                    cases=(case,), targets=patterns, torch=condition, fails=fails, titles=tuple(causes.values()),
                    signatures=tuple(dict.fromkeys(text for text, _ in found)),
                    back_ends=condition_on_back_end([place for place in places if place in said], newest),
                    is_unsteady=not unsteady.isdisjoint(places),
                )  # fmt: skip
                status = "" if fails.status in AT_A_STEP else fails.status  # a signature is of all that end at a step
                manner = fails if case.startswith(PREFIX) else None  # a signature would excuse all that is wrong there
                key = patterns, condition, draft.back_ends, status, frozenset(causes), manner, draft.is_unsteady
                groups.setdefault(key, []).append(draft)
    return sorted(map(joined, groups.values()), key=lambda draft: -len(draft.cases))


def versions_of(back_ends: Iterable[BackEnd]) -> Iterator[tuple[str, Version]]:
    """Yield the devices of back-ends with their versions, where these can be compared."""
    for each in back_ends:
        with suppress(ValueError):
            yield each.device, Version(version_of(each.version).base_version)


def condition_on_back_end(failed: Sequence[Place], newest: Mapping[Place, Version]) -> tuple[tuple[str, str], ...]:
    """Return the condition on the version of a back-end up to which cases were seen to fail.

    Where they fail on several devices there is none: it would have to hold for each of them.
    """
    devices = {target_of(target).device for _, target, _ in failed}
    found = [newest[place] for place in failed if place in newest]
    return ((devices.pop(), f"<={max(found)}"),) if len(devices) == 1 and found else ()


def unknown(outcome: Outcome, report: Report, known: KnownIssues | None) -> Outcome:
    """Return an outcome as known where somebody knows of it, or as what it is if nobody did where `known` is None."""
    if known is None:
        issue = outcome.issue if outcome.status == "known" else None
        return outcome if issue is None else replace(outcome, status=issue.status, issue=None)
    if outcome.at_first not in BROKEN:
        return outcome
    at_first = replace(outcome, status=outcome.at_first)
    try:
        judged = known.judge(outcome.case, target_of(outcome.target), report.build, at_first)
        return outcome if judged is at_first else judged
    except ValueError:  # a target or a version that no entry can be about
        return outcome


def joined(drafts: Sequence[Draft]) -> Draft:
    """Return one draft for what fails for one cause, with the fingerprint of its cases or what they share of it."""
    first = drafts[0]
    cases = tuple(case for draft in drafts for case in draft.cases)
    if all(draft.fails == first.fails for draft in drafts):
        return replace(first, cases=cases, signatures=())
    ((status, _),) = Counter(draft.fails.status for draft in drafts).most_common(1)
    if status not in AT_A_STEP:
        return replace(first, cases=cases, fails=Fingerprint(status, None, first.fails.kind), signatures=())
    found = tuple(dict.fromkeys(text for draft in drafts for text in draft.signatures))
    return replace(first, cases=cases, fails=Fingerprint(status), signatures=found)


def by_device(table: Mapping[str, History]) -> list[tuple[tuple[str, ...], tuple[str, ...], History]]:
    """Return the targets that share a history, as patterns and by name; the dtypes of a device that all do are one.

    Releases on which a target could not run the case are no difference: what did not run is neither known nor fixed.
    """
    devices: dict[str, list[str]] = {}
    for target in table:
        devices.setdefault(target.rpartition("-")[0], []).append(target)
    shared: list[tuple[list[str], list[str], History]] = []
    for device, targets in devices.items():
        histories: dict[str, History] = {target: table[target] for target in targets}
        whole = one_history(histories.values())
        for name, history in histories.items() if whole is None else [(device, whole)]:
            own = [name] if whole is None else targets
            for place, (names, others, other) in enumerate(shared):
                both = one_history([other, history])
                if both is not None:
                    shared[place] = [*names, name], [*others, *own], both
                    break
            else:
                shared.append(([name], own, history))
    return [(tuple(names), tuple(targets), history) for names, targets, history in shared]


def one_history(histories: Iterable[History]) -> History | None:
    """Return what several histories tell together; None where they contradict each other."""
    found: dict[Version, Seen] = {}
    for history in histories:
        if any(found.get(version, seen) != seen for version, seen in history.items()):
            return None
        found.update(history)
    return found


def ranges_of(releases: History) -> list[tuple[Fingerprint, str, Sequence[Version]]]:
    """Return each way of failing with a condition on torch for the releases in a row that failed so, and these."""
    ordered = sorted(releases)
    found: list[tuple[Fingerprint, str, Sequence[Version]]] = []
    begin = 0
    for end in range(1, len(ordered) + 1):
        if end < len(ordered) and releases[ordered[end]] == releases[ordered[begin]]:
            continue
        fails = releases[ordered[begin]]
        if fails is not None:
            upper = f",<{bound(ordered, end)}" if end < len(ordered) else ""
            condition = f">={bound(ordered, begin)}{upper}".removeprefix(f">={OLDEST},")
            found.append((fails, condition, ordered[begin:end]))
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


Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"'
    ),
)
Dumper.add_representer(Flow, lambda dumper, flow: dumper.represent_sequence("tag:yaml.org,2002:seq", flow, True))
Dumper.add_representer(
    FlowMapping, lambda dumper, flow: dumper.represent_mapping("tag:yaml.org,2002:map", flow.items(), True)
)
