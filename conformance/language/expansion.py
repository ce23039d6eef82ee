"""Writes out equivalences: cases whose spellings must come to the same, as ordinary cases with plain steps.

What is said once as

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

becomes the case backward-or-grad-on-product. For each spelling it makes the inputs anew, does the steps, and expects
the formulas of `found`, and of the inputs that nothing has happened to them. Spellings that no program is for have
an `expect` in common, which is written after each.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from conformance.language import grammar as language
from conformance.language.yaml import FLOAT, INT

Data = Mapping[str, Any]

KEPT = ("id", "title", "why", "rules", "source", "torch", "dtypes", "devices")
WIDTH = 110
SHORT = 90  # characters of JSON that stand on one line
INDENT = 4


def written_out(case: Data, program: Data | None = None) -> dict[str, Any]:
    """Return the ordinary case that `case` with its spellings stands for, on `program` if it is tried on some."""
    plain = {key: case[key] for key in KEPT if key in case}
    steps: list[Any] = []
    if program is not None:
        plain["id"] = f"{case['id']}-on-{program['id']}"
        plain["title"] = f"{case['title']}: {program['title']}"
        plain.update(narrowed(case, program))
        steps += [definition(program["inputs"], program["result"]), f"g = {made(program['g'])}"]
        steps += [f"values = [{', '.join(map(made, program['inputs'].values()))}]"]
    for name, spelling in case["spellings"].items():
        note = f"# {' '.join(name.split())}\n"
        fresh = [] if program is None else [fresh_inputs(program)]
        own = fresh + case.get("given", []) + spelling
        steps += [with_note(own[0], note), *own[1:]]
        steps.append({"expect": case["expect"] if program is None else gradients_of(program)})
    return {**plain, "steps": steps}


def narrowed(case: Data, program: Data) -> dict[str, Any]:
    """Return the conditions under which both can be run."""
    conditions = [data["torch"] for data in (case, program) if "torch" in data]
    dtypes = [data["dtypes"] for data in (case, program) if "dtypes" in data]
    both = {"torch": ",".join(conditions)} if conditions else {}
    return {**both, "dtypes": [name for name in dtypes[0] if name in dtypes[-1]]} if dtypes else both


def with_note(step: Any, note: str) -> Any:
    """Return a step that begins with a comment, where it has text to begin."""
    if isinstance(step, str):
        return note + step
    return {**step, "do": note + step["do"]} if "do" in step else step


def definition(inputs: Iterable[str], result: str) -> str:
    """Return the statement that defines `f`, the function that a program is."""
    result = result.strip("\n")
    parsed = language.parse(result, mode="eval")
    body = result if parsed.tree is None else f"return {result.strip()}"
    return f"def f({', '.join(inputs)}):\n{textwrap.indent(body, INDENT * ' ')}"


def fresh_inputs(program: Data) -> str:
    """Return the statement that makes the leaves anew, under their own names and as the list `inputs`."""
    names = list(program["inputs"])
    targets = ", ".join(names) if len(names) > 1 else f"{names[0]},"
    return f"{targets} = inputs = [x.clone().requires_grad_() for x in values]"


def gradients_of(program: Data) -> dict[str, Any]:
    """Return what must hold after each spelling: the gradients, and that the leaves are as they were."""
    expected: dict[str, Any] = {"len(found)": len(program["inputs"])}
    for index, name in enumerate(program["inputs"]):
        expected[f"found[{index}]"] = program["gradients"][name]
        expected[f"found[{index}].dtype == {name}.dtype"] = True
        expected[name] = {"is_leaf": True, "requires_grad": True, "version": 0, "value": f"values[{index}]"}
    return expected


def made(value: Any) -> str:
    """Return the expression that makes a tensor of what a program gives for one."""
    return value.strip() if isinstance(value, str) else f"tensor({shown(value)})"


def shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return str(value) if not isinstance(value, str) else value.strip()


Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # libyaml where PyYAML was built with it


class Writer(Dumper):  # type: ignore[misc]
    """Writes YAML that `document.py` reads as it was, what is short on one line."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def collection_node(writer: Any, data: Any) -> Any:
    text = json.dumps(data, default=str)
    flow = len(text) <= SHORT and "\\n" not in text
    if isinstance(data, dict):
        return writer.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=flow)
    return writer.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flow)


def text_node(writer: Any, text: str) -> Any:
    number = INT.fullmatch(text) or FLOAT.fullmatch(text)  # to YAML 1.2, whatever it is to PyYAML
    style = "|" if "\n" in text else "'" if number else None
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style)


Writer.add_representer(str, text_node)
for kind in (dict, list):
    Writer.add_representer(kind, collection_node)


def yaml_of(case: Data) -> str:
    """Return a case as YAML, as it stands in the list of a case file."""
    text: str = yaml.dump([case], Dumper=Writer, sort_keys=False, allow_unicode=True, width=WIDTH)
    return textwrap.indent(text, "  ")


def tried_on(case: Data, programs: Mapping[str, Data]) -> Sequence[Data | None]:
    """Return the programs that a case with spellings is tried on: None alone where it needs none."""
    if "expect" in case:
        return [None]
    return [program for name, program in programs.items() if name in case.get("programs", programs)]
