"""The case files of one run, each loaded once, and the rules that their cases cite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

from conformance.execution.program import encoded_steps_of
from conformance.language.errors import CaseFileError, Problem
from conformance.language.files import LEFT_OUT_FILE, nearest, read_left_out, shipped_cases
from conformance.language.reader import parse_part
from conformance.language.renames import RENAMES_FILE, Renames, load_renames
from conformance.language.rules import RULES_FILE, rules_in
from conformance.language.yaml import content_of, read_text
from conformance.model.case import Case, ListedCase
from conformance.model.report import CaseRecord, case_record
from conformance.model.rule import Rule, level_of
from conformance.pytest_plugin.cache import Cache, digest_of
from conformance.pytest_plugin.packed import Blocks, Packed, blocks_of
from conformance.pytest_plugin.side_by_side import work_side_by_side

if TYPE_CHECKING:
    from conformance.render.script.script import Script


Part = TypeVar("Part")
WORTH_A_PROCESS = 200_000  # bytes of case files, which take about a second


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """The cases of a file, or its covered ones: as a run lists them, whole, and their records in reports.

    `left` has the ids of those that are covered.
    """

    listed: list[ListedCase]
    left: list[str]
    cases: Blocks
    records: Blocks


class CaseSet:
    """The cases of one run; messages name files relative to `root`, and loaded files are cached in `cache`."""

    def __init__(self, root: Path, cache: Path | None) -> None:
        self.root = root
        self.cache = Cache(cache)
        self.known: list[Path] = []  # the case files that pytest has found
        self.read: dict[Path, list[ListedCase] | CaseFileError] = {}
        self.loaded_from: dict[tuple[str, bool], Loaded] = {}  # by the name of the file, and whether they are covered
        self.rules_read: dict[Path, dict[str, Rule]] = {}
        self.rules_for: dict[Path, dict[str, Rule]] = {}
        self.renames_read: dict[Path, Renames] = {}
        self.left_out: dict[Path, frozenset[str]] = {}
        self.ids: dict[str, ListedCase] = {}
        self.covered_in: dict[str, Path] = {}  # the file of each case that is covered, by its id
        self.scripts: tuple[tuple[str, bool], Sequence[Script]] = (("", False), ())  # of those that were last asked for
        self.facts: dict[tuple[str, bool], str] = {}  # a digest of what the cases of a file, or those, depend on

    def name_of(self, path: Path) -> str:
        """Return the name of a file in messages: relative to pytest's root if it lies below it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def rules_of(self, path: Path) -> dict[str, Rule]:
        """Return the rules that the cases in the file at `path` may cite: the shipped ones and those nearest to it.

        A rule nearest to it replaces the shipped one of its name: a modified copy of the suite cites its own rules.
        """
        directory = path.parent
        if directory not in self.rules_for:
            shipped = self.read_rules(shipped_cases() / RULES_FILE)
            own = nearest(directory, RULES_FILE)
            self.rules_for[directory] = shipped if own is None else {**shipped, **self.read_rules(own)}
        return self.rules_for[directory]

    def read_rules(self, path: Path) -> dict[str, Rule]:
        if path not in self.rules_read:
            content, name = content_of(path), self.name_of(path)
            self.rules_read[path] = self.cache.kept(dict[str, Rule], (content, name), lambda: rules_in(content, name))
        return self.rules_read[path]

    def all_rules(self) -> dict[str, Rule]:
        """Return every rule that has been read."""
        return {name: rule for rules in self.rules_read.values() for name, rule in rules.items()}

    def is_left_out(self, case: str, directory: Path) -> bool:
        """Whether the list beside the cases in `directory` says that `--quick` leaves out a case.

        Raise CaseFileError for a list that can't be read.
        """
        if directory not in self.left_out:
            path = nearest(directory, LEFT_OUT_FILE)
            self.left_out[directory] = frozenset() if path is None else self.read_left_out(path)
        return case in self.left_out[directory]

    def read_left_out(self, path: Path) -> frozenset[str]:
        try:
            return read_left_out(path, self.name_of(path))
        except OSError as error:
            raise CaseFileError([unreadable(self.name_of(path), error)]) from None

    def renames_for(self, directory: Path) -> Renames:
        """Return the renames that come with the suite, and those of the list beside the cases in `directory`."""
        shipped = self.read_renames(shipped_cases() / RENAMES_FILE)
        own = nearest(directory, RENAMES_FILE)
        return shipped if own is None else {**shipped, **self.read_renames(own)}

    def read_renames(self, path: Path) -> Renames:
        if path not in self.renames_read:
            try:
                self.renames_read[path] = load_renames(path, self.name_of(path))
            except OSError as error:
                raise CaseFileError([unreadable(self.name_of(path), error)]) from None
        return self.renames_read[path]

    def all_renames(self) -> Renames:
        """Return the renames of all cases that have been read; a list that is wrong is said where they are run."""
        for directory in dict.fromkeys(path.parent for path in self.read):
            with suppress(CaseFileError):
                self.renames_for(directory)
        return {earlier: now for renames in self.renames_read.values() for earlier, now in renames.items()}

    def stray_renames(self, places: Iterable[Path]) -> Iterator[str]:
        """Yield a line for each rename in `places` that leads to no case, or whose case has its earlier id still."""
        places = tuple(places)
        for path, ids in self.ids_by_list(lambda directory: nearest(directory, RENAMES_FILE)).items():
            if any(map(path.resolve().is_relative_to, places)):
                try:
                    load_renames(path, self.name_of(path), ids)
                except CaseFileError as error:
                    yield from map(str, error.problems)

    def ids_by_list(self, find: Callable[[Path], Path | None]) -> dict[Path, set[str]]:
        """Return the ids of the cases that have been read, by the list that `find` finds for their directory."""
        ids: dict[Path, set[str]] = {}
        for path, cases in self.loaded().items():
            own = find(path.parent)
            if own is not None:
                left = self.loaded_from[self.name_of(path), False].left
                ids.setdefault(own, set()).update((case.id for case in cases), left)
        return ids

    def cases(self, path: Path) -> list[ListedCase]:
        """Return the cases of a file but those that are covered; raise CaseFileError when it has problems.

        The first call loads all files that pytest has found by then, while the worker imports torch.
        """
        if path not in self.known:
            self.known.append(path)
        unread = [each for each in dict.fromkeys(self.known) if each not in self.read]
        if len(unread) > 1:
            self.load_ahead(unread)
        for waiting in unread:
            self.read[waiting] = self.load(waiting)
        result = self.read[path]
        if isinstance(result, CaseFileError):
            raise result
        return result

    def covered(self, path: Path) -> list[ListedCase]:
        """Return the cases of a file that are covered; raise CaseFileError when it has problems."""
        self.cases(path)
        part = self.name_of(path), True
        if part not in self.loaded_from:
            found = self.load(path, covered=True) if self.number_covered(path) else []
            if isinstance(found, CaseFileError):
                raise found
            return found
        return self.loaded_from[part].listed

    def number_covered(self, path: Path) -> int:
        """Return how many cases of a file that loads are covered."""
        return len(self.loaded_from[self.name_of(path), False].left)

    def load_ahead(self, paths: Iterable[Path]) -> None:
        """Cache what the files are read as if they are many bytes, the largest first."""
        waiting: list[tuple[int, Path]] = []
        for path in paths:
            with suppress(OSError, CaseFileError):
                entry = self.cache.entry(Loaded, (self.facts_of(path, content_of(path)),))
                if entry is not None and not entry.exists():
                    waiting.append((path.stat().st_size, path))
        if sum(size for size, _ in waiting) > WORTH_A_PROCESS:
            work_side_by_side([partial(self.loaded_part, path) for _, path in sorted(waiting, reverse=True)])

    def facts_of(self, path: Path, content: bytes, *, covered: bool = False) -> str:
        """Return a digest of what the cases of a file depend on, or those of them that are covered."""
        return digest_of((content, self.name_of(path), levels_of(self.rules_of(path)), f"covered: {covered}"))

    def loaded_part(self, path: Path, *, covered: bool = False) -> Loaded:
        name, rules, content = self.name_of(path), self.rules_of(path), content_of(path)
        facts = self.facts[name, covered] = self.facts_of(path, content, covered=covered)
        return self.cache.kept(Loaded, (facts,), lambda: loaded_from(content, name, rules, covered=covered))

    def load(self, path: Path, *, covered: bool = False) -> list[ListedCase] | CaseFileError:
        name = self.name_of(path)
        try:
            loaded = self.loaded_part(path, covered=covered)
            cases = sharing_texts(loaded.listed)
            problems = [self.duplicate(case, self.ids[case.id]) for case in cases if case.id in self.ids]
            if problems:
                raise CaseFileError(problems)
        except CaseFileError as error:
            return error
        except OSError as error:
            return CaseFileError([unreadable(name, error)])
        self.ids.update((case.id, case) for case in cases)
        self.covered_in.update(dict.fromkeys(loaded.left, path))
        self.loaded_from[name, covered] = msgspec.structs.replace(loaded, listed=cases)
        return cases

    def whole(self, file: str, *, covered: bool = False) -> Sequence[Case]:
        """Return the cases of a file that loads, or its covered ones; each is read when it is asked for."""
        return Packed(Case, self.loaded_from[file, covered].cases)

    def whole_case(self, case: ListedCase) -> Case:
        return self.whole(case.file, covered=case.is_covered)[case.place]

    def record(self, case: ListedCase) -> CaseRecord:
        """Return the record of a case in reports, which has texts in common with it."""
        record = Packed(CaseRecord, self.loaded_from[case.file, case.is_covered].records)[case.place]
        return msgspec.structs.replace(
            record, file=case.file, topic=case.topic, id=case.id, rules=case.rules, digest=case.digest
        )

    def encoded_steps(self, file: str, torch: str, *, covered: bool = False) -> Sequence[str]:
        """Return the steps that a torch runs of each case of a file as the worker gets them; "" if it can't run it."""
        facts = (self.facts[file, covered], "steps", torch)
        cases = self.whole(file, covered=covered)
        return Packed(str, self.cache.kept(Blocks, facts, lambda: blocks_of(encoded_steps_of(cases, torch))))

    def is_known(self, case: str) -> bool:
        """Whether a case is in a file that has been read."""
        return case in self.ids or case in self.covered_in

    def listed(self, case: str) -> ListedCase | None:
        """Return the case with this id, if its file has been read; raise CaseFileError if it can't be written out."""
        if case not in self.ids and case in self.covered_in:
            self.covered(self.covered_in[case])
        return self.ids.get(case)

    def revision(self, revision: tuple[str, str]) -> Case | None:
        """Return the case with this id and digest, if it has been read."""
        case = self.listed_revision(revision)
        return None if case is None else self.whole_case(case)

    def listed_revision(self, revision: tuple[str, str]) -> ListedCase | None:
        case = self.listed(revision[0])
        return case if case is not None and case.digest == revision[1] else None

    def script(self, revision: tuple[str, str]) -> Script | None:
        """Return the stand-alone script of the case with this id and digest, if it has been read."""
        case = self.listed_revision(revision)
        if case is None:
            return None
        part = case.file, case.is_covered
        if part != self.scripts[0]:
            self.scripts = part, self.scripts_in(part)
        return self.scripts[1][case.place]

    def scripts_in(self, part: tuple[str, bool]) -> Sequence[Script]:
        """Return the scripts of the cases of a file that has been read, or of those of them that are covered."""
        from conformance.render.script.script import Script, script_for  # noqa: PLC0415 - only the page needs them

        def made() -> Blocks:
            file, covered = part
            return blocks_of([script_for(each) for each in self.whole(file, covered=covered)])

        return Packed(Script, self.cache.kept(Blocks, (self.facts[part], "scripts"), made))

    def write_ahead(self) -> None:
        """Cache the scripts of all cases that have been read if these are many bytes, the largest file first."""
        waiting: list[tuple[int, Path, bool]] = []
        for path in self.loaded():
            for covered in [False, True] if self.number_covered(path) else [False]:
                with suppress(OSError):
                    facts = self.facts_of(path, content_of(path), covered=covered)
                    entry = self.cache.entry(Blocks, (facts, "scripts"))
                    if entry is not None and not entry.exists():
                        waiting.append((path.stat().st_size, path, covered))
        if sum(size for size, _, _ in waiting) > WORTH_A_PROCESS:
            waiting.sort(reverse=True)
            work_side_by_side([partial(self.write_scripts, path, covered=covered) for _, path, covered in waiting])

    def write_scripts(self, path: Path, *, covered: bool) -> None:
        if covered:
            self.covered(path)
        self.scripts_in((self.name_of(path), covered))

    @staticmethod
    def duplicate(case: ListedCase, first: ListedCase) -> Problem:
        hint = f"first in {first.file}:{first.line}"
        return Problem(
            file=case.file, line=case.line, column=1, path="id", message=f"{case.id!r} stands twice", hint=hint
        )

    def loaded(self) -> dict[Path, list[ListedCase]]:
        """Return the cases of each file that loads."""
        return {path: cases for path, cases in self.read.items() if not isinstance(cases, CaseFileError)}

    def broken(self) -> list[str]:
        """Return a line for each case file that doesn't load."""
        broken = {path: cases for path, cases in self.read.items() if isinstance(cases, CaseFileError)}
        return [f"{self.name_of(path)} does not load: {error.problems[0]}" for path, error in broken.items()]


