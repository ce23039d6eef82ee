"""Expands a case with `spellings` or `parametrize` into ordinary cases with plain steps.

Spellings are different ways to compute the same result; each is run on every program. From

    programs:
      - id: product
        inputs: {a: [[1.5], [-2.0]], b: [0.5, 3.0]}
        result: a * b
        g: [[1.0, -1.0], [2.0, 0.5]]
        gradients: {a: "(g * b).sum(1, keepdim=True)", b: (g * a).sum(0)}
    cases:
      - id: backward-or-grad
        spellings:
          backward: [f(*inputs).backward(g), "found = [x.grad for x in inputs]"]
          autograd.grad: ["found = autograd.grad(f(*inputs), inputs, g)"]

comes the case backward-or-grad-on-product. For each spelling it makes new inputs, runs the steps, and expects that
`found` holds the gradients of the formulas and that the inputs are unchanged. Spellings without programs share an
`expect`, which follows each of them.

Programs have `features`, words for what of autograd they use. Some of the programs of a case have all features of the
others, too: those are tried unless all pairs are asked for.

A case with the rows `parametrize: {exp: {op: "lambda t: t.exp()"}, …}` becomes one case for each row, such as
`<id>-exp`, which begins with the step `op = lambda t: t.exp()`.

Each node of an expanded case has the place of the node that it was made from.
"""

import hashlib
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.language.parsing import parse_code
from conformance.language.yaml import Node

KEPT = ("id", "title", "why", "rules", "source", "torch", "dtypes", "devices")
OF_ROW = frozenset({"torch", "dtypes"})  # keys of a row that are not variables
INDENT = 4


def like(origin: Node, value: Any) -> Node:
    """Return a node of `value` at the place of `origin`; lists and mappings may hold plain values and nodes."""
    node = Node(value, origin.line, origin.column, ">" if isinstance(value, str) else "")
    if isinstance(value, dict):
        node.value = {key: inner if isinstance(inner, Node) else like(origin, inner) for key, inner in value.items()}
        node.keys = {key: origin.keys.get(key, (origin.line, origin.column)) for key in value}
    elif isinstance(value, list):
        node.value = [inner if isinstance(inner, Node) else like(origin, inner) for inner in value]
    return node


def on_program(case: Node, program: Node | None) -> Node:
    """Return the ordinary case that a case with spellings becomes on `program`, or without one."""
    plain = {key: case.value[key] for key in KEPT if key in case.value}
    steps: list[Node] = []
    if program is not None:
        part = program.value
        plain = variant_of(case, program, suffix_of(program), part["title"].value)
        inputs: dict[str, Node] = part["inputs"].value
        steps = [
            like(part["result"], definition(inputs, part["result"].value)),
            like(part["g"], f"g = {made(part['g'])}"),
            like(part["inputs"], f"values = [{', '.join(map(made, inputs.values()))}]"),
        ]
    given: list[Node] = case.value["given"].value if "given" in case.value else []
    for name, spelling in case.value["spellings"].value.items():
        fresh = [] if program is None else [like(program.value["inputs"], fresh_inputs(program))]
        own: list[Node] = [*fresh, *given, *spelling.value]
        steps += [with_note(own[0], f"# {' '.join(name.split())}\n"), *own[1:]]
        expected = case.value["expect"] if program is None else gradients_of(program)
        steps.append(like(expected, {"expect": expected}))
    return like(case, {**plain, "steps": like(case.value["spellings"], steps)})


def id_on(case: Node, program: Node) -> str:
    """Return the id of the case that one with spellings becomes on `program`."""
    return f"{case.value['id'].value}{suffix_of(program)}"


def suffix_of(program: Node) -> str:
    return f"-on-{program.value['id'].value}"


def of_row(case: Node, name: str, row: Node) -> Node:
    """Return the ordinary case that a case with rows becomes for one of them."""
    lines = [f"{variable} = {literal(value)}" for variable, value in row.value.items() if variable not in OF_ROW]
    steps = [like(row, "\n".join(lines)), *case.value["steps"].value]
    return like(case, {**variant_of(case, row, f"-{name}", name), "steps": like(case.value["steps"], steps)})


