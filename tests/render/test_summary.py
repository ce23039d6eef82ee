"""Tests of the summary on a CI job's page: what came of what was planned, never longer than the page takes."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from samples import CPU, CUDA, HOSTILE, any_report, case, failed, outcome, report

from conformance.model.outcome import Unobserved
from conformance.model.report import Report
from conformance.render.summary import summary_of
from conformance.render.visible import visible
from conformance.results.update import updated

LIMIT = 1_000_000
GOOD = outcome("pass")
ABSENT = outcome("not-run", reason="device cuda is absent")


def summary(*reports: Report) -> str:
    return summary_of(reports, LIMIT)


def test_a_table_has_a_row_for_each_build_and_a_column_for_each_target() -> None:
    one = report({("a", CPU): GOOD, ("b", CPU): failed()}, torch="2.10.0")
    other = report({("a", CPU): GOOD, ("a", CUDA): ABSENT}, torch="2.9.0")
    assert summary(one, other).startswith("""\
## Autograd conformance

| build | `cpu-float32` | `cuda-float32` |
|---|---|---|
| `torch 2.9.0 (01234567), Python 3.11.7, linux-x86_64` | 1 pass of 1 | 1 not run of 1 |
| `torch 2.10.0 (01234567), Python 3.11.7, linux-x86_64` | 1 pass, 1 fail of 2 | - |
""")


def test_red_outcomes_are_folded_with_rule_case_and_first_failure() -> None:
    made = report({("a", CPU): failed(), ("b", CPU): outcome("crash", reason="ended by SIGSEGV"), ("c", CPU): GOOD})
    assert (
        summary(made).partition("</summary>\n")[2]
        == """\

- `a` on `cpu-float32`: **fail**, `cases/x.yaml:12`
  - `The case a`
  - `a.grad: expected 1, observed 2`
  - rule `r.one` (documented): `The rule r.one.`
- `b` on `cpu-float32`: **crash**, `cases/x.yaml:20`
  - `The case b`
  - `ended by SIGSEGV`
  - rule `r.one` (documented): `The rule r.one.`

</details>
"""
    )
    assert "\n\n<details><summary>2 red: <code>torch 2.13.0+cpu (01234567)" in summary(made)


def test_what_is_red_has_a_table_of_causes_with_the_most_outcomes_first() -> None:
    raised = failed("", "no error", "RuntimeError: no aten::exp for [2, 3]", exception="RuntimeError", status="error")
    other = failed("", "no error", "RuntimeError: no aten::exp for [4]", exception="RuntimeError", status="error")
    made = report({("a", CPU): failed("a.version", "2", "1"), ("b", CPU): raised, ("c", CUDA): other, ("d", CPU): GOOD})
    build = "`torch 2.13.0+cpu (01234567), Python 3.11.7, linux-x86_64`"
    assert f"""
| red by cause: {build} | outcomes | targets | smallest case |
|---|---|---|---|
| `RuntimeError: no aten::exp for […]` | 2 error | `cpu-float32, cuda-float32` | `b` on `cpu-float32` |
| `version: too low` | 1 fail | `cpu-float32` | `a` on `cpu-float32` |
""" in summary(made)


def test_of_many_causes_some_have_a_row() -> None:
    names = [f"{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(60)]
    made = {(name, CPU): outcome("error", reason=f"there is no {name}", step=0) for name in names}
    text = summary(report(made))
    assert (text.count("| 1 error | `cpu-float32` |"), "\nAnd 10 more causes.\n" in text) == (50, True)


def test_what_is_unsupported_is_grouped_by_what_its_reasons_have_in_common() -> None:
    reasons = ("no such kernel for [2, 3]", "no such kernel for [1]", "needs torch >=2.1", "needs torch >=2.2")
    made = {(name, CPU): outcome("unsupported", reason=reason) for name, reason in zip("abcd", reasons, strict=True)}
    text = summary(report(made))
    assert "- 2 unsupported (`cpu-float32`): `no such kernel for […]`\n  - `a`, `b`\n" in text
    assert "- 1 unsupported (`cpu-float32`): `needs torch >=2.1`\n  - `c`\n" in text


def test_what_was_not_run_is_grouped_by_reason_most_first() -> None:
    lacks = outcome("unsupported", reason="no such dtype")
    made = report({("a", CPU): lacks, **{(name, target): ABSENT for name in "bc" for target in (CUDA, "cuda-float64")}})
    assert "<details><summary>5 not run or unsupported: <code>torch" in summary(made)
    assert (
        summary(made).partition("</summary>\n")[2]
        == """\

