"""A script comes to the outcome that the suite comes to: on every case, every check, every word of the language."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from running import FIRST, case_of, known_issues, request_of, running_engine, spoils_its_process
from scripts import run_script, run_scripts
from shipped import all_cases, spread, telling
from worker.test_checks import CHECKS

from conformance.execution.mutation import OPPOSITES, changed
from conformance.execution.program import why_unsupported
from conformance.model.build import Target
from conformance.model.case import Case
from conformance.render.script.script import script_of
from conformance.worker.engine import Engine

pytestmark = pytest.mark.slow

Outcome = tuple[str, list[tuple[int, str]]]

GRAD = "- a = tensor([1.0, 2.0], requires_grad=True)\n- (a * a).sum().backward()\n"
MULTIPLY = """
- |
  class Twice(autograd.Function):
      '''Multiplies by two.'''

      @staticmethod
      def forward(ctx, x, factor=2.0):
          ctx.save_for_backward(x)
          ctx.factor = factor
          return x * factor

      @staticmethod
      def backward(ctx, grad):
          (x,) = ctx.saved_tensors
          log("backward", grad, ctx.factor, ctx.needs_input_grad)
          return grad * ctx.factor, None
"""

# Steps that pass, for each word and corner of the language.
PASSES = {
    "what an expectation computes holds no variable": (
        "- a, b = ones(2), ones(2)\n- watched = weakref.ref(a), weakref.ref(b)\n- 'f = lambda: a * 1'\n"
        "- gc.collect()\n- expect: {a: b * 1, len(a): len(f())}\n- del a, b, f\n"
        "- expect: {'[held() is None for held in watched]': [true, true]}"
    ),
    "an attribute of a context under compiled autograd": """
- |
  class Scaled(Function):
      @staticmethod
      def forward(ctx, t, factor):
          ctx.factor = factor
          return t * factor
      @staticmethod
      def backward(ctx, grad):
          return grad * ctx.factor, None
- x = tensor([1.0, 3.0], requires_grad=True)
- |
  with in_mode("compiled-autograd"):
      Scaled.apply(x, 5).sum().backward()
- expect: {x: {grad: 5}}
""",
    "a custom function": MULTIPLY + """
- x = tensor([1.0, 3.0], requires_grad=True)
- y = Twice.apply(x)
- y.sum().backward()
- expect:
    y: {value: 2 * x, grad_fn: TwiceBackward, type: Tensor}
    x: {grad: 2}
    log: [[backward, [1.0, 1.0], 2.0, [true]]]
""",
    "a module": """
- |
  class Net(nn.Module):
      def __init__(self, width):
          super().__init__()
          self.lin = nn.Linear(3, width)
          self.register_buffer("scale", tensor(2.0))

      def forward(self, x):
          return F.relu(self.lin(x)) * self.scale
- net = Net(2)
- x = randn(4, 3)
- optimizer = optim.SGD(net.parameters(), lr=0.5)
- before = deepcopy(net)
- net(x).sum().backward()
- optimizer.step()
- expect:
    net.scale: {value: 2, requires_grad: false}
    net.lin.weight: {value: before.lin.weight - 0.5 * net.lin.weight.grad}
    isinstance(net, nn.Module): true
    isinstance(net.lin, nn.Linear): true
    net: {type: Net}
    len(list(net.parameters())): 2
    net.lin.bias: {grad: "2 * (x @ before.lin.weight.T + before.lin.bias > 0).sum(0)"}
""",
    "checkpoint": """
- x = tensor([1.0, 2.0], requires_grad=True)
- 'f = lambda t: (log("run"), t.exp().sin())[1]'
- y = checkpoint(f, x, use_reentrant=False)
- y.sum().backward()
- z = torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
- expect:
    x: {grad: cos(exp(x)) * exp(x)}
    z: {value: sin(exp(x))}
    log: [run, run, run]
""",
    "functions of functions": """
- 'g = func.grad(lambda x: (x * x).sum())'
- x = tensor([1.0, 2.0])
- 'rows = func.vmap(lambda row: row * 2)(ones(2, 3))'
- expect:
    g(x): {value: 2 * x}
    rows: 2
    func.jacrev(sin)(x): {value: diag(cos(x))}
    "torch.vmap(lambda row: row.sum())(ones(2, 3))": 3
