"""What is written to be shown: YAML that is read as it was, each node at its place."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from conformance.language.writing import write_case
from conformance.language.yaml import Node, read_document

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"])) | st.text("ab \n:#'\"-|>{}[],&*!%@`\\\t7")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc .:#'\"-\n", min_size=1) | st.just("why"), inner, max_size=4)
    ),
    max_leaves=12,
)


def node_of(value: Any) -> Node:
    if isinstance(value, dict):
        node = Node({key: node_of(inner) for key, inner in value.items()}, 1, 1)
        node.keys = dict.fromkeys(value, (1, 1))
        return node
    return Node([node_of(inner) for inner in value] if isinstance(value, list) else value, 1, 1)


def places(node: Node) -> Any:
    """Return all that a reader makes of a node: values, lines, columns and the places of keys."""
    value = node.value
    if isinstance(value, dict):
        value = {key: (node.keys[key], places(inner)) for key, inner in value.items()}
    elif isinstance(value, list):
        value = [places(inner) for inner in value]
    return repr(value), node.line, node.column, node.style, node.indent if node.style == "|" else 0


@given(PLAIN, st.text("a b", min_size=100, max_size=300))
def test_what_is_written_is_read_as_it_was_and_stands_where_it_says(value: Any, long: str) -> None:
    text, placed = write_case(node_of({"id": "c", "why": long, "steps": [value], "expect": value}), 3)
    read = read_document("\n\n" + text, "t.yaml").value[0]
    assert repr(read.plain) == repr({"id": "c", "why": long, "steps": [value], "expect": value})
    assert places(read) == places(placed)
