"""Tests of the causes in a terminal: a line for each, where there is something to group."""

from __future__ import annotations

from samples import CPU, HOSTILE, case, failed, outcome, report

from conformance.model.outcome import Outcome
from conformance.render.causes import LONGEST, MOST, cause_lines
from conformance.render.visible import visible
from conformance.results.causes import causes_of


def lines(outcomes: dict[str, Outcome]) -> list[str]:
    return cause_lines(causes_of(report({(name, CPU): found for name, found in outcomes.items()})))


def error(reason: str) -> Outcome:
    return outcome("error", reason=reason)


def test_a_line_has_the_count_the_cause_and_its_smallest_case() -> None:
    found = {"a": error("no exp for [1]"), "b": failed("x.version", "1", "0"), "c": error("no exp for [2]")}
    assert lines(found) == [
        "red by cause, with the smallest case of each",
        "  2  no exp for […]    a[cpu-float32]",
        "  1  version: too low  b[cpu-float32]",
    ]


def test_a_few_that_have_nothing_in_common_are_not_grouped() -> None:
    found = {name: error(f"no {name}x") for name in "abc"}
    assert lines({**found, "z": outcome("unsupported", reason="x"), "y": outcome("unsupported", reason="x")}) == []
    assert len(lines({**found, "d": error("no dx")})) == 5
    assert lines({}) == []


def test_of_many_causes_the_first_are_shown() -> None:
    shown = lines({name: error(f"no {name}x") for name in "abcdefghijklmno"})
    assert (len(shown), shown[-1]) == (MOST + 2, "  and 5 more, of 5 outcomes")


def test_text_of_a_stranger_stays_in_its_line() -> None:
    topics = [case(name, topic=HOSTILE * 9) for name in "ab"]
    made = report({(name, HOSTILE): failed() for name in "ab"}, cases=topics)
    _, line = cause_lines(causes_of(made))
    assert line == visible(line)
    assert len(line) < 3 * LONGEST + len(HOSTILE) * 9
