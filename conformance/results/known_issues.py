"""Known issues: bugs of PyTorch, or of a back-end, that cases show, as `known-issues.yaml` lists them.

A case is never bent around a bug. Its entry here says on which targets and releases it fails, at which step and how;
then the outcome is `known`. A case that fails in another way has found something new and stays red, and one that no
longer fails is `fixed`, which is red too until the entry is edited: a list that nobody keeps would hide the next bug.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
from msgspec.structs import replace

from conformance.language import versions
from conformance.language.errors import CaseFileError, quoted_value
from conformance.language.operations import PREFIX as OPERATIONS
from conformance.language.renames import Renames
from conformance.language.schema import Reporter, load_schema, problems_of, reporter
from conformance.language.yaml import Node, content_of, read_document, read_text
from conformance.model.build import IN_MODE, Build, Target
from conformance.model.outcome import Issue, Outcome
from conformance.model.status import AT_A_STEP, BROKEN, Status
from conformance.results.fingerprint import Fingerprint, fingerprint
from conformance.results.signature import signature

SHIPPED = "shipped"  # what an include calls the list that comes with the suite
PATTERN = re.compile(r"[*?]")
DEEPEST = 8  # includes within includes
IN_OWN_DTYPE = "wrong['native dtype']"
NO_END = "the step: RecursionError"
CUT_OFF = re.compile(r'^  File ".*\n  \.\.\.$', re.MULTILINE)  # a stack of more frames than faulthandler tells
OF_PYTORCH = ("cpu", "cuda")  # the devices whose kernels are PyTorch's own
ORDINARY = "; ordinary: f("  # in the line that derivatives() has of an ordinary point


class KnownIssue(msgspec.Struct, frozen=True, kw_only=True):
    """An entry, or its part about one of its `cases`: `case` on `targets` fails so with these releases.

    `step` and `kind` may be left open where it is a pattern or has a `signature`. With `is_hard` it is about an
    operation that fails at hard points alone. On targets that fit `may_fail_on` alone, and on other `systems`, it may
    fail so, but need not.
    """

    file: str
    line: int
    case: str
    targets: tuple[str, ...]
    may_fail_on: tuple[str, ...] = ()
    systems: tuple[str, ...] = ("*",)
    torch: str
    back_ends: tuple[tuple[str, str], ...] = ()  # conditions on the versions of back-ends, by the type of their device
    status: Status
    step: int | None = None
    kind: tuple[str, ...] | None = None
    signature: tuple[str, ...] = ()
    is_hard: bool = False
    reason: str
    link: str = ""
    review: date
    earlier: str = ""  # what the list calls the case, where it has another id now
    is_listed: bool = False  # whether its entry names several cases

    @property
    def is_pattern(self) -> bool:
        return PATTERN.search(self.case) is not None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def failure(self) -> Fingerprint:
        """The fingerprint of what it is about, as far as the entry gives it."""
        return Fingerprint(self.status, self.step, self.kind or ())

    @property
    def manner(self) -> str:
        """How it fails, in words."""
        return f"{self.failure}" + (f": {' or '.join(self.signature)}" if self.signature else "")

    def names(self, case: str) -> bool:
        return fnmatchcase(case, self.case)

    def names_one_of(self, cases: Set[str]) -> bool:
        return self.case in cases or (self.is_pattern and any(map(self.names, cases)))

    def must_hold(self, target: Target, build: Build) -> bool:
        """Whether the case has to fail on `target`."""
        is_known = any(fnmatchcase(build.system, pattern) for pattern in self.systems)
        is_in_range = all(in_version(condition, device, build) for device, condition in self.back_ends)
        return is_known and is_in_range and self.is_measured(target)

    def is_measured(self, target: Target) -> bool:
        """Whether the entry was measured on `target`: on it in its mode, if it has one."""
        return any(fits(pattern, target) and (not target.mode or IN_MODE in pattern) for pattern in self.targets)

    def may_hold(self, target: Target, build: Build) -> bool:
        """Whether the case can fail so on `target`."""
        here = any(
            fits(pattern, each)
            for pattern in (*self.targets, *self.may_fail_on) for each in (target, target.without_mode)
        )  # fmt: skip
        is_beyond = any(in_version(condition, device, build) is False for device, condition in self.back_ends)
        return here and not is_beyond and versions.holds(self.torch, build.torch)

    def describes(self, outcome: Outcome, target: Target) -> bool:
        """Whether a failure is the one that this entry is about.

        With a signature it doesn't matter whether a statement raised the error or an expectation met it. On a target
        that fits `may_fail_on` alone, such as another dtype, not all checks need fail, nor all ways to differentiate an
        operation, that do on those that the entry was measured on. Another device, which computes everything in the
        target's dtype, may fail in each way if it is in that dtype that an operation fails, and where its calls take
        more of the stack, a recursion without end ends the worker. A back-end comes to what PyTorch itself does wrong
        by kernels and words of its own: it may fail in another way where the CPU fails, or later. What fails anyway may
        fail in another way in a mode.
        """
        is_measured = self.is_measured(target)
        if target.mode and not any(IN_MODE in pattern for pattern in (*self.targets, *self.may_fail_on)):
            return True
        if self.is_hard and any(ORDINARY in failure.observed for failure in outcome.failures):
            return False
        if not is_measured and NO_END in (self.kind or ()) and is_out_of_stack(outcome):
            return True
        found = fingerprint(outcome)
        statuses = AT_A_STEP if self.signature and self.status in AT_A_STEP else {self.status}
        if self.is_of_pytorch(target) and found.status in AT_A_STEP and self.status in AT_A_STEP:
            return (self.step or 0) <= (found.step or 0)
        if found.status not in statuses or (self.signature and signature(outcome) not in self.signature):
            return False
        if self.kind and not is_measured:
            is_of_dtype = self.case.startswith(OPERATIONS) and IN_OWN_DTYPE in self.kind and target.device != "cpu"
            return self.step in (None, found.step) and (is_of_dtype or set(found.kind) <= set(self.kind))
        if self.is_pattern or self.is_listed or self.signature or self.earlier:
            return self.step in (None, found.step) and self.kind in (None, found.kind)
        return found == self.failure

    def is_of_pytorch(self, target: Target) -> bool:
        """Whether PyTorch itself fails so, as is seen on the CPU, in a case of a behaviour that runs on a back-end."""
        on_cpu = dataclasses.replace(target, device="cpu")
        is_there = target.device.partition(":")[0] in OF_PYTORCH or self.is_measured(target)
        return not is_there and self.is_measured(on_cpu) and not self.case.startswith(OPERATIONS)

    def issue(self, status: Status) -> Issue:
        return Issue(status=status, reason=self.reason, link=self.link)


def is_out_of_stack(outcome: Outcome) -> bool:
    """Whether a worker has ended in a recursion that came to the end of its stack before Python's limit."""
    return outcome.signal == "SIGSEGV" and CUT_OFF.search(outcome.stderr) is not None


