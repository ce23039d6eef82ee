"""The text of a script: what stands in it and what can't, and how it reads."""

from __future__ import annotations

import ast
import builtins
import re
import types
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import each
from running import case_of
from samples import report
from scripts import run_script
from shipped import all_cases, spread

from conformance.language import versions, vocabulary
from conformance.model.build import BackEnd
from conformance.model.case import Case
from conformance.render.script import carried, script
from conformance.render.script.carried import AFTER, BACKENDS, BEFORE, MODULES, PIECES, REGISTRY, WORKER, name_of
from conformance.render.script.script import SNIPPETS, script_of, snippets_for
from render.script.test_script_outcomes import OTHERS, PASSES

# Names of the parts that mean in them what they mean in a case.
SAME = frozenset(
    """torch warnings copy functools math types log pickled in_thread in_threads compiled exported custom_op derivatives
    global_state in_mode wrapped unwrapped""".split()
)


def body_of(steps: str) -> str:
    return script_of(case_of(steps)).body


def test_a_script_reads_as_plain_torch() -> None:
    body = body_of(
        """
        - a = tensor([1.0], requires_grad=True)
        - b = a.sigmoid()
        - expect:
            b: {is_leaf: false, version: 0, grad_fn: SigmoidBackward0}
            a: {grad: null}
        - do: b.view(3)
          raises: {type: RuntimeError, match: [shape, "'[3]'"]}
        - when: {torch: ">= 1.13, < 2.20",
                 steps: [b.sum().backward()]}
        - expect:
            a: {grad: a.sigmoid() * (1 - b)}
            a.grad.sum(): {value: {torch: {"<2.0": 1, ">=2.0": b * (1 - b)}}}
        """
    )
    assert (
        body
        == """
# c: t
# w
# Rules: a.b
# From t.yaml, line 3. Where autograd does as these rules say, it ends with 'pass'.
from torch import tensor
if DEVICE != "cpu":
    tensor = on_device(tensor, TARGET)

a = tensor([1.0], requires_grad=True)
b = a.sigmoid()
expect(check(11, "b", b, is_leaf=False, version=0, grad_fn="SigmoidBackward0"), check(12, "a", a, grad=None))
with must(raises=(14, "RuntimeError", "shape", "'[3]'")):
    b.view(3)
if torch_is(">=1.13,<2.20"):
    b.sum().backward()
expect(
    check(18, "a", a, grad=lambda: a.sigmoid() * (1 - b)),
    check(19, "a.grad.sum()", lambda: a.grad.sum(), value=by_torch({"<2.0": 1, ">=2.0": lambda: b * (1 - b)})),
)
stop("pass")
"""
    )


def test_scripts_know_how_the_devices_of_reports_come_to_torch() -> None:
    own = BackEnd(device="toy", modules=("toy_backend",), name="toy", setup="toy_backend:begin")
    others = [
        BackEnd(device="cpu", modules=("ipex",), name="a change of the CPU, which other columns test, too"),
        BackEnd(device="bad", modules=("os;__import__('evil')",), name="no name of a module"),
        BackEnd(device="bad", modules=("os",), name="no name of a function", setup="'''"),
        BackEnd(device="loaded", modules=(), name="what torch loads by itself"),
    ]
    text = snippets_for([report({}, backends=(own, *others))])["BACKENDS"]
    table: dict[str, Any] = {}
    exec(text, table)
    assert table["BACKENDS"]["toy"] == (["toy_backend"], "toy_backend:begin")
    assert table["BACKENDS"]["jax"] == (["torchax"], "torchax:enable_globally")
    assert not {"cpu", "bad", "loaded", "mps"} & table["BACKENDS"].keys()
    assert snippets_for([report({})]) is SNIPPETS


def test_a_script_of_flags_alone_is_short() -> None:
    made = script_of(case_of("- a = tensor([1.0])\n- expect: {a: {is_leaf: true, requires_grad: false, grad: null}}"))
    assert [part for part in made.parts if part.startswith("CHECKS[")] == [
        "CHECKS['is_leaf']", "CHECKS['requires_grad']", "CHECKS['grad']",
    ]  # fmt: skip
    assert {"evaluated", "must", "torch_is", "seeded", "in_threads"}.isdisjoint(made.parts)
    assert len(made.text.splitlines()) <= 680


def test_the_parts_of_a_script_stand_before_its_body() -> None:
    made = script_of(case_of(PASSES["a module"]))
    assert made.text == "".join(SNIPPETS[name] for name in made.parts) + made.body
    assert made.text.startswith("# One case of the autograd conformance suite in plain torch")


