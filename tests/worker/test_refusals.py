"""What a case may do with functions that take names stays possible, and what leads out of the language is refused.

Attempts to get out by them stand in `attempts.py`.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from loops import each
from running import outcome_of_steps, running_engine
from torch import nn
from torch._dynamo import trace_rules
from torch.fx.experimental.proxy_tensor import make_fx as make_fx_itself
from torch.nn.utils import parametrize, prune

from conformance.worker.namespace import kind_of
from conformance.worker.refusals import (
    EVALUATOR,
    EvaluatorFinder,
    close_ways_out,
    may_be_tensor,
    of_class,
    refusing,
)
from conformance.worker.sandbox import MODULE

PRUNE = refusing("nn.utils.prune", vars(prune))
UTILS = refusing("nn.utils", vars(nn.utils))
PARAMETRIZE = refusing("nn.utils.parametrize", vars(parametrize))


def linear() -> nn.Linear:
    return nn.Linear(2, 2)


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_tensors_of_a_module_are_named_as_anywhere() -> None:
    module = linear()
    PRUNE["identity"](module, "weight")
    assert PRUNE["is_pruned"](module)
    PRUNE["remove"](module, "weight")
    PRUNE["global_unstructured"]([(module, "weight"), (module, "bias")], PRUNE["L1Unstructured"], amount=2)
    assert {name for name, _ in module.named_buffers()} == {"weight_mask", "bias_mask"}
    normed = UTILS["weight_norm"](linear(), name="weight")
    assert isinstance(UTILS["remove_weight_norm"](normed).weight, nn.Parameter)
    parametrized = linear()
    PARAMETRIZE["register_parametrization"](parametrized, tensor_name="weight", parametrization=nn.Identity())
    PARAMETRIZE["register_parametrization"](parametrized, "weight", nn.Identity())  # by now it is computed
    PARAMETRIZE["remove_parametrizations"](parametrized, "weight")
    assert not hasattr(parametrized, "parametrizations")


class Text(str):
    """What equals the name of a tensor when it is looked at, and may be another later."""


@each("name", ["training", "forward", "_parameters", "__dict__", "in_features", "inner", Text("weight"), None])
def test_what_is_no_tensor_is_not_handed_out_by_its_name(name: Any) -> None:
    module = linear()
    module.inner = linear()
    calls: tuple[Callable[[], object], ...] = (
        lambda: PRUNE["identity"](module, name),
        lambda: PRUNE["identity"](module, name=name),
        lambda: PRUNE["global_unstructured"]([(module, name)], PRUNE["L1Unstructured"], amount=1),
        lambda: UTILS["weight_norm"](module, name),
        lambda: PARAMETRIZE["register_parametrization"](module, name, nn.Identity()),
    )
    for call in calls:
        with pytest.raises(TypeError, match="a case"):
            call()


def test_a_name_that_nothing_has_is_an_error_of_torchs_own() -> None:
    with pytest.raises(AttributeError):
        PRUNE["identity"](linear(), "weigth")


def test_a_tensor_that_is_computed_is_not_computed_to_look_at_it() -> None:
    class Computed(nn.Module):  # type: ignore[misc]
        @property
        def weight(self) -> torch.Tensor:
            raise AssertionError("it is computed")

    assert not may_be_tensor(Computed(), "weight")


def square(t: torch.Tensor) -> torch.Tensor:
    return t * t


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_tracers_trace_in_the_main_thread_alone() -> None:
    trace = refusing("jit", {"trace": torch.jit.trace})["trace"]
    make_fx = refusing("fx.experimental.proxy_tensor", {"make_fx": make_fx_itself})["make_fx"]
    made = make_fx(square)
    assert "mul" in str(trace(square, torch.ones(2)).graph)
    assert made(torch.ones(2))(torch.full((2,), 3.0)).tolist() == [9.0, 9.0]
    for call in (lambda: trace(square, torch.ones(2)), lambda: make_fx(square), lambda: made(torch.ones(2))):
        with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match=r"a case can't call .* in a thread"):
            pool.submit(call).result()


@each("number", [0, -1, 17, 10**9, 2.0, True, None])
def test_a_case_uses_a_few_threads(number: Any) -> None:
    begin = torch.get_num_threads()
    put = refusing("torch", {"set_num_threads": torch.set_num_threads})["set_num_threads"]
    with pytest.raises(ValueError, match="1 to 16 threads"):
        put(number)
    assert torch.get_num_threads() == begin
    put(begin % 16 + 1)
    assert torch.get_num_threads() == begin % 16 + 1
    torch.set_num_threads(begin)


def test_memory_of_references_is_not_that_of_numbers() -> None:
    make = refusing("torch", {"asarray": torch.asarray})["asarray"]
    numbers = torch.tensor([1.0, 2.0]).double().numpy()
    assert make(numbers.data, dtype=torch.float64).tolist() == [1.0, 2.0]
    assert make(obj=[1, 2], dtype=torch.int64).tolist() == [1, 2]
    with pytest.raises(TypeError, match="references to objects"):
        make((numbers + torch.tensor([1.0, 2.0]).numpy().astype(object)).data, dtype=torch.int64)


@pytest.mark.skipif(not hasattr(torch.func, "rearrange"), reason="since 2.13")
def test_axes_are_rearranged_as_plain_numbers_say() -> None:
    rearrange = refusing("func", {"rearrange": torch.func.rearrange})["rearrange"]
    assert rearrange([torch.ones(2), torch.zeros(2)], "a b -> (b a)", a=2).tolist() == [1.0, 0.0, 1.0, 0.0]
    own: Any = type("Own", (torch.Tensor,), {"__module__": MODULE})
    refused: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((torch.ones(1).as_subclass(own), "... -> ..."), {}),
        (([torch.ones(1).as_subclass(own)], "... -> ..."), {}),
        ((torch.ones(1), "a -> a"), {"a": True}),
        ((torch.ones(1), torch.ones(1)), {}),
    ]
    for given, lengths in refused:
        with pytest.raises(TypeError, match="tensors of torch's own classes, a text, and lengths"):
            rearrange(*given, **lengths)


def test_sympy_executes_no_text() -> None:
    close_ways_out()
    sympy = importlib.import_module("sympy")
    assert sympy.sympify("x0") == sympy.Symbol("x0")
    assert float(sympy.sympify("-2.5e3")) == -2500.0
    assert sympy.sympify("E") == sympy.E
    assert sympy.sympify("(x0 + 1) / 2") == (sympy.Symbol("x0") + 1) / 2
    calls = ("print(1)", "lambdify (1)", "(x)(1)", "__import__('os')", "(1).__class__", "x.args", "(x) .args", "[1]")
    for text in (*calls, "eval", "1 + eval", "'x'"):
        with pytest.raises(ValueError, match="a case can't give sympy a text to execute"):
            sympy.sympify(text)


def test_the_evaluator_is_guarded_when_it_is_imported_later() -> None:
    spec = EvaluatorFinder().find_spec(EVALUATOR, importlib.import_module("sympy.parsing").__path__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(ValueError, match="a text to execute"):
        module.parse_expr("print(1)")
    assert EvaluatorFinder().find_spec("sympy.core", None) is None


def test_the_node_of_a_symbolic_number_is_not_a_case_s() -> None:
    steps = """
        - |
          def f(x):
              return x * (x.shape[0] / 2).node.round(1)
        - fx.experimental.proxy_tensor.make_fx(f, tracing_mode='symbolic')(ones(5))
        - expect: {int(2): 2}
    """
    with running_engine() as engine:
        told = str(outcome_of_steps(engine, steps))
    assert "a case can't use node of 'SymFloat'" in told


def test_segments_are_summed_but_not_without_the_checks_of_their_bounds() -> None:
    reduce = refusing("torch", {"segment_reduce": torch.segment_reduce})["segment_reduce"]
    lengths = torch.tensor([1, 2])
    assert reduce(torch.ones(3), "sum", lengths=lengths).tolist() == [1.0, 2.0]
    assert reduce(torch.ones(3), "sum", lengths=lengths, unsafe=False).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="a case can't switch off the checks"):
        reduce(torch.ones(3), "sum", lengths=lengths, unsafe=True)


def test_a_schedule_neither_gives_nor_takes_its_state() -> None:
    """LambdaLR gives all attributes of a class that it calls, and takes some for any object."""
    steps = """
        - weights = [tensor([1.0], requires_grad=True)]
        - optimizer = optim.SGD(weights, lr=0.1)
        - 'one = optim.lr_scheduler.LambdaLR(optimizer, [lambda epoch: 0.5])'
        - other = optim.swa_utils.SWALR(optimizer, swa_lr=0.5)
        - plateau = optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        - row = optim.lr_scheduler.SequentialLR(optimizer, [one, one], [1])
        - every = [one, other, plateau, row]
        - |
          def refused(f):
              try:
                  f()
              except TypeError as error:
                  return "the state of a schedule" in str(error)
        - expect:
            '[refused(each.state_dict) for each in every]': [true, true, true, true]
            '[refused(lambda: each.load_state_dict({})) for each in every]': [true, true, true, true]
            'len(optimizer.state_dict())': 2
        """
    with running_engine() as engine:
        outcome = outcome_of_steps(engine, steps)
    assert outcome["status"] == "pass", outcome


def test_hooks_of_a_copy_are_those_of_the_class() -> None:
    class Known:
        def __deepcopy__(self, memo: dict[int, Any]) -> str:
            return "a copy"

    thing, other = Known(), linear()
    assert of_class(thing, "__deepcopy__")({}) == "a copy"
    vars(other)["__deepcopy__"] = lambda _: "not asked"
    assert of_class(other, "__deepcopy__", None) is None
    assert of_class(Known, "__deepcopy__") is Known.__deepcopy__
    with pytest.raises(AttributeError):
        of_class(other, "__deepcopy__")


def test_the_compiler_leaves_the_look_up_of_these_hooks_alone() -> None:
    assert not trace_rules.check(of_class)
    with running_engine():
        assert trace_rules.check(vars(copy)["getattr"])


def test_a_distribution_is_expanded_into_a_distribution_alone() -> None:
    normal = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    into = torch.distributions.Normal(torch.zeros(1), torch.ones(1))
    with running_engine():
        assert normal.expand([3, 2]).batch_shape == (3, 2)
        assert normal.expand([3, 2], into).batch_shape == (3, 2)
        for thing in (linear(), ValueError("no distribution")):
            with pytest.raises(TypeError, match="a case can't expand into"):
                normal.expand([3, 2], thing)


def told(steps: str) -> str:
    """Return how a case ends: its status, or the type and the text of its error."""
    with running_engine() as engine:
        outcome = outcome_of_steps(engine, steps)
    return str(outcome["failures"][0]["observed"] if outcome["status"] == "error" else outcome["status"])


@each("given", ["str(1)", "dict(key=ones(2))", "2", "[ones(2)]"])
def test_an_exported_program_is_given_tensors_alone(given: str) -> None:
    steps = f"- 'exported(lambda x, other: x * 2, ones(2), {given})'\n- expect: {{ones(1): 1.0}}"
    assert told(steps) == "TypeError: exported() takes tensors as inputs"


def test_a_traced_program_is_a_function() -> None:
    traced = "- 'g = fx.experimental.proxy_tensor.make_fx(lambda x: x * 2)(ones(2))'\n"
    assert told(f"{traced}- expect: {{'g(tensor([3.0]))': 6.0, 'isinstance(g, nn.Module)': false}}") == "pass"
    assert told(f"{traced}- g.note = 1\n- expect: {{g: 1}}").startswith("AttributeError: a case can't change")


def test_the_type_of_what_torch_makes_of_a_graph_is_not_shown() -> None:
    assert kind_of(linear()) is nn.Linear
    of_a_back_end: Any = type("Tensor", (torch.Tensor,), {"__module__": "toy.tensor"})
    tensor = torch.ones(1).as_subclass(of_a_back_end)
    assert kind_of(torch.ones(1)) is kind_of(tensor) is torch.Tensor
    assert kind_of(nn.Parameter(torch.ones(1))) is kind_of(nn.Parameter(tensor)) is nn.Parameter
    with pytest.raises(TypeError, match="type\\(\\) of '<lambda>' is not part of the language"):
        kind_of(make_fx_itself(lambda t: t.sin())(torch.ones(1)))


def test_an_override_is_not_asked_how_a_tensor_is_copied_with_others() -> None:
    steps = """
        - |
          class A(Tensor):
              @classmethod
              def __torch_function__(cls, func, types, args=(), kwargs=None):
                  log(len(args))
                  return super().__torch_function__(func, types, args, kwargs)
        - |
          def copied():
              m = nn.Module()
              m.own = zeros(1).as_subclass(A)
              try:
                  optim.swa_utils.AveragedModel(m)
              except RuntimeError:
                  pass
        - copied()
        - expect: {log: []}
        """
    assert told(steps) == "pass"


def test_orthogonal_takes_no_other_map_than_its_own() -> None:
    orthogonal = refusing("nn.utils.parametrizations", vars(nn.utils.parametrizations))["orthogonal"]
    assert parametrize.is_parametrized(orthogonal(linear(), "weight", "cayley"), "weight")
    for given in ("__getattribute__", "mro", Text("cayley")):
        with pytest.raises(ValueError, match="a case can't give orthogonal\\(\\) another orthogonal_map"):
            orthogonal(linear(), orthogonal_map=given)


def test_a_traced_module_that_a_hook_of_all_modules_is_given_stays_as_it_is() -> None:
    hooked = """
        - |
          kept = []
          class A(object):
              meta = 1
          g = fx.experimental.proxy_tensor.make_fx(lambda x: x * 2)(ones(2))
          h = nn.modules.module.register_module_forward_pre_hook(lambda m, x: kept.append(m))
          y = g(ones(2))
          h.remove()
        """
    assert told(f"{hooked}- expect: {{len(kept): 1, 'deepcopy(kept[0])(ones(2))': 2.0}}") == "pass"
    for step, refused in (
        ("'kept[0].meta = 1'", "AttributeError: a case can't change"),
        ("'log(kept[0].meta)'", "AttributeError: '<lambda>' has no attribute 'meta' that this case has given it"),
        ("'pickled([1, kept[0]])'", "TypeError: a case can't pickle '<lambda>'"),
    ):
        assert told(f"{hooked}- {step}\n        - expect: {{y: 2.0}}").startswith(refused)
