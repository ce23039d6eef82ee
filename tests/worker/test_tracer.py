"""Sketches: what is seen of the graph that a case builds, and that looking changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from loops import each
from running import FIRST, case_of, request_of, running_engine

from conformance.worker import tracer as sketch
from conformance.worker.engine import Engine

Graph = dict[str, Any]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def graph_of(engine: Engine, steps: str) -> Graph:
    """Sketch a case, and hold that looking leaves the case's outcome and the process as they were."""
    request = request_of(case_of(steps))
    before = engine.run(request)
    world = (torch.autograd.Variable._execution_engine, torch._C._autograd._push_saved_tensors_default_hooks)
    answer = engine.run({**request, "sketch": True})
    assert (torch.autograd.Variable._execution_engine, torch._C._autograd._push_saved_tensors_default_hooks) == world
    after = engine.run(request)
    assert {**after, "seconds": 0} == {**before, "seconds": 0}
    assert answer["n"] == request["n"]
    assert answer["status"] == "pass"
    graph: Graph = answer["graph"]
    return graph


def named(graph: Graph, name: str) -> Graph:
    (found,) = [tensor for tensor in graph["tensors"] if tensor["name"] == name]
    return found  # type: ignore[no-any-return]


def index_of(graph: Graph, name: str) -> int:
    return int(graph["tensors"].index(named(graph, name)))


def names(graph: Graph) -> list[str]:
    return [tensor["name"] for tensor in graph["tensors"]]


def nodes(graph: Graph) -> list[str]:
    return [node["name"] for node in graph["nodes"]]


def node_of(graph: Graph, name: str) -> Graph:
    return graph["nodes"][named(graph, name)["node"]]  # type: ignore[no-any-return]


def saved(graph: Graph, node: Graph) -> dict[str, str | None]:
    """The names of the tensors that a node has saved, by its names for them."""
    return {
        entry["name"]: None if entry["tensor"] is None else graph["tensors"][entry["tensor"]]["name"]
        for entry in node["saved"]
    }


def test_a_leaf_an_operation_and_its_result(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0, 2.0], requires_grad=True)
        - b = a.sigmoid()
        - b.sum().backward()
        - expect: {a: {is_leaf: true}}
        """,
    )
    assert graph == {
        "target": "cpu-float32",
        "tensors": [
            {
                "name": "a", "line": FIRST, "shape": [2], "is_leaf": True, "requires_grad": True, "retains_grad": False,
                "has_grad": True, "accumulates": True, "node": None, "output_nr": 0, "shares_storage": None,
                "view_of": None, "hooks": 0, "version": 0, "version_at_backward": 0, "had_grad": False, "late": False,
            },
            {
                "name": "b", "line": FIRST + 1, "shape": [2], "is_leaf": False, "requires_grad": True,
                "retains_grad": False, "has_grad": False, "accumulates": False, "node": 0, "output_nr": 0,
                "shares_storage": None, "view_of": None, "hooks": 0, "version": 0, "version_at_backward": 0,
                "had_grad": False, "late": False,
            },
        ],
        "nodes": [
            {
                "name": "SigmoidBackward0", "next": [{"node": None, "tensor": 0}],
                "saved": [{"name": "result", "tensor": 1, "version": 0}], "freed": True, "late": False,
            },
            {
                "name": "SumBackward0", "next": [{"node": 0, "tensor": None}], "saved": [], "freed": False,
                "late": False,
            },
        ],
    }  # fmt: skip


def test_a_product_has_saved_both_factors_and_a_sum_nothing(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - b = tensor([1.0], requires_grad=True)
        - c = a + 1
        - d = c * b
        - e = d + 2
        - expect: {a: {grad: null}}
        """,
    )
    product = node_of(graph, "d")
    assert saved(graph, product) == {"self": "c", "other": "b"}
    assert product["next"] == [
        {"node": named(graph, "c")["node"], "tensor": None},
        {"node": None, "tensor": index_of(graph, "b")},
    ]
    assert node_of(graph, "e")["saved"] == []
    assert node_of(graph, "e")["next"][1] is None  # a number