def test_every_part_is_text_that_can_stand_in_a_script() -> None:
    texts = [text for name, text in SNIPPETS.items() if name not in (BEFORE, AFTER)]
    assert all(text.endswith("\n") and "".join(text.split("\n")).isprintable() for text in texts)
    assert "'''" not in "".join(texts)
    assert not re.search("noqa|type: ignore|fmt: ", "".join(texts))


def without_types(node: ast.stmt) -> str:
    """Return what a definition says beside its types."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            inner.annotation = None
        elif isinstance(inner, ast.FunctionDef):
            inner.returns = None
            inner.body = [untyped(statement) for statement in inner.body]
    return ast.dump(untyped(node))


def untyped(node: ast.stmt) -> ast.stmt:
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return ast.Assign(targets=[node.target], value=node.value)
    return node


@pytest.mark.parametrize("module", MODULES)
def test_a_script_carries_what_the_worker_itself_runs(module: str) -> None:
    nodes = ast.parse((WORKER / f"{module}.py").read_text(encoding="utf-8")).body
    own = {name_of(node): without_types(node) for node in nodes if name_of(node) not in ("", REGISTRY, BACKENDS)}
    assert own
    assert own == {name: without_types(ast.parse(SNIPPETS[name]).body[0]) for name in own}


def test_every_name_of_the_parts_is_one_of_them_or_of_python() -> None:
    texts = [text for name, text in SNIPPETS.items() if name not in (BEFORE, AFTER)]
    nodes = [node for node in ast.walk(ast.parse("".join(texts))) if isinstance(node, ast.ClassDef)]
    bodies = [inner for node in nodes for inner in node.body]
    members = {inner.name for inner in bodies if isinstance(inner, ast.FunctionDef)}
    members |= {name_of(inner) for inner in bodies if isinstance(inner, ast.Assign)}
    known = {*PIECES, *dir(builtins), *members, "__module__", "__qualname__"}
    assert {name: piece.names - known for name, piece in PIECES.items() if piece.names - known} == {}


def test_two_definitions_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in ("one", "other"):
        (tmp_path / f"{module}.py").write_text('"""A module."""\n\n\ndef same():\n    return 1\n')
    monkeypatch.setattr(carried, "WORKER", tmp_path)
    monkeypatch.setattr(carried, "MODULES", ["one", "other"])
    with pytest.raises(ValueError, match=r"worker/other\.py: same is also defined in another module"):
        carried.read_pieces()


def test_a_script_that_cannot_be_written_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("- a = ones(2)\n- expect: {a: {is_leaf: true}}")
    monkeypatch.setattr(script, "script_of", Mock(side_effect=KeyError("no such\nthing")))
    made = script.script_for(case)
    assert "Where autograd does as these rules say" in made.text
    assert "# Traceback (most recent call last):" in made.text
    ran = run_script(made.text)
    assert ran.status == 1
    assert ran.verdicts == ["internal-error: the script can't be written: KeyError: 'no such\\nthing'"]


def test_a_check_that_no_script_knows_is_said_in_the_script() -> None:
    case = case_of("- a = ones(2)\n- expect: {a: {is_leaf: true}}")
    step = {**case.steps[1], "expect": [{**case.steps[1]["expect"][0], "checks": [["is_nice", True, 9]]}]}
    made = script.script_for(replace(case, steps=(case.steps[0], step)))
    verdict = "internal-error: the script can't be written: KeyError: \"CHECKS['is_nice']\""
    assert verdict in [node.value for node in ast.walk(ast.parse(made.text)) if isinstance(node, ast.Constant)]


def is_python_3_8(cases: list[Case]) -> None:
    """Hold it of the scripts of cases; a part that stands in several of them is looked at once."""
    texts = {}
    for case in cases:
        made = script_of(case)
        if BEFORE in made.parts:  # the beginning of a definition that has all others in it
            texts[made.text] = case.id
        else:
            texts[made.body] = case.id
            for of_table, names in groupby(made.parts, lambda name: name == "}" or name.startswith("CHECKS")):
                parts = [SNIPPETS[name] for name in names]
                texts |= dict.fromkeys(["".join(parts)] if of_table else parts, case.id)
    for text, name in texts.items():
        ast.parse(text, name, feature_version=(3, 8))
        assert "\t" not in text, name
        assert all(line.isprintable() for line in text.splitlines()), name


@each("steps", [*PASSES.values(), *OTHERS.values()], ids=[*PASSES, *OTHERS])
def test_a_script_is_python_3_8(steps: str) -> None:
    is_python_3_8([case_of(steps)])


@pytest.mark.slow
def test_the_script_of_each_shipped_case_is_python_3_8() -> None:
    is_python_3_8(list(spread(1500, all_cases())))


def test_no_part_has_a_name_of_the_vocabulary_in_another_meaning() -> None:
    shared = frozenset().union(*[piece.names for piece in PIECES.values()]) & vocabulary.NAMES.keys()
    assert shared <= vocabulary.PYTHON | vocabulary.EXCEPTIONS | SAME


NUMBERS = st.integers(0, 30)
RELEASE = st.lists(NUMBERS, min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
PHASE = st.sampled_from(["", "a0", "b2", "rc1", ".rc0", "-alpha3", "_beta", "c4", "pre5", ".preview"])
POST = st.sampled_from(["", ".post1", "-2", ".r3", "rev4", ".post"])
DEVELOPMENT = st.sampled_from(["", ".dev1", ".dev20260101", "dev", "-dev3"])
LOCAL = st.sampled_from(["", "+cpu", "+git1a2b3c4", "+cu130.with.pypi"])
EPOCH = st.sampled_from(["", "", "", "0!", "1!"])
PUBLIC = st.tuples(EPOCH, RELEASE, PHASE, POST, DEVELOPMENT).map("".join)
TORCH = st.one_of(
    st.tuples(PUBLIC, LOCAL).map("".join),
    st.tuples(NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["-custom build", ".x", "+not~local", "a0+git!"])).map(
        lambda parts: f"{parts[0]}.{parts[1]}.{parts[2]}{parts[3]}"
    ),
)
SIGN = st.sampled_from(versions.OPERATORS)
BOUND = st.one_of(
    st.tuples(SIGN, RELEASE).map("".join), st.tuples(SIGN, PUBLIC).map("".join), PUBLIC.map("==%s+cpu".__mod__)
)
CONDITION = st.lists(BOUND, min_size=1, max_size=3).map(", ".join)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(condition=CONDITION, version=TORCH, near=st.booleans())
def test_a_script_knows_its_torch_as_the_suite_does(condition: str, version: str, near: bool) -> None:
    if near:  # the bound itself, or a build of it
        version = re.split(r"[<>=!]+\s*", condition)[-1].partition("+")[0] + version.partition("+")[1] + "x"
        version = version if "+" in version else version[:-1]
    made = script_of(replace(case_of("- a = 1\n- expect: {a: 1}"), torch=condition))
    names: dict[str, Any] = {"re": re, "torch": types.SimpleNamespace(__version__=version)}
    exec(SNIPPETS["torch_is"], names)
    bounds = re.search(r'torch_is\("(.*)"\)', made.body)
    assert bounds is not None
    assert names["torch_is"](bounds[1]) == versions.holds(condition, version)


@pytest.mark.slow
def test_a_case_for_other_builds_ends_before_its_imports() -> None:
    case = replace(
        case_of("- a = func.vmap(sin)(ones(2))\n- expect: {a: 1}"),
        torch=">=1.13",
        devices=("cuda",),
        dtypes=("float64",),
    )
    body = script_of(case).body
    stops = [line.strip() for line in body.splitlines() if "unsupported" in line]
    assert (
        stops
        == [
            'stop("unsupported: needs torch >=1.13")',
            'stop("unsupported: needs a device of cuda")',
            'stop("unsupported: needs a dtype of float64")',
            'stop("unsupported: needs torch >=2.0 for func")',
            'stop("unsupported: needs torch >=2.0 for func.vmap")',
        ][: len(stops)]
    )
    assert body.index("unsupported") < body.index("from torch import")
    assert run_script(script_of(replace(case, torch="<1.13")).text).verdicts == ["unsupported: needs torch <1.13"]
    assert run_script(script_of(case).text).verdicts == ["unsupported: needs a device of cuda"]
    assert run_script(script_of(replace(case, devices=())).text).verdicts == ["unsupported: needs a dtype of float64"]


@each(
    "steps, lines",
    [
        ("- a = tensor([1.0]).sigmoid()", ["from torch import tensor"]),
        ("- a = sigmoid(tensor([1.0]))", ["from torch import sigmoid, tensor"]),
        ("- a = torch.zeros(2)", []),
        ("- a = F.relu(nn.Linear(1, 1)(zeros(1, 1)))", [
            "from torch import nn, zeros", "from torch.nn import functional as F",
        ]),
        ("- a = checkpoint(torch.utils.checkpoint.noop_context_fn)", [
            "import torch.utils.checkpoint", "from torch.utils.checkpoint import checkpoint",
        ]),
        ("- a = fwAD.make_dual(math.pi, deepcopy(partial))", [
            "import math", "from copy import deepcopy", "from functools import partial",
            "from torch.autograd import forward_ad as fwAD",
        ]),
        ("- a = 'sin(x)'", []),
        ("- a = 'tan'; b = f'{cos(1.0)}'", ["from torch import cos, tan"]),
        ("- mean = torch.ones(2, std=1) if 0 else 1\n- a = mean", []),
        ("- a = mean(torch.ones(1))\n- mean = a", ["from torch import mean"]),
        ("- 'a = [t for t in [1]]; b = (lambda std: std)(1)'\n- |\n  def f(norm):\n      return norm", []),
        ("- a = max(1, len([2])); b = RuntimeError", []),
        ("- when: {torch: '>=2.0', steps: [a = vmap(sin)]}\n- a = cos", [
            "from torch import cos", "    from torch import sin, vmap",
        ]),
    ],
)  # fmt: skip
def test_a_script_imports_what_its_case_uses_and_no_more(steps: str, lines: list[str]) -> None:
    text = body_of(f"{steps}\n- expect: {{a: 1}}")
    assert [line for line in text.splitlines() if "import " in line] == lines


HOSTILE = [
    "quotes ' and \" and ''' and \"\"\" and \\",
    "a line\nimport os",
    "return\rimport os",
    "separator\u2028import os\u2029\x85\x0b\x0c",
    "right to left \u202e\u2066\u200f\u061c",
    "\x00\x1b[2J\x7f",
    "{braces} %s %(x)s {{}}",
    "\ud800 half",
    "# \\",
]


@pytest.mark.slow
@each("text", HOSTILE)
def test_text_of_a_case_stays_where_it_is_put(text: str) -> None:
    case = case_of(
        "- do: a = ones(2).view(3)\n  raises: {type: RuntimeError, match: x}\n- a = 1\n- expect: {a: {type: int}}"
    )
    do, _, expect = case.steps
    do = {**do, "raises": [{**do["raises"][0], "match": [text]}]}
    expect = {**expect, "expect": [{**expect["expect"][0], "checks": [["type", text, 9]]}]}
    made = script_of(
        replace(case, title=text, why=text, file=text, id=text, rules=(text,), steps=(do, case.steps[1], expect))
    ).text
    assert all(line.isprintable() for line in made.split("\n"))
    shape = re.compile(r"\b(Import|Expr|With|Assign|If)\b")
    plain = script_of(replace(case, steps=case.steps)).text
    assert shape.findall(dump(made)) == shape.findall(dump(plain))
    assert [node.value for node in ast.walk(ast.parse(made)) if isinstance(node, ast.Constant)].count(text) == 2
    ran = run_script(made)
    assert ran.outcome[0] == "fail"
    assert ran.output.isascii()


def dump(text: str) -> str:
    return " ".join(type(node).__name__ for node in ast.parse(text).body)


@each(
    "text",
    [
        "class A(object):\n    gi_frame = f_builtins = 1\n(x for x in [1]).gi_frame.f_builtins",
        "class A(object):\n    tofile = 1\nzeros(1).numpy().tofile('PATH')",
        "class A(object):\n    share_memory_ = 1\nzeros(1).share_memory_()",
        "class A(object):\n    load = 1\nT = torch\nT.load('PATH')",
        "class A(object):\n    system = os = 1\nT = torch\nT.os.system('touch PATH')",
        "class A(object):\n    system = sys = 1\nlog([w.sys for w in [warnings]])",
        "class A(object):\n    format = 1\n'{0.__class__}'.format(zeros(1))",
        "class A(object):\n    tofile = 1\nzeros(1).numpy().\uff54ofile('PATH')",
        "class A(object):\n    tofile = 1\nzeros(1).numpy(). \\\n  tofile('PATH')",
        "class A(object):\n    tofile = 1\n(zeros(1).numpy(). # here\n  tofile('PATH'))",
    ],
)
def test_a_case_that_could_be_led_out_of_gets_no_script(text: str) -> None:
    lines = "\n".join(f"      {line}" for line in text.split("\n"))
    body = body_of(f"- |\n{lines}\n- expect: {{A: {{type: type}}}}")
    assert "PATH" not in body
    assert body.splitlines()[-2] == 'stop("error: an attribute that the case defines could lead out of it")'


def test_the_attributes_of_a_case_own_objects_are_no_way_out() -> None:
    assert "class Net" in body_of(PASSES["a module"])
