"""Expressions of expectations are evaluated on float64 CPU copies, never on the tensors under test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from loops import each
from running import case_of, request_of, running_engine

from conformance.worker.engine import Engine
from conformance.worker.namespace import offer
from conformance.worker.reference import References, reference_of
from conformance.worker.sandbox import MODULE, compile_text

OWN_MODULE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(full((1,), 2.0))
        self.amount = 3
    def forward(self, x):
        return x * self.scale
"""
OWN_OBJECT = "class C(object):\n    pass\nc = C()\nc.held = a"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def evaluated(text: str, **names: Any) -> Any:
    """Return what an expression means for the copies of these names."""
    offered = offer("cpu", torch.Generator())
    own = {"__name__": MODULE, "__builtins__": offered, "__offered__": offered, **names}
    return References(offered).evaluate(compile_text(text, "eval"), own)


def outcome_of(engine: Engine, before: list[str], *expected: str, dtype: str = "float32") -> dict[str, Any]:
    """Run a case with these statements and these entries of one expectation."""
    steps = [f"- {json.dumps(text)}" for text in before]
    steps += ["- expect:", *(f"    {entry}" for entry in expected)]
    return engine.run(request_of(case_of("\n".join(steps) + "\n"), dtype=dtype))


@each(
    "dtype, wide",
    [(torch.float16, torch.float64), (torch.bfloat16, torch.float64), (torch.float32, torch.float64),
     (torch.float64, torch.float64), (torch.complex64, torch.complex128), (torch.complex128, torch.complex128),
     (torch.int32, torch.int32), (torch.int64, torch.int64), (torch.bool, torch.bool)],
)  # fmt: skip
def test_a_copy_is_as_wide_as_can_be(dtype: torch.dtype, wide: torch.dtype) -> None:
    tensor = torch.ones(2, dtype=dtype)
    copied = reference_of(tensor)
    assert (copied.dtype, copied.device.type, copied.requires_grad) == (wide, "cpu", False)
    assert copied.tolist() == tensor.tolist()
    assert copied.data_ptr() != tensor.data_ptr()


def test_a_copy_is_detached_and_carries_a_copy_of_the_gradient() -> None:
    tensor = torch.tensor([1.0, 2.0], requires_grad=True)
    (tensor * tensor).sum().backward()
    copied = reference_of(tensor)
    assert (copied.requires_grad, copied.grad_fn, copied.grad.tolist()) == (False, None, [2.0, 4.0])
    assert (copied.dtype, copied.grad.dtype) == (torch.float64, torch.float64)
    assert tensor.grad is not None
    assert copied.grad.data_ptr() != tensor.grad.data_ptr()


def test_a_tensor_without_a_gradient_is_copied_without_one() -> None:
    assert reference_of(torch.ones(2)).grad is None


def test_a_sparse_tensor_is_copied_dense() -> None:
    copied = reference_of(torch.tensor([[0.0, 2.0]]).to_sparse())
    assert (copied.layout, copied.dtype, copied.tolist()) == (torch.strided, torch.float64, [[0.0, 2.0]])


def test_an_expanded_tensor_is_copied_whole() -> None:
    tensor = torch.ones(1).expand(3)
    copied = reference_of(tensor)
    copied.add_(torch.arange(3))
    assert (copied.tolist(), tensor.tolist()) == ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])


def test_containers_are_copied_with_what_they_hold() -> None:
    tensor = torch.ones(2)
    held = {"a": [tensor, (tensor, 1)], "b": "text"}
    copied = reference_of(held)
    assert (type(copied), type(copied["a"]), type(copied["a"][1])) == (dict, list, tuple)
    assert (copied["a"][0].dtype, copied["a"][1][0].dtype) == (torch.float64, torch.float64)
    copied["a"][0].zero_()
    copied["a"].clear()
    assert (tensor.tolist(), len(held["a"])) == ([1.0, 1.0], 2)
    assert (copied["b"], reference_of(None), reference_of(3)) == ("text", None, 3)


