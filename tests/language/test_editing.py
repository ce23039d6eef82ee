"""What can be written at a place of a case file, and what a word there means, in any state of its text."""

from __future__ import annotations

import pytest
from loops import each

from conformance.language.editing.completion import meaning, offers
from conformance.language.editing.names import set_before
from conformance.language.editing.place import place_at
from conformance.language.files import shipped_cases
from conformance.language.rules import RULES_FILE, load_rules

RULES = load_rules(shipped_cases() / RULES_FILE, RULES_FILE)
COUNTS = {"detach.shares-storage": 1, "detach.stops-gradient": 7}
HEAD = "topic: Hooks\ncases:\n  - id: one\n    title: 'It: holds'\n    why: >-\n      Because: it\n      does\n"
STEPS = f"{HEAD}    steps:\n      - a, b = tensor([1.0], requires_grad=True), 2\n"
BELOW = f"{STEPS}      - expect:\n          "
BLOCK = f"{STEPS}      - |\n        "
CHECKED = ("cases", "[]", "steps", "[]", "expect", "y")

# A text, and the path of its end, the text there, whether a key may stand there, and the keys before it.
PLACES = [
    ("", (), "", True, ""),
    ("topic: A\nca", (), "ca", True, "topic"),
    ("cases:\n- id: a\n  ti", ("cases", "[]"), "ti", True, "id"),
    ("cases:\n- id: a\n", (), "", True, "cases"),
    (f"{HEAD}    ", ("cases", "[]"), "", True, "id title why"),
    (f"{HEAD}    rules: [detach.", ("cases", "[]", "rules", "[]"), "detach.", False, ""),
    (f"{HEAD}    rules:\n      - detach.", ("cases", "[]", "rules", "[]"), "detach.", True, ""),
    (f"{HEAD}    rules:\n      [detach.a,\n       det", ("cases", "[]", "rules", "[]"), "det", False, ""),
    (f"{STEPS}      - a.b", ("cases", "[]", "steps", "[]"), "a.b", True, ""),
    (f"{STEPS}      - do: a.b", ("cases", "[]", "steps", "[]", "do"), "a.b", False, ""),
    (f"{STEPS}      - do: f(\n        ra", ("cases", "[]", "steps", "[]"), "ra", True, "do"),
    (f"{STEPS}      - expect: {{y: {{is_leaf: true, gr", CHECKED, "gr", True, "is_leaf"),
    (f"{BELOW}y: {{is_leaf: true,\n              gr", CHECKED, "gr", True, "is_leaf"),
    (f"{BELOW}y:\n            is_leaf: true\n            gr", CHECKED, "gr", True, "is_leaf"),
    (f"{STEPS}      - expect: {{x: [1, (2, 3)], y: {{grad: {{value: [1]}}, gr", CHECKED, "gr", True, "grad"),
    (f"{STEPS}      - expect: {{y: {{value: 'a, b: c', gr", CHECKED, "gr", True, "value"),
    (f"{STEPS}      - expect: {{y: {{value: f(a, b), gr", CHECKED, "gr", True, "value"),
    (f"{STEPS}      - expect: {{y: {{value: 1}}}} # {{\n      - expect: {{y: {{gr", CHECKED, "gr", True, ""),
    # Brackets and quotations that are not closed end where a line is indented no further than theirs.
    (f"{STEPS}      - expect: {{x: {{is_leaf: [\n      - expect: {{y: {{gr", CHECKED, "gr", True, ""),
    (f'{STEPS}      - "a = b\n      - expect: {{y: {{gr', CHECKED, "gr", True, ""),
    # Text in a block is text, whatever it looks like.
    (f"{BLOCK}def f(x):\n\n          # y: 1\n          x.a", ("cases", "[]", "steps", "[]"), "x.a", False, ""),
    (f"{BLOCK}with a:\n      - b", ("cases", "[]", "steps", "[]"), "b", True, ""),
    (f"{STEPS}# y: {{\n\n      - b", ("cases", "[]", "steps", "[]"), "b", True, ""),
    ('"topic": A\n\'cases\':\n  - "id"', ("cases", "[]"), "id", True, ""),
    ("topic: A\r\ncases:\r\n  - id: a\r\n    ti", ("cases", "[]"), "ti", True, "id"),
    ("cases: [{id: a}, {ti", ("cases", "[]"), "ti", True, ""),
    ("cases: [] x: y\n", (), "", True, "cases"),
]  # fmt: skip


@each("text, path, before, is_key, keys", PLACES)
def test_a_place_is_found_by_what_stands_before_it(
    text: str, path: tuple[str, ...], before: str, is_key: bool, keys: str
) -> None:
    place = place_at(text)
    assert (place.path, place.is_key, place.keys) == (path, is_key, frozenset(keys.split()))
    assert place.before.endswith(before)
    assert before or not place.before.strip()


