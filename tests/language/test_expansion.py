"""What cases with spellings are written out as: ordinary cases, which are read and judged like any other."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from loops import each
from running import RULES, request_of, running_engine
from samples import parse_at
from shipped import all_cases, rules

from conformance.language.expansion import quiet, with_note
from conformance.language.files import shipped_cases
from conformance.language.reader import parse_cases
from conformance.language.yaml import read_document
from conformance.model.case import Case
from conformance.model.rule import Rule
from conformance.worker.engine import Engine

PROGRAMS = """\
programs:
  - id: product
    title: a product that broadcasts
    inputs: {a: [[1.5], [-2.0]], b: [0.5, 3.0]}
    result: a * b
    g: [[1.0, -1.0], [2.0, 0.5]]
    gradients: {a: "(g * b).sum(1, keepdim=True)", b: (g * a).sum(0)}
  - id: square
    title: a square
    torch: ">=2.0"
    dtypes: [float32, float64]
    inputs: {c: "tensor([1.5])"}
    result: |
      h = c * 1
      return h * c
    g: tensor([2.0])
    gradients: {c: 2 * c * g}
"""
CASES = """\
cases:
  - id: backward-or-grad
    title: Both agree
    why: They do the same
    rules: [a.b]
    torch: "<2.14"
    spellings:
      backward:
        - f(*inputs).backward(g)
        - found = [x.grad for x in inputs]
      autograd.grad:
        - y = f(*inputs)
        - found = autograd.grad(y, inputs, g)
"""
OTHER = """\
  - id: weighted
    title: Both agree
    why: They do the same
    rules: [a.b]
    spellings:
      a: ["found = autograd.grad(f(*inputs), inputs, g)"]
      b: ["found = autograd.grad(f(*inputs) * 1, inputs, g)"]
"""
SHARED = """\
cases:
  - id: ways-to-double
    title: All are the same
    why: They do the same
    rules: [a.b]
    given:
      - x = tensor([1.5])
    spellings:
      product:
        - y = x * 2
      sum:
        - y = x + x
    expect: {y: {value: [3.0], requires_grad: false}, x: {version: 0}}
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def written(text: str) -> list[Case]:
    return parse_cases(f"topic: T\n{text}", "t.yaml", RULES)


def statuses(engine: Engine, text: str) -> dict[str, str]:
    return {case.id: engine.run(request_of(case))["status"] for case in written(text)}


def test_there_is_a_case_for_each_program() -> None:
    product, square = written(PROGRAMS + CASES)
    assert product.id == "backward-or-grad-on-product"
    assert product.title == "Both agree: a product that broadcasts"
    assert (product.why, product.rules, product.topic) == ("They do the same", ("a.b",), "T")
    assert (product.torch, product.dtypes) == ("<2.14", ())
    assert (square.torch, square.dtypes) == ("<2.14,>=2.0", ("float32", "float64"))
    assert product.written_out
    assert product.line == square.line == 20