def test_a_module_is_a_copy_in_double_precision() -> None:
    module = torch.nn.Linear(2, 1)
    copied = reference_of(module)
    assert (copied.weight.dtype, copied.weight.requires_grad) == (torch.float64, False)
    assert copied(torch.ones(1, 2, dtype=torch.float64)).dtype == torch.float64
    copied.weight.zero_()
    assert module.weight.dtype == torch.float32
    assert module.weight.abs().sum() > 0
    inner = reference_of(torch.nn.Sequential(module))[0]
    assert inner.weight.tolist() == module.weight.tolist()


@each(
    "text, expected",
    [("a.add_(1) * 2", [4.0, 6.0]), ("a.zero_()", [0.0, 0.0]), ("b[0].mul_(3)", [3.0, 6.0]),
     ("c['k'].neg_()", [-1.0, -2.0])],
)  # fmt: skip
def test_writing_in_place_changes_a_copy_only(text: str, expected: list[float]) -> None:
    tensor = torch.tensor([1.0, 2.0], requires_grad=True)
    version = tensor._version
    assert evaluated(text, a=tensor, b=[tensor], c={"k": tensor}).tolist() == expected
    assert (tensor.tolist(), tensor._version) == ([1.0, 2.0], version)


def test_writing_over_the_gradient_changes_a_copy_only() -> None:
    tensor = torch.tensor([1.0, 2.0], requires_grad=True)
    tensor.sum().backward()
    assert evaluated("a.grad.mul_(5)", a=tensor).tolist() == [5.0, 5.0]
    assert tensor.grad is not None
    assert tensor.grad.tolist() == [1.0, 1.0]


def test_what_compiling_puts_beside_the_variables_is_for_no_expectation() -> None:
    offered = offer("meta", torch.Generator())
    own = {"__name__": MODULE, "__builtins__": offered, "__offered__": offered}
    exec(compile_text("f = lambda: ones(2)", "exec"), own)
    assert offered["compiled"](own["f"])().device.type == "meta"
    assert own["ones"] is offered["ones"]
    expression = compile_text("ones(2).tolist()", "eval")
    assert References(offer("cpu", torch.Generator())).evaluate(expression, own) == [1.0, 1.0]


def test_an_expression_makes_double_precision_and_records_nothing() -> None:
    tensor = torch.ones(2, requires_grad=True)
    assert evaluated("(ones(2).dtype, dtype, device, a.dtype, (a * 2).requires_grad)", a=tensor) == (
        torch.float64, torch.float64, "cpu", torch.float64, False,
    )  # fmt: skip


def test_the_default_dtype_is_put_back_when_an_expression_raises() -> None:
    before = torch.get_default_dtype(), torch.is_grad_enabled()
    with pytest.raises(RuntimeError, match="invalid for input"):
        evaluated("ones(2).view(3)")
    assert (torch.get_default_dtype(), torch.is_grad_enabled()) == before


def test_an_expression_is_closer_than_the_dtype_of_the_case(engine: Engine) -> None:
    before = ["a = tensor([0.1, 0.2, 0.3])"]
    assert outcome_of(engine, before, "a: {value: a * 3 / 3, rtol: 0, atol: 0}")["status"] == "pass"
    outcome = outcome_of(engine, before, "a: {value: 'tensor([0.1, 0.2, 0.3])', rtol: 0, atol: 0}")
    assert outcome["status"] == "fail"
    assert outcome_of(engine, before, "a: {value: 'tensor([0.1, 0.2, 0.3])'}")["status"] == "pass"
    half = outcome_of(engine, before, "a: {value: 'tensor([0.1, 0.2, 0.3])'}", dtype="bfloat16")
    assert half["status"] == "pass"