def test_results_that_nothing_holds_are_seen_before_backward_frees_them(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - (a * a).sum().backward()
        - (a * 2).exp().backward()
        - (found,) = autograd.grad(a.sin(), a)
        - expect: {a: {requires_grad: true}}
        """,
    )
    assert nodes(graph) == ["SumBackward0", "MulBackward0", "ExpBackward0", "MulBackward0", "SinBackward0"]
    assert saved(graph, graph["nodes"][1]) == {"self": "a", "other": "a"}
    assert names(graph) == ["a", "found"]


def test_a_name_that_is_bound_again_stands_for_two_tensors(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - a = a.exp()
        - expect: {a: {is_leaf: false}}
        """,
    )
    first, second = graph["tensors"]
    assert (first["name"], first["line"], first["node"]) == ("a", FIRST, None)
    assert (second["name"], second["line"], second["node"]) == ("a", FIRST + 1, 0)
    assert graph["nodes"][0]["next"] == [{"node": None, "tensor": 0}]


def test_a_tensor_that_is_changed_in_place_is_seen_before_and_after(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - b = a * 2
        - b.exp_()
        - expect: {b: {version: 1}}
        """,
    )
    assert [(tensor["name"], tensor["line"], tensor["node"]) for tensor in graph["tensors"]] == [
        ("a", FIRST, None), ("b", FIRST + 1, 0), ("b", FIRST + 2, 1),
    ]  # fmt: skip
    assert graph["tensors"][2]["shares_storage"] == 1
    assert nodes(graph) == ["MulBackward0", "ExpBackward0"]
    assert graph["nodes"][1]["next"] == [{"node": 0, "tensor": None}]
    assert graph["nodes"][1]["saved"] == [{"name": "result", "tensor": 2, "version": 1}]
    assert [tensor["version"] for tensor in graph["tensors"]] == [0, 0, 1]


@each("alias, version, is_freed", [("b.detach()", 1, False), ("b.data", 0, True)])
def test_twins_differ_in_the_version_of_what_was_written_to_and_in_what_backward_freed(
    engine: Engine, alias: str, version: int, is_freed: bool
) -> None:
    graph = graph_of(
        engine,
        f"""
        - a = tensor([1.0], requires_grad=True)
        - b = a.sigmoid()
        - c = {alias}
        - c.zero_()
        - b.sum().backward()
        - expect: {{c: {{value: [0.0]}}}}
        """,
    )
    assert (named(graph, "b")["version"], named(graph, "c")["version"]) == (version, 1)
    assert node_of(graph, "b")["saved"] == [{"name": "result", "tensor": index_of(graph, "b"), "version": 0}]
    assert node_of(graph, "b")["freed"] == is_freed


def test_what_came_with_or_after_backward_is_told_from_what_was_there(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0, 2.0], requires_grad=True)
        - 'a.register_hook(lambda grad: None)'
        - b = a * 2
        - v = b[0]
        - b.sum().backward()
        - |
          with no_grad():
              a.zero_()
        - late = a * 3
        - expect: {late: {value: [0.0, 0.0]}}
        """,
    )
    a, late = named(graph, "a"), named(graph, "late")
    assert (a["had_grad"], a["has_grad"], a["hooks"], a["late"]) == (False, True, 1, False)
    assert (a["version_at_backward"], a["version"]) == (0, 1)
    assert (late["late"], late["version_at_backward"], node_of(graph, "late")["late"]) == (True, None, True)
    assert named(graph, "v")["view_of"] == index_of(graph, "b")


