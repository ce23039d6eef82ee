"""The fields of a case file, what may stand in them, and what the corpus of `escapes.py` puts there."""

from __future__ import annotations

PAYLOADS = {
    "code": "eval(CODE)",
    "an import": "__import__('builtins').eval(CODE)",
    "a tag": "!!python/object/apply:builtins.eval [CODE]",
    "the end of a text": "'''\"\"\"\n)\neval(CODE)\n#",
    "the end of a line": "x\neval(CODE)\nx",
    "the end of a comment": "x\r eval(CODE)",
    "a line that only Python sees": "x\x0ceval(CODE)",
    "another line that only some see": "x\u2028eval(CODE)",
    "braces": "{eval(CODE)}",
    "a template": "{{ eval(CODE) }}{% import 'x' %}",
    "a path": "../../made",
}
TEXTS = (
    *("code", "a tag", "the end of a text", "the end of a line", "the end of a comment"),
    *("a line that only Python sees", "another line that only some see", "braces", "a template"),
)
NAMED = ("code", "a tag", "the end of a line", "a path")
RUN = ("code", "an import", "a tag", "the end of a line")

CASE = (
    "topic: {topic}\ncases:\n  - id: {id}\n    title: {title}\n    why: {why}\n    rules: [{rules}]\n{more}"
    "    steps:\n      - a = zeros(1)\n{steps}      - expect: {expect}\n"
)
PROGRAM = (
    "topic: T\nprograms:\n  - id: {id}\n    title: {title}\n    features: [{features}]\n    inputs: {{a: {inputs}}}\n"
    "    result: {result}\n    g: {g}\n    gradients: {{a: {gradients}}}\n"
    "cases:\n  - id: way\n    title: t\n    why: w\n"
    '    rules: [a.b]\n    spellings:\n      {spelling}: ["found = autograd.grad(f(*inputs), inputs, g)"]\n'
    "      other: [{step}]\n"
)
OP = "topic: T\nops:\n  - id: {id}\n    op: {op}\n    {inputs}\n    rows: [{{{key}: {row}}}]\n"


FOUND = '"found = autograd.grad(f(*inputs), inputs, g)"'
OF_CASE = {
    "topic": "T",
    "id": "c",
    "title": "t",
    "why": "w",
    "rules": "a.b",
    "more": "",
    "steps": "",
    "expect": "{a: 0}",
}
OF_PROGRAM = {"id": "p", "title": "t", "features": "x", "inputs": "[1.5]", "result": "a * 2", "g": "[2.0]",
              "gradients": "2 * g", "spelling": "one", "step": FOUND}  # fmt: skip
OF_OP = {"id": "o", "op": "x.sum(dim)", "inputs": "inputs: {x: [n]}", "key": "dim", "row": "0"}


def case(**fields: str) -> str:
    return CASE.format(**{**OF_CASE, **fields})


def program(**fields: str) -> str:
    return PROGRAM.format(**{**OF_PROGRAM, **fields})


def op(**fields: str) -> str:
    return OP.format(**{**OF_OP, **fields})


