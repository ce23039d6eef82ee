"""The case files of one run, read once each, and the rules that their cases cite."""

from __future__ import annotations

from pathlib import Path

from conformance.language.errors import CaseFileError, Problem
from conformance.language.files import shipped_cases
from conformance.language.reader import parse_cases
from conformance.language.rules import RULES_FILE, find_rules, load_rules
from conformance.language.yaml import read_text
from conformance.model.case import Case
from conformance.model.rule import Rule, level_of
from conformance.pytest_plugin.cache import CaseCache
from conformance.render.script.script import Script, script_for


class CaseSet:
    """The cases of one run; `root` is what names of files are seen from, and `kept` where read files are kept."""

    def __init__(self, root: Path, kept: Path | None) -> None:
        self.root = root
        self.cache = CaseCache(kept)
        self.known: list[Path] = []  # case files that pytest has found
        self.read: dict[Path, list[Case] | CaseFileError] = {}
        self.rules_read: dict[Path, dict[str, Rule]] = {}
        self.rules_for: dict[Path, dict[str, Rule]] = {}
        self.ids: dict[str, Case] = {}
        self.scripts: dict[str, Script | None] = {}

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

    def all_rules(self) -> dict[str, Rule]:
        """Return every rule that has been read."""
        return {name: rule for rules in self.rules_read.values() for name, rule in rules.items()}

    def level_of(self, case: Case, path: Path) -> str:
        return level_of(self.rules_of(path), case.rules)

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

    def loaded(self) -> dict[Path, list[Case]]:
        """Return the cases of each file that loads."""
        return {path: cases for path, cases in self.read.items() if not isinstance(cases, CaseFileError)}

    def broken(self) -> list[str]:
        """Return a line for each case file that does not load."""
        broken = {path: cases for path, cases in self.read.items() if isinstance(cases, CaseFileError)}
        return [f"{self.name_of(path)} does not load: {error.problems[0]}" for path, error in broken.items()]


def unreadable(name: str, error: OSError) -> Problem:
    return Problem(file=name, line=1, column=1, message=f"can't be read: {error.strerror}")
