"""What doesn't load, because it can't fail, can never hold, or says a thing in another way than the one there is.

Each row is a list of steps, or a whole case, and what a person is told who writes it.
"""

from __future__ import annotations

import textwrap

import pytest

from conformance.language import versions
from conformance.language.errors import CaseFileError
from conformance.language.patterns import pattern_problem
from conformance.language.reader import parse_cases
from conformance.model.rule import Rule
from conformance.releases.catalogue import load_releases

RULE = Rule(id="a.b", text="A rule.", topic="Rules", level="documented", link="https://example.org", since="1.13")
A = "- a = tensor([1.0], requires_grad=True)\n"
ITSELF = "is compared with itself: this can't fail (say what it must be)"
NOTHING = "is the same whatever the case does: this can't fail (look at something that the case has set)"
RANGE = "(releases from 1.13 on count, up to 2.20, a few after the newest that is known)"
ALONE = "neither raises nor warns stands beside it (write the statements as the step itself"

STEPS = {
    "- expect: {a: {value: a}}": f"2:23: expect.a.value: {ITSELF}",
    "- expect: {a: ( a )}": f"2:15: expect.a: {ITSELF}",
    "- expect: {a: {grad: a.grad}}": f"2:22: expect.a.grad: {ITSELF}",
    "- expect: {a: {grad: {value: a.grad}}}": f"2:30: expect.a.grad.value: {ITSELF}",
    "- expect: {a: {is: a}}": f"2:20: expect.a.is: {ITSELF}",
    "- expect: {a: {shares_storage: a}}": f"2:32: expect.a.shares_storage: {ITSELF}",
    "- expect: {a.shape: a.shape}": f"2:21: expect.a.shape: {ITSELF}",
    "- expect: {'[a, 1]': [a, 1]}": f"2:22: expect.[a, 1]: {ITSELF}",
    "- expect: {a: {torch: {'<2.1': 1, '>=2.1': a}}}": f"2:44: expect.a: {ITSELF}",
    "- expect: {1 == 1: true}": f"2:12: expect.1 == 1: {NOTHING}",
    "- expect: {a == a: true}": f"2:12: expect.a == a: {NOTHING}",
    "- expect: {'True': true}": f"2:20: expect.True: {ITSELF}",
    "- do: b = a * 2\n- expect: {a: 1}": f"2:3: do: {ALONE})",
    "- {do: b = a * 2, torch: '>=2.1'}\n- expect: {a: 1}": f"2:4: do: {ALONE}, in when: {{torch: …, steps: […]}})",
    "- {torch: '<1.10', expect: {a: 1}}": f"2:11: torch: no torch fulfils the condition '<1.10' {RANGE}",
    "- {torch: '>=2.99', expect: {a: 1}}": f"2:11: torch: no torch fulfils the condition '>=2.99' {RANGE}",
    "- {torch: '>=3', expect: {a: 1}}": f"2:11: torch: no torch fulfils the condition '>=3' {RANGE}",
    "- {torch: '>=2.1,<2.0', expect: {a: 1}}": f"2:11: torch: no torch fulfils the condition '>=2.1,<2.0' {RANGE}",
    "- when: {torch: '<2.1', steps: [{torch: '>=2.1', expect: {a: 1}}]}": (
        "2:41: torch: no torch fulfils the condition '>=2.1' where '<2.1' holds (the enclosing condition)"
    ),
    "- expect: {a: {torch: {'<1.13': 2, '>=1.13': 1}}}": (
        f"2:24: expect.a.torch: no torch fulfils the condition '<1.13' {RANGE}"
    ),
    "- {do: a.b, raises: {type: null, match: x}}": (
        "2:28: raises.type: expected the name of a class, or none, got nothing (null) "
        "(the exception's class, or none: on these versions nothing is raised)"
    ),
    "- {do: a.sum(), raises: {type: none}}": (
        "2:25: raises: none stands alone where there are no alternatives (write raises: none)"
    ),
    "- {do: a.sum(), warns: nothing}": (
        "2:24: warns: expected none or a mapping with type and match, got 'nothing' "
        "(such as {type: UserWarning, match: text of its message})"
    ),
    "- {do: a.sum(), raises: {type: RuntimeError, match: {regex: '(a'}}}": (
        "2:61: raises.match.regex: expected a regular expression, got one with an error: "
        "missing ), unterminated subpattern at position 0"
    ),
    "- {do: a.sum(), raises: {type: RuntimeError, match: [x, {regex: '(a+b)*c'}]}}": (
        "2:65: raises.match.regex: a repetition inside a repetition can take for ever (repeat one of the two only)"
    ),
    "- {do: a.sum(), raises: {type: RuntimeError, match: {regx: a}}}": (
        "2:53: raises.match: expected a list or text, got a mapping with the keys regx (did you mean 'regex'?)"
    ),
    "- expect: {str(a): \"'x'\"}": (
        "2:20: expect.str(a): is text in quotation marks, as an expression (write {text: …})"
    ),
    "- when: {torch: '>=2.1', steps: [a.sum()]}": (
        "1:1: steps: nothing is expected: this case can't fail (add an expect step)"
    ),
    "- when: {torch: '>=2.1'}\n- expect: {a: 1}": "2:9: when: the key 'steps' is missing (the steps that run there)",
    "- when: {steps: [{expect: {a: 1}}]}": (
        "2:9: when: the key 'torch' is missing (the torch versions on which the steps run; elsewhere they are left out)"
    ),
    "- when: {torch: newest, steps: [{expect: {a: 1}}]}": (
        '2:17: when.torch: expected a condition on torch such as ">=2.1", "<2.13" or ">=2.1,<2.4", got \'newest\''
    ),
    "- when: {torch: '>=2.1', steps: [{expect: {a: {is_laef: true}}}]}": (
        "2:48: when.steps[0].expect.a.is_laef: unknown key 'is_laef' (did you mean 'is_leaf'?)"
    ),
}

