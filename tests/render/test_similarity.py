"""What two entries have in common decides how similar they are, and what few have counts most."""

from __future__ import annotations

from conformance.language.outline import Entry, entries_in
from conformance.render.similarity import features_of, similar_to

HEAD = "topic: T\ncases:\n"
CASE = """\
  - id: {id}
    title: t
    why: w
    rules: [{rule}]
    steps:
      - {step}
      - expect: {expect}
"""


def entry(name: str, step: str, rule: str = "a.b", expect: str = "{a: {is_leaf: true}}") -> Entry:
    (found,) = entries_in(HEAD + CASE.format(id=name, rule=rule, step=step, expect=expect), "t.yaml")
    return found


COMMON = [entry(f"common-{number}", "b = a.sum()", f"x.{number}") for number in range(9)]


def test_features_are_what_the_steps_and_the_head_name() -> None:
    step = "{do: b.detach(), raises: {type: RuntimeError, match: m}}"
    found = features_of(entry("one", step, "a.b", "{b: {grad_fn: SumBackward0, version: 1}}"))
    assert found == {
        ("rule", "a.b"), ("operation", "detach"), ("error", "RuntimeError"), ("node", "SumBackward0"),
        ("check", "grad_fn"), ("check", "version"),
    }  # fmt: skip


def test_what_few_have_counts_more_than_what_many_have() -> None:
    own = entry("own", "b = a.sum() + a.retain_grad()", "x.1")
    rare = entry("rare", "c = a.retain_grad()", "x.1")
    found = similar_to(own, [*COMMON, rare], most=2)
    assert [each.entry.id for each in found] == ["rare", "common-1"]
    assert found[0].why == "rules: x.1; operations: retain_grad; checks: is_leaf"


def test_what_an_operation_and_a_check_are_both_called_is_known_by_its_call() -> None:
    assert ("operation", "autograd.grad") in features_of(entry("one", "g = autograd.grad(a, b)"))
    assert ("operation", "autograd.grad") not in features_of(entry("two", "a.backward()", expect="{a: {grad: null}}"))


def test_an_entry_is_not_similar_to_itself_nor_for_its_checks_alone() -> None:
    own = entry("own", "b = a.exp()")
    others = [own, entry("other", "b = a.cos()", "y.z"), *COMMON]
    assert similar_to(own, others, most=9) == []


def test_the_same_case_under_another_id_is_the_most_similar() -> None:
    first, *_ = similar_to(entry("own", "b = a.exp()"), [*COMMON, entry("other", "b = a.exp()")], most=3)
    assert (first.entry.id, first.share) == ("other", 1.0)
