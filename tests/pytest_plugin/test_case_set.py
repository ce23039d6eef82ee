"""The case files of a run: read once each, with the rules beside them, and refused where they don't go together."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import PAIRS, RULES, Session

from conformance.language.errors import CaseFileError
from conformance.pytest_plugin.case_set import CaseSet

GOOD = "- a = tensor([2.0], requires_grad=True)\n- expect: {a: {is_leaf: true}}\n"
BAD = GOOD.replace("is_leaf", "is_laef")
PROBLEM = "bad.yaml:9:22: expect.a.is_laef: unknown key 'is_laef' (did you mean 'is_leaf'?)"


@pytest.fixture
def files(tmp_path: Path) -> Session:
    return Session(tmp_path)


def refusal(case_set: CaseSet, path: Path) -> str:
    with pytest.raises(CaseFileError) as refused:
        case_set.cases(path)
    return str(refused.value)


def test_the_first_question_reads_every_file_that_is_known(files: Session, tmp_path: Path) -> None:
    case_set = CaseSet(tmp_path, None)
    first, other = files.cases(first=GOOD), files.cases(name="other.yaml", second=GOOD)
    case_set.known = [first, other]
    assert [case.id for case in case_set.cases(first)] == ["first"]
    assert [case.id for cases in case_set.loaded().values() for case in cases] == ["first", "second"]
    scripts = [case_set.script((case.id, case.digest)) for case in case_set.ids.values()]
    assert all(script is not None and script.body for script in scripts)
    assert case_set.script(("first", "another digest")) is case_set.script(("third", "any")) is None
    other.unlink()
    assert [case.file for case in case_set.cases(other)] == ["other.yaml"]


def test_a_file_that_is_found_twice_is_read_once(files: Session, tmp_path: Path) -> None:
    case_set = CaseSet(tmp_path, None)
    first, other = files.cases(first=GOOD), files.cases(name="other.yaml", second=GOOD)
    case_set.known = [first, other, first, other]
    assert [case.id for path in (first, other) for case in case_set.cases(path)] == ["first", "second"]


def test_a_covered_case_is_written_out_when_it_is_asked_for(files: Session, tmp_path: Path) -> None:
    path = files.write("pairs.yaml", PAIRS)
    case_set = CaseSet(tmp_path, tmp_path / "cache")
    (case,) = case_set.cases(path)
    assert case_set.number_covered(path) == 1
    (other,) = {"way-on-times-2", "way-on-times-3"} - {case.id}
    assert case_set.is_known(other)
    assert case_set.ids_by_list(lambda directory: directory) == {tmp_path: {case.id, other}}
    assert other not in case_set.ids
    covered = case_set.listed(other)
    assert covered is not None
    assert [covered] == case_set.covered(path) == case_set.covered(path)
    for listed, factor in ((case, case.id[-1]), (covered, other[-1])):
        whole, script = case_set.whole_case(listed), case_set.script((listed.id, listed.digest))
        (steps,) = case_set.encoded_steps("pairs.yaml", "2.13.0", covered=listed.is_covered)
        assert whole.id == case_set.record(listed).id == listed.id
        assert script is not None
        for text in (str(whole.steps), script.body, steps):
            assert f"a * {factor}" in text
    assert case_set.cases(path) == [case]
    assert case_set.listed("way-on-times-4") is None


def test_an_id_that_a_covered_case_and_another_have_is_a_problem_when_it_is_asked_for(
    files: Session, tmp_path: Path
) -> None:
    path = files.write("pairs.yaml", PAIRS)
    (covered,) = CaseSet(tmp_path, None).covered(path)
    own = files.cases(**{covered.id.replace("-", "_"): GOOD})
    case_set = CaseSet(tmp_path, None)
    case_set.known = [own, path]
    assert len(case_set.cases(path)) == 1
    with pytest.raises(CaseFileError, match=f"'{covered.id}' stands twice"):
        case_set.covered(path)


def test_an_id_that_stands_in_two_files_is_a_problem_of_the_second(files: Session, tmp_path: Path) -> None:
    case_set = CaseSet(tmp_path, None)
    first, second = files.cases(first=GOOD), files.cases(name="second.yaml", first=GOOD, third=GOOD)
    assert [case.id for case in case_set.cases(first)] == ["first"]
    said = "second.yaml:3:1: id: 'first' stands twice (first in first.yaml:3)"
    assert refusal(case_set, second) == said
    assert case_set.broken() == [f"second.yaml does not load: {said}"]
    assert case_set.ids.keys() == {"first"}


def test_a_file_that_does_not_load_leaves_the_others_alone(files: Session, tmp_path: Path) -> None:
    case_set = CaseSet(tmp_path, None)
    bad, good = files.cases(name="bad.yaml", second=BAD), files.cases(first=GOOD)
    assert refusal(case_set, bad) == refusal(case_set, bad) == PROBLEM
    assert len(case_set.cases(good)) == 1
    assert list(case_set.loaded()) == [good]
    assert "absent.yaml:1:1: can't be read: No such file" in refusal(case_set, tmp_path / "absent.yaml")


def test_rules_beside_the_cases_stand_before_the_shipped_ones(files: Session, tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (below / "rules.yaml").write_text(RULES.replace("test.rule", "detach.shares-storage"), encoding="utf-8")
    case_set = CaseSet(tmp_path, None)
    own, others = case_set.rules_of(below / "x.yaml"), case_set.rules_of(files.cases(first=GOOD))
    assert own["detach.shares-storage"].text == "What the tests of the suite check."
    assert others["detach.shares-storage"].text != own["detach.shares-storage"].text
    assert ("test.rule" in own, "test.rule" in others) == (False, True)
    (case,) = case_set.cases(tmp_path / "first.yaml")
    assert case.level == case_set.record(case).level == "documented"


def test_what_is_kept_of_a_file_follows_the_levels_of_the_rules_beside_it(files: Session, tmp_path: Path) -> None:
    path = files.cases(first=GOOD)
    levels = []
    for text in (RULES, RULES.replace("level: documented", "level: observed"), RULES):
        (tmp_path / "rules.yaml").write_text(text, encoding="utf-8")
        case_set = CaseSet(tmp_path, tmp_path / "cache")
        case_set.cases(path)
        levels.append(case_set.record(case_set.ids["first"]).level)
    assert levels == ["documented", "observed", "documented"]


def test_a_file_that_did_not_change_is_not_parsed_again(
    files: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = files.cases(first=GOOD)
    first = CaseSet(tmp_path, tmp_path / "cache")
    first.cases(path)
    (revision,) = [(case.id, case.digest) for case in first.cases(path)]
    before = first.script(revision)
    for name in (
        "pytest_plugin.case_set.rules_in",
        "pytest_plugin.case_set.parse_part",
        "render.script.script.script_for",
    ):
        monkeypatch.setattr(f"conformance.{name}", None)
    again = CaseSet(tmp_path, tmp_path / "cache")
    assert again.cases(path) == first.cases(path)
    for (case,) in (first.cases(path), again.cases(path)):
        assert (again.whole_case(case), again.record(case)) == (first.whole_case(case), first.record(case))
    assert (again.script(revision), again.all_rules()) == (before, first.all_rules())


def test_what_lies_outside_of_the_root_is_called_by_its_whole_path(tmp_path: Path) -> None:
    case_set = CaseSet(tmp_path / "root", None)
    assert case_set.name_of(tmp_path / "root" / "a" / "x.yaml") == "a/x.yaml"
    assert case_set.name_of(tmp_path / "x.yaml") == str(tmp_path / "x.yaml")