""",
    "forward mode": """
- |
  with forward_ad.dual_level():
      dual = fwAD.make_dual(tensor([1.0, 2.0]), ones(2))
      primal, tangent = forward_ad.unpack_dual(dual * dual)
- expect:
    primal: [1, 4]
    tangent: {value: [2, 4]}
""",
    "for, if, with, del and def": """
- |
  total = tensor(0.0)
  for n in range(3):
      if n % 2 == 0:
          total = total + n
      else:
          with no_grad():
              total = total * 1
- |
  def square(x, *rest, power=2, **more):
      try:
          return x ** power
      except (TypeError, RuntimeError) as error:
          return error
- left, (right, *others) = 1, (2, 3, 4)
- del left
- (u := 3)
- expect:
    total: 2
    square(tensor(3.0)): 9
    others: [3, 4]
    "[n for n in others if n > 3]": [4]
    "{'a': int(1), 'b': [True, None]}": "{'b': [True, None], 'a': 1}"
    "f'{right} and {len(others)}'": {text: 2 and 2}
""",
    "names of the vocabulary that the case takes": """
- mean = ones(2).mean()
- norm = nn.LayerNorm(2)
- t = tensor([3.0])
- input = t * 2
- diff = torch.diff
- sin, exp = torch.cos, torch.sqrt
- expect:
    mean: 1
    t: [3]
    "[t.requires_grad for t in (input, mean)]": [false, false]
    "(lambda std: std + 1)(2)": 3
    sin(t * 0): 1
    diff(tensor([1.0, 3.0])): 2
""",
    "names on which the script itself depends": """
- check = tensor([1.0], requires_grad=True)
- expect, must, plain, wide, stop = 1, 2, 3, 4, 5
- copy = check * 2
- sum = copy.sum()
- list, str, isinstance, len, all, any, float, repr, ord = 1, 2, 3, 4, 5, 6, 7, 8, 9
- re, sys, types, warnings, DEVICE, DTYPE, CHECKS, EVENTS, seeded = 1, 2, 3, 4, 5, 6, 7, 8, 9
- log("x", rand(2).shape)
- sum.backward()
- do: copy.backward()
  raises: {type: RuntimeError, match: second time, torch: "<1.14"}
  torch: "<1.14"
- do: copy.sum().backward()
  raises: {type: RuntimeError, match: second time}
  warns: none
- expect:
    check: {grad: [2], value: 1}
    copy: {value: 2 * check, is_not: check}
    tensor([math.inf]): [.inf]
    "ord": 9
    log: [[x, [2]]]
""",
    "a nested expectation of a gradient": GRAD + """
- expect:
    a:
      grad: {value: 2 * a, layout: strided, shape: [2], dtype: target, requires_grad: false, is_not: a, atol: 0.001}
      grad_fn: null
      device: target
      is_leaf: true
""",
    "tolerances": GRAD + "- expect: {a: {value: [1.05, 2.0], grad: [2.1, 4], rtol: 0.1, version: 0}}\n",
    "a list with expressions": "- a = tensor([1.0, 2.0])\n- expect: {a: ['a[0]', 2], 'a * 1': {value: [1, 'a[1]']}}\n",
    "values by version": """
- a = tensor([1.0, 2.0], requires_grad=True)
- b = a * 2
- do: b.backward()
  raises:
    - {type: RuntimeError, match: [grad can be implicitly created, "only for\\n scalar  outputs"], torch: ">=2.0"}
    - {type: ValueError, match: never, torch: "<2.0"}
- expect:
    a: {value: {torch: {"<2.0.3": 0, ">=2.0.3": a * 1}}, grad: {torch: {"<2.0": null, ">=2.0": null}}}
    b:
      version: {torch: {"<2.20": 0, ">=2.20": 1}}
      view_of: {torch: {"<2.20": null, ">=2.20": a}}
      value: {torch: {"<2.0a1": [0], ">=2.0a1": [2, 'b[1]']}}