def test_it_is_written_as_a_person_would_write_it() -> None:
    assert (
        written(PROGRAMS + CASES)[1].text
        == """\
  - id: backward-or-grad-on-square
    title: "Both agree: a square"
    why: They do the same
    rules: [a.b]
    torch: "<2.14,>=2.0"
    dtypes: [float32, float64]
    steps:
      - |-
        def f(c):
            h = c * 1
            return h * c
      - g = tensor([2.0])
      - |-
        values = [tensor([1.5])]
        leaves, state, random = [], global_state(), torch.get_rng_state()
        plain = f(*values)
        drawn = torch.get_rng_state()
      - |-
        # backward
        c, = inputs = [x.clone().requires_grad_() for x in values]
        leaves += [('backward', weakref.ref(x)) for x in inputs]
        torch.set_rng_state(random)
      - {do: f(*inputs).backward(g), warns: none}
      - {do: "found = [x.grad for x in inputs]", warns: none}
      - expect:
          len(found): 1
          found[0]: 2 * c * g
          "[(u.dtype, u.layout) for u in found] == [(x.dtype, x.layout) for x in inputs]": true
          c: {is_leaf: true, requires_grad: true, version: 0, value: "values[0]"}
          g: {version: 0}
          "[x.grad for x in inputs if x.grad is not None and not x.grad.is_contiguous()]": []
          "[x.grad for x in inputs if x.grad is not None and x.grad.requires_grad]": []
          torch.equal(torch.get_rng_state(), drawn): true
          sorted(global_state().items() - state.items()): []
      - |-
        # autograd.grad
        c, = inputs = [x.clone().requires_grad_() for x in values]
        leaves += [('autograd.grad', weakref.ref(x)) for x in inputs]
        torch.set_rng_state(random)
      - {do: y = f(*inputs), warns: none}
      - {do: "found = autograd.grad(y, inputs, g)", warns: none}
      - expect:
          len(found): 1
          found[0]: 2 * c * g
          "[(u.dtype, u.layout) for u in found] == [(x.dtype, x.layout) for x in inputs]": true
          c: {is_leaf: true, requires_grad: true, version: 0, value: "values[0]"}
          g: {version: 0}
          "[x.grad for x in inputs if x.grad is not None]": []
          y: {value: plain, requires_grad: true}
          (y.dtype, y.layout) == (plain.dtype, plain.layout): true
          torch.equal(torch.get_rng_state(), drawn): true
          sorted(global_state().items() - state.items()): []
      - |-
        c = found = inputs = y = None
        if sorted({way for way, leaf in leaves if leaf() is not None}):
            collected = gc.collect()
      - {expect: {"sorted({way for way, leaf in leaves if leaf() is not None})": []}}
"""
    )


# What a way leaves behind, or does otherwise than backward(), and the subject that tells of it.
LEAVINGS = {
    "random numbers that are drawn": ("F.dropout(ones(2))", "torch.equal(torch.get_rng_state(), drawn)"),
    "a mode that is left on": ("autograd.set_detect_anomaly(True)", "sorted(global_state().items() - state.items())"),
    "a dtype that is left in force": (
        "torch.set_default_dtype(torch.float64)", "sorted(global_state().items() - state.items())",
    ),
    "a switch that is left on": (
        "torch.use_deterministic_algorithms(True)", "sorted(global_state().items() - state.items())",
    ),
    "an input that is written to": ("inputs[0].detach().add_(0)", "version"),
    "a weight that is written to": ("g.add_(0)", "g.version"),
    "a gradient that is accumulated": (
        "inputs[0].grad = ones_like(inputs[0])", "[x.grad for x in inputs if x.grad is not None]",
    ),
    "a result that is another one": ("y = y.detach()", "y.requires_grad"),
    "a result of another dtype": ("y = y.double()", "(y.dtype, y.layout) == (plain.dtype, plain.layout)"),
    "a gradient of another dtype": (
        "found = [u.double() for u in found]",
        "[(u.dtype, u.layout) for u in found] == [(x.dtype, x.layout) for x in inputs]",
    ),
    "a warning": ("warnings.warn('be careful')", "warns"),
    "an input that is kept": (
        "inputs[0].register_hook(lambda u, x=inputs[0].expand(2, *inputs[0].shape).grad_fn: None)",
        "sorted({way for way, leaf in leaves if leaf() is not None})",
    ),
}  # fmt: skip


@each("fault, subject", LEAVINGS.values(), ids=list(LEAVINGS))
def test_a_way_that_leaves_something_behind_fails(engine: Engine, fault: str, subject: str) -> None:
    way = "        - found = autograd.grad(y, inputs, g)\n"
    text = (PROGRAMS + CASES).replace(way, f"{way}        - {json.dumps(fault)}\n")
    for case in written(text):
        outcome = engine.run(request_of(case))
        assert outcome["status"] == "fail"
        assert subject in outcome["failures"][0]["path"]


