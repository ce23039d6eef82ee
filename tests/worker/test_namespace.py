"""What the worker offers to cases: the vocabulary alone, seeded random numbers, results on the target's device."""

from __future__ import annotations

import inspect
import itertools
import linecache
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import each
from running import outcome_of_steps, running_engine

from conformance.language import versions, vocabulary
from conformance.worker import case_run, confinement, namespace
from conformance.worker.engine import Engine
from conformance.worker.factories import Layer, allowing_for_rounding
from conformance.worker.namespace import offer
from conformance.worker.sandbox import PLACE, Namespace, compile_step

DRAWS = {
    "rand": "rand(2, 3)",
    "rand of a tuple": "rand((2, 3))",
    "rand of a list": "torch.rand([2, 3])",
    "rand of a Size": "rand(torch.Size([2, 3]))",
    "randn": "randn(2, 3)",
    "randn of a tuple": "torch.randn((2, 3))",
    "rand_like": "rand_like(empty(2, 3))",
    "randn_like": "torch.randn_like(empty(2, 3))",
}
WHOLE = {
    "randint": "randint(100, (2, 3))",
    "randint from": "torch.randint(50, 100, (2, 3))",
    "randint_like": "randint_like(empty(2, 3), 100)",
    "randint_like from": "randint_like(empty(2, 3), 50, 100)",
    "randperm": "randperm(6).view(2, 3)",
}
MADE = [
    "tensor([1.0])", "as_tensor([1.0])", "asarray([1.0])", "ones(2)", "zeros((2, 3))", "full((2,), 1.0)", "arange(3)",
    "eye(2)", "empty(2)", "linspace(0, 1, 3)", "logspace(0, 1, 3)", "empty_strided((2,), (1,))",
    "torch.scalar_tensor(1.0)", "torch.tril_indices(2, 2)", "torch.triu_indices(2, 2)", "torch.hann_window(3)",
    "torch.ones(2)", "torch.tensor([1.0])", "ones_like(ones(2))", "rand(2)", "randn(2)", "randint(3, (2,))",
    "randperm(3)", "rand_like(ones(2))", "nn.Linear(2, 1).weight", "torch.nn.Linear(2, 1).bias",
    "nn.Sequential(nn.Linear(2, 1))[0].weight", "nn.Parameter(ones(2))", "Parameter(ones(2))",
    "nn.BatchNorm1d(2).running_mean", "nn.Embedding(3, 2).weight", "nn.Linear(2, 1)(ones(3, 2))",
    "nn.MSELoss()(ones(2), ones(2))", "torch.from_numpy(ones(2, device='cpu').numpy())",
]  # fmt: skip
ELSEWHERE = ["torch.range(0, 2)", "torch.normal(0.0, 1.0, (2,))", "torch.fft.fftfreq(3)",
             "torch.sparse_coo_tensor([[0]], [1.0], (2,))"]  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def drawn(dtype: torch.dtype, text: str, device: str = "cpu") -> Any:
    """Return what `text` draws with a generator that begins anew."""
    generator = torch.Generator()
    generator.manual_seed(0)
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return eval(text, {"__builtins__": offer(device, generator)})
    finally:
        torch.set_default_dtype(default)


def passes(engine: Engine, text: str, checks: str, device: str = "cpu", dtype: str = "float32") -> None:
    """Hold that what `text` makes has these checks."""
    outcome = outcome_of_steps(engine, f"- a = {text}\n- expect: {{a: {checks}}}\n", device, dtype)
    assert (outcome["status"], outcome.get("failures")) == ("pass", None)


