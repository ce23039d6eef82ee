"""Bounds are drafted where outcomes differ, from what was observed; numbers are left to be worked out."""

from __future__ import annotations

from loops import each
from running import FIRST, case_of

from conformance.model.outcome import Failure, Outcome
from conformance.render.bounds import drafts

CASE = case_of("""\
- a = tensor([1.0], requires_grad=True)
- expect: {a: {grad_fn: ViewBackward0, value: 1.0}}
- do: a.add_(1)
  raises: {type: RuntimeError, match: ["a leaf", {regex: 'x+'}]}
""")
PASS = Outcome(status="pass")


def failing(path: str, observed: str, line: int = FIRST + 1, step: int = 1) -> Outcome:
    return Outcome(
        status="fail", step=step, line=line, failures=(Failure(line=line, path=path, expected="e", observed=observed),)
    )


def drafted(**outcomes: Outcome) -> list[str]:
    """Return the drafts for releases, such as v2_1_0, with these outcomes."""
    return list(drafts(CASE, [(name.removeprefix("v").replace("_", "."), each) for name, each in outcomes.items()]))


def test_a_name_that_another_release_has_is_an_alternative() -> None:
    found = drafted(v2_1_0=PASS, v2_0_1=failing("a.grad_fn", "AliasBackward0"))
    assert found == ['line 9: a.grad_fn: {torch: {"<2.1": AliasBackward0, ">=2.1": ViewBackward0}}']


def test_a_number_is_to_be_worked_out() -> None:
    assert drafted(v2_0_0=failing("a", "[2.0]"), v2_1_0=PASS) == ['line 9: a: {torch: {"<2.1": ?, ">=2.1": 1.0}}']


def test_an_error_has_alternatives_with_the_text_of_the_case_and_the_observed_one() -> None:
    other = failing("raises", "TypeError: no: leaf", line=FIRST + 3, step=2)
    (found,) = drafted(v2_0_0=PASS, v2_1_0=other, v2_2_0=failing("raises", "nothing was raised", FIRST + 3, 2))
    assert found == (
        f'line {FIRST + 3}: raises: [{{type: RuntimeError, match: [a leaf, {{regex: x+}}], torch: "<2.1"}}, '
        '{type: TypeError, match: "no: leaf", torch: ">=2.1,<2.2"}, {type: none, torch: ">=2.2"}]'
    )


def test_a_release_that_failed_before_says_nothing_of_a_later_place_and_one_that_failed_behind_it_holds() -> None:
    early, late = failing("a.grad_fn", "AliasBackward0"), failing("raises", "nothing was raised", FIRST + 3, 2)
    assert drafted(v2_0_0=early, v2_1_0=late, v2_2_0=PASS) == [
        'line 9: a.grad_fn: {torch: {"<2.1": AliasBackward0, ">=2.1": ViewBackward0}}',
        f'line {FIRST + 3}: raises: [{{type: none, torch: "<2.2"}}, '
        '{type: RuntimeError, match: [a leaf, {regex: x+}], torch: ">=2.2"}]',
    ]


def test_a_bound_between_releases_that_are_far_apart_is_said_to_be_unknown() -> None:
    _, further = drafted(v2_0_0=failing("a.grad_fn", "AliasBackward0"), v2_6_0=PASS)
    assert further == "that bound is somewhere after 2.0.0 and up to 2.6.0; `bisect` finds where"


def test_a_step_that_another_release_can_not_do_belongs_under_a_condition() -> None:
    (found,) = drafted(v2_0_0=failing("", "AttributeError: no", FIRST, 0), v2_1_0=PASS)
    assert found.endswith("torch: '>=2.1'; put it under when, or say so of the case")


@each("outcome", [PASS, failing("a", "[2.0]"), Outcome(status="unsupported", reason="needs torch >=2.0")])
def test_where_all_are_alike_nothing_is_drafted(outcome: Outcome) -> None:
    assert drafted(v2_0_0=outcome, v2_1_0=outcome) == []
