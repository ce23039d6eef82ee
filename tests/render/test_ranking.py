"""What somebody looks for is among the first that is found, in whatever form the words are."""

from __future__ import annotations

from loops import each
from shipped import rules

from conformance.render.ranking import ranked, stem, stems

RULES = {name: (f"{name} {rule.topic}", rule.text, rule.upgrade) for name, rule in rules().items()}
WANTED = {
    "detach shares memory": "detach.shares-storage",
    "detached tensors share their memory": "detach.shares-storage",
    "freeing saved tensors": "saved.freed-after-backward",
    "in-place on a leaf": "inplace.augassign-leaf-forbidden",
    "zero_grad sets None": "optim.zero-grad-none-default",
    "create_graph": "bwd.create-graph-makes-grad-differentiable",
    "inference mode": "infer.disables-grad",
    "hook replaces the gradient": "hook.return-replaces",
}


@each("words, rule", WANTED.items())
def test_a_rule_is_found_by_what_one_would_type(words: str, rule: str) -> None:
    assert rule in ranked(words, RULES)[:6]


def test_words_are_found_in_each_form_and_joined_or_apart() -> None:
    assert stem("shares") == stem("shared") == stem("sharing") == "shar"
    assert "inplac" in stems("An in-place write")
    assert ranked("in place", {"a": ["written inplace"], "b": ["nothing"]}) == ["a"]
    assert ranked("inplace", {"a": ["an in-place write"], "b": ["a place"]}) == ["a"]


def test_more_of_the_words_count_for_more_than_where_they_stand() -> None:
    texts = {"one": ["hook", ""], "both": ["", "a hook of a leaf"], "none": ["x", "y"]}
    assert ranked("hook leaf", texts) == ["both", "one"]
    assert ranked("the", {"a": ["the hook"], "b": ["hook"]}) == ["a"]
    assert ranked("nothing", texts) == []