def test_an_expectation_leaves_the_case_as_it_was(engine: Engine) -> None:
    before = ["a = tensor([1.0, 2.0], requires_grad=True)", "(a * a).sum().backward()", "b = [a]"]
    entries = (
        "a: {value: a.add_(5) - 5, grad: a.grad.mul_(2) / 2, version: 0}",
        "a + 0: {value: 'b[0].zero_() + tensor([1.0, 2.0])'}",
        "a * 1: [1, 2]",
        "a.grad: [2, 4]",
    )
    assert outcome_of(engine, before, *entries)["status"] == "pass"


def test_a_subject_is_the_live_object(engine: Engine) -> None:
    entries = ("a.dtype: torch.float32", "a: {is: b}", "(a * 2): {requires_grad: true, dtype: target}")
    assert outcome_of(engine, ["a = ones(2, requires_grad=True)", "b = a"], *entries)["status"] == "pass"


def test_a_module_of_the_case_can_be_called_and_read(engine: Engine) -> None:
    before = ["m = nn.Linear(2, 1)", "x = ones(3, 2)", "y = m(x)"]
    entries = ("y: {value: m(x)}", "m.weight: {value: m.weight * 1}", "y * 1: {value: 'x @ m.weight.t() + m.bias'}")
    assert outcome_of(engine, before, *entries)["status"] == "pass"


def test_calling_a_module_in_an_expression_runs_a_copy(engine: Engine) -> None:
    before = ["m = nn.BatchNorm1d(1)", "x = tensor([[1.0], [3.0]])"]
    entries = ("m.num_batches_tracked: {value: 'm(x).sum() * 0'}", "m.running_mean: 0")
    assert outcome_of(engine, before, *entries)["status"] == "pass"


def test_a_sequence_of_modules_can_be_gone_through(engine: Engine) -> None:
    before = ["m = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))"]
    assert outcome_of(engine, before, "int(2): 'len([x.weight for x in m])'")["status"] == "pass"


def case_with(name: str, before: list[str], *entries: str) -> Any:
    """Return the parameters of a case: its name, its statements and what is expected."""
    return name, before, entries


ONES = "a = ones(2)"


@each(
    "name, before, entries",
    [
        case_with("a name inside a generator can be named", [ONES], "a: 'list(a[i] for i in range(2))'"),
        case_with("a name inside a lambda can be named", [ONES], "a: '(lambda: a * 1)()'"),
        case_with("an attribute of a module's own can be named", [OWN_MODULE, "m = M()"], "m.scale: m.scale * 1"),
        case_with("a number of a module's own can be named", [OWN_MODULE, "m = M()"], "m.amount: m.amount + 0"),
        case_with("the length of a module can be taken", ["m = nn.Sequential(nn.ReLU())"], "len(m): len(m) + 0"),
    ],
)
def test_an_expression_can_say_what_a_step_can(
    engine: Engine, name: str, before: list[str], entries: tuple[str, ...]
) -> None:
    assert outcome_of(engine, before, *entries)["status"] == "pass", name


@each(
    "name, before, entries",
    [
        case_with(
            "the result of a function is a copy", ["r = torch.max(tensor([[1.0, 2.0]]), 0)"],
            "r.values: {value: r.values.add_(1) - 1}",
        ),
        case_with(
            "what a method of a module gives is a copy", ["m = nn.ReLU()", "m.weight = nn.Parameter(ones(2))"],
            "m.weight: {value: 'list(m.parameters())[0].add_(1) - 1'}",
        ),
        case_with(
            "what an ordered dict holds is a copy", ["m = nn.Linear(2, 1)", "s = m.state_dict()"],
            "m.weight: {value: 's[\"weight\"].add_(1) - 1'}",
        ),
    ],
)  # fmt: skip
def test_an_expression_reaches_nothing_live(
    engine: Engine, name: str, before: list[str], entries: tuple[str, ...]
) -> None:
    assert outcome_of(engine, before, *entries)["status"] == "pass", name


