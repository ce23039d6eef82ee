"""Expands an entry of `ops`, a differentiable operation, into an ordinary case. From

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

RULES = ("ops.against-differences",)
WHY = (
    "Its gradient, its tangents and its second derivatives must be those that differences of its values show, also at "
    "zeros, ties and bounds, for each size, memory layout and dtype."
)
WAYS = (
    "backward", "forward mode", "backward twice", "forward over backward", "backward over forward", "batched gradients",
    "incoming gradients", "memory", "writes", "native dtype",
)  # fmt: skip
OF_SEVERAL = "some inputs"  # the way that needs more than one input
BROADCAST = (["n", "m"], ["m"], ["n", 1])  # shapes of elementwise inputs
MAKES = vocabulary.FACTORIES | vocabulary.RANDOM


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
    is_elementwise = "elementwise" in entry
    inputs = (entry["elementwise"] if is_elementwise else entry["inputs"]).value
    shapes: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for place, (name, given) in enumerate(inputs.items()):
        if is_elementwise:
            shapes[name], kind = BROADCAST[min(place, 2)], given.value
        else:
            kind, shapes[name] = next(iter(given.plain.items())) if isinstance(given.value, dict) else ("", given.plain)
        if kind not in ("", "any"):
            kinds[name] = kind
    rows = [row.value for row in entry["rows"].value] if "rows" in entry else []
    parameters = ", ".join([*inputs, *(rows[0] if rows else ())])
    texts = [text.value.strip() for text in expressions_of(node)]
    functions = [f"lambda {parameters}: {text}" for text in texts]
    lines = [f"f = {functions[0]}" if len(functions) == 1 else "f = [\n" + "".join(f"    {each},\n" for each in functions) + "]"]
    arguments = ["f", str(shapes)]
    if rows:
        made = [f"{{{', '.join(f'{name!r}: {literal(value)}' for name, value in row.items())}}}" for row in rows]
        lines.append("rows = [\n" + "".join(f"    {each},\n" for each in made) + "]")
        arguments.append("rows=rows")
    if kinds:
        arguments.append(f"kinds={kinds}")
    if is_elementwise:
        arguments.append("elementwise=True")
    if "complex" in entry:
        arguments.append("complex_too=True")
    lines.append(f"wrong = derivatives({', '.join([*arguments, 'device=device', 'dtype=dtype'])})")
    expected = {f"wrong[{way!r}]": [] for way in (*WAYS, *([OF_SEVERAL] if len(inputs) > 1 else []))}
    kept = {key: entry[key] for key in ("torch", "dtypes") if key in entry}
    return like(node, {
        "id": f"derivatives-of-{entry['id'].value}",
        "title": f"Derivatives of {texts[0]}",
        "why": entry.get("why", WHY),
        "rules": list(RULES),
        **kept,
        "steps": like(entry["op"], ["\n".join(lines) + "\n", {"expect": expected}]),
    })  # fmt: skip
