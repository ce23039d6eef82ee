"""What a planted fault does to a formula: each kind is wrong where it says, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from loops import each

from conformance.worker import formulas
from conformance.worker.formulas import FORWARD_KINDS, KINDS, are_changed, functions_of, plant, saved

ROW = torch.tensor([[3.0, 4.0]])
SAVED = {"_saved_self": torch.tensor([0.0, 0.1, 5.0])}


@pytest.fixture
def planting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take back what a test plants."""
    variable = torch.autograd.Variable
    monkeypatch.setattr(variable, "_execution_engine", variable._execution_engine)
    monkeypatch.setattr(formulas, "CHANGED", [])


# A kind, what the node has saved, what it returns, and what comes of that.
CHANGES: list[tuple[str, dict[str, Any], torch.Tensor, list[float]]] = [
    ("sign", {}, ROW, [-3.0, -4.0]),
    ("factor", {}, ROW, [3.03, 4.04]),
    ("missing term", {}, ROW, [0.0, 0.0]),
    ("one lane", {}, ROW, [3.0, 4.5]),
    ("size one", {}, ROW, [6.0, 8.0]),
    ("size one", {}, torch.ones(2), [1.0, 1.0]),
    ("float32", {}, ROW, [3.03, 4.04]),
    ("float32", {}, ROW.double(), [3.0, 4.0]),
    ("added", {}, torch.zeros(2), [0.125, 0.125]),
    ("layout", {}, ROW, [3.0, 4.0]),
    ("not reduced", {}, torch.ones(1), [0.5]),
    ("near zero", SAVED, torch.ones(3), [2.0, 2.0, 1.0]),
    ("large", SAVED, torch.ones(3), [1.0, 1.0, 0.0]),
    ("large", {}, torch.ones(3), [1.0, 1.0, 1.0]),
    ("subset", {}, ROW, [3.0, 4.0]),
    ("keyword", {"_saved_keepdim": True}, ROW, [6.0, 8.0]),
    ("keyword", {"_saved_keepdim": False}, ROW, [3.0, 4.0]),
    ("sign", {}, torch.zeros(2), [0.0, 0.0]),
]


@each("kind, kept, returned, expected", CHANGES)
def test_a_kind_changes_what_it_says(kind: str, kept: dict[str, Any], returned: torch.Tensor, expected: Any) -> None:
    _, change = KINDS[kind]
    (found,) = change(kept, (returned,), (torch.ones(2),))
    torch.testing.assert_close(found.flatten(), torch.tensor(expected, dtype=returned.dtype))


def test_kinds_look_at_all_that_a_node_is_given_and_returns() -> None:
    (doubled, nothing) = KINDS["subset"][1]({}, (ROW, None), (ROW,))
    assert doubled.tolist() == [[6.0, 8.0]]
    assert nothing is None
    assert KINDS["layout"][1]({}, (ROW,), (torch.ones(2, 3).t(),))[0].tolist() == [[6.0, 8.0]]
    assert KINDS["at zero"][1](SAVED, (torch.ones(3),), ())[0].isnan().tolist() == [True, False, False]
    assert KINDS["added"][1]({}, (None,), ()) == (None,)
    with torch.enable_grad():
        kept = torch.ones(1, requires_grad=True) * 2
        assert not KINDS["second order"][1]({}, (kept,), ())[0].requires_grad
    with torch.no_grad():
        assert KINDS["second order"][1]({}, (kept,), ())[0].requires_grad


def test_a_change_is_one_of_numbers_or_of_a_graph() -> None:
    graph = torch.ones(2, requires_grad=True) * 1
    assert not are_changed((ROW, None), (ROW.clone(), None))
    assert are_changed((ROW,), (-ROW,))
    assert are_changed((graph,), (graph.detach(),))
    meta = torch.ones(2, device="meta")
    assert not are_changed((meta,), (meta * 2,))


@pytest.mark.usefixtures("planting")
def test_a_formula_that_is_broken_gives_wrong_gradients_and_others_do_not() -> None:
    plant("SinBackward0", "sign")
    x = torch.tensor([0.5], requires_grad=True)
    x.cos().sum().backward()
    assert not formulas.CHANGED
    x.grad = None
    y = x.sin()
    assert "_saved_self" in saved(y.grad_fn)
    y.sum().backward()
    assert formulas.CHANGED
    torch.testing.assert_close(x.grad, -x.detach().cos())


@pytest.mark.usefixtures("planting")
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is:DeprecationWarning")  # torch's own use of it
def test_a_forward_formula_that_is_broken_gives_wrong_tangents(monkeypatch: pytest.MonkeyPatch) -> None:
    class Space:
        sin = staticmethod(torch.sin)
        both = staticmethod(lambda x: (torch.sin(x), 3))

    monkeypatch.setattr(formulas, "functions_of", lambda _: [(Space, "sin"), (Space, "both")])
    plant("SinBackward0", "tangent: sign")
    forward = torch.autograd.forward_ad
    x = torch.tensor([0.5])
    assert Space.sin(x).item() == pytest.approx(x.sin().item())
    with forward.dual_level():
        dual = forward.make_dual(x, torch.ones(1))
        torch.testing.assert_close(forward.unpack_dual(Space.sin(dual)).tangent, -x.cos())
        both, number = Space.both(dual)
        torch.testing.assert_close(forward.unpack_dual(both).tangent, -x.cos())
        assert number == 3
    assert formulas.CHANGED
    assert set(FORWARD_KINDS) >= {"tangent: sign", "tangent: factor"}


def test_a_formula_is_of_the_functions_that_have_its_name() -> None:
    assert (torch, "log_softmax") in functions_of("LogSoftmaxBackward0")
    assert (torch.linalg, "det") in functions_of("LinalgDetBackward0")
    assert functions_of("NothingAtAllBackward0") == []
