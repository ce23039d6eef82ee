"""Tests of causes: what of a report is told once, and what is told apart."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from samples import CPU, CUDA, any_report, case, failed, outcome, report, valid_case

from conformance.model.outcome import Outcome
from conformance.model.report import CaseRecord, Cause, Report, StepRecord
from conformance.model.status import RED
from conformance.results.causes import causes_of, groups_of, operations_at

GOOD = outcome("pass")


def told(outcomes: Mapping[str, Outcome], **cases: CaseRecord) -> tuple[Cause, ...]:
    """Return the causes of outcomes of cases on the CPU; the cases are those of the samples unless they are given."""
    pairs = {(name, CPU): found for name, found in outcomes.items()}
    return causes_of(report(pairs, cases=[cases.get(name) or case(name) for name in outcomes]))


def titles(outcomes: Mapping[str, Outcome], **cases: CaseRecord) -> list[tuple[int, str]]:
    return [(cause.count, cause.title) for cause in told(outcomes, **cases)]


def raised(message: str, status: str = "error", path: str = "") -> Outcome:
    return failed(path, "no error", message, exception=message.partition(":")[0], status=status)


def using(name: str, *operations: str, topic: str = "Tests") -> CaseRecord:
    text = "".join(f"    - y = x.{operation}()\n" for operation in operations)
    return case(name, yaml=f"- id: {name}\n  steps:\n{text}", topic=topic)


def test_outcomes_with_one_message_are_one_cause_with_its_operator_and_its_smallest_case() -> None:
    made = report(
        {
            ("a", CPU): raised("E: no aten::exp for [2, 3]"),
            ("b", CUDA): raised("E: no aten::exp for [1]", "fail", "y"), ("b", CPU): GOOD,
            ("c", CPU): raised("E: no aten::log for [1]"),
        },
        cases=[case("a", yaml="- id: a\n  long: text\n"), case("b"), case("c")],
    )  # fmt: skip
    first, second = causes_of(made)
    assert (first.title, first.op, first.counts) == ("E: no aten::exp for […]", "aten::exp", {"error": 1, "fail": 1})
    assert (first.case, first.target, first.targets, first.cases) == ("b", CUDA, (CPU, CUDA), ("a", "b"))
    assert (second.title, second.count) == ("E: no aten::log for […]", 1)
    assert first.id != second.id
    assert first.is_red


def test_the_smallest_case_is_the_one_whose_steps_are_the_shortest() -> None:
    long = valid_case("a", title="x")
    short = valid_case("b", title="A title that is much longer than all that there is to read of the steps. " * 9)
    (cause,) = told({"a": raised("E: no"), "b": raised("E: no")}, a=long, b=short)
    assert (cause.case, len(long.steps)) == ("a", len(short.steps))


def test_the_most_outcomes_come_first_and_what_is_unsupported_last() -> None:
    lacks = outcome("unsupported", reason="E: no aten::exp for [2]")
    found = {"a": lacks, "b": lacks, "c": lacks, "d": raised("E: b"), "e": raised("E: a"), "f": raised("E: a")}
    assert titles(found) == [(2, "E: a"), (1, "E: b"), (3, "E: no aten::exp for […]")]


def test_what_is_known_passed_or_was_not_run_has_no_cause() -> None:
    assert told({"a": GOOD, "b": outcome("not-run", reason="x"), "c": outcome("known")}) == ()


def test_defects_of_the_suite_and_entries_that_no_longer_fail_have_causes_too() -> None:
    found = {"a": outcome("internal-error", reason="the suite itself raised KeyError: 3"), "b": outcome("fixed")}
    assert {next(iter(cause.counts)) for cause in told(found)} == {"internal-error", "fixed"}


def test_an_operation_is_suspected_where_most_that_use_it_are_wrong() -> None:
    wrong, other = failed("x.grad", "[1.0]", "[2.0]"), failed("y", "[1.0]", "[2.0]")
    cases = {name: using(name, "sigmoid_" if name == "a" else "sigmoid", "sum") for name in "abc"}
    cases |= {name: using(name, "sum", topic="Sums") for name in "defgi"} | {
        "h": using("h", "sigmoid"),
        "j": using("j", "exp"),
    }
    found = {"a": wrong, "b": wrong, "c": other, "d": GOOD, "e": GOOD, "f": wrong, "g": GOOD, "h": GOOD,
             "i": GOOD, "j": GOOD}  # fmt: skip
    first, second = told(found, **cases)
    assert (first.title, first.cases) == ("sigmoid: grad: another value (and 1 other way)", ("a", "b", "c"))
    assert (second.title, second.op, second.topic) == ("Sums: grad: another value", "", "Sums")


def test_no_operation_is_suspected_by_chance_or_where_it_is_mostly_right() -> None:
    wrong = failed("x.grad", "[1.0]", "[2.0]")
    topics = {name: f"Topic {name}" for name in "abcdef"}
    cases = {name: using(name, "sigmoid", topic=topics[name]) for name in topics}
    assert titles({"a": wrong, "b": wrong}, **cases) == [
        (1, "Topic a: grad: another value"), (1, "Topic b: grad: another value"),
    ]  # fmt: skip
    mostly = {name: wrong if name in "abc" else GOOD for name in topics}
    assert [count for count, _ in titles(mostly, **cases)] == [1, 1, 1]
    assert titles({**mostly, "d": wrong}, **cases) == [(4, "sigmoid: grad: another value")]


def test_what_sets_a_default_is_no_operation() -> None:
    wrong = failed("x.grad", "[1.0]", "[2.0]")
    found = told(dict.fromkeys("abc", wrong), **{name: using(name, "set_default_dtype") for name in "abc"})
    assert [cause.op for cause in found] == [""]


def test_a_topic_is_named_where_it_explains_more_than_an_operation() -> None:
    wrong, other = failed("x.grad", "[1.0]", "[2.0]"), failed("y", "[1.0]", "[0.0]")
    names = "abcdef"
    cases = {name: using(name, "sum" if name < "d" else "exp", topic="Views") for name in names}
    assert titles({name: wrong if name < "d" else other for name in names}, **cases) == [
        (6, "Views: grad: another value (and 1 other way)")
    ]


def test_a_program_or_a_way_is_named_where_an_equivalence_fails_with_it() -> None:
    wrong, ways, programs = failed("x.grad", "[1.0]", "[2.0]"), "pqrs", ("a-map", "a-view-on-top", "a-sum", "a-rest")
    names = [f"{way}-or-not-on-{program}" for way in ways for program in programs]
    cases = {name: using(name, "mul" if "a-map" in name else "exp", "sum", topic="Equivalences") for name in names}
    by_program = {name: wrong if "a-view" in name else GOOD for name in names}
    assert titles(by_program, **cases) == [(4, "a view on top: grad: another value")]
    by_way = {name: wrong if name.startswith("q-") else GOOD for name in names}
    assert titles(by_way, **cases) == [(4, "q or not: grad: another value")]
    more = {name: using(name, "mul") for name in ("t", "u")}
    by_operation = {name: wrong if "a-map" in name or name in more else GOOD for name in [*names, *more]}
    assert titles(by_operation, **cases, **more) == [(6, "mul: grad: another value")]


def test_devices_are_suspected_each_by_itself() -> None:
    wrong = failed("x.grad", "[1.0]", "[2.0]")
    cases = [using(name, "sigmoid", topic=f"Topic {name}") for name in "abc"]
    on_both = {(name, target): wrong if target == CUDA else GOOD for name in "abc" for target in (CPU, CUDA)}
    (cause,) = causes_of(report(on_both, cases=cases))
    assert (cause.op, cause.targets) == ("sigmoid", (CUDA,))


def crashing(statement: str, name: str) -> CaseRecord:
    text = f"- id: {name}\n  steps:\n    - x = tensor([1.0])\n    - {statement}\n    - expect: {{x: 1}}\n"
    steps = tuple(StepRecord(line=line, kind="do") for line in (3, 4, 5))
    return case(name, yaml=text, line=1, steps=steps, topic=f"Topic {name}")


def test_crashes_are_told_apart_by_the_operations_of_the_step() -> None:
    cases = {"a": crashing("y = x.exp().sum()", "a"), "b": crashing("z = (x * 2).exp_().sum()", "b")}
    cases["c"] = crashing("y = torch.linalg.svd(x)", "c")
    found = {name: outcome("crash", signal="SIGSEGV", step=1, line=4) for name in "abc"}
    assert titles(found, **cases) == [(2, "exp, sum: SIGSEGV"), (1, "svd: SIGSEGV")]
    assert operations_at(outcome("crash", line=3), cases["a"]) == "tensor"
    assert operations_at(outcome("crash", line=5), cases["a"]) == ""
    assert operations_at(outcome("crash"), cases["a"]) == ""


def test_crashes_wherever_there_are_complex_numbers_are_one_cause() -> None:
    crash = outcome("crash", step=1, line=4, signal="SIGSEGV")
    cases = {name: crashing(f"y = torch.{name}(tensor([1.0 + 2.0j]))", name) for name in ("exp", "sin", "abs")}
    cases |= {name: crashing(f"y = torch.{name}(x)", name) for name in ("cos", "tan")}
    found = {name: GOOD if name == "cos" else crash for name in cases}
    assert titles(found, **cases) == [(3, "complex numbers: SIGSEGV"), (1, "tan: SIGSEGV")]
    assert len(titles({**found, "exp": GOOD, "sin": GOOD}, **cases)) == 2


def test_a_timeout_is_told_by_its_statement_and_one_without_a_step_by_its_topic() -> None:
    cases = {"a": crashing("y = x.exp()", "a"), "b": crashing("y = x.exp()", "b"), "c": crashing("y = x.exp()", "c")}
    late = outcome("timeout", reason="no answer within 60 s; the worker was killed")
    found = {"a": outcome("timeout", line=4, step=1), "b": late, "c": late}
    assert titles(found, **cases) == [
        (1, "Topic b: no answer in time"), (1, "Topic c: no answer in time"), (1, "exp: no answer in time"),
    ]  # fmt: skip


def test_a_crash_without_a_step_is_told_by_the_stack() -> None:
    stack = 'Fatal Python error: Aborted\n\nThread 1:\n  File "/x/torch/functional.py", line 377 in einsum\n'
    case_alone = 'Thread 1:\n  File "cases/x.yaml (no source)", line 3 in <module>\n'
    found = {name: outcome("crash", signal="SIGABRT", stderr=stack) for name in "ab"}
    found["c"] = outcome("crash", signal="SIGABRT", stderr=case_alone)
    assert titles(found) == [(2, "einsum: SIGABRT"), (1, "Tests: SIGABRT")]


def test_the_same_cause_has_one_id_in_all_reports() -> None:
    one, other = told({"a": raised("E: no 1")}), told({"b": raised("E: no 2"), "c": raised("E: no 3")})
    assert [cause.id for cause in one] == [cause.id for cause in other]


@given(any_report())
def test_every_red_and_unsupported_outcome_has_one_cause(made: Report) -> None:
    records = {record.id: record for record in made.cases}
    groups = groups_of(made.outcomes, records)
    grouped = [each.pair for _, own in groups for each in own]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == {each.pair for each in made.outcomes if each.status in RED | {"unsupported"}}
    assert len({cause.id for cause, _ in groups}) == len(groups)
    for cause, own in groups:
        assert cause.count == len(own)
        assert (cause.case, cause.target) in {each.pair for each in own}