""",
    "steps by version": """
- when: {torch: "<1.14", steps: ["a = symeig(ones(2, 2))"]}
- when: {torch: ">=1.13", steps: [a = ones(2)]}
- expect: {a: 0}
  torch: "<1.14"
- expect: {a: 1}
  torch: ">=1.13"
- |
  b = 1
- when:
    torch: ">=1.13"
    steps:
      - |
        if b:
            b = '''one
            two'''
- expect: {"len(b)": 11}
""",
    "the target": """
- a = ones(2, dtype=dtype, device=device)
- b = full((2,), 3.0)
- expect:
    a: {dtype: target, device: target}
    b.dtype is dtype: true
""",
    "a round trip through pickle": "- a = pickled(tensor([1.0]))\n- expect: {a: [1], math.pi: 3.141592653589793}\n",
    "an empty block of warnings": """
- do: |
    import_free = ones(1)
    warnings.warn("two\\n  words", FutureWarning)
    warnings.warn("other")
  warns: {type: Warning, match: two words}
- do: 'with torch.autograd.detect_anomaly(): pass'
  warns: {type: UserWarning, match: Anomaly Detection has been enabled}
- do: a = ones(2); a.grad
  warns: none
- expect: {a: 1}
""",
    "text of all kinds": r"""
- 'a = "it''s \"quoted\" \\ \n # no comment"  # a comment'
- "b = 'left \u202e right \u2066'"
- "c = \"\"\"one\ntwo\"\"\""
- do: "def f():\n    raise ValueError('''one\n      two \u202e''')"
  raises: none
- do: "f()"
  raises: {type: ValueError, match: ["one two", "\u202e", {regex: "(?i)ONE\\s(two|three)"}]}
- "é = 'ünï'"
- expect:
    a: {text: "it's \"quoted\" \\ \n # no comment"}
    b: "'left \u202e right \u2066'  # a comment \u202e"
    "len(c) # )": 7
    "int(1), 2": [1, 2]
    é: {text: ünï}
    "(int(1),\n 2)": "(1, \n 2)"
""",
    "a list of all kinds": GRAD + "- expect: {'[a.grad, None, (1.5, a.shape)]': [[2, 4], null, [1.5, [2]]]}\n",
    "numbers that are none": """
- a = tensor([1.0, inf, -inf, nan])
- expect: {a: [1, .inf, -.inf, .nan], 'a[3]': .nan, a.dtype: {text: float32}, 'complex(inf, nan)': "complex(inf, nan)"}
""",
    "modules and factories in torch": """
- a = torch.nn.Linear(2, 3)
- b = torch.fft.fftfreq(4)
- c = fft.rfftfreq(4)
- d = torch.from_numpy(ones(2).numpy())
- e = torch.nn.functional.pad(torch.ones(2), (1, 0))
- f = nn.functional.relu(-d)
- nn.utils.parametrize.register_parametrization(a, "weight", nn.Identity())
- parametrize.remove_parametrizations(a, "weight")
- expect:
    a.weight: {shape: [3, 2], device: target}
    b: [0, 0.25, -0.5, -0.25]
    c: [0, 0.25, 0.5]
    d: {value: 1, device: target}
    e: [0, 1, 1]
    f: 0
    torch.linalg.norm(d): {value: math.sqrt(2)}
""",
}  # fmt: skip

# Steps that draw at random, and what they name.
RANDOM = """
- a, b = randn(3, requires_grad=True), torch.rand(2, 2)
- c, d = rand_like(b), torch.randn_like(a)
- e, f = randint(0, 10, (4,)), torch.randint_like(b, 5)
- g, h = torch.randperm(5), normal(0.0, 1.0, (2,))
- i, j = torch.normal(zeros(2), ones(2)), nn.Linear(2, 2).weight
- k, l = ones(8).bernoulli(0.5), F.dropout(ones(8))
- expect:
    a: {dtype: target, is_leaf: true, requires_grad: true, version: 0}
    d: {requires_grad: false, version: 0, device: target}
