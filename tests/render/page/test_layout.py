"""Tests of the picture of a graph: boxes that stand apart, paths from rim to rim, and the text in the boxes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from loops import each
from samples import CPU, GRAPH

from conformance.model.graph import Graph, GraphEdge, GraphNode, GraphTensor, SavedTensor
from conformance.render.page.layout import MOST_BOXES, drawing_of, links_of

DRAWN = """\
import sys
import msgspec
from conformance.model.graph import Graph
from conformance.render.page.layout import drawing_of
print(msgspec.json.encode(drawing_of(msgspec.json.decode(sys.stdin.read(), type=Graph))).decode())
"""

INDEX = st.integers(0, 12) | st.just(2**40)
EDGES = st.none() | st.builds(GraphEdge, node=st.none() | INDEX, tensor=st.none() | INDEX)
TENSORS = st.builds(
    GraphTensor, name=st.text(max_size=9), shape=st.lists(st.integers(-1, 99), max_size=6).map(tuple),
    is_leaf=st.booleans(), requires_grad=st.booleans(), retains_grad=st.booleans(), has_grad=st.booleans(),
    accumulates=st.booleans(), node=st.none() | INDEX, shares_storage=st.none() | INDEX, view_of=st.none() | INDEX,
    version=st.none() | INDEX, version_at_backward=st.none() | INDEX, had_grad=st.booleans(), late=st.booleans(),
)  # fmt: skip
SAVED = st.builds(SavedTensor, name=st.text(max_size=9), tensor=st.none() | INDEX, version=st.none() | INDEX)
NODES = st.builds(
    GraphNode, name=st.text(max_size=20), next=st.lists(EDGES, max_size=5).map(tuple),
    saved=st.lists(SAVED, max_size=8).map(tuple), freed=st.booleans(), late=st.booleans(),
)  # fmt: skip
GRAPHS = st.builds(
    Graph, target=st.just(CPU), tensors=st.lists(TENSORS, max_size=10).map(tuple),
    nodes=st.lists(NODES, max_size=10).map(tuple), cut=st.booleans(),
)  # fmt: skip


def nodes_of(*edges: list[int], tensors: int = 0) -> Graph:
    """Return a graph of nodes, each with the numbers of those that its gradient goes to."""
    nodes = tuple(
        GraphNode(name=f"N{number}", next=tuple(GraphEdge(node=other) for other in others))
        for number, others in enumerate(edges)
    )
    return Graph(target=CPU, tensors=(GraphTensor(shape=(1,)),) * tensors, nodes=nodes)


def drawn(graph: Graph) -> dict[str, Any]:
    drawing = drawing_of(graph)
    assert drawing is not None
    return drawing


def sides(box: tuple[Any, ...]) -> tuple[float, float, float, float]:
    _, _, x, y, width, height, _ = box
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def text_of(graph: Graph) -> list[list[str]]:
    return [lines for _, lines, *_ in drawn(graph)["boxes"]]


@given(GRAPHS)
@example(nodes_of([0]))
@example(nodes_of([1], [0]))
@example(nodes_of([1], [2], [0]))
@example(nodes_of([1, 1, 1], []))
@example(nodes_of(*[[other for other in range(9) if other != own] for own in range(9)]))
def test_boxes_stand_apart_and_paths_run_from_rim_to_rim(graph: Graph) -> None:
    drawing = drawing_of(graph)
    if not graph.tensors and not graph.nodes:
        assert drawing is None
        return
    assert drawing is not None
    boxes = drawing["boxes"]
    assert len(boxes) == len(graph.tensors) + len(graph.nodes)
    slack = 1  # places are rounded
    for at, one in enumerate(boxes):
        left, top, right, bottom = sides(one)
        assert min(left, top) >= -slack
        assert right <= drawing["size"][0] + slack
        assert bottom <= drawing["size"][1] + slack
        for other in boxes[:at]:
            left2, top2, right2, bottom2 = sides(other)
            apart = right <= left2 + slack or right2 <= left + slack or bottom <= top2 + slack or bottom2 <= top + slack
            assert apart, (one, other)
    for (first, second, _), (_, points) in zip(links_of(graph), drawing["paths"], strict=True):
        if first == second:
            assert points == []
            continue
        for number, (x, y) in ((first, points[0]), (second, points[-1])):
            left, top, right, bottom = sides(boxes[number])
            assert left - slack <= x <= right + slack
            assert min(abs(y - top), abs(y - bottom)) <= slack, (y, top, bottom)


def test_values_flow_down_from_leaves_to_results() -> None:
    leaf, result, node, total = drawn(GRAPH)["boxes"]
    assert leaf[3] < node[3] < result[3] < total[3]
    assert [kind for kind, _ in drawn(GRAPH)["paths"]] == ["flow"] * 3


def test_edges_join_what_the_graph_joins() -> None:
    # a is a leaf; Mul makes b and Add makes c of it; d is a view of a
    graph = Graph(
        target=CPU,
        tensors=(
            GraphTensor(name="a", shape=(), is_leaf=True), GraphTensor(name="b", shape=(), node=0),
            GraphTensor(name="c", shape=(), node=1), GraphTensor(name="d", shape=(), shares_storage=0),
        ),
        nodes=(
            GraphNode(name="Mul", next=(GraphEdge(tensor=0), GraphEdge(tensor=0), None)),
            GraphNode(name="Add", next=(GraphEdge(node=0), GraphEdge(tensor=0))),
        ),
    )  # fmt: skip
    names = ["a", "b", "c", "d", "Mul", "Add"]
    assert {(names[first], names[second], kind) for first, second, kind in links_of(graph)} == {
        ("Mul", "b", "flow"), ("Add", "c", "flow"), ("a", "Mul", "flow"), ("b", "Add", "flow"), ("a", "Add", "flow"),
        ("a", "d", "memory"),
    }  # fmt: skip


def test_a_node_with_several_results_is_joined_itself() -> None:
    both = tuple(GraphTensor(name=name, shape=(), node=0) for name in "ab")
    graph = Graph(target=CPU, tensors=both, nodes=nodes_of([], [0]).nodes)
    assert (2, 3, "flow") in links_of(graph)


def test_what_an_index_does_not_lead_to_is_not_joined() -> None:
    tensor = GraphTensor(name="a", shape=(), node=7, shares_storage=9)
    node = GraphNode(name="N", next=(GraphEdge(node=9), GraphEdge(tensor=9), GraphEdge(), None))
    graph = Graph(target=CPU, tensors=(tensor,), nodes=(node,))
    assert links_of(graph) == []
    assert len(drawn(graph)["boxes"]) == 2


def test_boxes_say_what_autograd_makes_of_a_tensor() -> None:
    def of(**facts: Any) -> list[str]:
        return text_of(Graph(target=CPU, tensors=(GraphTensor(**{"name": "a", "shape": (2, 3), **facts}),), nodes=()))[
            0
        ]

    assert of() == ["a [2, 3]", "no grad"]
    assert of(is_leaf=True) == ["a [2, 3]", "leaf"]
    assert of(is_leaf=True, requires_grad=True) == ["a [2, 3]", "leaf, requires grad"]
    assert of(requires_grad=True, retains_grad=True) == ["a [2, 3]", "requires grad", "retains grad"]
    assert of(is_leaf=True, requires_grad=True, retains_grad=True)[2:] == []
    assert of(accumulates=True, has_grad=True)[2:] == ["accumulates into .grad (set)"]
    assert of(hooks=1)[2:] == ["1 hook"]
    assert of(version=0)[2:] == []
    assert of(version=2)[2:] == ["version 2"]
    assert of(has_grad=True)[2:] == [".grad is there"]
    assert of(name="", shape=())[0] == "a tensor []"
    assert of(shape=(1, 2, 3, 4, 5))[0] == "a [1, 2, 3, 4, …]"


def test_boxes_say_what_a_node_has_saved() -> None:
    tensors = (GraphTensor(name="x", shape=()), GraphTensor(name="", shape=()))
    saved = [("self", 0), ("x", 0), ("other", 1), ("lost", 99), ("none", None)]
    node = GraphNode(name="N", saved=tuple(SavedTensor(name=name, tensor=tensor) for name, tensor in saved))
    assert text_of(Graph(target=CPU, tensors=tensors, nodes=(node,)))[2] == [
        "N",
        "saved self = x, x, other, lost, none",
    ]
    many = GraphNode(name="N", saved=tuple(SavedTensor(name=f"s{number}") for number in range(9)))
    assert text_of(Graph(target=CPU, tensors=(), nodes=(many,))) == [["N", "saved s0, s1, s2, s3, s4, s5"]]


def test_what_a_write_and_a_backward_change_is_told() -> None:
    leaf = GraphTensor(name="a", shape=(), is_leaf=True, has_grad=True, version=0, version_at_backward=0)
    result = GraphTensor(name="b", shape=(), node=0, version=2, version_at_backward=1)
    view = GraphTensor(name="c", shape=(), node=0, version=2, late=True, view_of=1)
    saved = (SavedTensor(name="self", tensor=0, version=0), SavedTensor(name="result", tensor=1, version=1))
    node = GraphNode(name="N", saved=saved, freed=True)
    boxes = drawn(Graph(target=CPU, tensors=(leaf, result, view), nodes=(node,)))["boxes"]
    assert [(lines[1:], before and before[1:]) for _, lines, *_, before in boxes] == [
        (["leaf", ".grad is there", "version 0"], ["leaf", "version 0"]),
        (["no grad", "version 2"], ["no grad", "version 1"]),
        (["no grad", "version 2", "view of b"], []),
        (["freed self = a, result = b at version 1, written to since"], ["saved self = a, result = b"]),
    ]


def test_without_a_backward_there_is_no_before() -> None:
    graph = Graph(target=CPU, tensors=(GraphTensor(name="a", shape=(), has_grad=True, version=1),), nodes=())
    assert drawn(graph)["boxes"][0][-1] is None


def test_no_name_and_no_shape_makes_a_box_endless() -> None:
    tensor = GraphTensor(name="x" * 10_000, shape=(10**300,) * 4)
    node = GraphNode(name="N" * 10_000, saved=(SavedTensor(name="s" * 10_000, tensor=0),))
    for box in drawn(Graph(target=CPU, tensors=(tensor,), nodes=(node,)))["boxes"]:
        assert box[4] < 1200


def test_a_tensor_is_drawn_as_what_it_is() -> None:
    tensors = (
        GraphTensor(shape=(), is_leaf=True), GraphTensor(shape=(), is_leaf=True, requires_grad=True),
        GraphTensor(shape=(), requires_grad=True),
    )  # fmt: skip
    kinds = [kind for kind, *_ in drawn(Graph(target=CPU, tensors=tensors, nodes=nodes_of([]).nodes))["boxes"]]
    assert kinds == ["tensor plain", "tensor leaf", "tensor result", "node"]


def test_a_graph_says_whether_there_is_more_of_it() -> None:
    node = nodes_of([]).nodes
    assert drawn(Graph(target=CPU, tensors=(), nodes=node, cut=True))["cut"] is True
    assert drawn(Graph(target=CPU, tensors=(), nodes=node))["cut"] is False


@each("tensors, is_drawn", [(0, True), (MOST_BOXES - 2, True), (MOST_BOXES - 1, False)])
def test_a_graph_of_too_many_boxes_is_not_drawn(tensors: int, is_drawn: bool) -> None:
    assert (drawing_of(nodes_of([1], [], tensors=tensors)) is not None) == is_drawn


def test_a_long_chain_is_drawn_and_a_thicket_is_not() -> None:
    assert drawing_of(nodes_of(*([number + 1] for number in range(140)))) is not None
    assert drawing_of(nodes_of(*(list(range(60)) for _ in range(60)))) is None


def test_the_drawing_is_the_same_in_every_process() -> None:
    graph = nodes_of(*[[(own * 7 + step) % 23 for step in range(1, 4)] for own in range(23)], tensors=3)
    packed = msgspec.json.encode(graph)
    made = {
        subprocess.run(
            [sys.executable, "-c", DRAWN], input=packed, stdout=subprocess.PIPE, check=True, timeout=120,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in "01"
    }  # fmt: skip
    assert made == {msgspec.json.encode(drawing_of(graph)) + b"\n"}