def fits(pattern: str, target: Target) -> bool:
    """Whether a pattern stands for a target, or for its device and mode whatever the dtype."""
    return fnmatchcase(str(target), pattern) or fnmatchcase(target.place, pattern)


def in_version(condition: str, device: str, build: Build) -> bool | None:
    """Whether a condition holds for the version of a device's back-end; None where that can't be told."""
    version = next((each.version for each in build.backends if each.device == device), None)
    try:
        return None if version is None else versions.holds(condition, version)
    except ValueError:  # it has none, or one that can't be compared
        return None


class KnownIssues:
    """The entries that hold for one run, and what they make of outcomes."""

    def __init__(self, entries: Iterable[KnownIssue] = ()) -> None:
        self.entries = tuple(entries)
        self.by_case: dict[str, list[KnownIssue]] = {}
        self.patterns = [entry for entry in self.entries if entry.is_pattern]
        for entry in self.entries:
            if not entry.is_pattern:
                self.by_case.setdefault(entry.case, []).append(entry)

    def about(self, case: str, target: Target, build: Build) -> list[KnownIssue]:
        """Return the entries that have a say in a case on a target of a build."""
        named = [*self.by_case.get(case, ()), *(entry for entry in self.patterns if entry.names(case))]
        return [entry for entry in named if entry.may_hold(target, build)]

    def judge(self, case: str, target: Target, build: Build, outcome: Outcome) -> Outcome:
        """Return an outcome as it counts: known, fixed, or as it is."""
        entries = self.about(case, target, build)
        if entries and outcome.status in BROKEN:
            for entry in entries:
                if entry.describes(outcome, target):
                    return replace(outcome, status="known", issue=entry.issue(outcome.status))
        elif outcome.status == "pass":
            for entry in entries:
                if entry.must_hold(target, build):
                    reason = f"{entry.place} says that it fails; has it been fixed? then edit the entry"
                    return replace(outcome, status="fixed", reason=reason, issue=entry.issue("pass"))
        return outcome

    def renamed(self) -> list[str]:
        """Return a line for each entry whose case has another id now."""
        found: dict[tuple[str, str], list[str]] = {}
        for entry in self.entries:
            if entry.earlier:
                found.setdefault((entry.place, entry.earlier), []).append(entry.case)
        return [f"{place}: {old} is {', '.join(now)} now; edit the entry" for (place, old), now in found.items()]

    def overdue(self, today: date) -> list[str]:
        """Return a line for each entry that somebody should have looked at again by `today`."""
        due = [entry for entry in self.entries if entry.review <= today]
        listed = Counter((entry.place, entry.review) for entry in due if entry.is_listed)
        singly = [(entry.place, entry.review, entry.case) for entry in due if not entry.is_listed]
        several = [(*entry, f"what fails in {count} cases") for entry, count in listed.items()]
        return [f"{place}: {what} was to be reviewed by {review}" for place, review, what in (*singly, *several)]