"""

# Steps that make tensors in all ways, on a device that is not the CPU.
PLACED = """
- made = [tensor([1.0]), torch.ones(2), randn(2), torch.rand_like(ones(2)), torch.fft.fftfreq(4), fft.rfftfreq(4)]
- made += [nn.Linear(2, 2).weight, torch.nn.Linear(2, 2).bias, torch.nn.Parameter(zeros(1))]
- made += [from_numpy(ones(1, device="cpu").numpy()), torch.randperm(3), normal(0.0, 1.0, (2,))]
- made += [torch.normal(zeros(2), ones(2)), torch.tensor([1], dtype=torch.int64)]
- kept = [zeros(1, device="cpu"), torch.randn(2, device="cpu"), nn.Linear(1, 1, device="cpu").weight]
- model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
- model(randn(3, 2)).sum().backward()
- expect:
    "[t.is_meta for t in made]": [true, true, true, true, true, true, true, true, true, true, true, true, true, true]
    "[t.is_meta for t in kept]": [false, false, false]
    model[0].weight: {device: target, is_leaf: true, grad: {shape: [2, 2], device: target}}
    device: {text: meta}
    isinstance(model[0], nn.Linear): true
"""

# Steps with what a device without data can't show or says in other words, and what comes of them there.
ELSEWHERE = {
    "nothing can be seen": ("- a = ones(2)\n- expect: {a.data_ptr(): 0}", "unsupported"),
    "the rest holds": ("- a = ones(2)\n- expect: {a.data_ptr(): 0, a: {shape: [2]}}", "pass"),
    "the rest does not hold": ("- a = ones(2)\n- expect: {a.data_ptr(): 0, a: {shape: [3]}}", "fail"),
    "an error is seen": ("- a = ones(2)\n- expect: {a.data_ptr(): 0}\n- {do: a + 1, raises: none}", "pass"),
    "memory is shared": ("- a = ones(2)\n- expect: {a.view(2): {shares_storage: a}}", "pass"),
    "runs of backward that round otherwise": ("""
- x = tensor([1.0], dtype=torch.float64, requires_grad=True, device="cpu")
- runs = []
- |
  def twice(x):
      y = x * 2
      y.register_hook(lambda g: None if g is None else g * (1 + 1e-15 * (runs.append(1) or len(runs))))
      return y