class Records(Sequence[CaseRecord]):
    """The records of cases, each of which is read when it is asked for."""

    def __init__(self, case_set: CaseSet, cases: Sequence[ListedCase]) -> None:
        self.case_set = case_set
        self.cases = cases

    def __len__(self) -> int:
        return len(self.cases)

    @overload
    def __getitem__(self, index: int) -> CaseRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CaseRecord]: ...
    def __getitem__(self, index: int | slice) -> CaseRecord | Sequence[CaseRecord]:
        if isinstance(index, slice):
            return Records(self.case_set, self.cases[index])
        return self.case_set.record(self.cases[index])


def levels_of(rules: dict[str, Rule]) -> str:
    return "".join(sorted(f"{rule.id} {rule.level}\n" for rule in rules.values()))


def loaded_from(content: bytes, name: str, rules: dict[str, Rule], *, covered: bool) -> Loaded:
    cases, left = parse_part(read_text(content, name), name, rules, covered)
    return Loaded(
        left=left,
        listed=[listed_case(case, place, rules) for place, case in enumerate(cases)],
        cases=blocks_of(cases),
        records=blocks_of([case_record(case, rules) for case in cases]),
    )


def listed_case(case: Case, place: int, rules: dict[str, Rule]) -> ListedCase:
    return ListedCase(
        file=case.file, line=case.line, place=place, topic=case.topic, id=case.id, level=level_of(rules, case.rules),
        rules=case.rules, torch=case.torch, dtypes=case.dtypes, devices=case.devices, needs=case.needs,
        digest=case.digest, is_covered=case.is_covered,
    )  # fmt: skip


def sharing_texts(cases: list[ListedCase]) -> list[ListedCase]:
    """Return cases that have equal parts in common: those that were read from an entry have each its own."""
    parts: dict[Any, Any] = {}

    def one(part: Part) -> Part:
        found: Part = parts.setdefault(part, part)
        return found

    return [
        msgspec.structs.replace(
            case, file=one(case.file), topic=one(case.topic), rules=one(case.rules), torch=one(case.torch),
            dtypes=one(case.dtypes), devices=one(case.devices), needs=one(case.needs),
        )
        for case in cases
    ]  # fmt: skip


def unreadable(name: str, error: OSError) -> Problem:
    return Problem(file=name, line=1, column=1, message=f"can't be read: {error.strerror}")
