"""Lays out the drawing of a graph as plain data: the place of each tensor and node, and the path of each edge.

Tensors and nodes are drawn in the direction in which values flow: a leaf stands above the operations that use it, a
result below the one that made it.
"""

import functools
from collections.abc import Sequence
from typing import Any

from conformance.model.graph import Graph, GraphNode, GraphTensor
from conformance.render.page.layers import Point, Size, lay_out
from conformance.render.text import shortened

CHARACTER = 7.3  # the width of a character, in CSS pixels, as everything here
LINE = 16
PADDING = 12
GAP = (28, 26)  # between neighbours, across and down
WIDE = 1100  # of parts side by side; one that is wider by itself has a row of its own
SHAPE_SHOWN = 4
SAVED_SHOWN = 6
LONGEST_NAME = 60
MOST_BOXES = 200  # more can't be read
MOST_PLACES = 6000  # of boxes, and of edges on their way past others; more take seconds to lay out

Link = tuple[int, int, str]  # from, to, and what kind: flow or memory


def drawing_of(graph: Graph) -> dict[str, Any] | None:
    """Return the boxes (kind, lines of text, x, y, width, height) and the paths (kind, points) of a graph.

    None for one that is empty, or too large to be looked at.
    """
    if not 0 < len(graph.tensors) + len(graph.nodes) <= MOST_BOXES:
        return None
    boxes = [*map(tensor_box, graph.tensors), *(node_box(graph, node) for node in graph.nodes)]
    links = tuple(links_of(graph))
    laid_out = layout(tuple(box for _, _, box in boxes), links)
    if laid_out is None:
        return None
    centres, paths, size = laid_out
    return {
        "size": size,
        "boxes": [(kind, lines, *centre, *box) for (kind, lines, box), centre in zip(boxes, centres, strict=True)],
        "paths": [(kind, points) for (_, _, kind), points in zip(links, paths, strict=True)],
        "cut": graph.cut,
    }


def size_of(lines: Sequence[str]) -> Size:
    return round(max(map(len, lines), default=1) * CHARACTER + 2 * PADDING), len(lines) * LINE + PADDING


@functools.lru_cache(maxsize=4096)
def tensor_box(tensor: GraphTensor) -> tuple[str, list[str], Size]:
    """Return the kind, text and size of a tensor's box: its name and shape, then what autograd makes of it."""
    kind = "plain" if not tensor.requires_grad else "leaf" if tensor.is_leaf else "result"
    more = ", …" if len(tensor.shape) > SHAPE_SHOWN else ""
    shape = shortened(f"[{', '.join(map(str, tensor.shape[:SHAPE_SHOWN]))}{more}]", LONGEST_NAME)
    flags = [word for word, holds in (("leaf", tensor.is_leaf), ("requires grad", tensor.requires_grad)) if holds]
    lines = [f"{shortened(tensor.name, LONGEST_NAME) or 'a tensor'} {shape}", ", ".join(flags) or "no grad"]
    if tensor.retains_grad and not tensor.is_leaf:
        lines.append("retains grad")
    if tensor.accumulates:
        lines.append("accumulates into .grad")
    elif tensor.has_grad:
        lines.append(".grad is there")
    return f"tensor {kind}", lines, size_of(lines)


def node_box(graph: Graph, node: GraphNode) -> tuple[str, list[str], Size]:
    """Return the kind, text and size of a node's box: its name, then what it has saved, and which tensor that is."""
    named = []
    names = {number: tensor.name for number, tensor in enumerate(graph.tensors)}
    for saved in node.saved[:SAVED_SHOWN]:
        name = names.get(saved.tensor, "") if saved.tensor is not None else ""
        named.append(shortened(f"{saved.name} = {name}" if name and name != saved.name else saved.name, LONGEST_NAME))
    lines = [shortened(node.name, LONGEST_NAME), *(["saved " + ", ".join(named)] if named else [])]
    return "node", lines, size_of(lines)


def links_of(graph: Graph) -> list[Link]:
    """Return the edges as values flow: from a leaf or a result to the node that uses it, from a node to its result."""
    tensors, nodes = len(graph.tensors), len(graph.nodes)
    made: dict[int, list[int]] = {}
    links: dict[tuple[int, int], str] = {}
    for number, tensor in enumerate(graph.tensors):
        if tensor.node is not None and tensor.node < nodes:
            made.setdefault(tensor.node, []).append(number)
            links[tensors + tensor.node, number] = "flow"
    for number, node in enumerate(graph.nodes):
        for edge in node.next:
            if edge is None:
                continue
            if edge.tensor is not None and edge.tensor < tensors:
                links[edge.tensor, tensors + number] = "flow"
            elif edge.node is not None and edge.node < nodes:
                results = made.get(edge.node, [])
                links[results[0] if len(results) == 1 else tensors + edge.node, tensors + number] = "flow"
    for number, tensor in enumerate(graph.tensors):
        other = tensor.shares_storage
        if other is not None and other < tensors and other != number:
            links.setdefault((other, number), "memory")
    return [(*ends, kind) for ends, kind in links.items()]


@functools.lru_cache(maxsize=4096)
def layout(sizes: tuple[Size, ...], links: tuple[Link, ...]) -> tuple[list[Point], list[list[Point]], Point] | None:
    """Return the centres of boxes of these sizes, the points of each link, and the size of the whole.

    None where that would take too long.
    """
    drawing = lay_out(sizes, [(first, second) for first, second, _ in links], gap=GAP, wide=WIDE, most=MOST_PLACES)
    if drawing is None:
        return None
    centres, ways, size = drawing
    return centres, [ways.get((first, second), []) for first, second, _ in links], size