def test_what_does_not_hold_of_a_way_is_suspended(engine: Engine) -> None:
    way = "        - found = autograd.grad(y, inputs, g)\n"
    leaving = (PROGRAMS + CASES).replace(way, f"{way}        - warnings.warn('be careful')\n")
    said = "    suspends:\n      warnings: {why: It warns., link: 'https://example.org'}\n"
    assert set(statuses(engine, leaving).values()) == {"fail"}
    assert set(statuses(engine, leaving.replace("    spellings:\n", f"{said}    spellings:\n")).values()) == {"pass"}


NOTING = """\
programs:
  - id: noting
    title: hooks that note their calls
    inputs: {a: [1.5, -2.0]}
    result: |
      h = a * 2
      if h.requires_grad:
          h.register_hook(lambda u: events.append("first"))
          h.register_hook(lambda u: events.append("second"))
      return h
    g: [1.0, -1.0]
    gradients: {a: 2 * g}
    events: [first, second]
"""


@each(
    "wrong",
    [
        ("lambda u: events.append('second')", "lambda u: None"),
        ("'second'", "'third'"),
        ("f(*inputs).backward(g)", "y = f(*inputs); y.backward(g / 2, retain_graph=True); y.backward(g / 2)"),
    ],
)
def test_hooks_that_are_called_otherwise_than_a_program_says_fail(engine: Engine, wrong: tuple[str, str]) -> None:
    text = (NOTING + CASES).replace('"', "'")
    assert set(statuses(engine, text).values()) == {"pass"}
    assert text.count(wrong[0]) == 1
    assert set(statuses(engine, text.replace(*wrong)).values()) == {"fail"}


def test_what_is_written_out_passes(engine: Engine) -> None:
    expected = {"backward-or-grad-on-product": "pass", "backward-or-grad-on-square": "pass"}
    assert statuses(engine, PROGRAMS + CASES) == expected
    assert statuses(engine, SHARED) == {"ways-to-double": "pass"}


@each(
    "right, wrong",
    [
        ("(g * b).sum(1, keepdim=True)", "(g * b).sum(1)"),
        ("2 * c * g", "2 * c"),
        ("inputs, g)", "inputs, 2 * g)"),
        ("found = [x.grad for x in inputs]", "found = [x.grad for x in inputs] + [None]"),
    ],
)
def test_whatever_is_wrong_with_one_spelling_fails(engine: Engine, right: str, wrong: str) -> None:
    text = PROGRAMS + CASES
    assert text.count(right) == 1
    assert "fail" in statuses(engine, text.replace(right, wrong)).values()


@each("wrong", ["y = x * 3", "y = x * 2; x.add_(1)", "y = x * ones(1, requires_grad=True) * 2"])
def test_each_spelling_is_held_to_what_they_have_in_common(engine: Engine, wrong: str) -> None:
    for right in ("y = x * 2", "y = x + x"):
        assert statuses(engine, SHARED.replace(right, wrong)) == {"ways-to-double": "fail"}


def test_programs_can_be_named() -> None:
    assert [case.id for case in written(PROGRAMS + CASES + "    programs: [square, product]\n")] == [
        "backward-or-grad-on-product", "backward-or-grad-on-square",
    ]  # fmt: skip


def test_programs_can_be_left_out() -> None:
    excepted = "    except: {square: It can't be written so.}\n"
    assert [case.id for case in written(PROGRAMS + CASES + excepted + OTHER)] == [
        "backward-or-grad-on-product", "weighted-on-product", "weighted-on-square",
    ]  # fmt: skip


def with_features(text: str) -> str:
    """Return PROGRAMS, followed by one more, of which each has features; product and other have one in common."""
    *_, square = text.partition("  - id: square")
    other = square.replace("a square", "another square")
    text = f"{text}  - id: other{other}"
    for name, features in {"product": "broadcast, reuse", "square": "elementwise", "other": "reuse"}.items():
        text = text.replace(f"  - id: {name}\n", f"  - id: {name}\n    features: [{features}]\n")
    return text