# A text; what can be written at its end, with its kind; what can't.
OFFERED = [
    ("to", "key topic", "key steps"),
    (f"{HEAD}    ", "key steps key rules", "key title name exp"),
    (f"{HEAD}    rules: [versi", "rule detach.shares-version-counter", "name exp key steps"),
    (f"{HEAD}    rules:\n      - ", "rule detach.shares-version-counter", "name exp"),
    (f"{HEAD}    dtypes: [fl", "word float64", "name exp word true"),
    (f"{STEPS}      - y = ex", "variable a variable b name exp name torch name nn", "name retain_grad key do"),
    (f"{STEPS}      - y = torch.ex", "name exp name linalg", "variable a name retain_grad name sigmoid_cross"),
    (f"{STEPS}      - y = a.", "name retain_grad name exp_", "variable a name tensor"),
    (f"{STEPS}      - y = f(a).", "name retain_grad", "variable a name tensor"),
    (f"{STEPS}      - y = torch.nn.functional.re", "name relu", "name retain_grad name exp"),
    (f"{STEPS}      - y = F.re", "name relu", "name retain_grad"),
    (f"{STEPS}      - do: nn.", "name Linear name functional", "name exp"),
    (f"{BLOCK}def f(x):\n          y = x.sin()\n          return y.co", "name cos", "key do"),
    (f"{BLOCK}def f(x):\n          return ", "variable f variable a name exp", "key do"),
    (f"{STEPS}      - ", "key do key expect key when variable a", "key is_leaf"),
    (f"{STEPS}      - do: a\n        ", "key raises key warns key torch", "key expect key do name exp"),
    (f"{STEPS}      - do: a\n        raises: {{type: Ru", "word RuntimeError word CheckpointError", "name exp"),
    (f"{STEPS}      - do: a\n        warns: [{{type: Us", "word UserWarning", "name exp"),
    (f"{STEPS}      - expect: {{", "variable a key log name exp", "key is_leaf"),
    (f"{STEPS}      - expect: {{a: {{is_", "key is_leaf key grad key value", "variable a name exp key do"),
    (f"{BELOW}a:\n            is_leaf: true\n            ", "key grad", "key is_leaf name exp"),
    (f"{STEPS}      - expect: {{a: {{is_leaf: t", "word true word false", "word null name exp key grad"),
    (f"{STEPS}      - expect: {{a: {{grad: 2 * ", "variable b name exp word null", "key is_leaf"),
    (f"{STEPS}      - expect: {{a: {{grad: 2 * b.", "name sum", "word null variable a"),
    (f"{STEPS}      - expect: {{a: 2 * ", "variable b name exp", "key is_leaf"),
    ("topic: A\nops:\n  - id: exp\n    op: x.e", "name exp", "key op"),
    ("topic: A\nops:\n  - id: exp\n    elementwise: {x: ", "word unit", "name exp key op"),
    ("services:\n  web: {im", "", "key topic name exp word true"),
]  # fmt: skip


@each("text, there, absent", OFFERED)
def test_what_can_be_written_is_offered_and_nothing_else(text: str, there: str, absent: str) -> None:
    found = {f"{offer.kind} {offer.text}" for offer in offers(text, RULES, COUNTS)}
    assert pairs(there) <= found
    assert not pairs(absent) & found


def pairs(text: str) -> set[str]:
    words = text.split()
    return {f"{kind} {name}" for kind, name in zip(words[::2], words[1::2], strict=True)}


@each(
    "end, length",
    [("    rules: [detach.shares-v", 15), ("    steps: [torch.ex", 2), ("    ti", 2), ("    dtypes: [float", 5)],
)
def test_an_offer_takes_the_place_of_what_has_been_written_of_it(end: str, length: int) -> None:
    found = offers(HEAD + end, RULES, COUNTS)
    assert {offer.length for offer in found} == {length}


def test_offers_say_what_they_are() -> None:
    rules = {offer.text: offer.about for offer in offers(f"{HEAD}    rules: [", RULES, COUNTS)}
    rule = RULES["detach.shares-storage"]
    assert rules[rule.id].startswith(f"{rule.text}\n\n{rule.level}, since 1.13; 1 case of the suite states it\n")
    assert "7 cases of the suite state it" in rules["detach.stops-gradient"]
    assert "0 cases of the suite state it" in rules["accum.preset-grad-added"]
    checks = {offer.text: offer.about for offer in offers(f"{STEPS}      - expect: {{a: {{", RULES, COUNTS)}
    assert checks["is_leaf"] == "Whether it is a leaf of the graph."


def test_names_are_those_of_the_last_case_alone() -> None:
    text = (
        "cases:\n  - id: one\n    steps: [z = 1]\n  - id: two\n    steps:\n      - x = f(a, dim=1); y = x == 2\n"
        "      - do: v = x\n      - 'w = 1'\n      - |\n        def f(q):\n          for i, j in [(1, 2)]:\n"
        "            with no_grad() as k: pass\n      - expect: {x: {value: e == 1}}\n"
    )
    assert set_before(text) == ["x", "y", "v", "w", "f", "i", "j", "k"]
    assert set_before("programs:\n  - id: p\n    inputs: {s: 1, t: [2]}\n    result: s") == ["s", "t"]


MEANT = f"{HEAD}    rules: [detach.shares-storage]\n    steps:\n      - y = torch.exp(F.relu(a)).sum() + qq\n" + (
    "      - expect: {y: {is_leaf: false, value: exp(1), dtype: float32}}\n"
)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("shares-storage", RULES["detach.shares-storage"].text),
        ("rules:", "The rules of rules.yaml that the case checks."),
        ("is_leaf", "Whether it is a leaf of the graph."),
        ("dtype", "Its dtype, such as"),
        ("exp(F", "exp: in torch, from torch 1.13 on"),
        ("relu", "relu: in nn.functional, from torch 1.13 on"),
        ("sum()", "sum: an attribute, from torch 1.13 on"),
        ("exp(1)", "exp: in torch, from torch 1.13 on"),
        ("torch.exp", "torch: a namespace"),
    ],
)
def test_a_word_means_what_the_registry_the_schema_or_the_vocabulary_says(word: str, said: str) -> None:
    assert meaning(MEANT, MEANT.index(word) + 1, RULES, COUNTS).startswith(said)


@each("word", ["qq", "holds", "one\n", "float32", "}}\n", "y: {is_leaf"])
def test_other_words_mean_nothing(word: str) -> None:
    assert meaning(MEANT, MEANT.index(word) + 1, RULES, COUNTS) == ""
    assert meaning(MEANT, len(MEANT), RULES, COUNTS) == ""
