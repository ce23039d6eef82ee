"""What one run of pytest tests: case files, the rules that they cite, and the targets of each case."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path

import pytest

from conformance.execution.scheduler import Scheduler, Settings
from conformance.execution.workers import Refused
from conformance.language.errors import CaseFileError, Problem
from conformance.language.files import ISSUES_FILE, shipped_cases
from conformance.language.reader import parse_cases
from conformance.language.rules import FILE as RULES_FILE
from conformance.language.rules import find_rules, load_rules
from conformance.language.yaml import read_text
from conformance.model.build import Build, Target
from conformance.model.case import Case
from conformance.model.outcome import Outcome
from conformance.model.rule import Rule, level_of
from conformance.pytest_plugin.cache import CaseCache
from conformance.render.script.script import Script, script_for
from conformance.results.known_issues import KnownIssues, find_known_issues, load_known_issues

DEFAULT_DTYPE = "float32"
NO_LIST = "none"  # in place of a list of known issues: nothing is known


class ConformanceSession:
    """The cases of one run, read once each, and where they run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.root = config.rootpath
        kept = config.cache.mkdir("conformance") if getattr(config, "cache", None) is not None else None
        self.scheduler = Scheduler(settings_of(config, kept))
        self.cache = CaseCache(kept)
        self.known: list[Path] = []  # case files that pytest has found
        self.read: dict[Path, list[Case] | CaseFileError] = {}
        self.rules_read: dict[Path, dict[str, Rule]] = {}
        self.rules_for: dict[Path, dict[str, Rule]] = {}
        self.issues_for: dict[Path, KnownIssues | CaseFileError] = {}
        self.ids: dict[str, Case] = {}
        self.scripts: dict[str, Script | None] = {}
        self.refused = False  # whether there is no torch, or not the device, that was asked for
        self.marks_made: dict[tuple[str, ...], tuple[pytest.Mark, ...]] = {}

    @property
    def build(self) -> Build:
        return self.scheduler.build

    @property
    def choices(self) -> list[str]:
        """The options of this run that decide what torch does, for a command that repeats one item."""
        option = self.config.option
        python = ["--python", option.python] if option.python else []
        repeated = (("--device", option.device), ("--device-module", option.device_module), ("--dtype", option.dtype))
        known = ["--known-issues", option.known_issues] if option.known_issues else []
        return python + [word for name, values in repeated for value in values for word in (name, value)] + known

    def name_of(self, path: Path) -> str:
        """Return the name by which messages call a file: relative to pytest's root where it lies below it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def rules_of(self, path: Path) -> dict[str, Rule]:
        """Return the rules that the cases in the file at `path` may cite: the shipped ones and those beside it.

        Where both have a rule, the one beside the cases counts: a changed copy of the suite cites its own.
        """
        directory = path.parent
        if directory not in self.rules_for:
            self.rules_for[directory] = self.find_rules_for(directory)
        return self.rules_for[directory]

    def find_rules_for(self, directory: Path) -> dict[str, Rule]:
        shipped = self.read_rules(shipped_cases() / RULES_FILE)
        own = find_rules(directory)
        return shipped if own is None else {**shipped, **self.read_rules(own)}

    def read_rules(self, path: Path) -> dict[str, Rule]:
        if path not in self.rules_read:
            self.rules_read[path] = load_rules(path, self.name_of(path))
        return self.rules_read[path]

    def known_issues(self, directory: Path) -> KnownIssues:
        """Return the known issues that hold for the case files in `directory`; raise CaseFileError for a wrong list.

        The list that an option names holds for all files, and `none` for no list at all.
        """
        if directory not in self.issues_for:
            try:
                self.issues_for[directory] = self.load_known_issues(directory)
            except CaseFileError as error:
                self.issues_for[directory] = error
        result = self.issues_for[directory]
        if isinstance(result, CaseFileError):
            raise result
        return result

    def load_known_issues(self, directory: Path) -> KnownIssues:
        path = self.list_given or (find_known_issues(directory) if self.config.option.known_issues is None else None)
        if path is None:
            return KnownIssues()
        name = self.name_of(path)
        try:
            return load_known_issues(path, name, shipped_cases() / ISSUES_FILE)
        except OSError as error:
            raise CaseFileError([unreadable(name, error)]) from None

    @property
    def list_given(self) -> Path | None:
        """The list of known issues that an option names."""
        given = self.config.option.known_issues
        return None if given in (None, NO_LIST) else (self.config.invocation_params.dir / given).resolve()

    def judged(self, case: Case, path: Path, target: Target, outcome: Outcome) -> Outcome:
        """Return what an outcome counts as, given what is known of the case, which is in the file at `path`."""
        return self.known_issues(path.parent).judge(case.id, target, self.build, outcome)

    def issues_without_case(self, places: Iterable[Path]) -> list[str]:
        """Return a line for each known issue that is about no case, of those lists whose cases have all been read.

        Such a list stands in one of `places`, which were searched for cases, or was asked for. Lists that it includes
        are somebody else's, and may speak of cases that are not here.
        """
        places = tuple(places)
        ids: dict[Path, set[str]] = {}
        for path, cases in self.cases_read().items():
            own = self.list_given or find_known_issues(path.parent)
            if own is not None and (own == self.list_given or any(map(own.resolve().is_relative_to, places))):
                ids.setdefault(own, set()).update(case.id for case in cases)
        return [
            f"{entry.place}: there is no case {entry.case}"
            for own, found in ids.items()
            for entry in self.known_issues(own.parent).entries
            if entry.file == self.name_of(own) and not any(map(entry.names, found))
        ]

    def broken_files(self) -> list[str]:
        """Return a line for each case file that does not load."""
        broken = {path: cases for path, cases in self.read.items() if isinstance(cases, CaseFileError)}
        return [f"{self.name_of(path)} does not load: {error.problems[0]}" for path, error in broken.items()]

    def cases_read(self) -> dict[Path, list[Case]]:
        """Return the cases of each file that loads."""
        return {path: cases for path, cases in self.read.items() if not isinstance(cases, CaseFileError)}

    def overdue(self, today: date) -> list[str]:
        """Return a line for each known issue that somebody should have looked at again by `today`."""
        lists = [issues for issues in self.issues_for.values() if isinstance(issues, KnownIssues)]
        return list(dict.fromkeys(line for issues in lists for line in issues.overdue(today)))

    def cases(self, path: Path) -> list[Case]:
        """Return the cases of a file; raise CaseFileError when it has problems.

        The first call reads every file that is known by then, while the worker imports torch.
        """
        if path not in self.known:
            self.known.append(path)
        for waiting in self.known:
            if waiting not in self.read:
                self.read[waiting] = self.load(waiting)
        result = self.read[path]
        if isinstance(result, CaseFileError):
            raise result
        return result

    def load(self, path: Path) -> list[Case] | CaseFileError:
        name = self.name_of(path)
        try:
            rules = self.rules_of(path)
            content = path.read_bytes()
            entry = self.cache.entry(content, name, rules)
            loaded = self.cache.get(entry)
            if loaded is None:
                loaded = [(case, script_for(case)) for case in parse_cases(read_text(content, name), name, rules)]
                self.cache.put(entry, loaded)
            cases = [case for case, _ in loaded]
            problems = [self.duplicate(case) for case in cases if case.id in self.ids]
            if problems:
                raise CaseFileError(problems)
        except CaseFileError as error:
            return error
        except OSError as error:
            return CaseFileError([unreadable(name, error)])
        self.ids.update((case.id, case) for case in cases)
        self.scripts.update((case.id, script) for case, script in loaded)
        return cases

    def duplicate(self, case: Case) -> Problem:
        first = self.ids[case.id]
        hint = f"first in {first.file}:{first.line}"
        return Problem(
            file=case.file, line=case.line, column=1, path="id", message=f"{case.id!r} stands twice", hint=hint
        )

    def targets(self) -> Iterator[Target]:
        option = self.config.option
        build = self.build
        devices = option.device or [*build.present_in_tree, *option.require_device]
        unknown = [build.why_absent(name) for name in devices if build.is_unknown(name)]
        if unknown:
            raise Refused("; ".join(unknown))
        for device in dict.fromkeys(devices):
            for dtype in dict.fromkeys(option.dtype or [DEFAULT_DTYPE]):
                yield Target(device=device, dtype=dtype)

    def lost_devices(self) -> list[str]:
        """Return a line for each required device that can't be used."""
        if not self.scheduler.knows_build:
            return []
        required = dict.fromkeys(self.config.option.require_device)
        return [f"{name}: {self.build.why_absent(name)}" for name in required if self.build.why_absent(name)]

    def all_rules(self) -> dict[str, Rule]:
        """Return every rule that has been read."""
        return {name: rule for rules in self.rules_read.values() for name, rule in rules.items()}

    def level_of(self, case: Case, path: Path) -> str:
        return level_of(self.rules_of(path), case.rules)

    def marks(self, case: Case, target: Target, level: str) -> Sequence[pytest.Mark]:
        """Return the markers of an item, by which `-m` selects it."""
        key = (case.topic, level, target.device, target.dtype, *case.rules)
        if key not in self.marks_made:
            marks = [getattr(pytest.mark, name).mark for name in (level, target.device.partition(":")[0], target.dtype)]
            marks.append(pytest.mark.topic(name=case.topic).mark)
            marks += [pytest.mark.rule(id=rule).mark for rule in case.rules]
            self.marks_made[key] = tuple(marks)
        return self.marks_made[key]


def settings_of(config: pytest.Config, kept: Path | None) -> Settings:
    """Return what the options of a run say of where and how cases are run."""
    option = config.option
    return Settings(
        python=option.python or sys.executable,
        devices=(*option.device, *option.require_device),
        modules=tuple(option.device_module),
        seconds=option.case_timeout,
        in_process=option.isolation == "none",
        debugged=option.usepdb or option.trace,
        number=number_of(config),
        kept=kept,
    )


def number_of(config: pytest.Config) -> int | None:
    """Return the number of this worker of pytest-xdist, counted from 0; None in a process that is none."""
    name = getattr(config, "workerinput", {}).get("workerid", "")
    return int(re.sub(r"\D", "", name) or 0) if name else None


def unreadable(name: str, error: OSError) -> Problem:
    return Problem(file=name, line=1, column=1, message=f"can't be read: {error.strerror}")


def command(choices: Sequence[str], nodeid: str) -> str:
    """Return the shell command that runs one item alone."""
    return shlex.join(["pytest", *choices, nodeid])
