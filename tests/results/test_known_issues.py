"""Tests of known issues: what an entry may say, what it makes of outcomes, and what a run does with a list."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from loops import each
from places import ROOT
from samples import build, failed, outcome
from sessions import Session
from shipped import all_ids

from conformance.language.errors import CaseFileError
from conformance.language.files import shipped_cases
from conformance.language.schema import load_schema
from conformance.model.build import BackEnd, Target
from conformance.model.outcome import Failure, Outcome
from conformance.results.known_issues import KnownIssues, load_known_issues

CPU, DOUBLE, CUDA, NPU, DOUBLE_NPU = (
    Target(device="cpu", dtype="float32"),
    Target(device="cpu", dtype="float64"),
    Target(device="cuda", dtype="float32"),
    Target(device="npu:1", dtype="float32"),
    Target(device="npu", dtype="float64"),
)
ENTRY: dict[str, Any] = {
    "case": "a", "targets": ["cpu"], "torch": ">=2.1,<2.4",
    "fails": {"status": "fail", "step": 2, "kind": ["a.grad"]},
    "reason": "The gradient of a is wrong.", "link": "https://github.com/pytorch/pytorch/issues/1",
    "review": "2027-06-01",
}  # fmt: skip
FAILED = failed()  # at step 2, a.grad
GOOD = outcome("pass")
BUILD = build(torch="2.2.0")


def listed(path: Path, *entries: dict[str, Any], **more: Any) -> Path:
    whole = [{key: value for key, value in {**ENTRY, **entry}.items() if value is not ...} for entry in entries]
    path.write_text(json.dumps({"issues": whole, **more}))  # which is YAML, too
    return path


def known(directory: Path, *entries: dict[str, Any], **renames: tuple[str, ...]) -> KnownIssues:
    path = listed(directory / "known-issues.yaml", *entries)
    return load_known_issues(path, path.name, directory / "shipped.yaml", renames)


def judged(issues: KnownIssues, found: Outcome, target: Target = CPU, torch: str = "2.2.0", case: str = "a") -> str:
    return issues.judge(case, target, build(torch=torch), found).status


def test_a_failure_that_is_described_is_known(tmp_path: Path) -> None:
    outcome = known(tmp_path, {}).judge("a", CPU, BUILD, FAILED)
    assert outcome.status == "known"
    assert (outcome.step, outcome.failures) == (FAILED.step, FAILED.failures)
    assert outcome.issue is not None
    assert (outcome.issue.status, outcome.issue.reason) == ("fail", ENTRY["reason"])
    assert outcome.issue.link == ENTRY["link"]
    assert outcome.summary.startswith("The gradient of a is wrong. a.grad: expected")


@each(
    "found",
    [
        failed("a.is_leaf"),
        failed("a.grad", "a value", "RuntimeError: x", exception="RuntimeError"),
        msgspec.structs.replace(FAILED, step=3),
        msgspec.structs.replace(FAILED, status="error"),
        outcome("crash", reason="the worker was ended by SIGSEGV", signal="SIGSEGV"),
        outcome("timeout"),
    ],
)
def test_another_failure_is_new(tmp_path: Path, found: Outcome) -> None:
    assert known(tmp_path, {}).judge("a", CPU, BUILD, found) == found


def test_what_fails_at_hard_points_alone_is_new_at_an_ordinary_one(tmp_path: Path) -> None:
    issues = known(tmp_path, {"fails": {**ENTRY["fails"], "points": "hard"}})
    hard = "[the gradient is nan, expected 0.0; x of zeros: f(0.0), g = 1.5]"
    ordinary = f"[the gradient is 2.0, expected 3.0; ordinary: f(1.5), g = 1.5, {hard[1:]}"
    assert judged(issues, failed(observed=hard)) == "known"
    assert judged(issues, failed(observed=ordinary)) == "fail"
    assert judged(known(tmp_path, {}), failed(observed=ordinary)) == "known"


def test_what_holds_again_is_fixed_until_somebody_edits_the_list(tmp_path: Path) -> None:
    outcome = known(tmp_path, {}).judge("a", CPU, BUILD, GOOD)
    assert outcome.status == "fixed"
    assert "known-issues.yaml:1 says that it fails" in outcome.reason
    assert outcome.issue is not None
    assert outcome.issue.status == "pass"


@each("status", ["unsupported", "not-run"])
def test_what_did_not_run_says_nothing_of_an_issue(tmp_path: Path, status: str) -> None:
    found = outcome(status, reason="no such dtype")  # type: ignore[arg-type]
    assert known(tmp_path, {}).judge("a", CPU, BUILD, found) == found


def test_an_entry_holds_for_its_case_releases_and_targets_alone(tmp_path: Path) -> None:
    issues = known(tmp_path, {})
    assert judged(issues, FAILED, torch="2.4.0") == "fail"
    assert judged(issues, GOOD, torch="2.4.0") == "pass"
    assert judged(issues, FAILED, torch="2.3.1+cu121") == "known"
    assert judged(issues, FAILED, target=CUDA) == "fail"
    assert judged(issues, FAILED, target=DOUBLE) == "known"
    assert judged(issues, FAILED, case="ab") == "fail"
    one_dtype = known(tmp_path, {"targets": ["cpu-float32"]})
    assert (judged(one_dtype, FAILED), judged(one_dtype, FAILED, target=DOUBLE)) == ("known", "fail")


def test_what_is_known_of_a_target_may_fail_in_any_way_in_a_mode_and_need_not(tmp_path: Path) -> None:
    issues, in_mode = known(tmp_path, {}), Target(device="cpu", dtype="float32", mode="anomaly")
    for found in (FAILED, outcome("error"), outcome("crash")):
        assert judged(issues, found, target=in_mode) == "known"
    assert judged(issues, GOOD, target=in_mode) == "pass"


def test_what_is_known_of_a_mode_says_nothing_of_the_target_without_it(tmp_path: Path) -> None:
    issues = known(tmp_path, {"targets": ["cpu+anomaly"]})
    in_mode = Target(device="cpu", dtype="float32", mode="anomaly")
    assert (judged(issues, FAILED, target=in_mode), judged(issues, GOOD, target=in_mode)) == ("known", "fixed")
    assert judged(issues, outcome("crash"), target=in_mode) == "crash"
    assert (judged(issues, FAILED), judged(issues, GOOD)) == ("fail", "pass")


def test_an_entry_may_be_of_some_versions_of_a_back_end(tmp_path: Path) -> None:
    issues = known(tmp_path, {"targets": ["xla"], "back_ends": {"xla": "<2.10"}})
    target = Target(device="xla", dtype="float32")

    def found(version: str | None, outcome: Outcome) -> str:
        own = [] if version is None else [BackEnd(device="xla", modules=("m",), name="m", version=version)]
        return issues.judge("a", target, build(torch="2.2.0", backends=tuple(own)), outcome).status

    for version in ("2.9.1", "2.9.0+git1a2b3c"):
        assert (found(version, FAILED), found(version, GOOD)) == ("known", "fixed")
    for version in ("2.10", "2.10.0.dev20260101"):
        assert (found(version, FAILED), found(version, GOOD)) == ("fail", "pass")
    for unclear in (None, "", "main"):  # it may be one of these versions, and need not
        assert (found(unclear, FAILED), found(unclear, GOOD)) == ("known", "pass")


def test_a_condition_on_a_back_end_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(CaseFileError) as caught:
        known(tmp_path, {"back_ends": {"xla": "2.10"}})
    wanted = "expected a condition on the version of a back-end such as \"<2.10\", got '2.10'"
    assert f"back_ends.xla: {wanted}" in str(caught.value)


def test_a_pattern_may_leave_out_the_devices_that_torch_has_kernels_for(tmp_path: Path) -> None:
    issues = known(tmp_path, {"targets": [], "may_fail_on": ["[!c]*"]})
    assert judged(issues, FAILED, target=NPU) == "known"
    assert judged(issues, FAILED) == judged(issues, FAILED, target=CUDA) == "fail"


def test_where_nobody_has_looked_it_may_fail_or_hold(tmp_path: Path) -> None:
    issues = known(tmp_path, {"may_fail_on": ["*"]})
    assert judged(issues, FAILED, target=CUDA) == "known"
    assert judged(issues, GOOD, target=CUDA) == "pass"
    assert judged(issues, failed("b"), target=CUDA) == "fail"
    assert judged(issues, GOOD) == "fixed"


@pytest.mark.parametrize(
    ("case", "ways"),
    [
        ("derivatives-of-a", ["wrong['backward']", "wrong['memory']", "wrong['writes']"]),
        ("a", ["derivative(a)", "derivative(b)", "derivative(c)"]),
    ],
)
def test_where_nobody_has_looked_it_may_fail_in_fewer_ways(tmp_path: Path, case: str, ways: list[str]) -> None:
    fails = {"status": "fail", "step": 2, "kind": ways[:2]}
    issues = known(tmp_path, {"case": case, "targets": ["cpu-float32"], "may_fail_on": ["*"], "fails": fails})
    fewer, another = failed(ways[1]), failed(ways[2])
    assert judged(issues, fewer, DOUBLE, case=case) == "known"
    assert judged(issues, fewer, CPU, case=case) == "fail"
    assert judged(issues, another, DOUBLE, case=case) == "fail"
    assert judged(issues, msgspec.structs.replace(fewer, step=3), DOUBLE, case=case) == "fail"


def test_what_is_wrong_in_its_own_dtype_may_fail_in_each_way_on_another_device(tmp_path: Path) -> None:
    ways = {"status": "fail", "step": 2, "kind": ["wrong['native dtype']"]}
    case = "derivatives-of-a"
    issues = known(tmp_path, {"case": case, "targets": ["cpu-float32"], "may_fail_on": ["*"], "fails": ways})
    found = failed("wrong['backward']")
    assert [judged(issues, found, target, case=case) for target in (CUDA, CPU, DOUBLE)] == ["known", "fail", "fail"]


def test_a_back_end_may_fail_in_another_way_where_the_cpu_fails_or_later(tmp_path: Path) -> None:
    issues = known(tmp_path, {"targets": ["cpu-float32"], "may_fail_on": ["*"]})
    stopped = Failure(line=2, path="step", expected="no error", observed="KeyError: x", exception="KeyError")
    other_check, error = failed("b"), outcome("error", step=2, failures=(stopped,))
    for found in (other_check, error, msgspec.structs.replace(error, step=5)):
        assert [judged(issues, found, target) for target in (NPU, CUDA, CPU)] == ["known", *[found.status] * 2]
    assert judged(issues, msgspec.structs.replace(other_check, step=1), NPU) == "fail"
    assert judged(issues, outcome("crash", signal="SIGSEGV"), NPU) == "crash"
    assert judged(issues, other_check, DOUBLE_NPU) == "fail"


@pytest.mark.parametrize(
    "changes",
    [
        {"targets": ["cpu-bfloat16"]},
        {"targets": ["cpu+anomaly-*"]},
        {"targets": ["npu-*"]},
        {"targets": [], "may_fail_on": ["[!c]*"]},
    ],
)
def test_what_was_not_seen_on_the_cpu_in_this_dtype_says_nothing_of_other_ways(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    issues = known(tmp_path, {"may_fail_on": ["*"], **changes})
    assert [judged(issues, found, NPU) for found in (FAILED, failed("b"))] == ["known", "fail"]


def test_a_recursion_without_end_may_come_to_the_end_of_the_stack_on_another_device(tmp_path: Path) -> None:
    fails = {"status": "error", "step": 2, "kind": ["the step: RecursionError"]}
    issues = known(tmp_path, {"may_fail_on": ["*"], "fails": fails})
    frame = '  File "masked.py", line 3 in where\n'
    deep, shallow = (outcome("crash", signal="SIGSEGV", stderr=f"{frame * 2}{rest}\n") for rest in ("  ...\n", ""))
    assert judged(issues, deep, CUDA) == "known"
    assert judged(issues, deep, CPU) == judged(issues, shallow, CUDA) == "crash"
    assert judged(known(tmp_path, {"may_fail_on": ["*"]}), deep, CUDA) == "crash"


def test_a_list_can_say_for_all_of_its_entries_where_they_may_fail_too(tmp_path: Path) -> None:
    path = listed(tmp_path / "known-issues.yaml", {}, {"case": "b", "may_fail_on": ["mps"]}, may_fail_on=["cuda"])
    issues = load_known_issues(path, path.name, tmp_path / "shipped.yaml")
    assert [entry.may_fail_on for entry in issues.entries] == [("cuda",), ("mps",)]
    assert (judged(issues, FAILED, target=CUDA), judged(issues, FAILED, target=CUDA, case="b")) == ("known", "fail")


def test_on_another_system_than_those_that_were_looked_at_it_need_not_fail(tmp_path: Path) -> None:
    path = listed(tmp_path / "known-issues.yaml", {}, systems=["linux-*"])
    issues = load_known_issues(path, path.name, tmp_path / "shipped.yaml")
    mac = build(torch="2.2.0", system="darwin-arm64")
    assert issues.judge("a", CPU, mac, FAILED).status == "known"
    assert issues.judge("a", CPU, mac, GOOD).status == "pass"
    assert judged(issues, GOOD) == "fixed"


def test_a_pattern_stands_for_many_cases_each_of_which_must_fail(tmp_path: Path) -> None:
    issues = known(tmp_path, {"case": "fft-*", "fails": {"status": "fail"}})
    assert judged(issues, failed("x"), case="fft-of-a-row") == "known"
    assert judged(issues, outcome("crash"), case="fft-of-a-row") == "crash"
    assert judged(issues, GOOD, case="fft-of-a-column") == "fixed"
    assert judged(issues, GOOD, case="other") == "pass"


LISTED = {"case": ..., "cases": ["a", "b"], "fails": {"status": "fail", "signature": ["grad: another value"]}}


def test_a_list_of_cases_is_strict_for_each_of_them(tmp_path: Path) -> None:
    issues = known(tmp_path, LISTED)
    for case in "ab":
        assert judged(issues, FAILED, case=case) == "known"
        assert judged(issues, failed("x.grad", "3", "4", step=5), case=case) == "known"
        assert judged(issues, failed("a.grad", "3", "null"), case=case) == "fail"
        assert judged(issues, failed("a.is_leaf", "true", "false"), case=case) == "fail"
        assert judged(issues, outcome("crash", signal="SIGSEGV"), case=case) == "crash"
        assert judged(issues, GOOD, case=case) == "fixed"
    assert (judged(issues, FAILED, case="c"), judged(issues, GOOD, case="c")) == ("fail", "pass")


def test_a_signature_holds_where_an_error_is_raised_by_a_statement_and_where_an_expectation_meets_it(
    tmp_path: Path,
) -> None:
    fails = {"status": "error", "signature": ["TypeError: no x for […]", "TypeError: no y"]}
    issues = known(tmp_path, {**LISTED, "fails": fails}, {"case": "c", "fails": fails})
    met = failed("a", "a value", "TypeError: no x for [1, 2]", exception="TypeError")
    raised = failed("", "no error", "TypeError: no y", exception="TypeError", status="error")
    other = failed("", "no error", "TypeError: no z", exception="TypeError", status="error")
    for case in "abc":
        assert [judged(issues, found, case=case) for found in (met, raised, other)] == ["known", "known", "error"]


def test_a_list_of_crashes_needs_no_step(tmp_path: Path) -> None:
    issues = known(tmp_path, {**LISTED, "fails": {"status": "crash", "kind": ["SIGSEGV"]}})
    assert judged(issues, outcome("crash", signal="SIGSEGV", step=3), case="b") == "known"
    assert judged(issues, outcome("crash", signal="SIGABRT", step=3), case="b") == "crash"


@each(
    "entry, message",
    [
        ({**LISTED, "cases": []}, "cases: expected a list of at least 1, got an empty list"),
        ({**LISTED, "cases": ["fft-*"]}, "issues[0].cases[0]: expected a case's id, without * and ?, got 'fft-*'"),
        ({**LISTED, "cases": ["a", "b", "a"]}, "this entry stands twice (a is first in line 1)"),
        ({"case": ...}, "the key 'case' or 'cases' is missing"),
        ({**LISTED, "fails": {"status": "fail"}}, "fails: the key 'step' is missing (only a pattern can do"),
    ],
)
def test_what_is_wrong_with_a_list_of_cases_is_said_with_its_place(
    tmp_path: Path, entry: dict[str, Any], message: str
) -> None:
    with pytest.raises(CaseFileError) as error:
        known(tmp_path, entry)
    assert str(error.value).startswith("known-issues.yaml:1:")
    assert message in str(error.value)


def test_a_list_is_due_for_review_once(tmp_path: Path) -> None:
    issues = known(tmp_path, {**LISTED, "review": "2026-01-31"}, {"case": "c", "review": "2026-01-31"})
    assert issues.overdue(date(2026, 1, 31)) == [
        "known-issues.yaml:1: c was to be reviewed by 2026-01-31",
        "known-issues.yaml:1: what fails in 2 cases was to be reviewed by 2026-01-31",
    ]


def test_of_several_entries_one_has_to_describe_the_failure(tmp_path: Path) -> None:
    issues = known(tmp_path, {}, {"fails": {"status": "error", "step": 0, "kind": ["the step: RuntimeError"]}})
    raised = msgspec.structs.replace(
        failed("", "no error", "RuntimeError: x", exception="RuntimeError", status="error"), step=0
    )
    assert (judged(issues, FAILED), judged(issues, raised)) == ("known", "known")


def test_crashes_and_timeouts_have_no_step(tmp_path: Path) -> None:
    crash = {"fails": {"status": "crash", "kind": ["SIGSEGV"]}}
    issues = known(tmp_path, crash, {"case": "b", "fails": {"status": "timeout"}})
    assert judged(issues, outcome("crash", reason="the worker was ended by SIGSEGV", signal="SIGSEGV")) == "known"
    assert judged(issues, outcome("crash", reason="the worker was ended by SIGABRT")) == "crash"
    assert judged(issues, outcome("timeout"), case="b") == "known"


def test_an_entry_with_an_earlier_id_is_about_the_case_of_today(tmp_path: Path) -> None:
    issues = known(tmp_path, {}, a=("b",))
    assert [judged(issues, FAILED, case=name) for name in "ab"] == ["fail", "known"]
    assert judged(issues, GOOD, case="b") == "fixed"
    assert judged(issues, msgspec.structs.replace(FAILED, step=3), case="b") == "fail"
    assert issues.renamed() == ["known-issues.yaml:1: a is b now; edit the entry"]
    assert known(tmp_path, {}, c=("b",)).renamed() == []


def test_of_the_cases_that_one_was_split_into_any_may_fail_at_any_step(tmp_path: Path) -> None:
    issues = known(tmp_path, {}, a=("b", "c"))
    assert [judged(issues, GOOD, case=name) for name in "bc"] == ["pass", "pass"]
    assert judged(issues, msgspec.structs.replace(FAILED, step=0), case="c") == "known"
    assert judged(issues, failed("a.is_leaf"), case="c") == "fail"
    assert judged(issues, FAILED, CUDA, case="c") == "fail"
    assert issues.renamed() == ["known-issues.yaml:1: a is b, c now; edit the entry"]


def test_it_says_what_is_due_for_review(tmp_path: Path) -> None:
    issues = known(tmp_path, {}, {"case": "b", "review": "2026-01-31"})
    assert issues.overdue(date(2026, 1, 30)) == []
    assert issues.overdue(date(2026, 1, 31)) == ["known-issues.yaml:1: b was to be reviewed by 2026-01-31"]


@each(
    "entry, message",
    [
        ({"torch": "2.1"}, 'torch: expected a condition on torch such as ">=2.1"'),
        ({"torch": ""}, "expected a condition on torch"),
        ({"torch": ">=2.4,<2.1"}, "torch: no release fulfils '>=2.4,<2.1'"),
        ({"review": "2027-02-30"}, "review: expected a date such as 2027-01-31, got '2027-02-30'"),
        ({"review": 2027}, "expected a date such as 2027-01-31, got 2027 (quote it)"),
        ({"link": "pytorch#1"}, "expected a link that begins with https://, or null"),
        ({"targets": []}, "targets: expected some target, here or as `may_fail_on`"),
        ({"targets": ["cpu float32"]}, "expected a device, alone or with a mode or a dtype, such as cpu"),
        ({"targets": "cpu"}, "targets: expected a list, got 'cpu'"),
        ({"cases": ["b"]}, "issues[0].cases: can't stand beside 'case'"),
        ({"case": None}, "case: expected a case's id, or a pattern with * and ?, got nothing"),
        (
            {"fails": {"status": "fail", "signature": []}},
            "fails.signature: expected a list of at least 1, got an empty list",
        ),
        ({"case": "A b"}, "expected a case's id, or a pattern with * and ?"),
        ({"fails": {"status": "fail", "step": 1}}, "fails: the key 'kind' is missing (only a pattern can do"),
        ({"fails": {"status": "fail", "kind": []}}, "fails: the key 'step' is missing (only a pattern can do"),
        ({"fails": {"status": "fixed", "step": 1, "kind": []}}, "expected one of fail, error, crash, timeout"),
        ({"fails": {"status": "fail", "stp": 1}}, "did you mean 'step'?"),
        ({"reason": " "}, "reason: expected text that isn't empty"),
        ({"raeson": "x"}, "unknown key 'raeson' (did you mean 'reason'?)"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said_with_its_place(
    tmp_path: Path, entry: dict[str, Any], message: str
) -> None:
    with pytest.raises(CaseFileError) as error:
        known(tmp_path, entry)
    assert str(error.value).startswith("known-issues.yaml:1:")
    assert message in str(error.value)


def test_the_same_entry_twice_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(CaseFileError, match="this entry stands twice"):
        known(tmp_path, {}, {})


def test_a_list_includes_others_from_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "upstream").mkdir()
    listed(tmp_path / "upstream" / "list.yaml", {"case": "b"})
    listed(tmp_path / "shipped.yaml", {"case": "c"})
    own = listed(tmp_path / "own.yaml", {}, include=["upstream/list.yaml", "shipped"])
    issues = load_known_issues(own, "own.yaml", tmp_path / "shipped.yaml")
    assert [(entry.case, entry.file) for entry in issues.entries] == [
        ("a", "own.yaml"), ("b", "upstream/list.yaml"), ("c", "shipped"),
    ]  # fmt: skip


@each(
    "included, message",
    [
        ("absent.yaml", "include: absent.yaml can't be read: No such file or directory (paths are seen from"),
        ("own.yaml", "include: own.yaml includes itself"),
        ("around.yaml", "include: own.yaml includes itself"),
        ("wrong.yaml", "wrong.yaml:1:1: the key 'issues' is missing"),
        ("../secret", "include: ../secret is outside of"),
        ("/etc/passwd", "include: /etc/passwd is outside of"),
        ("link.yaml", "include: link.yaml is outside of"),
    ],
)
def test_an_include_that_leads_nowhere_is_said_with_its_place(tmp_path: Path, included: str, message: str) -> None:
    own = listed(tmp_path / "own.yaml", {}, include=[included])
    (tmp_path / "link.yaml").unlink(missing_ok=True)
    (tmp_path / "link.yaml").symlink_to("/etc/passwd")
    listed(tmp_path / "around.yaml", include=["own.yaml"])
    (tmp_path / "wrong.yaml").write_text("include: [own.yaml]\n")
    with pytest.raises(CaseFileError) as error:
        load_known_issues(own, "own.yaml", tmp_path / "shipped.yaml")
    assert message in str(error.value)


def test_the_schema_accepts_what_loads() -> None:
    schema = load_schema("known-issues.schema.json")
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate({"issues": [ENTRY, {**ENTRY, "link": None, "may_fail_on": ["*"]}]})
    several = {key: value for key, value in {**ENTRY, **LISTED}.items() if key != "case"}
    Draft202012Validator(schema).validate({"issues": [several]})
    assert not Draft202012Validator(schema).is_valid({"issues": [{**several, "case": "a"}]})


@pytest.mark.slow
def test_the_list_of_the_suite_is_about_cases_that_it_has_and_says_where_upstream_keeps_track() -> None:
    place = shipped_cases()
    issues = load_known_issues(place / "known-issues.yaml", "known-issues.yaml", place)
    assert {entry.case for entry in issues.entries if not entry.is_pattern} <= all_ids()
    assert not any(entry.targets for entry in issues.entries if entry.is_pattern)
    assert len({entry.case for entry in issues.entries if entry.link}) >= 40


STEPS = """\
- a = tensor([2.0], requires_grad=True)
- (a * 3).backward()
- expect: {a: {grad: [4.0]}}
"""
RIGHT = STEPS.replace("4.0", "3.0")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


@pytest.mark.slow
def test_a_known_failure_is_expected_to_fail(session: Session) -> None:
    session.cases(a=STEPS, b=RIGHT)
    listed(session.directory / "known-issues.yaml", {"torch": ">=1.13"})
    result = session.run("-rx")
    assert result.status == 0, result.output
    assert result.statuses == {"a": "known", "b": "pass"}
    assert result.report is not None
    Draft202012Validator(load_schema("report.schema.json")).validate(result.report)
    assert result.outcomes["a"]["issue"] == {"status": "fail", "reason": ENTRY["reason"], "link": ENTRY["link"]}
    assert result.report["footer"]["counts"] == {"known": 1, "pass": 1}
    assert "1 passed, 1 xfailed" in result.output
    assert "The gradient of a is wrong. https://github.com/pytorch/pytorch/issues/1" in result.output
    for process in (("-n", "2"), ("-p", "no:terminal"), ("--isolation", "none"), ("first.yaml::a[cpu-float32]",)):
        assert session.run(*process).status == 0
    shown = session.run("--runxfail")
    assert shown.status == 1
    assert "known issue: The gradient of a is wrong." in shown.output


def test_another_failure_than_the_known_one_and_none_are_red_and_say_so(session: Session) -> None:
    session.cases(a=STEPS.replace("grad: [4.0]", "is_leaf: false"), b=RIGHT, c=STEPS)
    listed(session.directory / "known-issues.yaml", *({"case": case, "torch": ">=1.13"} for case in "abc"))
    result = session.run()
    assert (result.status, result.statuses) == (1, {"a": "fail", "b": "fixed", "c": "known"})
    words = "known-issues.yaml:1 describes another failure: fail at step 2 (a.grad); this is fail at step 2 (a.is_leaf)"
    assert words in result.output
    assert "known-issues.yaml:1 says that it fails; has it been fixed? then edit the entry" in result.output


@pytest.mark.slow
def test_an_entry_without_a_case_is_red_where_all_cases_were_there(session: Session) -> None:
    session.cases(b=RIGHT)
    listed(session.directory / "known-issues.yaml", {})
    for workers in ((), ("-n", "1")):
        result = session.run(*workers)
        assert result.status == 1
        assert "known issue known-issues.yaml:1: there is no case a" in result.output


def test_an_entry_with_an_earlier_id_is_said_to_want_an_edit(session: Session) -> None:
    session.cases(b=STEPS)
    (session.directory / "renames.yaml").write_text("renames: {a: [b]}\n", encoding="utf-8")
    listed(session.directory / "known-issues.yaml", {"torch": ">=1.13"})
    result = session.run()
    assert (result.status, result.statuses) == (0, {"b": "known"}), result.output
    assert "known issue known-issues.yaml:1: a is b now; edit the entry" in result.output
    assert "there is no case" not in result.output


def test_a_rename_that_leads_to_no_case_is_red_where_all_cases_were_there(session: Session) -> None:
    session.cases(b=RIGHT)
    (session.directory / "renames.yaml").write_text("renames: {a: [c]}\n", encoding="utf-8")
    result = session.run()
    assert result.status == 1
    assert "renames.yaml:1:15: renames.a: no case has the id 'c'" in result.output


def test_renames_that_are_wrong_are_said_and_nothing_runs(session: Session) -> None:
    session.cases(b=STEPS)
    (session.directory / "renames.yaml").write_text("names: {}\n", encoding="utf-8")
    listed(session.directory / "known-issues.yaml", {"torch": ">=1.13"})
    result = session.run()
    assert result.status not in (0, 1), result.output
    assert "renames.yaml:1:1: names: unknown key 'names' (did you mean 'renames'?)" in result.output


OTHERS = [
    "first.yaml::b[cpu-float32]", "ops", "--lf", "-m cpu", "--deselect second.yaml", "--ignore second.yaml",
    "--ignore-glob sec*",
]  # fmt: skip


@pytest.mark.parametrize(
    "arguments", ["first.yaml", "-k b", *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)]
)
def test_an_entry_about_a_case_that_was_left_out_is_not_said_to_be_about_none(session: Session, arguments: str) -> None:
    (session.directory / "ops").mkdir()
    session.cases(b=STEPS)
    session.cases("second.yaml", a=STEPS)
    session.cases("ops/third.yaml", c=STEPS)
    listed(session.directory / "known-issues.yaml", {"torch": ">=1.13"})
    if arguments == "--lf":
        kept = session.directory / ".pytest_cache" / "v" / "cache"
        kept.mkdir(parents=True)
        (kept / "lastfailed").write_text('{"first.yaml::b[cpu-float32]": true}')
    result = session.run(*arguments.split())
    assert result.status == 1, result.output
    assert "b" in result.statuses or "c" in result.statuses
    assert "there is no case" not in result.output


def test_an_order_leaves_no_case_out(session: Session) -> None:
    session.cases(b=RIGHT)
    listed(session.directory / "known-issues.yaml", {})
    assert "there is no case a" in session.run("--ff", "--nf").output


@pytest.mark.slow
def test_a_list_of_ones_own_stands_in_for_the_one_beside_the_cases(session: Session) -> None:
    session.cases(a=STEPS)
    listed(session.directory / "known-issues.yaml", {"torch": ">=1.13"})
    listed(session.directory / "mine.yml.txt", {"torch": "<2.0"}, include=["known-issues.yaml"])
    assert session.run("--known-issues", "none").statuses == {"a": "fail"}
    result = session.run("--known-issues", "mine.yml.txt")
    assert (result.status, result.statuses) == (0, {"a": "known"})


@pytest.mark.slow
def test_a_list_that_is_wrong_is_said_once_and_nothing_runs(session: Session) -> None:
    session.cases(a=STEPS)
    session.cases("second.yaml", b=STEPS)
    session.write("known-issues.yaml", "issues: [{case: a}]\n")
    result = session.run()
    assert result.status == 2
    assert result.output.count("known-issues.yaml:1:10: issues[0]: the key 'targets' is missing") == 1
    absent = session.run("--known-issues", "absent.yaml")
    assert absent.status == 2
    assert "absent.yaml:1:1: can't be read: No such file or directory" in absent.output
    mixed_up = session.run("--known-issues", "second.yaml", "second.yaml")
    assert mixed_up.status == 2
    assert "unknown key 'cases' (it takes include, systems, may_fail_on, issues)" in mixed_up.output


@pytest.mark.slow
def test_a_run_says_which_entries_are_due_for_review(session: Session) -> None:
    session.cases(a=STEPS)
    listed(session.directory / "known-issues.yaml", {"torch": ">=1.13", "review": "2020-01-31"})
    result = session.run()
    assert result.status == 0
    assert "known issue known-issues.yaml:1: a was to be reviewed by 2020-01-31" in result.output


@pytest.mark.slow
def test_the_list_in_the_documentation_loads(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "known-issues.md").read_text(encoding="utf-8")
    example = "".join(
        text.partition(f"```yaml\n{begin}")[2].partition("```")[0].join((begin, ""))
        for begin in ("# known-issues.yaml\n", "  - cases:")
    )
    listed(tmp_path / "shipped.yaml")
    (tmp_path / "mine.yaml").write_text(example)
    issues = load_known_issues(tmp_path / "mine.yaml", "mine.yaml", tmp_path / "shipped.yaml")
    ids = all_ids()
    assert [entry.case in ids for entry in issues.entries] == [True] * 3
