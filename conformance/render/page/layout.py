"""Lays out the drawing of a graph as plain data: the place of each tensor and node, and the path of each edge.

Tensors and nodes are drawn in the direction in which values flow: a leaf stands above the operations that use it, a
result below the one that made it.
"""

import functools
from dataclasses import dataclass
from typing import Any

from conformance.model.graph import Graph, GraphNode, GraphTensor, SavedTensor
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
    """Return the boxes (kind, lines of text, x, y, width, height, lines before backward) and the paths of a graph.

    The lines before the first backward are None where they are the same, and none where there was no such box yet. A
    path has a kind and points. None for a graph that is empty, or too large to be looked at.
    """
    if not 0 < len(graph.tensors) + len(graph.nodes) <= MOST_BOXES:
        return None
    boxes = [*tensor_boxes(graph), *node_boxes(graph)]
    links = tuple(links_of(graph))
    laid_out = layout(tuple(box.size for box in boxes), links)
    if laid_out is None:
        return None
    centres, paths, size = laid_out
    return {
        "size": size,
        "boxes": [
            (box.kind, box.lines, *centre, *box.size, None if box.before == box.lines else box.before)
            for box, centre in zip(boxes, centres, strict=True)
        ],
        "paths": [(kind, points) for (_, _, kind), points in zip(links, paths, strict=True)],
        "cut": graph.cut,
    }


@dataclass(frozen=True, slots=True)
class Box:
    """The kind of a box, and its text at the end and before the first backward."""

    kind: str
    lines: list[str]
    before: list[str]

    @property
    def size(self) -> Size:
        count = max(len(self.lines), len(self.before))
        longest = max(map(len, (*self.lines, *self.before)), default=1)
        return round(longest * CHARACTER + 2 * PADDING), count * LINE + PADDING


def tensor_boxes(graph: Graph) -> list[Box]:
    """Return the boxes of tensors; versions are told where one of them is not 0."""
    has_versions = any(tensor.version for tensor in graph.tensors)
    boxes = []
    for tensor in graph.tensors:
        kind = "plain" if not tensor.requires_grad else "leaf" if tensor.is_leaf else "result"
        base = None if tensor.view_of is None else tensor_name(graph, tensor.view_of)
        lines, before = (
            [*tensor_lines(tensor, has_grad), *(version_line(version) if has_versions else []),
             *([f"view of {base}"] if base else [])]
            for has_grad, version in (
                (tensor.has_grad, tensor.version), (tensor.had_grad, tensor.version_at_backward)
            )
        )  # fmt: skip
        boxes.append(Box(f"tensor {kind}", lines, before_backward(graph, tensor, lines, before)))
    return boxes


def before_backward(graph: Graph, item: GraphTensor | GraphNode, lines: list[str], before: list[str]) -> list[str]:
    """Return the lines before the first backward: `lines` where there was no backward, none for what came later."""
    if not has_backward(graph):
        return lines
    return [] if item.late else before


def has_backward(graph: Graph) -> bool:
    """Whether a backward is known to have begun."""
    return any(tensor.version_at_backward is not None for tensor in graph.tensors)


def tensor_lines(tensor: GraphTensor, has_grad: bool) -> list[str]:
    """Return the text of a tensor: its name and shape, then what autograd makes of it."""
    more = ", …" if len(tensor.shape) > SHAPE_SHOWN else ""
    shape = shortened(f"[{', '.join(map(str, tensor.shape[:SHAPE_SHOWN]))}{more}]", LONGEST_NAME)
    flags = [word for word, holds in (("leaf", tensor.is_leaf), ("requires grad", tensor.requires_grad)) if holds]
    lines = [f"{shortened(tensor.name, LONGEST_NAME) or 'a tensor'} {shape}", ", ".join(flags) or "no grad"]
    if tensor.retains_grad and not tensor.is_leaf:
        lines.append("retains grad")
    if tensor.accumulates:
        lines.append("accumulates into .grad" + (" (set)" if has_grad else ""))
    elif has_grad:
        lines.append(".grad is there")
    if tensor.hooks:
        lines.append("1 hook" if tensor.hooks == 1 else f"{tensor.hooks} hooks")
    return lines


def version_line(version: int | None) -> list[str]:
    return [] if version is None else [f"version {version}"]


def tensor_name(graph: Graph, number: int | None) -> str:
    is_known = number is not None and number < len(graph.tensors)
    return graph.tensors[number].name if is_known and number is not None else ""


def node_boxes(graph: Graph) -> list[Box]:
    """Return the boxes of nodes: a name, what is saved, which tensor that is, and whether that was written to."""
    boxes = []
    for node in graph.nodes:
        name = shortened(node.name, LONGEST_NAME)
        saved = [
            ", ".join(saved_text(graph, each, is_end=is_end) for each in node.saved[:SAVED_SHOWN])
            for is_end in (True, False)
        ]
        lines, before = ([name, *([f"{word} {text}"] if text else [])] for word, text in zip(
            ("freed" if node.freed else "saved", "saved"), saved, strict=True))  # fmt: skip
        boxes.append(Box("node", lines, before_backward(graph, node, lines, before)))
    return boxes


def saved_text(graph: Graph, saved: SavedTensor, *, is_end: bool) -> str:
    """Return the node's name for what it has saved, which tensor that is, and whether it was written to since."""
    name = tensor_name(graph, saved.tensor)
    text = f"{saved.name} = {name}" if name and name != saved.name else saved.name
    if saved.tensor is not None and saved.tensor < len(graph.tensors) and saved.version is not None:
        tensor = graph.tensors[saved.tensor]
        now = tensor.version if is_end else tensor.version_at_backward
        if now is not None and now != saved.version:
            text += f" at version {saved.version}, written to since"
    return shortened(text, LONGEST_NAME)


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