def test_aliases_and_views_share_the_storage_of_the_first(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0, 2.0], requires_grad=True)
        - b = a * 2
        - c = b.detach()
        - d = b[0]
        - e = c.clone()
        - expect: {c: {shares_storage: b}}
        """,
    )
    assert named(graph, "c")["shares_storage"] == named(graph, "d")["shares_storage"] == index_of(graph, "b")
    assert named(graph, "c")["node"] is None
    assert node_of(graph, "d")["name"] == "SelectBackward0"
    assert named(graph, "e")["shares_storage"] is None


def test_memory_that_is_used_again_is_not_taken_for_shared(engine: Engine) -> None:
    steps = "- a = tensor([1.0], requires_grad=True)\n- b = [a]\n"
    for number in range(20):
        steps += f"- a.data = zeros(1)\n- x{number} = a * 2\n- y{number} = ones(1)\n"
    graph = graph_of(engine, steps + "- expect: {a: {version: 0}}\n")
    assert not [tensor for tensor in graph["tensors"] if tensor["shares_storage"] is not None]


def test_what_lists_modules_and_objects_hold_has_the_name_that_one_would_write(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - |
          class Net(nn.Module):
              def __init__(self):
                  super().__init__()
                  self.w = nn.Parameter(ones(2))
                  self.inner = nn.Linear(2, 1)
                  self.register_buffer("kept", ones(1))
                  self.other = [ones(2)]
        - net = Net()
        - seq = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU())
        - some = [seq, ones(3), (ones(4),)]
        - 'table = {"key": ones(2)}'
        - some.append(some)
        - out = net.inner(seq(net.w))
        - out.backward()
        - expect: {out: {shape: [1]}}
        """,
    )
    assert names(graph) == [
        "net.w", "net.kept", "net.inner.weight", "net.inner.bias", "net.other[0]", "seq[0].weight", "some[1]",
        "some[2][0]", "table['key']", "out",
    ]  # fmt: skip
    assert named(graph, "net.inner.weight")["has_grad"]
    assert named(graph, "net.inner.weight")["accumulates"]
    assert not named(graph, "net.kept")["accumulates"]


def test_a_leaf_that_only_the_graph_holds_has_no_name(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True) * 2
        - b = a.expand(2)
        - expect: {a: {is_leaf: false}}
        """,
    )
    leaf = named(graph, "")
    assert leaf["is_leaf"]
    assert leaf["accumulates"]
    assert node_of(graph, "a")["next"] == [{"node": None, "tensor": index_of(graph, "")}, None]


def test_nodes_that_are_held_without_a_tensor_are_seen(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - node = (a * 2).grad_fn
        - expect: {node.name(): {text: MulBackward0}}
        """,
    )
    assert nodes(graph) == ["MulBackward0"]


def test_the_saved_tensors_of_a_custom_function_are_numbered(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - |
          class Twice(Function):
              @staticmethod
              def forward(ctx, x, y):
                  result = x * 2
                  ctx.save_for_backward(x, result, None, y)
                  return result
              @staticmethod
              def backward(ctx, grad):
                  x, result, nothing, y = ctx.saved_tensors
                  return grad * 2, None
        - a = tensor([1.0], requires_grad=True)
        - b = tensor([1.0])
        - c = Twice.apply(a, b)
        - c.backward()
        - expect: {a: {grad: [2.0]}}
        """,
    )
    assert node_of(graph, "c")["name"] == "TwiceBackward"
    assert saved(graph, node_of(graph, "c")) == {"0": "a", "1": "c", "3": "b"}


def test_lists_that_a_node_has_saved_are_numbered(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0, 2.0], requires_grad=True)
        - at = tensor([1])
        - b = a[at]
        - expect: {b: {shape: [1]}}
        """,
    )
    assert saved(graph, node_of(graph, "b")) == {"indices[0]": "at"}


def test_a_saved_tensor_that_was_written_to_is_named_but_not_found(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - |
          a = tensor([1.0], requires_grad=True)
          b = a.sigmoid()
          b.detach().zero_()
        - expect: {b: {version: 1}}
        """,
    )
    assert saved(graph, node_of(graph, "b")) == {"result": None}


def test_hooks_are_not_called_by_a_look(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - stored = {}
        - |
          def pack(x):
              log("pack")
              stored[len(stored)] = x
              return len(stored) - 1
          def unpack(i):
              log("unpack")
              return stored.pop(i)
        - |
          with autograd.graph.saved_tensors_hooks(pack, unpack):
              b = a * a
        - 'b.register_hook(lambda grad: log("hook"))'
        - b.backward()
        - (a * 3).backward()
        - expect:
            log: [pack, pack, hook, unpack, unpack]
        """,
    )
    assert saved(graph, node_of(graph, "b")) == {"self": None, "other": None}
    assert nodes(graph) == ["MulBackward0", "MulBackward0"]


