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
`found` holds the gradients of the formulas, and what else `agreement` asks of each. Spellings without programs share an
`expect`, which follows each of them.

Programs have `features`, words for what of autograd they use. Some of the programs of a case have all features of the
others, too: those are tried unless all pairs are asked for.

A case with the rows `parametrize: {exp: {op: "lambda t: t.exp()"}, …}` becomes one case for each row, such as
`<id>-exp`, which begins with the step `op = lambda t: t.exp()`.

Each node of an expanded case has the place of the node that it was made from.
"""

import hashlib
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.language import agreement
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
    spellings = case.value["spellings"].value
    if program is None:
        given, expected = case.value["given"].value if "given" in case.value else [], case.value["expect"]
        kept = {key: case.value[key] for key in KEPT if key in case.value}
        steps = [step for name, own in spellings.items() for step in noted(name, [*given, *own.value], expected)]
    else:
        kept = variant_of(case, program, suffix_of(program), program.value["title"].value)
        steps = steps_on(case, program)
    return like(case, {**kept, "steps": like(case.value["spellings"], steps)})


def noted(name: str, steps: Sequence[Node], expected: Node) -> list[Node]:
    """Return the steps of a spelling, which begin with its name, and what is expected after them."""
    return [with_note(steps[0], f"# {' '.join(name.split())}\n"), *steps[1:], like(expected, {"expect": expected})]


def steps_on(case: Node, program: Node) -> list[Node]:
    """Return the steps of all spellings of a case on a program."""
    part = program.value
    inputs: dict[str, Node] = part["inputs"].value
    values = f"values = [{', '.join(map(made, inputs.values()))}]"
    steps = [
        like(part["result"], definition(inputs, part["result"].value)),
        like(part["g"], f"g = {made(part['g'])}"),
        like(part["inputs"], agreement.before(program, values)),
    ]
    given: list[Node] = case.value["given"].value if "given" in case.value else []
    suspended = set(case.value["suspends"].value) if "suspends" in case.value else set()
    every: set[str] = set()
    for name, spelling in case.value["spellings"].value.items():
        said, bound = texts_of(spelling.value)
        every |= bound
        fresh = like(part["inputs"], agreement.fresh(program, name))
        own = spelling.value if "warnings" in suspended else map(quiet, spelling.value)
        expected = like(part["gradients"], agreement.after(program, suspended, said, bound))
        steps += noted(name, [fresh, *given, *own], expected)
    if "freed" not in suspended:
        steps += [like(part["inputs"], step) for step in agreement.at_the_end(program, every)]
    return steps


def texts_of(steps: Iterable[Node]) -> tuple[str, set[str]]:
    """Return what the statements of steps say, and the names that they set."""
    said: list[str] = []
    bound: set[str] = set()
    for step in steps:
        inner = step.value if isinstance(step.value, dict) else {}
        if "when" in inner:
            text, names = texts_of(inner["when"].value["steps"].value)
        else:
            text = inner["do"].value if "do" in inner else "" if inner else step.value
            parsed = parse_code(text)
            bound -= parsed.deleted
            names = set(parsed.bound)
        said.append(text)
        bound |= names
    return "\n".join(said), bound


def quiet(step: Node) -> Node:
    """Return a step of which no statement gives a warning, unless it is about one."""
    if isinstance(step.value, str):
        return like(step, {"do": step, "warns": "none"})
    if "when" in step.value:
        block = step.value["when"]
        steps = like(block, [quiet(inner) for inner in block.value["steps"].value])
        return like(step, {"when": like(block, {**block.value, "steps": steps})})
    return like(step, {"warns": "none", **step.value}) if "do" in step.value else step


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
