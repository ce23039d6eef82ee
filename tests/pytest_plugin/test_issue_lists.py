"""The lists of known issues of a run: which holds where, and which of their entries are about no case."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from sessions import Session

from conformance.language.errors import CaseFileError
from conformance.pytest_plugin.case_set import CaseSet
from conformance.pytest_plugin.issue_lists import IssueLists

ENTRY = """\
  - case: {case}
    targets: [cpu]
    torch: ">=1.13"
    fails: {{status: fail, kind: [a.grad], step: 2}}
    reason: It fails.
    link: null
    review: 2026-01-31
"""


def listed(*cases: str) -> str:
    return "issues:\n" + "".join(ENTRY.format(case=case) for case in cases)


@pytest.fixture
def case_set(tmp_path: Path) -> CaseSet:
    """Return the set of one file with one case, which is called first."""
    made = CaseSet(tmp_path, None)
    made.cases(Session(tmp_path).cases(first="- a = 1\n- expect: {a: 1}\n"))
    return made


def test_the_list_beside_the_cases_holds_unless_another_is_given(case_set: CaseSet, tmp_path: Path) -> None:
    (tmp_path / "known-issues.yaml").write_text(listed("first"))
    (tmp_path / "other.yml").write_text(listed("first", "second"))

    def held(given: Path | None = None, *, is_none: bool = False) -> list[str]:
        return [entry.case for entry in IssueLists(case_set, given, is_none=is_none).of(tmp_path).entries]

    assert held() == ["first"]
    assert held(tmp_path / "other.yml") == ["first", "second"]
    assert held(is_none=True) == []


def test_a_list_that_is_wrong_or_missing_is_said_each_time(case_set: CaseSet, tmp_path: Path) -> None:
    (tmp_path / "known-issues.yaml").write_text("issues: 1\n")
    for given, said in ((None, "known-issues.yaml:1:9: issues: expected a list, got 1"), (tmp_path / "no", "no:1:1: ")):
        lists = IssueLists(case_set, given, is_none=False)
        for _ in range(2):
            with pytest.raises(CaseFileError) as refused:
                lists.of(tmp_path)
            assert str(refused.value).startswith(said)
        assert lists.waiting(date.max) == []


def test_an_entry_without_a_case_is_said_where_all_cases_were_read(case_set: CaseSet, tmp_path: Path) -> None:
    path = tmp_path / "known-issues.yaml"
    path.write_text(listed("first", "gone", "fir*", "go*"))
    said = [
        f"known issue known-issues.yaml:{line}: there is no case {case}" for line, case in ((9, "gone"), (23, "go*"))
    ]
    assert IssueLists(case_set, None, is_none=False).without_case([tmp_path]) == said
    assert IssueLists(case_set, None, is_none=False).without_case([tmp_path / "first.yaml"]) == []
    assert IssueLists(case_set, path, is_none=False).without_case([]) == said


def test_entries_that_are_included_may_be_about_cases_that_are_not_here(case_set: CaseSet, tmp_path: Path) -> None:
    (tmp_path / "theirs.yml").write_text(listed("gone"))
    (tmp_path / "known-issues.yaml").write_text(f"include: [theirs.yml]\n{listed('first')}")
    assert IssueLists(case_set, None, is_none=False).without_case([tmp_path]) == []


def test_what_is_due_for_review_is_said_once(case_set: CaseSet, tmp_path: Path) -> None:
    (tmp_path / "known-issues.yaml").write_text(listed("first"))
    lists = IssueLists(case_set, None, is_none=False)
    for directory in (tmp_path, tmp_path / "below"):
        assert len(lists.of(directory).entries) == 1
    (said,) = lists.waiting(date(2026, 1, 31))
    assert "first was to be reviewed by 2026-01-31" in said
    assert lists.waiting(date(2026, 1, 30)) == []