def test_retained_gradients_and_gradients_with_a_graph_of_their_own(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - b = a * a
        - b.retain_grad()
        - do: b.backward(create_graph=True)
          warns: {type: UserWarning, match: reference cycle}
        - a.grad.backward()
        - expect: {b: {retains_grad: true}}
        """,
    )
    assert named(graph, "b")["retains_grad"]
    assert named(graph, "b")["has_grad"]
    assert named(graph, "a.grad")["node"] is not None
    assert len(graph["nodes"]) > 2


def test_a_case_that_fails_has_the_graph_up_to_there(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - b = a.exp()
        - b.reshape(7)
        - c = b.sin()
        - expect: {c: {is_leaf: false}}
        """,
    )
    assert names(graph) == ["a", "b"]


def test_what_was_freed_or_let_go_stays_in_the_picture(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - b = a.exp()
        - b.backward()
        - del b
        - gc.collect()
        - expect: {a: {grad: {value: math.e}}}
        """,
    )
    assert saved(graph, node_of(graph, "b")) == {"result": "b"}


def test_an_expectation_that_no_longer_holds_does_not_end_a_sketch(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - b = a.exp()
        - seen = weakref.ref(b)
        - del b
        - expect: {seen(): null}
        - c = a.sin()
        - expect: {c: {is_leaf: false}}
        """,
    )
    assert nodes(graph) == ["ExpBackward0", "SinBackward0"]


def test_a_case_without_gradients_has_tensors_in_the_order_in_which_they_were_made(engine: Engine) -> None:
    graph = graph_of(engine, "- b = ones(2)\n- a = b * 2\n- expect: {b: {value: 1}}")
    assert [tensor["name"] for tensor in graph["tensors"]] == ["b", "a"]
    assert graph["nodes"] == []


def test_a_graph_that_is_too_large_is_cut(engine: Engine) -> None:
    many = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - made = [a * i for i in range(90)]
        - b = a * 2
        - expect: {b: {is_leaf: false}}
        """,
    )
    assert many["cut"]
    assert len(many["tensors"]) == sketch.MOST_TENSORS
    deep = graph_of(
        engine,
        """
        - a = tensor([1.0], requires_grad=True)
        - b = a
        - |
          for i in range(3000):
              b = b + 1
        - b.backward()
        - expect: {a: {grad: [1.0]}}
        """,
    )
    assert deep["cut"]
    assert len(deep["nodes"]) == sketch.MOST_NODES
    assert deep["nodes"][-1]["next"] == [None, None]
    assert "cut" not in graph_of(engine, "- a = ones(2, requires_grad=True)\n- expect: {a: {is_leaf: true}}")


@each(
    "step",
    [
        "x = torch.sparse_coo_tensor(tensor([[0]]), a, (3,))",
        "x = a.to_sparse()",
        "x = func.vmap(lambda t: t * a)(ones(3, 1))",
        "x = func.grad(lambda t: (t * a).sum())(ones(1))",
        "x = nn.LazyLinear(3)",
        "x = ones(2, device='meta')",
        "x = checkpoint(lambda t: t.exp(), a, use_reentrant=False)",
        "x = checkpoint(lambda t: t.exp(), a, use_reentrant=True)",
        "x = optim.SGD([a], lr=0.1)",
        "x = [i for i in range(3)]",
    ],
)
def test_unusual_tensors_do_not_end_a_sketch(engine: Engine, step: str) -> None:
    graph = graph_of(
        engine,
        f"""
        - a = tensor([1.0], requires_grad=True)
        - "{step}"
        - b = a.exp()
        - b.backward()
        - expect: {{a: {{is_leaf: true}}}}
        """,
    )
    assert node_of(graph, "b")["name"] == "ExpBackward0"


def test_a_graph_goes_on_after_a_backward_that_must_raise(engine: Engine) -> None:
    graph = graph_of(
        engine,
        """
        - a = tensor([1.0])
        - do: a.sum().backward()
          raises: {type: RuntimeError, match: does not require grad}
        - b = tensor([1.0], requires_grad=True)
        - c = b * 2
        - expect: {c: {is_leaf: false}}
    """,
    )
    assert names(graph) == ["a", "b", "c"]
    assert nodes(graph) == ["MulBackward0"]
