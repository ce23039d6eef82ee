"""Tests of drafted known issues: that each says which releases and targets fail, and holds what it was drafted from."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from samples import HOSTILE, case, failed, outcome, report

from conformance.language.errors import CaseFileError
from conformance.model.build import BackEnd, Target, target_of
from conformance.model.outcome import Issue, Outcome, Retry
from conformance.model.report import Report
from conformance.results.drafts import drafts_of, drafts_text
from conformance.results.known_issues import KnownIssues, load_known_issues

CPU, DOUBLE, CUDA, NPU = "cpu-float32", "cpu-float64", "cuda-float32", "npu-float32"
GOOD, BAD, OTHER = outcome("pass"), failed(), failed("b.version")


def on(torch: str, found: Outcome, *targets: str) -> Report:
    return report({("a", target): found for target in targets or (CPU,)}, torch=torch)


def conditions(*outcomes: tuple[str, Outcome]) -> list[tuple[str, str]]:
    return [(draft.torch, draft.fails.kind[0]) for draft in drafts_of([on(*pair) for pair in outcomes])]


def test_a_range_ends_where_another_outcome_was_seen() -> None:
    releases = [("1.13.1", BAD), ("2.0.1", BAD), ("2.1.2", GOOD), ("2.2.2+cu121", BAD), ("2.10.0", OTHER)]
    assert conditions(*releases) == [("<2.1", "a.grad"), (">=2.2,<2.10", "a.grad"), (">=2.10", "b.version")]


def test_what_did_not_run_ends_no_range() -> None:
    lacks = outcome("unsupported", reason="no such dtype")
    assert conditions(("2.0.1", BAD), ("2.1.2", lacks), ("2.2.2", BAD)) == [(">=2.0", "a.grad")]


def test_patches_of_one_release_are_told_apart_where_they_differ() -> None:
    assert conditions(("2.1.0", GOOD), ("2.1.2", BAD), ("2.2.0", GOOD)) == [(">=2.1.2,<2.2", "a.grad")]


def test_of_two_builds_of_a_release_the_one_that_fails_counts() -> None:
    for builds in ((("2.1.2+cpu", GOOD), ("2.1.2+cu121", BAD)), (("2.1.2+cu121", BAD), ("2.1.2+cpu", GOOD))):
        assert conditions(*builds, ("2.2.2", GOOD)) == [(">=2.1,<2.2", "a.grad")]


def test_what_is_flaky_may_fail_as_it_did_at_first(tmp_path: Path) -> None:
    flaky = failed(status="flaky", retry=Retry(status="fail", alone=GOOD))
    reports = [report({("a", CPU): flaky, ("b", CPU): GOOD})]
    path = tmp_path / "known-issues.yaml"
    path.write_text(drafts_text(reports, date(2026, 1, 1)).replace("reason: null", "reason: It is wrong."))
    issues = load_known_issues(path, path.name, path)
    told = [issues.judge("a", target_of(CPU), reports[0].build, found).status for found in (BAD, GOOD, OTHER)]
    assert told == ["known", "pass", "fail"]
    assert drafts_of(reports, issues) == []  # the entry is about it


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("again", [("pass", "fail"), ("fixed", "known")])
def test_what_one_build_has_failed_and_held_may_fail(tmp_path: Path, order: int, again: tuple[Any, Any]) -> None:
    second = {("a", CPU): outcome(again[0]), ("b", CPU): BAD if again[1] == "fail" else outcome("known")}
    reports = [report({("a", CPU): BAD, ("b", CPU): BAD}), report(second)][::order]
    path = tmp_path / "known-issues.yaml"
    path.write_text(drafts_text(reports, date(2026, 1, 1)).replace("reason: null", "reason: It is wrong."))
    issues = load_known_issues(path, path.name, path)

    def judged(name: str) -> list[str]:
        return [issues.judge(name, target_of(CPU), reports[0].build, found).status for found in (BAD, GOOD)]

    assert (judged("a"), judged("b")) == (["known", "pass"], ["known", "fixed"])


def test_a_device_stands_for_its_dtypes_where_they_agree() -> None:
    bad, good = on("2.0.1", BAD, CPU, DOUBLE, CUDA), on("2.1.2", GOOD, CPU, DOUBLE, CUDA)
    assert [draft.targets for draft in drafts_of([bad, good])] == [("cpu", "cuda")]
    mixed = report({("a", CPU): BAD, ("a", DOUBLE): GOOD, ("a", CUDA): BAD})
    assert [draft.targets for draft in drafts_of([mixed])] == [("cpu-float32", "cuda")]


def test_the_text_loads_and_describes_what_was_seen(tmp_path: Path) -> None:
    crashed = outcome("crash", reason="the worker was ended by SIGSEGV", signal="SIGSEGV")
    reports = [on("2.0.1", BAD), on("2.1.2", GOOD), on("2.2.2", crashed)]
    path = tmp_path / "known-issues.yaml"
    drafted = drafts_text(reports, date(2026, 1, 1))
    path.write_text(drafted)
    with pytest.raises(CaseFileError, match="reason: expected text, got nothing"):
        load_known_issues(path, path.name, path)
    path.write_text(drafted.replace("reason: null", "reason: It is wrong."))
    issues = load_known_issues(path, path.name, path)
    target = Target(device="cpu", dtype="float32")
    found = [issues.judge("a", target, each.build, each.outcomes[0]).status for each in reports]
    assert found == ["known", "pass", "known"]
    assert {entry.review for entry in issues.entries} == {date(2026, 7, 2)}


def test_what_a_back_end_has_ends_with_its_newest_version_that_failed(tmp_path: Path) -> None:
    def by(version: str, found: Outcome, *targets: str) -> Report:
        own = BackEnd(device="npu", modules=("torch_npu",), name="torch-npu", version=version)
        return report({("a", target): found for target in targets}, torch="2.9.0", backends=(own,))

    reports = [by("2.9.0rc1", BAD, NPU), by("2.9.1.post2+git1", BAD, NPU), by("2.10", GOOD, NPU)]
    text = drafts_text(reports, date(2026, 1, 1))
    assert "back_ends: {npu: <=2.9.1}" in text
    assert [judged_by(text, tmp_path, each) for each in reports] == [["known"], ["known"], ["pass"]]
    for unclear in (by("", BAD, NPU), by("2.9", BAD, NPU, CPU), by("2.9", BAD, CPU)):
        assert "back_ends" not in drafts_text([unclear], date(2026, 1, 1))


def raised(message: str, step: int, status: str = "error", **facts: Any) -> Outcome:
    path, expected = ("", "no error") if status == "error" else ("y", "a value")
    kind = message.partition(":")[0]
    return failed(path, expected, message, exception=kind, status=status, step=step, **facts)


SEVERAL = {
    ("a", CPU): raised("E: no aten::exp for [1]", 1), ("b", CPU): raised("E: no aten::exp for [2, 3]", 4),
    ("c", CPU): raised("E: no aten::exp for [4]", 2, "fail"), ("d", CPU): raised("E: no aten::log", 1),
    ("e", CPU): outcome("crash", signal="SIGSEGV", step=1), ("f", CPU): outcome("crash", signal="SIGSEGV", step=5),
    ("g", CPU): failed(), ("h", CPU): failed(), ("i", CPU): GOOD,
}  # fmt: skip


def judged_by(text: str, directory: Path, made: Report) -> list[str]:
    """Return what the outcomes of a report count as with a drafted list that has been given its reasons."""
    path = directory / "known-issues.yaml"
    path.write_text(text.replace("reason: null", "reason: It is wrong."))
    issues = load_known_issues(path, path.name, path)
    return [issues.judge(each.case, target_of(each.target), made.build, each).status for each in made.outcomes]


def test_a_cause_is_one_entry_and_what_has_a_cause_of_its_own_is_as_strict_as_can_be(tmp_path: Path) -> None:
    made = report(SEVERAL)
    text = drafts_text([made], date(2026, 1, 1))
    assert (
        text
        == """\