- 4 not run (`cuda-float32, cuda-float64`): `device cuda is absent`
  - `b`, `c`
- 1 unsupported (`cpu-float32`): `no such dtype`
  - `a`

</details>
"""
    )


def test_of_many_cases_with_one_reason_some_are_named() -> None:
    names = [chr(97 + number) for number in range(25)]
    assert "`s`, `t` and 5 more\n" in summary(report({(name, CUDA): ABSENT for name in names}))


def test_an_incomplete_report_says_so() -> None:
    text = summary(report({("a", CPU): GOOD, ("b", CPU): None}, finished=False))
    assert "linux-x86_64` **incomplete** | 1 pass, 1 not run of 2 |\n" in text
    assert "\n**Incomplete:** the run of `torch 2.13.0+cpu (01234567), Python 3.11.7, linux-x86_64` did not" in text
    assert "did not finish; 1 of 2 have no outcome.\n" in text
    assert "**" not in summary(report({("a", CPU): GOOD}))


def test_a_green_report_is_a_table_and_nothing_else() -> None:
    assert summary(report({("a", CPU): GOOD})).endswith("1 pass of 1 |\n")


def test_no_percentage_is_given() -> None:
    assert "%" not in summary(report({("a", CPU): GOOD, ("b", CPU): failed()}))


def test_nothing_of_a_stranger_is_markup() -> None:
    made = report(
        {("a", HOSTILE): failed(HOSTILE, HOSTILE, HOSTILE), ("b", CPU): outcome("not-run", reason=HOSTILE)},
        cases=[case("a", title=HOSTILE, file=HOSTILE), case("b")], torch=HOSTILE, git=HOSTILE, system=HOSTILE,
    )  # fmt: skip
    text = summary(made)
    tagless = re.sub(r"<code>[^<>]*</code>", "", text)
    left = re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", tagless)
    for part in ("img", "@", "#1", "http", "script", "\\", "quoted"):
        assert part not in left
    rows = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert rows == [4, 4, 4, 5, 5, 5]  # of the counts, and of the causes


@given(st.lists(any_report(), max_size=3), st.integers(0, 3000))
def test_a_summary_keeps_to_its_limit_and_closes_its_tags(reports: list[Report], limit: int) -> None:
    text = summary_of(reports, limit)
    assert len(text.encode()) <= limit
    assert text.count("\n<details>") == text.count("\n</details>\n")
    assert text == visible(text)


def test_a_summary_of_thousands_of_failures_is_cut_with_a_note() -> None:
    cases = [case("a", title="x" * 200)]
    made = report({("a", f"d{number}-float32"): failed(observed="y" * 500) for number in range(3000)}, cases=cases)
    text = summary_of([made], 200_000)
    assert 190_000 < len(text.encode()) <= 200_000
    assert re.search(r"\n</details>\n\n\*[\d,]+ more lines are left out\.\*\n$", text)


def test_it_tells_which_runs_the_outcomes_are_of() -> None:
    whole = report({("a", CPU): GOOD, ("b", CPU): GOOD, ("c", CPU): GOOD})
    several = updated(whole, report({("a", CPU): GOOD}, arguments=("-k", "a")), ())
    assert (
        "Several runs: `torch 2.13.0+cpu (01234567), Python 3.11.7, linux-x86_64`\n\n- `1 of 3 outcomes are"
        in summary(several)
    )
    assert "Several runs" not in summary(whole)


def test_what_could_not_be_observed_is_counted_where_there_is_any() -> None:
    hidden = Unobserved(line=1, path="a.stride", reason="npu keeps no strides")
    made = report({("a", CPU): outcome("pass", unobserved=(hidden,)), ("b", CPU): GOOD})
    assert "\n\n1 expectations of 1 cases could not be observed: `torch 2.13.0+cpu (01234567)" in summary(made)
    assert "observed" not in summary(report({("a", CPU): GOOD}))