- expect: {"gradcheck(twice, x)": true, "autograd.gradgradcheck(twice, x)": true}
""", "pass"),
    "another kernel's words": (
        "- {do: 'ones(2, 3) @ ones(2, 3)', raises: {type: ValueError, match: {kernel: x}}}", "pass",
    ),
    "words that are no kernel's": (
        "- {do: 'ones(2, 3) @ ones(2, 3)', raises: {type: ValueError, match: x}}", "fail",
    ),
}  # fmt: skip

# Steps that do not pass, each in its own way.
OTHERS = {
    "an error that nothing expects": "- a = ones(2)\n- a.view(3)\n- expect: {a: 1}",
    "an error in a def": "- |\n  def f():\n      return ones(2).view(3)\n- f()\n- expect: {f: null}",
    "an error that does not come": "- do: a = ones(2)\n  raises: {type: RuntimeError, match: x}",
    "an error that no pattern matches": (
        "- do: ones(2).view(3)\n  raises: {type: RuntimeError, match: {regex: '^invalid'}}"
    ),
    "another error": "- do: ones(2).view(3)\n  raises: {type: RuntimeError, match: something else}",
    "an error of another class": "- do: ones(2).view(3)\n  raises: {type: IndexError, match: shape}",
    "an error where none may come": "- do: ones(2).view(3)\n  raises: none",
    "a warning that does not come": "- do: a = ones(2)\n  warns: {type: UserWarning, match: x}",
    "another warning": "- do: warnings.warn('y')\n  warns: {type: UserWarning, match: x}",
    "a warning of another class": "- do: warnings.warn('x')\n  warns: {type: FutureWarning, match: x}",
    "a warning where none may come": "- do: warnings.warn('x')\n  warns: none",
    "an error in a step that is to warn": "- do: ones(2).view(3)\n  warns: {type: UserWarning, match: x}",
    "neither error nor warning": (
        "- do: a = 1\n  raises: {type: RuntimeError, match: x}\n  warns: {type: UserWarning, match: y}"
    ),
    "the error and not the warning": (
        "- do: ones(2).view(3)\n  raises: {type: RuntimeError, match: shape}\n  warns: {type: UserWarning, match: y}"
    ),
    "several failures in one step": (
        "- a = ones(2)\n- expect:\n    a: {value: 2, version: 1,\n      shape: [3]}\n    a.sum(): 3\n    a.view(3): 1"
    ),
    "the first step that fails ends it": "- a = ones(2)\n- expect: {a: 2}\n- expect: {a: 3}\n- a.view(3)",
    "a subject that raises": "- a = ones(2)\n- expect: {'a.view(3)': 1, 'a.grad.sum()': 1}",
    "a check of what is no tensor": "- a = None\n- expect: {a: {grad: null, is_leaf: true, type: NoneType}}",
    "a reference that raises": f"{GRAD}- expect: {{a: {{value: 'a.view(3)', grad: 'a.view(7)'}}}}",
    "a sum of what is too long to show": "- a = ones(3000)\n- expect: {a: 2}",
    "a build without a library": (
        "- |\n  def f():\n      raise RuntimeError('requires compiling PyTorch with X')\n- f()\n- expect: {f: null}"
    ),
    "a build without a library where another error is due": (
        "- |\n  def f():\n      raise RuntimeError('not compiled with X')\n"
        "- do: f()\n  raises: {type: RuntimeError, match: y}"
    ),
    "what only another device may lack": (
        "- |\n  def f():\n      raise RuntimeError(\"'x' not implemented for 'Half'\")\n- f()\n- expect: {f: null}"
    ),
    "the end of a generator": "- |\n  def f():\n      raise GeneratorExit\n- f()\n- expect: {f: null}",
    "StopIteration": "- next(iter([]))\n- expect: {int(1): 1}",
    "StopIteration where a warning is due": "- do: next(iter([]))\n  warns: {type: UserWarning, match: x}",
    "an error with half a character": (
        "- |\n  def f():\n      raise ValueError(half)\n- half = '\\ud800'\n- f()\n- expect: {f: 1}"
    ),
}
FAULTS = {
    "detach that copies": "torch.Tensor.detach = lambda self: self.clone().data",
    "sigmoid with the gradient of another function": (
        "plain = torch.Tensor.sigmoid\n"
        "class Wrong(torch.autograd.Function):\n"
        "    forward = staticmethod(lambda ctx, x: plain(x))\n"
        "    backward = staticmethod(lambda ctx, grad: grad)\n"
        "torch.Tensor.sigmoid = Wrong.apply"
    ),
    "zero_ that doesn't count": "torch.Tensor.zero_ = lambda self: (self.data.fill_(0), self)[1]",
    "retain_grad that does nothing": "torch.Tensor.retain_grad = lambda self: None",
    "no_grad that does nothing": "import contextlib\ntorch.no_grad = contextlib.nullcontext",
    "an addition that raises": "def add(*args):\n    raise RuntimeError('no')\ntorch.Tensor.__add__ = torch.add = add",
}  # fmt: skip


# The first that there were, from notebooks; planted faults are known to touch them.
@cache
def old() -> list[Case]:
    return [case for case in telling() if case.source and not case.source[0].startswith("https:")]


def some(first: int) -> list[Case]:
    """Return the old cases, and every 60th of the others from the `first` on."""
    return [*old(), *[case for case in that_end() if case not in old()][first::60]]


@cache
def that_end() -> list[Case]:
    """Return the cases but those that end their process, the suite's as well as a script's."""
    target = Target(device="cpu", dtype="float32")
    return [case for case in telling() if not spoils_its_process(case, target)]


PARTS = 2  # so that several processes can share the work


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def outcome_in_suite(engine: Engine, case: Case, device: str = "cpu", dtype: str = "float32") -> Outcome:
    if why_unsupported(case, Target(device=device, dtype=dtype), torch.__version__):
        return "unsupported", []
    outcome = engine.run(request_of(case, device, dtype))
    failures = outcome["failures"] if outcome["status"] == "fail" else []
    return outcome["status"], [(failure["line"], failure["path"]) for failure in failures]


def outcomes_alone(cases: Sequence[Case], *arguments: str, before: str = "") -> list[Outcome]:
    return [ran.outcome for ran in run_scripts([script_of(case).text for case in cases], *arguments, before=before)]


def compare(engine: Engine, cases: dict[str, Case], device: str = "cpu", dtype: str = "float32") -> dict[str, Outcome]:
    """Return the outcomes of cases after making sure that suite and scripts agree on all of them."""
    alone = dict(zip(cases, outcomes_alone(list(cases.values()), device, dtype), strict=True))
    assert alone == {name: outcome_in_suite(engine, case, device, dtype) for name, case in cases.items()}
    return alone


def test_the_checks_of_the_suite_leave_a_compiler_no_guards_of_classes(engine: Engine) -> None:
    """A compiled function is as stale in the suite as in a script, which has none of the suite's checks."""
    named = "class-that-is-changed-between-calls-of-a-compiled-function-"
    cases = {case.id: case for case in all_cases() if case.id.startswith(named)}
    assert len(cases) == 6
    compare(engine, cases)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_shipped_case_comes_to_the_outcome_of_the_suite(engine: Engine, part: int) -> None:
    outcomes = compare(engine, {case.id: case for case in spread(200, that_end())[part::PARTS]})
    known = {entry.case for entry in known_issues().entries}
    assert {name for name, (status, _) in outcomes.items() if status not in ("pass", "unsupported")} <= known