issues:
  # 3 cases: E: no aten::exp for […]
  - cases: [a, b, c]
    targets: [cpu]
    torch: '>=2.13'
    fails: {status: error, signature: ['E: no aten::exp for […]']}
    reason: null
    link: null
    review: '2026-07-02'
  # 2 cases: Tests: SIGSEGV
  - cases: [e, f]
    targets: [cpu]
    torch: '>=2.13'
    fails: {status: crash, kind: [SIGSEGV]}
    reason: null
    link: null
    review: '2026-07-02'
  # 2 cases: Tests: grad: another value
  - cases: [g, h]
    targets: [cpu]
    torch: '>=2.13'
    fails: {status: fail, step: 2, kind: [a.grad]}
    reason: null
    link: null
    review: '2026-07-02'
  # E: no aten::log
  - case: d
    targets: [cpu]
    torch: '>=2.13'
    fails: {status: error, step: 1, kind: ['the step: E']}
    reason: null
    link: null
    review: '2026-07-02'
"""
    )
    assert judged_by(text, tmp_path, made) == ["known"] * 8 + ["pass"]


def test_operations_are_drafted_by_how_they_fail_and_never_by_a_signature() -> None:
    first, second = "derivatives-of-a", "derivatives-of-b"
    text = drafts_text(
        [report({(first, CPU): failed("wrong['backward']", "[]", "[the gradient[0] is 0.5; ordinary: f(1.0), g = 1.0]"),
                 (second, CPU): failed("wrong['memory']", "[]", "[the gradient[0] is 0.5; ordinary: f(1.0), g = 1.0]")},
                cases=[case(first), case(second)])],
        date(2026, 1, 1),
    )  # fmt: skip
    assert "signature" not in text
    assert text.count("- case: ") == 2


def test_what_somebody_knows_of_is_left_out(tmp_path: Path) -> None:
    issue = Issue(status="fail", reason="Known.")
    made = report({**SEVERAL, ("h", CPU): failed(status="known", issue=issue)})
    path = tmp_path / "known-issues.yaml"
    path.write_text(drafts_text([report({("b", CPU): SEVERAL["b", CPU], ("i", CPU): GOOD})], date(2026, 1, 1))
                    .replace("reason: null", "reason: It is wrong."))  # fmt: skip
    known = load_known_issues(path, path.name, path)
    assert [draft.cases for draft in drafts_of([made], known)] == [("a", "c"), ("e", "f"), ("d",), ("g",)]
    whole = [draft.cases for draft in drafts_of([made])]
    assert (whole[0], ("g", "h") in whole) == (("a", "b", "c"), True)


def test_a_release_on_which_somebody_knows_of_it_ends_a_range() -> None:
    known = failed(status="known", issue=Issue(status="fail", reason="Known."))
    reports = [on("2.0.1", BAD), on("2.1.2", known), on("2.2.2", BAD)]
    assert [draft.torch for draft in drafts_of(reports, KnownIssues())] == [">=2.0,<2.1", ">=2.2"]
    assert [draft.torch for draft in drafts_of(reports)] == [">=2.0"]


def test_one_cause_in_other_words_on_other_targets_is_one_entry_with_both(tmp_path: Path) -> None:
    words = {CPU: "E: no kernel", CUDA: "E: no kernel at all"}
    made = report(
        {(name, target): raised(words[target], step) for name, step in (("a", 1), ("b", 2)) for target in words}
    )
    (draft,) = drafts_of([made])
    assert (draft.cases, draft.targets, set(draft.signatures)) == (("a", "b"), ("cpu", "cuda"), set(words.values()))
    assert set(judged_by(drafts_text([made], date(2026, 1, 1)), tmp_path, made)) == {"known"}


def test_text_of_a_stranger_ends_no_comment() -> None:
    made = report({(name, CPU): failed("a.grad", "1", "2", step=2) for name in "ab"},
                  cases=[case(name, topic=HOSTILE) for name in "ab"])  # fmt: skip
    text = drafts_text([made], date(2026, 1, 1))
    assert [line[:5] for line in text.splitlines()] == ["issue", "  # 2", "  - c", *["    " + key for key in "ttfrlr"]]


def test_text_of_a_stranger_is_read_again_as_it_is_and_hides_nothing(tmp_path: Path) -> None:
    for mark in "\u202e\u200b\u2066\ufeff\x1b\x85":
        made = report({("a", CPU): failed(f"a.{mark}b", "1", "2")})
        text = drafts_text([made], date(2026, 1, 1))
        assert text.replace("\n", "").isprintable(), text
        assert set(judged_by(text, tmp_path, made)) == {"known"}


def test_nothing_red_makes_an_empty_list() -> None:
    assert drafts_text([on("2.0.1", GOOD)], date(2026, 1, 1)) == "issues: []\n"
