"""Small files that would take minutes to read are refused in seconds, with what is too much of what."""

from __future__ import annotations

import time

import pytest
from running import HEAD, RULES

from conformance.language.errors import CaseFileError
from conformance.language.reader import parse_cases

PROGRAM = """\
  - id: p{}
    title: t
    inputs: {{a: [1.5]}}
    result: a * 2
    g: [1.0]
    gradients: {{a: g * 2}}
"""
SPELLED = """\
  - id: c{}
    title: t
    why: w
    rules: [a.b]
    spellings:
      one: [f(*inputs).backward(g), "found = [x.grad for x in inputs]"]
      two: ["found = autograd.grad(f(*inputs), inputs, g)"]
"""


def many_alternatives() -> str:
    line = '          - {{type: RuntimeError, match: m, torch: ">=2.{},<2.{}"}}\n'
    raises = "".join(line.format(n % 12, n % 12 + 1) for n in range(1500))
    return f"{HEAD}      - do: a = tensor([1.0])\n        raises:\n{raises}      - expect: {{a: [1.0]}}\n"


def long_condition() -> str:
    condition = ",".join(f"!=2.{n}" for n in range(7000))
    return f'{HEAD}      - a = tensor([1.0])\n      - expect: {{a: [1.0]}}\n    torch: "{condition}"\n'


def many_programs() -> str:
    programs = "".join(map(PROGRAM.format, range(99)))
    return f"topic: T\nprograms:\n{programs}cases:\n{''.join(map(SPELLED.format, range(76)))}"


def many_unknown_names() -> str:
    lines = "".join(f"      - a{n} = tensr{n}([1.0])\n" for n in range(10_000))
    return f"{HEAD}{lines}      - expect: {{a: [1.0]}}\n"


def many_steps() -> str:
    rows = "".join(f"      r{n}: {{x: {n}}}\n" for n in range(200))
    steps = "".join(f"      - a{n} = x + {n}\n" for n in range(3000))
    return HEAD.replace("    steps:", f"    parametrize:\n{rows}    steps:") + steps + "      - expect: {a1: 1.0}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (many_alternatives(), "expected at most 100 alternatives, got 1500"),
        (long_condition(), "expected at most 1000 characters in a condition"),
        (many_programs(), "expected at most 7500 cases of a file to be written out"),
        (many_unknown_names(), "more than 500 problems"),
        (many_steps(), "expected at most 250000 steps of a file to be written out"),
    ],
    ids=["alternatives", "condition", "programs", "names", "steps"],
)
def test_what_takes_too_long_is_refused(text: str, message: str) -> None:
    begin = time.process_time()
    with pytest.raises(CaseFileError, match=message):
        parse_cases(text, "t.yaml", RULES)
    assert time.process_time() - begin < 60  # of minutes, without the limits