def load_known_issues(path: Path, name: str, shipped: Path, renames: Renames | None = None) -> KnownIssues:
    """Return the entries of the file at `path` and of those that it includes.

    `name` is what error messages call it, `shipped` where the suite's own list is. An entry with an id of which
    `renames` knows is about the cases of today. Raise CaseFileError for a list, or an included one, that is wrong or
    can't be read.
    """
    found = entries_of(path, name, shipped, (resolved(path),))
    return KnownIssues(each for entry in found for each in entries_now(entry, (renames or {}).get(entry.case, ())))


def resolved(path: Path) -> Path:
    """Return where a path leads to, or the path itself where its links lead nowhere, which reading it will tell."""
    try:
        return path.resolve()
    except RuntimeError:  # links in a circle, up to Python 3.12
        return path.absolute()


def issues_in(entries: Node, name: str, renames: Renames) -> KnownIssues:
    """Return the entries that stand under `known_issues` in the profile of a device, which messages call `name`."""
    root = Node({"issues": entries}, entries.line, entries.column)
    try:
        found = list(entries_of(Path(name), name, Path(name), (), root))
    except CaseFileError as error:
        told = [dataclasses.replace(each, path=f"known_{each.path}") for each in error.problems]
        raise CaseFileError(told) from None
    return KnownIssues(each for entry in found for each in entries_now(entry, renames.get(entry.case, ())))


def entries_now(entry: KnownIssue, cases: Sequence[str]) -> Iterator[KnownIssue]:
    """Yield an entry for each of the cases that its own has become; itself where that has its id still.

    Where a case was split nobody knows which of them fails, and at which step.
    """
    if len(cases) > 1:
        targets = (*entry.targets, *entry.may_fail_on)
        entry = replace(entry, targets=(), may_fail_on=targets, step=None, earlier=entry.case)
    yield from (replace(entry, case=case, earlier=entry.case) for case in cases) if cases else [entry]