# Each field of a case file with @ in it, what may stand there, and what is put there.
FIELDS: dict[str, tuple[str, str | float, tuple[str, ...]]] = {
    "topic": (case(topic="@"), "T", TEXTS),
    "id": (case(id="@"), "c", NAMED),
    "title": (case(title="@"), "t", TEXTS),
    "why": (case(why="@"), "w", TEXTS),
    "rules": (case(rules="@"), "a.b", NAMED),
    "source": (case(more="    source: @\n"), "https://example.org/x", NAMED),
    "torch": (case(more="    torch: @\n"), ">=1.13", NAMED),
    "dtypes": (case(more="    dtypes: [@]\n"), "float32", NAMED),
    "devices": (case(more="    devices: [@]\n"), "cpu", NAMED),
    "a row's name": (
        case(more="    parametrize:\n      @: {x: 1}\n      s: {x: 2}\n", steps="      - log(x)\n"), "r", NAMED
    ),
    "a variable of a row": (
        case(more="    parametrize:\n      r: {@: 1}\n      s: {@: 2}\n", steps="      - log(x)\n"), "x", NAMED
    ),
    "a value of a row": (
        case(more="    parametrize:\n      r: {x: @}\n      s: {x: 2}\n", steps="      - log(x)\n"), "zeros(1)", RUN
    ),
    "a condition of a row": (
        case(more="    parametrize:\n      r: {x: 1, torch: @}\n      s: {x: 2}\n", steps="      - log(x)\n"),
        ">=1.13", NAMED,
    ),
    "a step": (case(steps="      - @\n"), "b = 1", RUN),
    "a do": (case(steps="      - {do: @, raises: {type: ValueError, match: x}}\n"), "a.view(3)", RUN),
    "a type that is raised": (
        case(steps="      - {do: a.view(3), raises: {type: @, match: x}}\n"), "RuntimeError", NAMED
    ),
    "words of an error": (case(steps="      - {do: a.view(3), raises: {type: RuntimeError, match: @}}\n"), "x", TEXTS),
    "a pattern": (case(steps="      - {do: a.view(3), raises: {type: RuntimeError, match: {regex: @}}}\n"), "x", NAMED),
    "words of a warning": (case(steps="      - {do: a.view(1), warns: {type: UserWarning, match: @}}\n"), "x", NAMED),
    "a condition of a step": (case(steps="      - {torch: @, expect: {a: 0}}\n"), ">=1.13", NAMED),
    "a condition of steps": (case(steps="      - when: {torch: @, steps: [{expect: {a: 0}}]}\n"), ">=1.13", NAMED),
    "an alternative": (case(expect="{a: {value: {torch: {@: 1, '>=1.14': 0}}}}"), "<1.14", NAMED),
    "a subject": (case(expect="{@: 0}"), "a.sum()", RUN),
    "a value": (case(expect="{a: @}"), "zeros(1)", RUN),
    "an item": (case(expect="{a: {value: [@]}}"), "0.0 * a", RUN),
    "a gradient": (case(expect="{a: {grad: @}}"), "zeros(1)", RUN),
    "an identity": (case(expect="{a: {is: @}}"), "a.data", RUN),
    "a storage": (case(expect="{a: {shares_storage: @}}"), "a.data", RUN),
    "a base": (case(expect="{a: {view_of: @}}"), "a.data", RUN),
    "a check": (case(expect="{a: {@: 1}}"), "version", NAMED),
    "a node": (case(expect="{a: {grad_fn: @}}"), "AddBackward0", NAMED),
    "a text": (case(expect="{a: {type: @}}"), "Tensor", NAMED),
    "a text as it stands": (case(expect="{str(a): {text: @}}"), "t", TEXTS),
    "a tolerance": (case(expect="{a: {value: 0, rtol: @}}"), 0.1, NAMED),
    "the log": (case(expect="{log: [@]}"), "x", NAMED),
    "a program's id": (program(id="@"), "p", NAMED),
    "a program's title": (program(title="@"), "t", TEXTS),
    "a feature": (program(features="@"), "x", NAMED),
    "an input": (program(inputs="@"), "ones(2)", RUN),
    "a result": (program(result="@"), "a * 2", RUN),
    "a weight": (program(g="@"), "ones(1)", RUN),
    "a formula": (program(gradients="@"), "2 * g", RUN),
    "a spelling": (program(spelling="@"), "one", NAMED),
    "a step of a spelling": (program(step="@"), "found = [2 * g]", RUN),
    "an entry's id": (op(id="@"), "o", NAMED),
    "an operation": (op(op="@"), "x.sum(dim)", RUN),
    "a shape": (op(inputs="inputs: {x: [@]}"), "n", NAMED),
    "a domain": (op(inputs="elementwise: {x: @}"), "any", NAMED),
    "an input's name": (op(inputs="inputs: {@: [n]}"), "x", NAMED),
    "an argument": (op(row="@"), "0", RUN),
    "an argument's name": (op(key="@"), "dim", NAMED),
}  # fmt: skip