@pytest.mark.parametrize(
    ("device", "dtype", "first"), [("cpu", "float64", 0), ("cpu", "bfloat16", 15), ("cpu:0", "float16", 30)]
)
def test_other_targets_come_to_the_outcome_of_the_suite(engine: Engine, device: str, dtype: str, first: int) -> None:
    outcomes = compare(engine, {case.id: case for case in some(first)}, device, dtype)
    assert "pass" in {status for status, _ in outcomes.values()}


def test_on_a_device_without_data_suite_and_script_agree(engine: Engine) -> None:
    cases = {case.id: case for case in old()[::8]} | {"placed": case_of(PLACED)}
    outcomes = compare(engine, cases, "meta")
    assert outcomes.pop("placed") == ("pass", [])
    assert {status for status, _ in outcomes.values()} == {"unsupported"}  # it says that it can't hand out data
    outcomes = compare(engine, {name: case_of(steps) for name, (steps, _) in ELSEWHERE.items()}, "meta")
    assert {name: status for name, (status, _) in outcomes.items()} == {name: row[1] for name, row in ELSEWHERE.items()}


def test_each_check_holds_and_fails_as_in_the_suite(engine: Engine) -> None:
    cases = {}
    for name, (before, holds, broken, *_) in CHECKS.items():
        for word, expected in (("holds", holds), ("broken", broken)):
            cases[f"{name} {word}"] = case_of(f"{before.strip()}\n- expect:\n    {expected}\n")
    outcomes = compare(engine, cases)
    assert {outcomes[f"{name} holds"][0] for name in CHECKS} == {"pass"}
    assert {outcomes[f"{name} broken"][0] for name in CHECKS} == {"fail"}


def broken(case: Case) -> Case:
    """Return a case with the last of its expectations changed so that it can't hold."""
    steps = copy.deepcopy(case.steps)
    anywhere = [step for step in steps if "torch" not in step]  # others may not be for the release that is installed
    step = [step for step in anywhere if step.keys() & {"expect", "raises", "warns"}][-1]
    if "expect" in step:
        check = [check for check in step["expect"][-1]["checks"] if check[0] not in ("rtol", "atol")][-1]
        check[:2] = [OPPOSITES[check[0]], check[1]] if check[0] in OPPOSITES else [check[0], changed(*check[:2])]
    for expected in [*step.get("raises", ()), *step.get("warns", ())]:
        expected.update(type="RuntimeError", match=[*expected["match"], "something else"])
    return replace(case, steps=steps)