def drifting(drift: float) -> Any:
    """Return a function that doubles, with a gradient that differs by `drift` from one run of backward to the next."""
    runs = itertools.count()

    def twice(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.register_hook(lambda gradient: None if gradient is None else gradient * (1 + drift * next(runs)))
        return y

    return twice


@each("check", [torch.autograd.gradcheck, torch.autograd.gradgradcheck])
def test_gradcheck_allows_for_rounding_on_devices_that_compile(check: Any) -> None:
    x = torch.tensor([1.0, -300.0], dtype=torch.float64, requires_grad=True)
    for device in ("cpu", "cuda:0"):
        assert allowing_for_rounding(check, types.SimpleNamespace(device=device)) is check
    checked = allowing_for_rounding(check, types.SimpleNamespace(device="npu:0"))
    for inputs in (x, (x,), [x]):
        assert checked(drifting(1e-15), inputs)


def test_gradcheck_allows_for_no_more_than_rounding() -> None:
    x = torch.tensor([1.0, -300.0], dtype=torch.float64, requires_grad=True)
    checked = allowing_for_rounding(torch.autograd.gradcheck, types.SimpleNamespace(device="npu"))
    assert not checked(drifting(1e-15), x, raise_exception=False)
    assert checked(drifting(1e-9), x, nondet_tol=1e-6)
    for function, options, told in (
        (drifting(1e-9), {}, "not reentrant"),
        (drifting(1e-15), {"nondet_tol": 0.0}, "not reentrant"),
        (lambda t: drifting(1e-15)(t) * t.detach(), {}, "Jacobian mismatch"),
    ):
        with pytest.raises(RuntimeError, match=told):
            checked(function, x, **options)


@each("text", [*DRAWS.values(), *WHOLE.values()], ids=[*DRAWS, *WHOLE])
def test_random_numbers_are_the_same_each_time(text: str) -> None:
    first = drawn(torch.float32, text)
    assert first.shape == (2, 3)
    assert drawn(torch.float32, text).tolist() == first.tolist()
    assert len(set(first.flatten().tolist())) > 3


@each("text", DRAWS.values(), ids=DRAWS)
@each("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_random_numbers_are_the_same_in_each_dtype_but_for_rounding(text: str, dtype: torch.dtype) -> None:
    narrow, wide = drawn(dtype, text), drawn(torch.float64, text)
    assert (narrow.dtype, wide.dtype) == (dtype, torch.float64)
    assert narrow.tolist() == wide.to(dtype).tolist()


@each("text", WHOLE.values(), ids=WHOLE)
def test_random_whole_numbers_are_the_same_in_each_default_dtype(text: str) -> None:
    assert drawn(torch.float32, text).tolist() == drawn(torch.float64, text).tolist()


@each("text", [*DRAWS.values(), *WHOLE.values()], ids=[*DRAWS, *WHOLE])
def test_random_numbers_can_be_made_on_another_device(text: str) -> None:
    made = drawn(torch.float32, text, device="meta")
    assert (made.device.type, made.shape) == ("meta", (2, 3))


@each("text", ["rand(2, 3)", "rand((2, 3))", "rand([2, 3])", "rand(torch.Size((2, 3)))"])
def test_a_size_is_a_tuple_or_numbers(text: str) -> None:
    assert drawn(torch.float32, text).tolist() == drawn(torch.float32, "rand(2, 3)").tolist()


def test_the_next_numbers_are_others() -> None:
    first, second = drawn(torch.float32, "(randn(3), randn(3))")
    assert first.tolist() != second.tolist()


def test_rand_is_between_nought_and_one_and_randn_around_nought() -> None:
    values, normal = drawn(torch.float64, "(rand(1000), randn(1000))")
    assert 0 <= values.min() < 0.01
    assert 0.99 < values.max() < 1
    assert abs(normal.mean()) < 0.1
    assert abs(normal.std() - 1) < 0.1


@each("text", ["rand(()).shape", "randn(()).shape", "rand([]).shape", "rand_like(ones(())).shape"])
def test_a_random_scalar_has_no_dimension(text: str) -> None:
    assert drawn(torch.float32, text) == ()


@each("name", ["rand", "randn", "torch.rand", "torch.randn"])
def test_requires_grad_is_honoured_and_the_result_a_leaf(engine: Engine, name: str) -> None:
    passes(engine, f"{name}(2, requires_grad=True)", "{requires_grad: true, is_leaf: true, grad_fn: null}")
    passes(engine, f"{name}(2)", "{requires_grad: false, is_leaf: true, version: 0}")
    passes(engine, f"{name}_like(ones(2), requires_grad=True)", "{requires_grad: true, is_leaf: true}")
    passes(engine, f"{name}_like(ones(2, requires_grad=True))", "{requires_grad: false, is_leaf: true}")


def test_dtype_and_device_are_honoured(engine: Engine) -> None:
    for name in ("rand", "randn"):
        passes(engine, f"{name}(2)", "{dtype: target, device: target}", dtype="float64")
        passes(engine, f"{name}(2, dtype=torch.float16)", "{dtype: float16}")
        passes(engine, f"{name}(2, dtype=torch.complex64)", "{dtype: complex64}")
        passes(engine, f"{name}(2, device='meta')", "{device: meta}")
        passes(engine, f"{name}(2, device='cpu')", "{device: cpu}", device="meta")
        passes(engine, f"{name}_like(ones(2, dtype=torch.float64))", "{dtype: float64}")
        passes(engine, f"{name}_like(ones(2), dtype=torch.float64)", "{dtype: float64}")
        passes(engine, f"{name}_like(ones(2, device='cpu'))", "{device: cpu}", device="meta")
        passes(engine, f"{name}_like(ones(2), device='cpu')", "{device: cpu}", device="meta")


def test_whole_numbers_are_int64_unless_the_case_says_otherwise(engine: Engine) -> None:
    passes(engine, "randint(3, (2,))", "{dtype: int64, device: target, requires_grad: false}")
    passes(engine, "randint(3, (2,), dtype=torch.int32)", "{dtype: int32}")
    passes(engine, "randint(3, (2,), device='cpu')", "{device: cpu}", device="meta")
    passes(engine, "randint(3, (2,), dtype=torch.float32, requires_grad=True)", "{requires_grad: true, is_leaf: true}")
    passes(engine, "randint_like(ones(2), 3)", "{dtype: float32}")
    passes(engine, "randperm(3)", "{dtype: int64, device: target}")
    passes(engine, "randperm(3, dtype=torch.int32, device='cpu')", "{dtype: int32, device: cpu}", device="meta")
    passes(engine, "randperm(4).sort().values", "[0, 1, 2, 3]")


def test_a_generator_of_the_case_is_drawn_from(engine: Engine) -> None:
    own = "rand(3, generator=Generator().manual_seed(7))"
    passes(engine, f"({own} == {own}).all()", "true")
    passes(engine, f"(rand(3) == {own}).any()", "false")


@each(
    "text", ["rand(size=(2,))", "randn(size=(2,))", "randint(3, size=(2,))", "randint(low=0, high=3, size=(2,))",
             "randperm(n=2)"],
)  # fmt: skip
def test_sizes_and_bounds_can_be_given_by_name(engine: Engine, text: str) -> None:
    passes(engine, text, "{shape: [2]}")


def test_a_random_tensor_has_the_strides_of_what_it_is_like(engine: Engine) -> None:
    assert torch.rand_like(torch.ones(2, 3).t()).stride() == (1, 3)
    passes(engine, "rand_like(ones(2, 3).t())", "{stride: [1, 3]}")


def test_a_random_tensor_can_be_written_into_another(engine: Engine) -> None:
    steps = "- o = zeros(3)\n- a = randn(3, out=o)\n- expect: {a: {is: o}}\n"
    assert outcome_of_steps(engine, steps)["status"] == "pass"


@each("text", MADE)
@each("device", ["cpu", "meta"])
def test_what_a_case_makes_is_on_its_device(engine: Engine, text: str, device: str) -> None:
    passes(engine, text, f"{{device: {device}}}", device=device)


@each("text", ELSEWHERE)
def test_what_other_factories_make_is_on_the_cases_device(engine: Engine, text: str) -> None:
    passes(engine, text, "{device: meta}", device="meta")


@each("text", ["ones(2, device='cpu')", "tensor([1.0], device='cpu')", "arange(3, device='cpu')"])
def test_a_device_that_the_case_names_wins(engine: Engine, text: str) -> None:
    passes(engine, text, "{device: cpu}", device="meta")


def test_a_device_that_the_case_names_for_a_layer_wins(engine: Engine) -> None:
    passes(engine, "nn.Linear(2, 1, device='cpu').weight", "{device: cpu}", device="meta")


@pytest.mark.parametrize("layer", [torch.nn.Linear, torch.nn.LSTM])
def test_a_layer_can_be_made_in_a_transform(layer: type) -> None:
    here = Layer(layer, types.SimpleNamespace(device="cpu"))  # moved by .data, as to an accelerator, if by nothing else
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    found: Any = torch.func.grad(lambda x: (x * len(list(here(2, 2).parameters()))).sum())(torch.ones(2))
    assert found.tolist() == [len(list(layer(2, 2).parameters()))] * 2
    assert torch.__future__.get_overwrite_module_params_on_conversion() is before


@each("device", ["cpu", "meta"])
def test_a_layer_is_an_instance_of_its_class(engine: Engine, device: str) -> None:
    steps = """
    - layer = nn.Linear(2, 1)
    - expect:
        layer: {type: Linear}
        isinstance(layer, nn.Linear): true
        isinstance(layer, (nn.ReLU, torch.nn.Linear)): true
        isinstance(layer, nn.Module): true
        isinstance(layer, nn.ReLU): false
        isinstance(1, nn.Linear): false
        layer.weight: {requires_grad: true, is_leaf: true, type: Parameter}
    """
    assert outcome_of_steps(engine, steps, device)["status"] == "pass"


def test_a_class_of_layers_has_its_methods_on_every_device(engine: Engine) -> None:
    text = "callable(nn.Linear.forward)"
    assert outcome_of_steps(engine, f"- a = {text}\n- expect: {{a: true}}\n", "cpu")["status"] == "pass"
    assert outcome_of_steps(engine, f"- a = {text}\n- expect: {{a: true}}\n", "meta")["status"] == "pass"


THREADS = {
    "what a function returns": "- 'y = in_thread(lambda a, b=1: a - b, 5, b=2)'\n- expect: {y: 3}\n",
    "what several return": "- 'y = in_threads(lambda: 1, lambda: 2)'\n- expect: {y: [1, 2]}\n",
    "no function": "- y = in_threads()\n- expect: {y: []}\n",
    "what a function raises": "- do: in_thread(zeros(2).view, 3)\n  raises: {type: RuntimeError, match: invalid}\n",
    "what the first raises": (
        "- do: 'in_threads(lambda: 1, lambda: 1 / 0, lambda: [][0])'\n"
        "  raises: {type: ZeroDivisionError, match: division}\n"
    ),
    "too many functions": (
        "- do: 'in_threads(*[lambda: 1] * 65)'\n  raises: {type: ValueError, match: at most 64 functions}\n"
    ),
    "the log": "- in_thread(log, 1)\n- in_thread(log, 2)\n- expect: {log: [1, 2]}\n",
    "a mode of its own": ("- |\n  with no_grad():\n    y = in_thread(torch.is_grad_enabled)\n- expect: {y: true}\n"),
}


@each("steps", THREADS.values(), ids=THREADS)
def test_a_case_has_threads(engine: Engine, steps: str) -> None:
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


def test_threads_that_cant_all_start_leave_none_behind(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    start, before = threading.Thread.start, threading.active_count()

    def start_some(thread: threading.Thread) -> None:
        if threading.active_count() >= before + 2:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    steps = "- do: 'in_threads(*[lambda: 1] * 3)'\n  raises: {type: RuntimeError, match: start new thread}\n"
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"
    assert threading.active_count() == before


def test_functions_in_threads_run_at_the_same_time(engine: Engine) -> None:
    steps = """
- |
  seen = []
  def meet(name):
      seen.append(name)
      for _ in range(10 ** 9):
          if len(seen) == 2:
              return name
- 'both = in_threads(lambda: meet(1), lambda: meet(2))'
- expect: {both: [1, 2]}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


@pytest.mark.slow
def test_functions_of_a_case_are_compiled_with_those_that_they_call(engine: Engine) -> None:
    steps = """
- |
  def double(t, by=2, *, plus=1):
      return F.relu(t) * by + plus
  def f(t):
      return double(t) + torch.sin(t)
- x = tensor([1.5, -2.0], requires_grad=True)
- y = compiled(f)(x)
- y.sum().backward()
- expect: {y: relu(x) * 2 + 1 + sin(x), x: {grad: 2 * (x > 0) + cos(x)}}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


@each("used", ["with torch.enable_grad():", "with enable_grad():", "for _ in range(1):"])
def test_methods_of_a_case_are_compiled_with_the_names_that_they_use(engine: Engine, used: str) -> None:
    steps = f"""
- |
  class Slope(autograd.Function):
      @staticmethod
      def forward(ctx, x):
          {used}
              y = torch.sin(x)
          ctx.save_for_backward(x)
          return y
      @staticmethod
      def backward(ctx, g):
          x, = ctx.saved_tensors
          {used}
              return g * torch.cos(x)
  class Scaled(nn.Module):
      def forward(self, x):
          {used}
              return F.relu(x) * torch.ones_like(x)
  scaled = Scaled()
  def f(t):
      return Slope.apply(t) + scaled(t)
- x = tensor([1.5, -2.0], requires_grad=True)
- y = compiled(f)(x)
- y.sum().backward()
- expect: {{y: sin(x) + relu(x), x: {{grad: cos(x) + (x > 0)}}}}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


def test_what_is_compiled_is_from_no_file_has_a_source_and_stands_in_one_module(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler reads the file that a function is from, if there is one, and may remember its module by its name.

    Of a function that has no source, it traces a wrapper.
    """
    (tmp_path / "t.yaml").write_text("it's no Python")
    monkeypatch.chdir(tmp_path)
    seen: list[Any] = []
    sources: list[str] = []

    def compile_(function: Any, backend: str) -> Any:
        assert backend == "aot_eager"
        seen.append(function)
        sources.append(inspect.getsource(function))
        assert inspect.getsourcefile(function) == function.__code__.co_filename
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    for _ in range(2):
        steps = """
- before = 1
- 'f = compiled(lambda t: (lambda u: u * 2)(t))'
- |
  def g(t):
      # A line of its own.
      return t * 3
  g = compiled(g)
- expect: {f(tensor(1.0)): 2.0, g(tensor(1.0)): 3.0}
"""
        assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"
    first, second = seen[0], seen[2]
    assert first.__globals__ is second.__globals__
    assert sources[:2] == [
        "f = compiled(lambda t: (lambda u: u * 2)(t))\n",
        "def g(t):\n    # A line of its own.\n    return t * 3\n",
    ]
    for code in (first.__code__, *(inner for inner in first.__code__.co_consts if hasattr(inner, "co_filename"))):
        assert code.co_filename.startswith("t.yaml")
        assert not Path(code.co_filename).exists()
        assert code.co_filename not in linecache.cache


def test_what_the_compiler_writes_has_a_type_function_for_all_objects(engine: Engine) -> None:
    """It asks for the types of what torch keeps, such as the hooks of a module."""
    steps = """
- x = tensor([1.0, 2.0], requires_grad=True)
- |
  class Scaling(nn.Module):
      def forward(self, t):
          return t * self.weight
  def f(t):
      layer = Scaling()
      layer.weight = Parameter(torch.full((2,), 3.0))
      return func.functional_call(nn.Sequential(layer), {"0.weight": t}, (t,))
- compiled(f)(x).sum().backward()
- expect: {x: {grad: 2 * x}}
- do: type(torch)
  raises: {type: TypeError, match: is not part of the language}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


def test_a_compiled_function_finds_a_name_as_the_case_has_it_by_now(engine: Engine) -> None:
    steps = """
- factor = 2
- |
  def scale(t):
      return t * factor
  fast = compiled(scale)
- x = tensor([1.5, -2.0], requires_grad=True)
- results = [fast(x)]
- factor = 3
- results.append(fast(x))
- |
  def scale(t):
      return t - factor
- expect: {"results[0]": {value: 2 * x}, "results[1]": {value: 3 * x}, fast(x): {value: 3 * x}}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


def test_a_case_finds_what_a_compiled_function_has_set(engine: Engine) -> None:
    steps = """
- calls = 0
- |
  def f(t):
      global calls, kept
      calls = calls + 1
      kept = t * calls
      return kept
- fast = compiled(f)
- x = tensor([1.5, -2.0], requires_grad=True)
- results = [fast(x), fast(x)]
- expect: {"results[0]": {value: x}, "results[1]": {value: 2 * x}, calls: 2, kept: {value: 2 * x}}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


def test_beside_what_is_compiled_a_name_that_is_not_set_is_not_pythons(engine: Engine) -> None:
    steps = """
- 'f = compiled(lambda t: t * 2)'
- |
  if len([]):
      input = 1
- {do: input(), raises: {type: NameError, match: input}}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"
    with pytest.raises(NameError, match="getattr"):
        compile_step("getattr(1, '__class__')", "t.yaml", 1)


def test_names_of_a_case_are_gone_in_the_next_like_the_compilers_or_not(engine: Engine) -> None:
    steps = "- 'left_1_c0 = other_1 = compiled(lambda t: t * 2)'\n- expect: {left_1_c0(ones(1)): 2}\n"
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"
    steps = """
- |
  if len([]):
      left_1_c0 = other_1 = 1
- {do: left_1_c0, raises: {type: NameError, match: left_1_c0}}
- {do: other_1, raises: {type: NameError, match: other_1}}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


def test_a_function_keeps_its_names_when_another_one_is_compiled(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_: partial(function))
    steps = """
- ones = tensor([2.0])
- 'first = compiled(lambda t: t * ones)'
- 'second = compiled(lambda t: t + 1)'
- expect: {"first(tensor([3.0]))": 6, "second(tensor([3.0]))": 4}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


@each("given", ["nn.Linear(1, 1)", "torch.sin", "checkpoint", "Tensor.sin", "1"])
def test_nothing_but_a_function_of_the_case_is_compiled(engine: Engine, given: str) -> None:
    steps = f"- do: compiled({given})\n  raises: {{type: TypeError, match: a function that the case has defined}}\n"
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


@each("options", ["backend='eager'", "backend=None", "mode='reduce-overhead'", "dynamic=True, disable=True"])
def test_a_case_chooses_among_few_compilers_and_options(engine: Engine, options: str) -> None:
    steps = f"""
- do: "compiled(lambda t: t * 2, {options})"
  raises: {{type: TypeError, match: takes one of aot_eager}}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


def test_a_compiler_is_given_its_options(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def compile_(function: Any, **options: Any) -> Any:
        given.append(options)
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    steps = """
- 'f = compiled(lambda t: t * 2, backend="aot_eager_decomp_partition", dynamic=True)'
- 'g = compiled(lambda t: t * 3, fullgraph=True)'
- expect: {f(tensor(1.0)): 2, g(tensor(1.0)): 3}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"
    assert given == [
        {"backend": "aot_eager_decomp_partition", "dynamic": True},
        {"backend": "aot_eager", "fullgraph": True},
    ]


@each("path", ["program.forward", "program.state_dict()", "program.parameters()"])
def test_what_is_exported_is_a_function_that_autograd_records_and_nothing_else(engine: Engine, path: str) -> None:
    steps = f"""
- 'program = exported(lambda t: t * t, zeros(2))'
- x = tensor([1.5, -2.0], requires_grad=True)
- program(x).sum().backward()
- expect: {{x: {{grad: 2 * x}}, program(x): x * x}}
- do: {path}
  raises: {{type: AttributeError, match: no attribute}}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


def test_a_worker_that_is_confined_starts_no_compiler(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "held", ["seccomp"])
    steps = "- 'f = compiled(lambda t: t * 2, backend=\"inductor\")'\n- expect: {f(tensor(1.0)): 2}\n"
    outcome = outcome_of_steps(engine, steps, "cpu")
    assert outcome["status"] == "unsupported"
    assert "the sandbox (seccomp) forbids it: Operation not permitted: a C++ compiler" in outcome["reason"]


@each(
    "switch, called",
    [
        ("TORCHDYNAMO_DISABLE=1", "compiled(lambda t: t * 2)"),
        ("PYTORCH_JIT=0", "jit.trace(lambda t: t * 2, ones(1))"),
    ],
)
def test_what_is_disabled_in_the_environment_is_unsupported(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, switch: str, called: str
) -> None:
    monkeypatch.setenv(*switch.split("="))
    outcome = outcome_of_steps(engine, f"- 'f = {called}'\n- expect: {{f(ones(1)): 2}}\n", "cpu")
    assert outcome["status"] == "unsupported"
    assert "a variable of the environment disables it" in outcome["reason"]


def test_each_operator_of_a_case_has_a_name_of_its_own(engine: Engine) -> None:
    steps = """
- |
  def refused(digit):
      try:
          custom_op(lambda x: x, f"{digit}(Tensor x) -> Tensor")
      except AttributeError:
          return True
- expect: {"[digit for digit in range(10) if not refused(digit)]": []}
- 'op = [custom_op(lambda x: x * 2, "(Tensor x) -> Tensor") for digit in range(100)][-1]'
- 'other = custom_op(lambda x: x * 3, "(Tensor x) -> Tensor")'
- expect: {op(ones(2)): 2, other(ones(2)): 3}
- do: 'custom_op(lambda x: x, "Tensor of x")'
  raises: {type: RuntimeError, match: expected}
"""
    for _ in range(2):
        assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


def test_no_frame_of_a_case_leads_to_lines_of_its_file(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler shows where a case called it, by lines that it reads as Python, and fails where they are none."""
    monkeypatch.chdir(tmp_path)
    Path("t.yaml").write_text("- none: of [this is Python\n" * 100, encoding="utf-8")
    made: list[types.CodeType] = []

    def noted(*arguments: Any) -> types.CodeType:
        made.append(compile_step(*arguments))
        return made[-1]

    monkeypatch.setattr(case_run, "compile_step", noted)
    steps = "- 'f = lambda t: [u * 2 for u in t]'\n- 'x = f(ones(2))'\n- expect: {len(x): 2}\n"
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"
    waiting = [*made]
    while waiting:
        code = waiting.pop()
        assert linecache.getlines(code.co_filename) == [], code
        waiting += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    assert len(made) == 2
    assert linecache.getlines("t.yaml")


def test_a_backend_that_wraps_its_compiler_at_each_use_wraps_it_once() -> None:
    def backend_of(**kwargs: Any) -> Any:
        def backend() -> int:
            inner = kwargs.get("bw_compiler") or (lambda: 0)
            kwargs["bw_compiler"] = lambda: inner() + 1
            return int(kwargs["bw_compiler"]())

        return backend

    backend = backend_of(fw_compiler=None)
    assert [backend(), backend()] == [1, 2]
    namespace.unnest(backend)
    assert backend() == 1
    kept = types.SimpleNamespace(kwargs={"fw_compiler": 1, "bw_compiler": 2})
    namespace.unnest(kept)
    assert kept.kwargs == {"fw_compiler": 1}
    namespace.unnest(len)


def test_what_the_compiler_sets_beside_functions_is_left_to_it(engine: Engine) -> None:
    steps = "- 'f = compiled(lambda t: t * 2)'\n- expect: {f(ones(1)): 2}\n"
    vars(PLACE).update({"__compiled_1": 1, "left_140737350_c0": 2})
    try:
        assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"
        assert (PLACE.__compiled_1, PLACE.left_140737350_c0) == (1, 2)
        assert not hasattr(PLACE, "f")
    finally:
        for name in ("__compiled_1", "left_140737350_c0"):
            delattr(PLACE, name)


def test_a_tensor_of_a_case_can_see_the_functions_that_it_is_given_to(engine: Engine) -> None:
    steps = """
- |
  class Watched(Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
      log(func is Tensor.sum, func is torch.exp)
      return super().__torch_function__(func, types, args, kwargs or {})
- x = tensor([1.0]).as_subclass(Watched)
- x.sum()
- torch.exp(x)
- expect: {log: [[true, false], [false, true]]}
"""
    assert outcome_of_steps(engine, steps, "cpu")["status"] == "pass"


@each("name", ["device", "forward"])
def test_a_class_of_layers_cant_be_changed_on_another_device(engine: Engine, name: str) -> None:
    passes(engine, "nn.Linear(2, 1).weight", "{device: meta}", device="meta")
    layer = vars(engine.runners["meta"].offered["nn"])["Linear"]
    before = dict(vars(layer))
    outcome = outcome_of_steps(engine, f"- L = nn.Linear\n- L.{name} = 'cpu'\n- expect: {{int(2): 2}}\n", "meta")
    vars(layer).clear()
    vars(layer).update(before)
    assert outcome["status"] == "error"


def holds(since: str) -> bool:
    return versions.holds(f">={since}", torch.__version__)


@each("device", ["cpu", "meta"])
def test_each_name_of_the_vocabulary_is_there_if_this_torch_should_have_it(device: str) -> None:
    offered = offer(device, torch.Generator())
    of_each_case = {"log", "dtype"}
    missing = [name for name, since in vocabulary.NAMES.items() if holds(since) and name not in offered]
    assert set(missing) - of_each_case == set()


@each("path", vocabulary.NAMESPACES)
def test_a_namespace_holds_its_vocabulary_and_nothing_else(path: str) -> None:
    root, *rest = f"torch.{path}".split(".") if path.startswith(("utils", "ops")) else path.lstrip("_").split(".")
    space = offer("cpu", torch.Generator())[root]
    for name in rest:
        space = getattr(space, name)
    assert isinstance(space, Namespace)
    inner = {name for name in vars(space) if isinstance(vars(space)[name], Namespace)}
    assert {name for name in inner if vocabulary.inner(path, name) is None} == set()
    held = vars(space).keys() - inner - {"__name__"}
    known = vocabulary.NAMESPACES[path]
    assert held - known.keys() == set()
    assert {name for name, since in known.items() if holds(since)} - held - inner == set()


def test_nothing_is_offered_beyond_the_vocabulary() -> None:
    offered = offer("cpu", torch.Generator())
    checks = {"__base__", "__own__", "__readable__", "__writable__", "__shown__", "__type__"}
    inside = {"__import__", "__build_class__", *checks}
    assert offered.keys() - vocabulary.NAMES.keys() - vocabulary.NAMESPACES["torch"].keys() == inside


def test_a_namespace_that_lacks_a_name_says_so() -> None:
    space = offer("cpu", torch.Generator())["torch"]
    assert repr(space) == "<torch>"
    with pytest.raises(AttributeError, match=r"^this torch has no torch\.load$"):
        _ = space.load
    with pytest.raises(AttributeError, match=r"^torch\.sin belongs to the vocabulary and can't be set$"):
        space.sin = 1


def test_no_namespace_loads_the_compiler() -> None:
    """Each worker would load it, and reset it after each case; a build whose compiler fails would fail all of them."""
    text = (
        "import sys\n"
        "from conformance.language import vocabulary\n"
        "from conformance.worker.namespace import real_module\n"
        "for path in vocabulary.NAMESPACES:\n"
        "    real_module(path)\n"
        "    assert 'torch._dynamo' not in sys.modules, path\n"
    )
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
