"""Where case files are found, and the rules that their cases may cite."""

from __future__ import annotations

from pathlib import Path

import pytest
from shipped import all_cases

from conformance.language.errors import CaseFileError
from conformance.language.files import case_files, load_cases, shipped_cases, shipped_files_with

CASES = """\
topic: T
cases:
  - id: own
    title: t
    why: w
    rules: [own.rule, detach.shares-storage]
    steps: [{expect: {int(2): 2}}]
"""
RULES = """\
rules:
  - {id: own.rule, text: A rule., topic: T, level: observed, link: "https://example.org", since: "1.13"}
"""


def test_a_directory_has_its_case_files_and_no_others(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "rules.yaml", "known-issues.yaml", "c.json"):
        (tmp_path / name).touch()
    named = tmp_path / "c.json"
    assert [path.name for path in case_files([tmp_path, named])] == ["a.yml", "b.yaml", "c.json"]


def test_the_file_of_each_shipped_case_is_known_by_its_id() -> None:
    place = shipped_cases().parent
    cases = all_cases()
    sample = cases[:: max(1, len(cases) // 500)]
    named = {case.id: [str(path.relative_to(place)) for path in shipped_files_with([case.id])] for case in sample}
    assert [case.id for case in sample if case.file not in named[case.id]] == []
    assert sum(map(len, named.values())) < 2 * len(sample)
    assert shipped_files_with(["no-such-case"]) == []


def test_cases_may_cite_the_shipped_rules_and_those_beside_them(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(CASES, encoding="utf-8")
    with pytest.raises(CaseFileError, match=r"own\.yaml:6:13: rules\[0\]: unknown rule 'own\.rule'"):
        load_cases([tmp_path / "own.yaml"])
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    assert [case.rules for case in load_cases([tmp_path / "own.yaml"])] == [("own.rule", "detach.shares-storage")]
