"""Expands an entry of `ops`, a differentiable operation, into an ordinary case.

From

    ops:
      - id: cumprod
        op: [x.cumprod(dim), "torch.cumprod(x, dim=dim)"]
        inputs: {x: [n, m]}
        rows: [{dim: 0}, {dim: -1}]

comes the case derivatives-of-cumprod, which has the worker differentiate both expressions in all ways, for each row, at
ordinary and at hard points, and expects that no way disagrees. Names in shapes stand for sizes. Instead of `inputs` an
elementwise operation has `elementwise: {x: positive}`: where most numbers of each input lie.
"""

import ast
from typing import Any

from conformance.language import vocabulary
from conformance.language.expansion import like, literal
from conformance.language.parsing import parse_code
from conformance.language.yaml import Node
from conformance.model.case import Case, ListedCase

RULES = ("ops.against-differences",)
WHY = (
    "Its gradient, its tangents and its second derivatives must be those that differences of its values show, also at "
    "zeros, ties and bounds, for each size, memory layout and dtype."
)
WAYS = (
    "backward", "forward mode", "backward twice", "forward over backward", "backward over forward", "batched gradients",
    "incoming gradients", "memory", "writes", "accumulation", "per sample", "saved elsewhere", "on meta",
    "backward three times", "native dtype",
)  # fmt: skip
OF_SEVERAL = ("some inputs", "some tangents", "some inputs twice")  # the ways that need more than one input
PREFIX = "derivatives-of-"  # of the ids of cases of operations
MAKES = vocabulary.FACTORIES | vocabulary.RANDOM


def is_of_operation(case: Case | ListedCase) -> bool:
    return case.id.startswith(PREFIX)


def expressions_of(node: Node) -> list[Node]:
    given = node.value["op"]
    return given.value if isinstance(given.value, list) else [given]


def check_operation(node: Node, report: Any) -> None:
    """Report expressions that make tensors or leave inputs out, and rows that have different names."""
    inputs = (node.value.get("inputs") or node.value["elementwise"]).value
    rows = node.value["rows"].value if "rows" in node.value else []
    names = [*inputs, *(rows[0].value if rows else ())]
    for index, row in enumerate(rows[1:], 1):
        if row.value.keys() != rows[0].value.keys():
            report(row, f"rows[{index}]", f"expected the keys {', '.join(rows[0].value)}, as in the first row")
    for text in expressions_of(node):
        parsed = parse_code(text.value, "eval")
        tree = parsed.tree
        for finding in parsed.findings:
            report(text, "op", finding.message, "quote an expression that has a comma in a list")
        used = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)} if tree is not None else set(names)
        for name in sorted(used & MAKES - set(names)):
            report(text, "op", f"{name}() makes a tensor", "give it as an argument in rows")
        for name in names:
            if name not in used:
                report(text, "op", f"{name!r} is not used")


def of_operation(node: Node) -> Node:
    """Return the ordinary case that an entry stands for."""
    entry = node.value
    inputs = entry["elementwise"] if "elementwise" in entry else entry["inputs"]
    rows = [row.value for row in entry["rows"].value] if "rows" in entry else []
    parameters = ", ".join([*inputs.value, *(rows[0] if rows else ())])
    texts = [text.value.strip() for text in expressions_of(node)]
    functions = [f"lambda {parameters}: {text}" for text in texts]
    lines = [f"f = {functions[0]}" if len(functions) == 1 else listed("f", functions)]
    arguments = ["f", str(inputs.plain)]
    if rows:
        pairs = [[f"{name!r}: {literal(value)}" for name, value in row.items()] for row in rows]
        lines.append(listed("rows", [f"{{{', '.join(row)}}}" for row in pairs]))
        arguments.append("rows")
    if "complex" in entry:
        arguments.append("complex_too=True")
    lines.append(f"wrong = derivatives({', '.join([*arguments, 'device=device', 'dtype=dtype'])})")
    ways = [*WAYS, *OF_SEVERAL] if len(inputs.value) > 1 else WAYS
    expected: dict[str, Any] = {f"wrong[{way!r}]": [] for way in ways}
    return like(node, {
        "id": PREFIX + entry["id"].value,
        "title": f"Derivatives of {texts[0]}",
        "why": entry.get("why", WHY),
        "rules": list(RULES),
        **{key: entry[key] for key in ("torch", "dtypes") if key in entry},
        "steps": like(entry["op"], ["\n".join(lines) + "\n", {"expect": expected}]),
    })  # fmt: skip


def listed(name: str, items: list[str]) -> str:
    return "\n".join([f"{name} = [", *(f"    {item}," for item in items), "]"])