def variant_of(case: Node, other: Node, suffix: str, title: str) -> dict[str, Node]:
    """Return what a case keeps for a program or a row, with an id, a title and conditions of its own."""
    kept = {key: case.value[key] for key in KEPT if key in case.value}
    kept["id"] = like(kept["id"], f"{kept['id'].value}{suffix}")
    kept["title"] = like(kept["title"], f"{kept['title'].value}: {title}")
    torch = [node.value["torch"] for node in (case, other) if "torch" in node.value]
    dtypes = [node.value["dtypes"] for node in (case, other) if "dtypes" in node.value]
    if torch:
        kept["torch"] = like(torch[-1], ",".join(node.value for node in torch))
    if dtypes:
        kept["dtypes"] = like(dtypes[-1], [node for node in dtypes[0].value if node.value in dtypes[-1].plain])
    return kept


def with_note(step: Node, note: str) -> Node:
    """Return a step whose first statement follows a comment; one without statements is returned as it is."""
    if isinstance(step.value, str):
        return like(step, note + step.value)
    if "do" in step.value:
        return like(step, {**step.value, "do": with_note(step.value["do"], note)})
    if "when" in step.value:
        block = step.value["when"]
        first, *others = block.value["steps"].value
        return like(step, {"when": like(block, {**block.value, "steps": [with_note(first, note), *others]})})
    return step


def definition(inputs: Iterable[str], result: str) -> str:
    """Return the statement that defines `f`, the function of a program."""
    result = result.strip("\n")
    parsed = parse_code(result, mode="eval")
    body = result if parsed.tree is None else f"return {result.strip()}"
    return f"def f({', '.join(inputs)}):\n{textwrap.indent(body, INDENT * ' ')}"


def fresh_inputs(program: Node) -> str:
    """Return the statement that makes new leaves, under their own names and as the list `inputs`."""
    names = list(program.value["inputs"].value)
    targets = ", ".join(names) if len(names) > 1 else f"{names[0]},"
    return f"{targets} = inputs = [x.clone().requires_grad_() for x in values]\nrandom = torch.get_rng_state()"


def gradients_of(program: Node) -> Node:
    """Return what must hold after each spelling: the gradients, and that leaves and random numbers are unchanged."""
    gradients = program.value["gradients"]
    expected: dict[str, Any] = {"len(found)": len(program.value["inputs"].value)}
    for index, name in enumerate(program.value["inputs"].value):
        expected[f"found[{index}]"] = gradients.value[name]
        expected[f"found[{index}].dtype == {name}.dtype"] = True
        expected[name] = {"is_leaf": True, "requires_grad": True, "version": 0, "value": f"values[{index}]"}
    expected["torch.equal(torch.get_rng_state(), random)"] = True  # no program draws any
    return like(gradients, expected)


def made(node: Node) -> str:
    """Return the expression for a tensor that a program gives as an expression or as numbers."""
    return literal(node) if isinstance(node.value, str) else f"tensor({literal(node)})"


def literal(node: Node) -> str:
    """Return a value as an expression; text is an expression already, unless it is `{text: …}`."""
    if isinstance(node.value, dict):
        return repr(node.find("text").plain)
    if isinstance(node.value, list):
        return f"[{', '.join(map(literal, node.value))}]"
    return node.value.strip() if isinstance(node.value, str) else str(node.value)


def programs_of(case: Node, programs: Mapping[str, Node]) -> dict[str, Node]:
    """Return the programs that a case with spellings is run on, by id: none if it says itself what it expects."""
    if "expect" in case.value:
        return {}
    wanted = case.find("programs").plain if "programs" in case.value else None
    left_out = case.value["except"].value.keys() if "except" in case.value else set()

    def is_tried(words: set[str]) -> bool:
        return (wanted is None or not words.isdisjoint(wanted)) and words.isdisjoint(left_out)

    return {name: program for name, program in programs.items() if is_tried({name, *features_of(program)})}


def features_of(program: Node) -> list[str]:
    """Return the features of a program, or its id if it says none; what is no word has been reported."""
    said = program.find("features").value
    if not isinstance(said, list):
        return [program.find("id").value]
    return [word.value for word in said if isinstance(word.value, str)]


def covering(case: Node, programs: Mapping[str, Node]) -> set[str]:
    """Return the ids of few programs that have every feature of those that a case with spellings is run on.

    The program with most of the features that are missing comes first. A digest decides between equal ones: so the
    choice is always the same, differs from case to case, and doesn't depend on other cases.
    """
    features = {name: set(features_of(program)) for name, program in programs_of(case, programs).items()}
    order = {name: hashlib.sha256(f"{case.find('id').value} {name}".encode()).digest() for name in features}
    chosen: set[str] = set()
    missing = set().union(*features.values())
    while missing:
        best = max(features, key=lambda name: (len(features[name] & missing), order[name]))
        chosen.add(best)
        missing -= features[best]
    return chosen
