"""Right derivatives agree in all ways; each kind of wrong derivative is found by the way in which it shows."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from faulty import SHAPES, product, wrong_ways

from conformance.results.known_issues import ORDINARY
from conformance.worker import ways
from conformance.worker.derivatives import derivatives, why_missing
from conformance.worker.values import Unobservable

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")  # torch's own, when it is asked for tangents

EXPECTED = {
    "sign": "backward", "factor": "backward", "one lane": "backward", "at zero": "backward", "at ties": "backward",
    "large": "backward", "not summed": "backward", "size one": "backward", "second": "backward twice",
    "tangent": "forward mode", "layout": "memory", "incoming": "incoming gradients", "float32": "native dtype",
    "alone": "some inputs", "unsaved": "writes", "expanded": "memory", "gaps": "incoming gradients",
    "second in float32": "native dtype", "tangent in float32": "native dtype", "second incoming": "backward twice",
    "second alone": "backward twice", "third": "backward three times", "tangent alone": "some tangents",
    "second of one": "some inputs twice",
}  # fmt: skip


def test_right_derivatives_agree_in_all_ways() -> None:
    assert wrong_ways(product()) == set()


@pytest.mark.parametrize("fault", EXPECTED)
def test_each_kind_of_fault_is_found(fault: str) -> None:
    assert EXPECTED[fault] in wrong_ways(product(fault))


def test_what_all_inputs_show_is_not_told_again_of_some() -> None:
    found = derivatives(product("second"), SHAPES)
    assert found["backward twice"]
    assert (found["some inputs twice"], found.judged["some inputs twice"]) == ([], 0)


@pytest.mark.parametrize(("fault", "is_ordinary"), [("sign", True), ("at zero", False)])
def test_a_line_tells_whether_a_point_is_ordinary(fault: str, is_ordinary: bool) -> None:
    lines = derivatives(product(fault), SHAPES)["backward"]
    assert (ORDINARY in lines[0], any(ORDINARY in line for line in lines)) == (is_ordinary, is_ordinary)


@pytest.mark.parametrize("function", [torch.exp, torch.sigmoid, torch.relu, torch.abs, torch.floor, torch.sign])
def test_elementwise_functions_with_kinks_and_jumps_are_not_accused(function: Any) -> None:
    assert wrong_ways(function, {"x": "any"}) == set()


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (torch.matmul, {"a": ["n", "k"], "b": ["k", "m"]}),
        (torch.linalg.inv, {"x": {"invertible": ["n", "n"]}}),
        (lambda x: x.amax(1), {"x": ["n", "m"]}),
        (lambda x: x.prod(), {"x": ["n", "m"]}),
        (lambda x: x.norm(), {"x": ["n"]}),
        (lambda x: x.sort(0).values, {"x": ["n", "m"]}),
        (torch.fft.rfft, {"x": ["k"]}),
    ],
)
def test_other_functions_are_not_accused(function: Any, inputs: Any) -> None:
    assert wrong_ways(function, inputs) == set()


def test_either_input_of_an_elementwise_function_may_be_the_one_that_is_broadcast() -> None:
    class Product(torch.autograd.Function):  # type: ignore[misc]  # see above
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            unreduced = g.sum(0) / g.shape[0] if x.dim() < g.dim() else g.sum_to_size(x.shape)
            return unreduced * w if x.dim() < g.dim() else (g * w).sum_to_size(x.shape), (g * x).sum_to_size(w.shape)

    assert "backward" in wrong_ways(Product.apply, {"x": "any", "w": "any"})


def test_complex_derivatives_and_their_conjugates() -> None:
    class Square(torch.autograd.Function):  # type: ignore[misc]  # see above
        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (z,) = ctx.saved_tensors
            return g * 2 * z  # without the conjugate, which real numbers don't notice

    assert wrong_ways(Square.apply, {"z": ["n"]}) == set()
    assert "backward" in wrong_ways(Square.apply, {"z": ["n"]}, complex_too=True)
    assert wrong_ways(lambda z: z * z, {"z": ["n"]}, complex_too=True) == set()


def test_a_tangent_of_another_shape_or_dtype_than_its_primal_is_told() -> None:
    trial = types.SimpleNamespace(line=str)
    primal = torch.zeros(2)
    parts = [(primal, each) for each in (primal, None, primal.double(), primal[:1])]
    assert ways.with_facts(trial, "it", parts, (3, ["more"])) == (  # type: ignore[arg-type]  # all that it asks of one
        3,
        [
            "it has torch.float64, expected torch.float32",
            "it has torch.Size([1]), expected torch.Size([2])",
            "more",
        ],
    )


def test_a_tangent_of_another_size_is_no_refusal() -> None:
    told = RuntimeError("Trying to set a forward gradient that has a different size, this is not supported")
    assert why_missing(told) is None
    assert why_missing(RuntimeError("gradients of this are not supported")) is not None


def test_a_result_that_lost_its_graph_is_found() -> None:
    assert "backward" in wrong_ways(lambda x: x.detach().exp(), {"x": ["n"]})


def test_a_gradient_of_another_shape_or_dtype_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda *args, **more: tuple(
        None if each is None else each.float() for each in plain(*args, **more)))  # fmt: skip
    found = derivatives(torch.exp, {"x": ["n"]})["backward"]
    assert any("torch.float32, expected torch.float64" in line for line in found)


def test_what_is_not_implemented_is_left_out_and_said() -> None:
    class NoForward(torch.autograd.Function):  # type: ignore[misc]  # see above
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:  # noqa: ARG004 - its signature is given
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:  # noqa: ARG004 - see above
            return g * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            raise NotImplementedError("the tangent of this is not implemented")

    found = derivatives(NoForward.apply, {"x": ["n"]})
    assert found["backward"] == []
    with pytest.raises(Unobservable, match="the tangent of this is not implemented"):
        found["forward mode"]


def test_lines_name_the_place_the_numbers_and_the_point() -> None:
    (line, *_) = derivatives(product("at zero"), SHAPES)["backward"]
    assert "the gradient[3] is nan, expected" in line
    assert "x with a zero: f([[" in line


def test_a_gradient_that_is_the_given_one_is_found() -> None:
    assert wrong_ways(torch.clone, {"x": ["n"]}, complex_too=True) == set()

    class Kept(torch.autograd.Function):  # type: ignore[misc]  # see above
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:  # noqa: ARG004 - its signature is given
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:  # noqa: ARG004 - see above
            g += 0.5
            return g - 0.5

    assert "accumulation" in wrong_ways(Kept.apply, {"x": ["n"]})


def test_what_is_saved_before_it_is_written_is_found() -> None:
    class Early(torch.autograd.Function):  # type: ignore[misc]  # see above
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            scale = torch.zeros_like(x)
            ctx.save_for_backward(scale.view_as(scale))  # an input or a result has its version checked
            return x * 2, scale

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:  # noqa: ARG004 - its signature is given
            return g * ctx.saved_tensors[0]

    def late(x: torch.Tensor) -> torch.Tensor:
        result, scale = Early.apply(x)
        scale.data.fill_(2)
        return result

    assert wrong_ways(late, {"x": ["n"]}) == {"saved elsewhere"}


def test_another_shape_on_meta_is_found() -> None:
    assert wrong_ways(lambda x: x.exp()[: 1 + x.is_meta], {"x": ["n"]}) == {"on meta"}


def test_a_sample_that_gets_the_gradient_of_another_is_found() -> None:
    def mistaken(x: torch.Tensor) -> torch.Tensor:
        is_transformed = torch._C._functorch.is_gradtrackingtensor(x)
        return x.exp() * (1 + is_transformed)

    assert wrong_ways(mistaken, {"x": ["n"]}) == {"per sample"}


@pytest.mark.parametrize("fault", ["", "undefined"])
def test_a_result_without_a_gradient_counts_for_nothing(fault: str) -> None:
    class Both(torch.autograd.Function):  # type: ignore[misc]  # see above
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:  # noqa: ARG004 - its signature is given
            parts = [each * factor for each, factor in ((g, 2), (h, 3)) if each is not None]
            return sum(parts) + (len(parts) == 1 if fault else 0)

    assert wrong_ways(Both.apply, {"x": ["n"]}) == ({"incoming gradients"} if fault else set())


def test_an_element_far_from_hard_numbers_is_judged_in_each_place() -> None:
    class LastLane(torch.autograd.Function):  # type: ignore[misc]  # see above
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            wrong = torch.zeros_like(x)
            if x.numel() > 64:
                wrong[-1] = 1
            return g * x.exp() + wrong

    assert "backward" in wrong_ways(LastLane.apply, {"x": "any"})


def test_rows_and_spellings_are_all_tried() -> None:
    rows = [{"dim": 0}, {"dim": 1}]

    def right(x: torch.Tensor, dim: int) -> torch.Tensor:
        return x.cumsum(dim)

    def mistaken(x: torch.Tensor, dim: int) -> torch.Tensor:
        return x.cumsum(dim) if dim == 0 else x.cumsum(dim).detach()

    assert wrong_ways(right, {"x": ["n", "m"]}, rows=rows) == set()
    assert "backward" in wrong_ways(mistaken, {"x": ["n", "m"]}, rows=rows)
    assert "backward" in wrong_ways([right, mistaken], {"x": ["n", "m"]}, rows=rows)


def test_an_operation_that_fails_at_an_ordinary_point_raises() -> None:
    with pytest.raises(RuntimeError, match="not possible"):
        derivatives(refusing, {"x": ["n"]})


def refusing(x: torch.Tensor) -> torch.Tensor:  # noqa: ARG001 - it refuses any
    raise RuntimeError("not possible")


def test_an_error_of_the_suite_is_not_one_of_the_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "weights", None)
    with pytest.raises(TypeError, match="not callable"):
        derivatives(torch.exp, {"x": ["n"]})


class OneElement(torch.autograd.Function):  # type: ignore[misc]  # torch has no types for it
    """x * x, whose gradient is wrong in one element of tensors that have a zero."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        found = 2 * x * g
        if bool((x == 0).any()):
            found = found + 0.01 * (torch.arange(x.numel()).reshape(x.shape) == 1)
        return found


def test_one_wrong_element_beside_zeros_shows_in_the_sum_and_is_named() -> None:
    found = derivatives(OneElement.apply, {"x": ["n", "m"]})
    first = found["backward"][0]
    assert first.startswith("the gradient[1] is ")
    assert "x with a zero: f(" in first


def test_a_kink_that_no_single_direction_shows_accuses_nobody() -> None:
    assert not wrong_ways(lambda x: x.median(0).values, {"x": ["n", "m"]})


def test_what_an_expanded_input_does_to_the_others_is_found() -> None:
    class BesideExpanded(torch.autograd.Function):  # type: ignore[misc]  # torch has no types for it
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return g * w * (2 if 0 in w.stride() else 1), (g * x).sum(0)

    found = derivatives(BesideExpanded.apply, SHAPES)
    assert any("beside an expanded input the gradient of inputs [0]" in line for line in found["memory"])