@each(
    "which, expected",
    [
        ("programs: [reuse]", ["product", "other"]),
        ("programs: [broadcast, square]", ["product", "square"]),
        ("except: {reuse: It can't be written so.}", ["square"]),
        ("except: {elementwise: It can't be written so., other: Nor this.}", ["product"]),
    ],
)
def test_programs_can_be_named_and_left_out_by_their_features(which: str, expected: list[str]) -> None:
    cases = written(with_features(PROGRAMS) + CASES + f"    {which}\n" + OTHER)
    assert [case.id for case in cases[: len(expected)]] == [f"backward-or-grad-on-{name}" for name in expected]


def test_a_case_is_covered_by_others_that_have_the_features_of_its_program() -> None:
    covered = {case.id for case in written(with_features(PROGRAMS) + CASES + OTHER) if case.is_covered}
    assert covered == {"backward-or-grad-on-other", "weighted-on-other"}
    assert not any(case.is_covered for case in written(PROGRAMS + CASES))  # each program is a feature of its own
    one_feature = PROGRAMS.replace("    title:", "    features: [reuse]\n    title:")
    assert sum(case.is_covered for case in written(one_feature + CASES + OTHER)) == 2


def test_shipped_cases_that_are_covered_have_no_feature_that_others_have_not() -> None:
    text = (shipped_cases() / "equivalences.yaml").read_text()
    document = yaml.safe_load(text)
    features = {program["id"]: set(program["features"]) for program in document["programs"]}
    run: dict[str, set[str]] = {}
    left: dict[str, set[str]] = {}
    for case in parse_cases(text, "equivalences.yaml", rules()):
        way, _, program = case.id.partition("-on-")
        if program in features:
            (left if case.is_covered else run).setdefault(way, set()).update(features[program])
    assert left
    assert all(features <= run[way] for way, features in left.items())


def test_the_digest_is_that_of_the_steps() -> None:
    first, second = (written(PROGRAMS + cases)[0] for cases in (CASES, f"# a comment\n{CASES}"))
    assert first.digest == second.digest
    changed = written(PROGRAMS.replace("[0.5, 3.0]", "[0.5, 2.0]") + CASES)
    assert [case.digest == old.digest for case, old in zip(changed, written(PROGRAMS + CASES), strict=True)] == [
        False, True,
    ]  # fmt: skip


@each("text", [PROGRAMS + CASES, SHARED])
def test_what_is_shown_is_the_case_with_its_lines(text: str) -> None:
    assert_shown(written(text), RULES)


@pytest.mark.slow
def test_what_is_shown_of_each_shipped_case_is_the_case_with_its_lines() -> None:
    assert_shown([case for case in all_cases() if case.written_out], rules())


def assert_shown(cases: list[Case], known: dict[str, Rule]) -> None:
    """Hold that the text that is shown of each case that is written out is read as that case."""
    assert cases
    for case in cases:
        assert case.written_out
        again = parse_at(case.text, case.line, case.file, known)
        assert (again.steps, again.digest, again.title) == (case.steps, case.digest, case.title), case.id


STEPS = """\
- a = ones(1)
- {do: a.sum(), raises: RuntimeError}
- {do: a.sum(), warns: w}
- when: {torch: ">=2.0", steps: [a.exp(), {do: a.log()}]}
- expect: {a: 1}
"""


def test_each_statement_of_a_quiet_step_gives_no_warning_and_a_note_stands_before_the_first() -> None:
    steps = read_document(STEPS, "t.yaml").value
    exp, log = {"do": "a.exp()", "warns": "none"}, {"do": "a.log()", "warns": "none"}
    assert [quiet(step).plain for step in steps] == [
        {"do": "a = ones(1)", "warns": "none"},
        {"do": "a.sum()", "raises": "RuntimeError", "warns": "none"},
        {"do": "a.sum()", "warns": "w"},
        {"when": {"torch": ">=2.0", "steps": [exp, log]}},
        {"expect": {"a": 1}},
    ]
    noted = [with_note(step, "# n\n").plain for step in steps]
    assert noted[0] == "# n\na = ones(1)"
    assert noted[1] == {"do": "# n\na.sum()", "raises": "RuntimeError"}
    assert noted[3] == {"when": {"torch": ">=2.0", "steps": ["# n\na.exp()", {"do": "a.log()"}]}}
    assert noted[4] == steps[4].plain