def test_a_case_with_one_expectation_changed_fails_at_the_same_place(engine: Engine) -> None:
    chosen = [case for case in some(45) if engine.run(request_of(case, "cpu", "float32"))["status"] == "pass"]
    assert len(chosen) > 50
    outcomes = compare(engine, {case.id: broken(case) for case in chosen})
    assert {status for status, _ in outcomes.values()} <= {"fail", "unsupported"}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_script_draws_the_numbers_that_the_suite_draws(engine: Engine, dtype: str) -> None:
    names = "abcdefghijkl"
    wrong = case_of(RANDOM + "".join(f"    {name} * 1: -99\n" for name in names))
    seen = [failure["observed"] for failure in engine.run(request_of(wrong, "cpu", dtype))["failures"]]
    right = "".join(f"    {name} * 1: {{value: {seen[i]}, rtol: 1.0e-6}}\n" for i, name in enumerate(names))
    assert compare(engine, {"right": case_of(RANDOM + right)}, dtype=dtype) == {"right": ("pass", [])}


def test_each_word_of_the_language_passes_in_both(engine: Engine) -> None:
    cases = {name: case_of(text) for name, text in PASSES.items()}
    assert {name: status for name, (status, _) in compare(engine, cases).items()} == dict.fromkeys(PASSES, "pass")


def test_what_does_not_pass_does_not_pass_in_the_same_way(engine: Engine) -> None:
    cases = {name: case_of(text) for name, text in OTHERS.items()}
    outcomes = compare(engine, cases)
    assert "pass" not in {status for status, _ in outcomes.values()}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("NotImplementedError(\"'f' not implemented for 'Half'\")", "unsupported"),
        ("NotImplementedError('toy has no such kernel')", "error"),
        ("NotImplementedError()", "error"),
        ("NotImplementedError('You must implement the jvp function for Half')", "error"),
        ("RuntimeError('no kernel for Half')", "error"),
    ],
)
def test_what_the_cpu_lacks_in_half_precision_alone_is_unsupported(engine: Engine, error: str, status: str) -> None:
    case = case_of(f"- |\n  def f():\n      raise {error}\n- f()\n- expect: {{f: null}}")
    for dtype, wanted in (("float16", status), ("float32", "error")):
        assert compare(engine, {"c": case}, dtype=dtype)["c"][0] == wanted


def test_what_a_dtype_lacks_is_unsupported_in_both(engine: Engine) -> None:
    name = "what only another device may lack"
    assert compare(engine, {name: case_of(OTHERS[name])}, dtype="float16")[name] == ("unsupported", [])


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_in_torch_is_seen_by_both(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = outcomes_alone(old(), before=fault)
    names = ("detach", "sigmoid", "zero_", "retain_grad", "__add__")
    for owner, name in [*((torch.Tensor, name) for name in names), (torch, "no_grad"), (torch, "add")]:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    exec(fault, {"torch": torch})
    with running_engine() as engine:
        together = [outcome_in_suite(engine, case) for case in old()]
    assert alone == together
    assert len([status for status, _ in alone if status != "pass"]) > 1


def test_a_script_needs_nothing_but_torch_and_says_how_it_ended(tmp_path: Path) -> None:
    texts = {"pass": PASSES["a module"], "fail": OTHERS["another error"], "error": OTHERS["an error in a def"]}
    texts["unsupported"] = OTHERS["a build without a library"]
    for word, text in texts.items():
        path = tmp_path / "script.py"
        path.write_text(script_of(case_of(text)).text, encoding="utf-8")
        command = [sys.executable, "-I", str(path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stdout.splitlines()[-1].partition(":")[0] == word, done.stderr
        assert done.returncode == {"pass": 0, "fail": 1, "error": 1, "unsupported": 3}[word]
        assert ("Traceback" in done.stderr) is (word in ("error", "unsupported"))


def test_the_verdict_names_line_and_path_and_what_was_expected_and_seen() -> None:
    ran = run_script(script_of(case_of("- a = ones(2)\n- expect: {a: {version: 1, shape: [3]}}")).text)
    line = FIRST + 1
    assert ran.verdicts == [
        f"fail: line {line}, a.version: expected 1, observed 0",
        f"fail: line {line}, a.shape: expected [3], observed [2]",
    ]
