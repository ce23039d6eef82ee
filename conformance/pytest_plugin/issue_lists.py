"""The lists of known issues that apply to the case files of one run."""

from collections.abc import Iterable
from datetime import date
from pathlib import Path

from conformance.language.errors import CaseFileError
from conformance.language.files import ISSUES_FILE, nearest, shipped_cases
from conformance.language.profile import NO_PROFILE, Profile
from conformance.language.yaml import Node
from conformance.pytest_plugin.case_set import CaseSet, unreadable
from conformance.results.known_issues import KnownIssues, issues_in, load_known_issues


class IssueLists:
    """The list nearest to each case file with that of the profile, or the one that is `given` for all, or none."""

    def __init__(self, case_set: CaseSet, given: Path | None, *, is_none: bool, profile: Profile = NO_PROFILE) -> None:
        self.case_set = case_set
        self.given = given
        self.is_none = is_none
        self.profile = profile if given is None and not is_none else NO_PROFILE
        self.lists: dict[Path, KnownIssues | CaseFileError] = {}

    def of(self, directory: Path) -> KnownIssues:
        """Return the known issues for the case files in `directory`; raise CaseFileError for a list with problems."""
        if directory not in self.lists:
            try:
                self.lists[directory] = self.load(directory)
            except CaseFileError as error:
                self.lists[directory] = error
        result = self.lists[directory]
        if isinstance(result, CaseFileError):
            raise result
        return result

    def load(self, directory: Path) -> KnownIssues:
        path = self.given or (None if self.is_none else nearest(directory, ISSUES_FILE))
        own = self.profile.issues
        found = [self.read(each, directory) for each in (path, own) if isinstance(each, Path)]
        if isinstance(own, Node):
            found.append(issues_in(own, self.profile.file, self.case_set.renames_for(directory)))
        return KnownIssues(dict.fromkeys(entry for each in found for entry in each.entries))

    def read(self, path: Path, directory: Path) -> KnownIssues:
        name = self.case_set.name_of(path)
        renames = self.case_set.renames_for(directory)
        try:
            return load_known_issues(path, name, shipped_cases() / ISSUES_FILE, renames)
        except OSError as error:
            raise CaseFileError([unreadable(name, error)]) from None

    def without_case(self, places: Iterable[Path]) -> list[str]:
        """Return a line for each known issue that matches no case, from lists whose cases have all been loaded.

        Such a list lies in one of `places`, the directories that were collected, or was given. The lists that it
        includes are left out: they may be about cases that are not here.
        """
        ids = self.case_set.ids_by_list(lambda directory: self.given or nearest(directory, ISSUES_FILE))
        places = tuple(places)
        return [
            f"known issue {entry.place}: there is no case {entry.case}"
            for own, found in ids.items()
            if own == self.given or any(map(own.resolve().is_relative_to, places))
            for entry in self.of(own.parent).entries
            if entry.file == self.case_set.name_of(own) and not entry.names_one_of(found)
        ]

    def waiting(self, today: date) -> list[str]:
        """Return a line for each known issue that somebody should look at: its case was renamed, or it is due."""
        lists = [issues for issues in self.lists.values() if isinstance(issues, KnownIssues)]
        return list(dict.fromkeys(line for issues in lists for line in (*issues.renamed(), *issues.overdue(today))))
