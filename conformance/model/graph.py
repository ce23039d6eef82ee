"""Graphs: the tensors and nodes that one run of a case builds."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from conformance.model.outcome import Count, Line


class GraphTensor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A tensor of a graph."""

    name: Annotated[
        str, Meta(description="The variable that held it, as in the case; none for one that only the graph holds.")
    ] = ""
    line: Annotated[Line | None, Meta(description="The line of the step after which it was first seen.")] = None
    shape: tuple[int, ...]
    is_leaf: bool = False
    requires_grad: bool = False
    retains_grad: bool = False
    has_grad: Annotated[bool, Meta(description="Whether its grad was not None at some point.")] = False
    accumulates: Annotated[bool, Meta(description="Whether a node of the graph accumulates into its grad.")] = False
    node: Annotated[Count | None, Meta(description="The index of the node that made it, its grad_fn.")] = None
    output_nr: Annotated[Count, Meta(description="Which output of that node it is.")] = 0
    shares_storage: Annotated[
        Count | None, Meta(description="The index of an earlier tensor whose memory it shares.")
    ] = None
    view_of: Annotated[Count | None, Meta(description="The index of the tensor of which it is a view.")] = None
    hooks: Annotated[Count, Meta(description="The most hooks that were registered on it at a time.")] = 0
    version: Annotated[Count | None, Meta(description="Its version counter when it was last seen.")] = None
    version_at_backward: Annotated[
        Count | None, Meta(description="Its version counter before the first backward, if it was there.")
    ] = None
    had_grad: Annotated[bool, Meta(description="Whether its grad was there before the first backward.")] = False
    late: Annotated[bool, Meta(description="Whether it was first seen after a backward had begun.")] = False


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The destination of a gradient: a node, or the leaf that accumulates it."""

    node: Count | None = None
    tensor: Count | None = None


class SavedTensor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A tensor that a node has saved for backward, with the node's name for it."""

    name: Annotated[str, Meta(description="The node's name for it, such as self or result.")]
    tensor: Annotated[Count | None, Meta(description="The index of the tensor, where it is one of the graph's.")] = None
    version: Annotated[Count | None, Meta(description="The version counter of what was saved, when first seen.")] = None


class GraphNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A node of a graph, with an edge (or None) for each input of its operation."""

    name: Annotated[str, Meta(description="The name of the node, as grad_fn shows it.")]
    next: tuple[GraphEdge | None, ...] = ()
    saved: Annotated[tuple[SavedTensor, ...], Meta(description="The tensors that it has saved for backward.")] = ()
    freed: Annotated[bool, Meta(description="Whether a backward freed what it had saved.")] = False
    late: Annotated[bool, Meta(description="Whether it was first seen after a backward had begun.")] = False


class Graph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The graph of a case on one target; `cut` if it has more tensors or nodes than are listed."""

    target: Annotated[str, Meta(description="The target of the run that recorded the graph.")]
    tensors: tuple[GraphTensor, ...]
    nodes: tuple[GraphNode, ...]
    cut: Annotated[bool, Meta(description="Whether there was more than is listed.")] = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing in it was recorded, or could have been."""
        return not self.nodes and not any(tensor.requires_grad for tensor in self.tensors)


class EncodedGraphs(Mapping[str, Graph]):
    """Graphs by case, each as JSON until it is looked at: as records they take ten times the memory."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def __getitem__(self, case: str) -> Graph:
        return msgspec.json.decode(self.texts[case], type=Graph)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)
