"""Tests of what a difference says on a terminal and in Markdown."""

from __future__ import annotations

import re

from hypothesis import given
from samples import CPU, CUDA, HOSTILE, any_report, failed, outcome, report

from conformance.model.report import Report
from conformance.render.diff import (
    difference_markdown,
    difference_text,
    differences_markdown,
    differences_record,
    differences_text,
)
from conformance.render.visible import visible
from conformance.results.diff import Differences, compare

GOOD = outcome("pass")
OLD = report({("a", CPU): GOOD, ("b", CPU): GOOD, ("c", CPU): failed(), ("d", CPU): GOOD}, torch="2.12.0")
NEW = report({("a", CPU): failed(), ("b", CPU): GOOD, ("c", CPU): GOOD, ("e", CPU): GOOD})
TEXT = """\
old: torch 2.12.0 (01234567), Python 3.11.7, linux-x86_64: cpu-float32 3 pass, 1 fail
new: torch 2.13.0+cpu (01234567), Python 3.11.7, linux-x86_64: cpu-float32 3 pass, 1 fail
warning: the suites differ: cases {old} and {new}

worse (regressed): 1 regressed, 1 fixed, 1 added, 1 removed, 1 unchanged

regressed: red now, and not before
  a [cpu-float32]  pass → fail  cases/x.yaml:12
      now: a.grad: expected 1, observed 2
      rule r.one (documented): The rule r.one.

fixed: red or known before; now a pass, or a known issue that no longer fails
  c [cpu-float32]  fail → pass  cases/x.yaml:30
      was: a.grad: expected 1, observed 2
      rule r.one (documented): The rule r.one.

added: the old report has no such case, or not on this target
  e [cpu-float32]  absent → pass  cases/x.yaml:50  (r.one)

removed: the new report has no such case, or not on this target, where it didn't run before either
  d [cpu-float32]  pass → absent  cases/x.yaml:40  (r.one)
"""


def test_what_got_worse_by_one_cause_is_told_once() -> None:
    old = report({(case, CPU): GOOD for case in "abc"}, torch="2.12.0")
    new = report({(case, CPU): failed() for case in "abc"})
    told = difference_text(compare(old, new))
    causes = told[told.index("red by cause") : told.index("\nregressed: ")].splitlines()
    assert [line.split()[0] for line in causes[1:] if line] == ["3"]
    assert "red by cause" not in difference_text(compare(OLD, NEW))
    told = difference_markdown(compare(old, new))
    assert [line for line in told[told.index("### Red by cause") :].splitlines() if line][1].startswith("- 3: ")
    assert "Red by cause" not in difference_markdown(compare(OLD, NEW))


def test_a_terminal_shows_builds_counts_and_each_change() -> None:
    digests = {"old": OLD.header.suite.cases, "new": NEW.header.suite.cases}
    assert difference_text(compare(OLD, NEW)) == TEXT.format(**digests)


def test_no_change_is_said_so() -> None:
    assert difference_text(compare(NEW, NEW)).endswith("\nnothing got worse: 4 unchanged\n")
    assert difference_text(compare(report({}), report({}))).endswith("\nnothing got worse: no cases\n")


def test_a_changed_failure_shows_both() -> None:
    text = difference_text(compare(report({("a", CPU): failed()}), report({("a", CPU): failed(path="b")})))
    assert "      was: a.grad: expected 1, observed 2\n      now: b: expected 1, observed 2\n" in text


def test_a_lost_target_is_told() -> None:
    text = difference_text(compare(report({("a", CPU): GOOD, ("a", CUDA): GOOD}), report({("a", CPU): GOOD})))
    assert "worse (newly not run): 1 newly not run, 1 unchanged" in text
    change = "  a [cuda-float32]  pass → absent  cases/x.yaml:10  (r.one)"
    assert f"{change}\n      now: this target is no longer planned" in text


def test_markdown_has_a_table_of_counts_and_a_heading_for_each_kind() -> None:
    text = difference_markdown(compare(OLD, NEW))
    assert text.startswith("## Autograd conformance: worse (regressed)\n\nold: `torch 2.12.0 (01234567)")
    assert "| regressed | 1 | red now, and not before |\n" in text
    assert "| unchanged | 1 | |\n\n### Regressed\n\n- `a` on `cpu-float32`: pass → fail, `cases/x.yaml:12`\n" in text
    assert "  - now: `a.grad: expected 1, observed 2`\n  - rule `r.one` (documented): `The rule r.one.`\n" in text
    assert "<details><summary>1 added</summary>\n\n- `e` on `cpu-float32`: absent → pass, `cases/x.yaml:50`" in text


@given(any_report(), any_report())
def test_whatever_differs_can_be_shown(old: Report, new: Report) -> None:
    difference = compare(old, new)
    text, markdown = difference_text(difference), difference_markdown(difference)
    assert text == visible(text)
    assert markdown == visible(markdown)
    assert markdown.count("<details>") == markdown.count("</details>\n")
    for change in difference.changes:
        assert f"- `{change.case.id}` on `" in markdown or HOSTILE[:3] in change.target


def test_nothing_of_a_stranger_is_markup() -> None:
    made = {("a", HOSTILE): failed(HOSTILE, HOSTILE, HOSTILE), ("b", CPU): outcome("not-run", reason=HOSTILE)}
    old = {("a", HOSTILE): GOOD, ("b", CPU): GOOD}
    markdown = difference_markdown(compare(report(old, torch=HOSTILE), report(made, torch=HOSTILE, python=HOSTILE)))
    left = re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", markdown)
    for part in ("img", "@", "#1", "http", "script", "\\", "quoted"):
        assert part not in left


def test_several_builds_are_told_each_under_its_name_and_the_worse_ones_first_in_markdown() -> None:
    same, worse = compare(NEW, NEW), compare(report({("a", CPU): GOOD}), report({("a", CPU): failed()}))
    several = Differences(found={"same.json": same, "worse.json": worse, "new.json": None}, gone=("old.json",))
    assert several.worse == ["old.json", "worse.json"]
    text = differences_text(several)
    assert text.startswith("== old.json\nworse (gone): there was a report of this build, and there is none now\n")
    assert f"== same.json\n{difference_text(same)}" in text
    assert text.endswith("== new.json\nno earlier report: there is nothing to compare with\n")
    markdown = differences_markdown(several)
    assert markdown.startswith("## Autograd conformance: 2 of 4 builds got worse\n\n### `old.json`\n")
    assert markdown.index("### `worse.json`") < markdown.index("<summary><code>same.json</code></summary>")
    record = differences_record(several)
    assert (record["gates"], record["gone"], record["builds"]["new.json"]) == (True, ["old.json"], None)
    assert "nothing got worse on 1 builds" in differences_markdown(Differences(found={"same.json": same}))