ROWS = {
    "{x: {n: 2}}": "expected at least 2 keys, got a mapping with the keys x",
    "{x: {n: 2}, y: {}}": "parametrize.y: expected at least 1 key, got an empty mapping",
    "{x: {n: 2}, y: {m: 2}}": [
        "parametrize.y: the key 'n' is missing (every row sets the same names)",
        "parametrize.y.m: the first row doesn't set this",
    ],
    "{x: {torch: '>=2.1'}, y: {torch: '<2.1'}}": "parametrize.x: sets no variable",
    "{x: {n: 2}, Y: {n: 2}}": (
        "parametrize.Y: expected lower-case words joined by -, got 'Y' (it becomes the end of an id)"
    ),
    "{x: {n: 2, k: 1}, y: {n: 2, k: 2}}": "parametrize.x.k: no step uses this",
    "{x: {n: tensr(2)}, y: {n: 2}}": "parametrize.x.n: unknown name 'tensr' (did you mean 'tensor'?)",
    "{x: {n: [1, m]}, y: {n: 2}}": "parametrize.x.n: unknown name 'm'",
    "{x: {n: 2, tensor: 1}, y: {n: 2, tensor: 3}}": [
        "parametrize.x.tensor: 'tensor' belongs to the vocabulary (choose another name)",
        "parametrize.y.tensor: 'tensor' belongs to the vocabulary (choose another name)",
    ],
    "{x: {n: 2, _k: 1}, y: {n: 2, _k: 1}}": "parametrize.x._k: '_k' can't be the name of a variable",
    "{x: {n: 2, torch: newest}, y: {n: 2}}": "parametrize.x.torch: expected a condition on torch",
    "{x: {n: 2, dtypes: [int]}, y: {n: 2}}": "parametrize.x.dtypes[0]: expected one of float16,",
    "{x: {n: 2, torch: '<2.1'}, y: {n: 2}}\n    torch: '>=2.1'": (
        "parametrize: written out for x: torch: no torch fulfils the condition '>=2.1,<2.1'"
    ),
    "{x: {n: 2}, y: {n: 3}}\n    given: [b = 1]": "given: belongs to a case with spellings",
    f"{{{', '.join(f'r{n}: {{n: 1}}' for n in range(201))}}}": (
        "parametrize: expected at most 200 cases to be written out, got 201"
    ),
}


def told(text: str) -> list[str]:
    with pytest.raises(CaseFileError) as caught:
        parse_cases(text, "x.yaml", {RULE.id: RULE})
    return [str(problem).removeprefix("x.yaml:") for problem in caught.value.problems]


def case_with(steps: str, more: str = "") -> str:
    head = f"topic: T\ncases:\n  - id: c\n    title: T\n    why: W\n    rules: [a.b]\n{more}    steps:\n"
    return head + textwrap.indent(steps, "      ")


@pytest.mark.parametrize(("steps", "message"), STEPS.items())
def test_steps_are_refused_in_these_words(steps: str, message: str) -> None:
    line, column, words = message.split(":", 2)
    at = f"{int(line) + 7}:{int(column) + 6}:{words}"
    assert at in told(case_with(A + steps))


@pytest.mark.parametrize(("rows", "messages"), ROWS.items())
def test_rows_are_refused_in_these_words(rows: str, messages: str | list[str]) -> None:
    steps = "- a = tensor([1.0]) * n\n- expect: {a: n}\n"
    found = told(case_with(steps, f"    parametrize: {rows}\n"))
    for message in [messages] if isinstance(messages, str) else messages:
        assert any(message in each for each in found), found


@pytest.mark.parametrize(
    "steps",
    [
        "- expect: {a.sum(): a.sum()}",  # worked out on copies
        "- expect: {a * 1: a * 1}",
        "- b = a\n- expect: {a: {is: b}}",
        "- expect: {a.grad_fn: {is: a.grad_fn}}",  # whether it is one object is a question
        "- expect: {torch.is_grad_enabled(): true}",
        "- {torch: '<=1.13.1', expect: {a: 1}}",
        "- {torch: '>=2.20', expect: {a: 1}}",
        "- {do: a.sum(), raises: none}",
        "- {do: a.sum(), raises: {type: RuntimeError, match: {regex: '(?:one|two)+ [()+*]{2,}'}}}",
    ],
)
def test_what_can_fail_loads(steps: str) -> None:
    assert parse_cases(case_with(A + steps), "x.yaml", {RULE.id: RULE})


def test_a_condition_may_speak_of_every_release_that_is_known() -> None:
    known = [release.torch for release in load_releases().releases]
    assert all(versions.possible([f"=={torch}"]) for torch in known)
    assert not versions.possible([f">{versions.LAST}"])


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        ("a" * 201, "expected at most 200 characters, got 201"),
        ("a++", "possessive"), ("(?>a)", "possessive"), (r"\++", ""), ("[(]+", ""), ("(a|b)+", ""), ("(a{2})+", ""),
        ("(a+)+", "inside a repetition"), ("((a)*b){3,}", "inside a repetition"), ("(a+){2}", ""), ("(x(y+)z)*", "ins"),
    ],
)  # fmt: skip
def test_a_pattern_is_one_that_every_worker_can_search_for_in_time(pattern: str, wrong: str) -> None:
    found = pattern_problem(pattern)
    assert (found is None) if not wrong else (found is not None and wrong in found[0])
