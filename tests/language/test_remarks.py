"""What is said of cases that load, and of which nothing is said."""

from __future__ import annotations

import textwrap

from loops import each
from running import HEAD, RULES

from conformance.language.reader import parse_cases
from conformance.language.remarks import remarks_on
from conformance.language.versions import gap

LEAF = "- a = tensor([1.0], requires_grad=True)\n"
LAST = "- expect: {a: {is_leaf: true}}\n"


def told(steps: str, torch: str = "") -> list[str]:
    """Return what is said of a case with these steps, which are YAML, after LEAF; lines are counted from there."""
    head = HEAD.replace("    steps:\n", f'    torch: "{torch}"\n    steps:\n') if torch else HEAD
    text = head + textwrap.indent(LEAF + steps + LAST, " " * 6)
    (case,) = parse_cases(text, "t.yaml", RULES)
    shift = head.count("\n") + 1
    return [f"{each.line - shift}: {each.path}: {each.message}".replace(": :", ":") for each in remarks_on(case)]


@each(
    "steps, remark",
    [
        ('- when: {torch: ">=2.1", steps: [b = a]}\n- expect: {b: 1}\n', "2: expect.b: 'b' is not set on torch 1.13.0"),
        ("- do: b = a.add_(1)\n  raises: {type: RuntimeError, match: leaf}\n- expect: {b: 1}\n",
            "3: expect.b: 'b' is not set on torch 1.13.0"),
        ('- when: {torch: "<2.1", steps: [b = a * 2]}\n- c = b\n', "2: 'b' is not set on torch 2.1.0"),
        ('- {do: a * 2, torch: ">=1.13", warns: none}\n', "1: torch: the condition '>=1.13' holds on every release"),
        ("- f = func.vmap(torch.sin)\n- expect: {f(a): {requires_grad: {torch: {'<2.0': true, '>=2.0': true}}}}\n",
            "2: expect.f(a).requires_grad: no torch that runs the case fulfils the condition '<2.0'"),
        ("- n = 3\n- expect: {n: 3}\n",
            "2: expect.n: is what a step sets it to, whatever torch does: this can't fail"),
        ('- do: a.add_(1)\n  raises: {type: RuntimeError, match: {regex: "(leaf)?"}}\n',
            "2: raises.match: every message has this pattern"),
        ("- do: a.add_(1)\n  raises: {type: RuntimeError, match: a .* leaf}\n",
            "2: raises.match: 'a .* leaf' is text, and looks like a pattern"),
        ("- do: a.add_(1)\n  raises: {type: UserWarning, match: leaf}\n",
            "2: raises.type: UserWarning is a warning, which nothing raises here"),
        ("- b = a * 2\n- a == b\n", "2: the comparison is made and forgotten"),
        ("- b = tensor([[1], [-2]], requires_grad=True)\n",
            "1: whole numbers make a tensor of integers, which can't require grad"),
        ("- b = a * 2\n- expect: {b: {value: [2.0], grad: 'autograd.grad(a * a, a)[0]'}}\n",
            "2: expect.b: an expected value is computed of copies that don't require grad, and has no gradients"),
        ("- |\n  def double(t):\n      return t * 2\n- fast = compiled(double)\n- expect: {a: {value: fast(a) / 2}}\n",
            "5: expect.a: an expected value is computed on the CPU, a compiled function on its device"),
    ],
)  # fmt: skip
def test_this_is_remarked(steps: str, remark: str) -> None:
    assert told(steps) == [remark]


@each(
    "steps, torch",
    [
        ('- when: {torch: ">=2.1", steps: [b = a * 2, {expect: {b: {is_leaf: false}}}]}\n', ""),
        ('- when: {torch: ">=2.1", steps: [b = a * 2]}\n- when: {torch: "<2.1", steps: [b = a * 3]}\n- c = b\n', ""),
        ('- when: {torch: ">=2.2", steps: [b = a]}\n- when: {torch: "<2.2", steps: [b = a]}\n- c = b\n', ">=2.1"),
        ("- do: |\n    for b in [a]:\n        b.add_(1)\n  raises: {type: RuntimeError, match: leaf}\n- c = b\n", ""),
        ("- do: |\n    b = a * 2\n    c = a.add_(1)\n  raises: {type: RuntimeError, match: leaf}\n- c = b\n", ""),
        ("- |\n  def f():\n      return later\n- later = a\n- f()\n", ""),
        ("- n = [1]\n- n.append(a)\n- expect: {len(n): 2}\n", ""),
        ("- n = 3\n- 'def f(): return n'\n- expect: {n: 3}\n", ""),
        (
            "- do: a.add_(1)\n  raises: {type: RuntimeError, match: 'a leaf Variable (of 1.5) that requires grad.'}\n",
            "",
        ),
        ("- b = tensor([1, 2], dtype=torch.float64, requires_grad=True)\n", ""),
        ("- expect: {'autograd.grad(a * a, a)[0]': 'func.grad(lambda t: t * t)(2 * a)'}\n", ">=2.0"),
    ],
)
def test_nothing_is_to_be_said_of_this(steps: str, torch: str) -> None:
    assert told(steps, torch) == []


@each(
    "conditions, within, release",
    [
        ([], None, "1.13.0"), ([None], None, ""), ([">=1.13"], None, ""), ([">=2.1"], ">=2.1", ""),
        (["<2.1", ">=2.2"], None, "2.1.0"), ([">=2.1"], "<2.2", "1.13.0"),
    ],
)  # fmt: skip
def test_a_release_is_found_that_fulfils_no_condition(
    conditions: list[str | None], within: str | None, release: str
) -> None:
    assert gap(conditions, within) == release


def test_a_case_that_is_written_out_is_remarked_where_its_entry_begins() -> None:
    rows = "    parametrize: {one: {n: 1}, two: {n: 2}}\n    steps:\n"
    steps = textwrap.indent(f"{LEAF}- b = a * n\n- a == b\n{LAST}", " " * 6)
    cases = parse_cases(HEAD.replace("    steps:\n", rows) + steps, "t.yaml", RULES)
    (remark,) = remarks_on(cases[1])
    assert (remark.line, remark.message) == (cases[1].line, "c-two, written out: the comparison is made and forgotten")
