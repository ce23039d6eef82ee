"""Graphs: what a case builds, as one run of it was seen to do."""

from __future__ import annotations

import msgspec

from conformance.model.outcome import Count, Line


class GraphTensor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A tensor of a graph; `node` and `shares_storage` are indices in the graph's lists."""

    name: str = ""
    line: Line | None = None
    shape: tuple[int, ...]
    is_leaf: bool = False
    requires_grad: bool = False
    retains_grad: bool = False
    has_grad: bool = False
    accumulates: bool = False
    node: Count | None = None
    output_nr: Count = 0
    shares_storage: Count | None = None


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Where a gradient goes: to a node, or to the leaf that accumulates it."""

    node: Count | None = None
    tensor: Count | None = None


class SavedTensor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A tensor that a node has saved for backward, and what the node calls it."""

    name: str
    tensor: Count | None = None


class GraphNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A node of a graph, with an edge (or None) for each input of its operation."""

    name: str
    next: tuple[GraphEdge | None, ...] = ()
    saved: tuple[SavedTensor, ...] = ()


class Graph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a case builds, seen on one target while it runs; `cut` when there was more than is listed."""

    target: str
    tensors: tuple[GraphTensor, ...]
    nodes: tuple[GraphNode, ...]
    cut: bool = False