def entries_of(
    path: Path, name: str, shipped: Path, within: tuple[Path, ...], root: Node | None = None
) -> Iterator[KnownIssue]:
    """Yield the entries of the file at `path`, or of its content as `root`, and of the lists that it includes."""
    root = root or read_document(read_text(content_of(path), name), name)
    problems = problems_of(root, load_schema("known-issues.schema.json"), name)
    report = reporter(name, problems)
    if problems:
        raise CaseFileError(problems)
    entries: list[KnownIssue] = []
    known: dict[KnownIssue, int] = {}  # the line of each
    shared = {key: tuple(root.value[key].plain) for key in ("systems", "may_fail_on") if key in root.value}
    for node in root.value["issues"].value:
        check_entry(node, report, shared)
        for place, entry in () if problems else issues_of(node, name, shared):
            same = replace(entry, line=0)
            if same in known:
                report(place, "", "this entry stands twice", f"{entry.case} is first in line {known[same]}")
            known[same] = place.line
            entries.append(entry)
    if problems:
        raise CaseFileError(problems)
    yield from entries
    for node in root.value["include"].value if "include" in root.value else ():
        given = node.value
        included = shipped if given == SHIPPED else path.parent / given
        try:
            if given != SHIPPED and not resolved(included).is_relative_to(within[0].parent):
                # What a stranger's list includes shows in messages.
                report(node, "include", f"{given} is outside of {within[0].parent}, the folder of the list")
            elif resolved(included) in within:
                report(node, "include", f"{given} includes itself")
            elif len(within) > DEEPEST:
                report(node, "include", f"lists include each other over {DEEPEST} levels")
            else:
                yield from entries_of(included, given, shipped, (*within, resolved(included)))
        except OSError as error:
            hint = f"paths are seen from {path.parent}; {SHIPPED!r} is the list that comes with the suite"
            report(node, "include", f"{given} can't be read: {error.strerror}", hint)
    if problems:
        raise CaseFileError(problems)


def issues_of(node: Node, name: str, shared: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Node, KnownIssue]]:
    """Yield each case of an entry: its place, and what the entry says of it.

    `shared` is what the list says for all of its entries.
    """
    fails = node.value["fails"].plain
    own = node.value.get("may_fail_on")
    listed = node.value.get("cases")
    for case in [node.value["case"]] if listed is None else listed.value:
        yield node if listed is None else case, KnownIssue(
            file=name, line=node.line, case=case.value, is_listed=listed is not None, status=fails["status"],
            step=fails.get("step"), kind=tuple(fails["kind"]) if "kind" in fails else None,
            back_ends=tuple(node.value["back_ends"].plain.items()) if "back_ends" in node.value else (),
            signature=tuple(fails.get("signature", ())), is_hard="points" in fails,
            targets=tuple(node.value["targets"].plain),
            may_fail_on=shared.get("may_fail_on", ()) if own is None else tuple(own.plain),
            systems=shared.get("systems", ("*",)), review=date.fromisoformat(node.value["review"].value),
            link=node.value["link"].value or "", **{key: node.value[key].value for key in ("torch", "reason")},
        )  # fmt: skip


def without_place(entry: KnownIssue) -> KnownIssue:
    return replace(entry, line=0)


def check_entry(node: Node, report: Reporter, shared: Mapping[str, tuple[str, ...]]) -> None:
    """Report what is wrong with an entry that a schema can't tell."""
    condition, review, fails = (node.value[key] for key in ("torch", "review", "fails"))
    try:
        if not versions.possible([condition.value]):
            report(condition, "torch", f"no release fulfils {quoted_value(condition.value)}")
    except ValueError as error:
        report(condition, "torch", str(error))
    for device, bound in node.value["back_ends"].value.items() if "back_ends" in node.value else ():
        try:
            versions.specifier_of(bound.value)
        except ValueError:
            wanted = 'a condition on the version of a back-end such as "<2.10"'
            report(bound, f"back_ends.{device}", f"expected {wanted}, got {quoted_value(bound.value)}")
    try:
        date.fromisoformat(review.value)
    except ValueError:
        report(review, "review", f"expected a date such as 2027-01-31, got {quoted_value(review.value)}")
    may_fail_on = node.value["may_fail_on"].value if "may_fail_on" in node.value else shared.get("may_fail_on")
    if not node.value["targets"].value and not may_fail_on:
        report(node.value["targets"], "targets", "expected some target, here or as `may_fail_on`")
    if "case" in node.value and PATTERN.search(node.value["case"].value):
        return
    if fails.value["status"].value in AT_A_STEP and "signature" not in fails.value:
        for key in ("step", "kind"):
            if key not in fails.value:
                hint = "only a pattern can do without, and what has a signature"
                report(fails, "fails", f"the key {quoted_value(key)} is missing", hint)