def test_what_an_expression_makes_lies_on_the_cpu_whatever_the_target(engine: Engine) -> None:
    steps = ["a = ones(3)", 'expect: {"len(a)": int(ones(3).sum()), "a.device.type": {text: meta}}']
    case = case_of("\n".join(f"- {step}" for step in steps))
    assert engine.run(request_of(case, device="meta"))["status"] == "pass"


class NeverCopied(torch.Tensor):  # type: ignore[misc]
    """A tensor whose device can't copy it."""

    def __deepcopy__(self, memo: object) -> torch.Tensor:
        raise NotImplementedError("clone")


FUNCTIONS = [
    "c = tensor([2.0, 3.0])",
    "def inner(x, by=c):\n    calls.append(1)\n    return x * by + tensor([1.0, 1.0])",
    "calls, outer = [], lambda x: inner(x) * c",
    "def makes(held):\n    return lambda x, *, by=held: x * by / held",
    "made = makes(c)",
    "def makes_more(f):\n    def g(x, n=2):\n        return f(x) if n == 0 else g(x, n - 1)\n"
    "    def unset():\n        return later\n    if f is None:\n        later = 1\n    return g, unset",
    "more, unset = makes_more(lambda x: x * tensor([1.0, 1.0]))",
]


def test_a_function_of_the_case_computes_with_copies_on_the_cpu_whatever_the_target(engine: Engine) -> None:
    for called in ("made()", "wrapped(made)()"):
        steps = [
            "a = ones(3)", "made = lambda: tensor([1.0, 2.0])", "wrapped = lambda f: lambda: f()",
            "held = wrapped(made)", {"expect": {"len(a)": f"int({called}.sum())", "len(a) + 0": "int(held().sum())"}},
        ]  # fmt: skip
        case = case_of("\n".join(f"- {json.dumps(step)}" for step in steps))
        assert engine.run(request_of(case, device="meta"))["status"] == "pass"


def test_a_function_that_an_expectation_calls_leaves_the_case_as_it_was(engine: Engine) -> None:
    found = outcome_of(
        engine,
        [*FUNCTIONS, "outer(c)"],
        "outer(c): 'tensor([10.0, 30.0])'",
        "made(c): made(c)",
        "len(calls): 2",
        "more(c): more(c)",
        "callable(unset): callable(unset)",
    )
    assert found["status"] == "pass", found


def test_a_module_is_copied_without_copying_on_its_device() -> None:
    module: Any = torch.nn.Sequential(torch.nn.LSTM(2, 3), torch.nn.Linear(3, 3, bias=False))
    module[1].tied = module[1].weight
    module[1].register_buffer("counts", torch.tensor([1, 2]))
    module.register_buffer("scale", torch.tensor([2.0]).as_subclass(NeverCopied))
    module[1].plain = (torch.tensor([3.0], requires_grad=True) * 2).as_subclass(NeverCopied)
    module[1].weight.grad = torch.ones(3, 3)
    copied = reference_of(module)
    assert copied.scale.tolist() == [2.0]
    assert copied[1].plain.tolist() == [6.0]
    assert copied[1].counts.dtype is torch.int64
    assert {tensor.dtype for tensor in copied.parameters()} == {torch.float64}
    assert not any(tensor.requires_grad for tensor in copied.parameters())
    assert copied[1].tied is copied[1].weight is not module[1].weight
    assert copied[1].weight.grad.tolist() == [[1.0] * 3] * 3
    made, wanted = copied[0](torch.ones(1, 2, dtype=torch.float64))[0], module[0](torch.ones(1, 2))[0]
    assert torch.allclose(made, wanted.double(), atol=1e-6)
    assert (module[1].weight.requires_grad, module[1].weight.dtype) == (True, torch.float32)


def test_a_lazy_module_is_copied_as_it_is() -> None:
    copied = reference_of(torch.nn.LazyLinear(2))
    assert torch.nn.parameter.is_lazy(copied.weight)


def test_a_complex_parameter_stays_complex() -> None:
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(torch.tensor([1 + 2j]))
    assert reference_of(module).weight.tolist() == [1 + 2j]
