"""What Python becomes in a case before anything is run: steps, the readings of assertions, and what is told instead."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import pytest
from loops import each

from conformance.language.drafting.bodies import bodies_of
from conformance.language.drafting.functions import functions_in
from conformance.language.drafting.rewriting import names_of_imports
from conformance.language.drafting.sources import NotReadable, text_cells
from conformance.language.drafting.standins import standins_for, with_standins
from conformance.language.drafting.statements import OPEN, Converter, own_names

SEEN = {"value": OPEN, "requires_grad": OPEN, "grad_fn": OPEN}


def converted(source: str) -> Converter:
    tree = ast.parse(textwrap.dedent(source))
    converter = Converter(imports=names_of_imports(tree), own=own_names(tree.body))
    converter.convert(tree.body)
    converter.finish()
    return converter


def first_steps(source: str) -> list[Any]:
    """Return the steps of the likeliest reading of each statement."""
    return [step for each in converted(source).steps for step in each.steps]


def expected(source: str) -> Any:
    (step,) = first_steps(source)
    return step["expect"]


@each(
    "assertion, wanted",
    [
        ("self.assertEqual(x, y, rtol=0.1)", {"x": {"value": "y", "rtol": 0.1}}),
        ("torch.testing.assert_close(x, y, atol=1e-3)", {"x": {"value": "y", "atol": 0.001}}),
        ("self.assertEqual(1.5, x.item())", {"x.item()": 1.5}),
        ("self.assertEqual('AddBackward0', y.grad_fn.name())", {"y": {"grad_fn": "AddBackward0"}}),
        ("self.assertEqual(type(y.grad_fn).__name__, 'AddBackward0')", {"y": {"grad_fn": "AddBackward0"}}),
        ("self.assertEqual(x._version, 2)", {"x": {"version": 2}}),
        ("self.assertEqual(x.sum(), -3.5)", {"x.sum()": -3.5}),
        ("self.assertEqual(x.sum(), -y)", {"x.sum()": "-y"}),
        ("self.assertNotEqual(x, y + 1)", {"x != (y + 1)": True}),
        ("self.assertGreater(x.sum(), 1)", {"x.sum() > 1": True}),
        ("self.assertNotIn(x, [y])", {"x not in [y]": True}),
        ("self.assertNotIsInstance(x, Tensor)", {"isinstance(x, Tensor)": False}),
        ("self.assertRegex(str(y), r'grad_fn=<Add')", {"'grad_fn=<Add' in str(y)": True}),
        ("self.assertIsNot(x, y)", {"x": {"is_not": "y"}}),
        ("self.assertIsNotNone(x.grad)", {"x.grad is not None": True}),
        ("self.assertFalse(x.is_contiguous())", {"x": {"is_contiguous": False}}),
        ("assert not x.requires_grad", {"x": {"requires_grad": False}}),
        ("assert x.grad is None", {"x": {"grad": None}}),
    ],
)
def test_an_assertion_is_read_as_the_check_that_there_is_for_it(assertion: str, wanted: dict[str, Any]) -> None:
    assert expected(assertion) == wanted


def test_what_may_be_no_tensor_has_other_readings() -> None:
    (step,) = converted("self.assertEqual(x, y)").steps
    assert step.readings[1:] == [
        ["wanted_1 = y", {"expect": {"x": "wanted_1"}}],
        ["seen_1 = x", "wanted_1 = y", {"expect": {"torch.equal(seen_1, wanted_1)": True}}],
        ["seen_1 = x", "wanted_1 = y", {"expect": {"seen_1 == wanted_1": True}}],
    ]


@each(
    "source, why",
    [
        ("self.assertRegex(str(y), r'a|b')", "this assertion has no form in a case"),
        ("self.assertExpected(x)", "this assertion has no form in a case"),
        ("def f():\n    self.assertExpected(x)", "this assertion has no form in a function or block"),
        ("def f():\n    with self.assertWarns(UserWarning):\n        g()", "something must warn inside of a block"),
        ("with self.assertRaises(E) as seen:\n    g()", "the error or warning is kept, to be looked at"),
        ("with self.assertRaises(E):\n    assert x", "there are assertions where something must raise or warn"),
    ],
)
def test_what_a_case_can_not_assert_is_told(source: str, why: str) -> None:
    assert [untold.why for untold in converted(source).untold] == [why]


def test_functions_keep_what_they_assert() -> None:
    source = """
    def f(x):
        self.assertEqual(x, 1)
        assert x.is_leaf
        self.assertIsNone(x.grad)
        self.assertIsNot(x, y)
        self.assertRegex(str(x), 'a')
        self.assertLess(x, 2)
        self.assertNotIsInstance(x, Tensor)
        with self.assertRaisesRegex(RuntimeError, 'a leaf'):
            x.mul_(2)
        with torch.no_grad():
            x.exp()
    """
    helper, start, made, count, alike = first_steps(source)
    assert helper.startswith("def as_it_is(x)")
    assert (start, count) == ("checked = []", {"expect": {"len(checked)": OPEN}})
    kept = [line.strip() for line in made.splitlines() if "checked" in line]
    assert kept == [
        "checked.append((as_it_is(x), as_it_is(1)))",
        "checked.append((bool(x.is_leaf), True))",
        "checked.append((x.grad is None, True))",
        "checked.append((x is y, False))",
        "checked.append(('a' in str(x), True))",
        "checked.append((x < 2, True))",
        "checked.append((isinstance(x, Tensor), False))",
        "checked.append(('a leaf' in str(error), True))",
        "checked.append((False, True))",
    ]
    assert alike == {"expect": {"[seen for seen, _ in checked]": "[wanted for _, wanted in checked]"}}


@each(
    "source, wanted",
    [
        ("self.assertNotWarn(f, x)", {"do": "f(x)", "warns": "none"}),
        ("self.assertRaises(RuntimeError, f, x)", {"do": "f(x)", "raises": OPEN}),
        ("with self.assertWarnsRegex(UserWarning, 'a'):\n    f(x)",
         {"do": "f(x)", "warns": {"type": "UserWarning", "match": "a"}}),
        ("with self.subTest(n=1):\n    assert x.is_leaf", {"expect": {"x": {"is_leaf": True}}}),
    ],
)  # fmt: skip
def test_what_must_raise_or_warn_is_a_step(source: str, wanted: Any) -> None:
    assert first_steps(source) == [wanted]


@each(
    "source, wanted",
    [
        ("t: torch.Tensor = torch.ones(2)\nu: int", ["t = torch.ones(2)"]),
        ("_hidden = t.cuda()", ["hidden_ = t.to(device)"]),
        ("d = torch.device('cpu')", ["d = device"]),
        ("i = torch.LongTensor([1])", ["i = tensor([1], dtype=torch.int64)"]),
        ("v = t._is_view()", ["v = t._base is not None"]),
        ("v = t[Ellipsis]", ["v = t[...]"]),
        ("class _Own:\n    pass", ["class Own_:\n    pass"]),
        ("def log(a: int) -> int:\n    return a", ["def log_(a):\n    return a"]),
        ("x = torch.rand(2, dtype=torch.float32, device='cpu')", ["x = torch.rand(2)"]),
        ("x = torch.arange(2, dtype=torch.float)", ["x = torch.arange(2, dtype=dtype)"]),
        ("import torch.nn.functional as G\ny = G.relu(x)", ["y = torch.nn.functional.relu(x)"]),
        ("from torch import nn as layers\nm = layers.Linear(1, 1)", ["m = torch.nn.Linear(1, 1)"]),
        ("torch.manual_seed(0)\ndevice = 'cuda'", []),
    ],
)
def test_statements_are_put_in_the_words_of_a_case(source: str, wanted: list[str]) -> None:
    assert first_steps(source) == wanted


@each(
    "looked, wanted",
    [
        ("print(f'{x.grad_fn} {x}')", [{"x": {"grad_fn": OPEN}}, {"x": SEEN}]),
        ("print('%s' % x.shape)", [{"x": {"shape": OPEN}}]),
        ("print('{}'.format(x.is_leaf))", [{"x": {"is_leaf": OPEN}}]),
        ("print([x.item(), y.tolist()])", [{"x": SEEN}, {"y": SEEN}]),
        ("print(type(x), repr(x), x.stride())", [{"x": {"type": OPEN}}, {"x": SEEN}, {"x": {"stride": OPEN}}]),
        ("x > 1, not x", [{"x > 1": OPEN}, {"not x": OPEN}]),
        ("print('on', device)", []),
        ("'only a text'", []),
        ("for n in range(2):\n    print(n)", [{"n": SEEN}, {"n": SEEN}]),
    ],
)
def test_what_is_looked_at_is_expected(looked: str, wanted: list[Any]) -> None:
    assert [step["expect"] for step in first_steps(looked) if isinstance(step, dict)] == wanted


def test_loops_are_written_out_where_their_text_says_what_they_go_through() -> None:
    pairs = first_steps("for a, b in product(*[(True, False)] * 2):\n    f(a, b)")
    assert pairs[::2] == [f"a, b = ({a}, {b})" for a in (True, False) for b in (True, False)]
    assert first_steps("for n in (*a, 1):\n    print(n)")[0] == "for n in (*a, 1):\n    log(n)"
    assert first_steps("for n in range(2):\n    f(n)") == ["for n in range(2):\n    f(n)"]


def titled(text: str) -> list[list[str]]:
    """Return the statements of each case in cells of Markdown."""
    bodies, untold = bodies_of(list(text_cells(textwrap.dedent(text).splitlines())))
    assert not untold
    return [[ast.unparse(node) for node in body.statements] for body in bodies]


def test_code_in_texts_and_in_comments_is_a_variant_of_its_cell() -> None:
    found = titled('''
        ```
        a = torch.ones(1)
        b = a * 2  # or b=a.exp(), or b==a
        """
        c = a + 1
        c.sum().backward()
        """
        ```
    ''')
    assert ["a = torch.ones(1)", "b = a * 2", "b = a.exp()"] in [variant[:3] for variant in found]
    assert ["a = torch.ones(1)", "c = a + 1", "c.sum().backward()"] in found


def test_of_a_session_what_was_typed_is_drafted() -> None:
    found = titled("""
        ```
        >>> a = torch.ones(1)
        >>> a.is_leaf
        True
        ```
    """)
    assert found == [["a = torch.ones(1)", "a.is_leaf"]]


def test_a_cell_that_is_no_python_is_told() -> None:
    _, untold = bodies_of(list(text_cells(["```", "print 1", "```"])))
    assert [(each.text, each.why) for each in untold] == [("print 1", "this is no Python")]


MODULE = """
scale = 2

def helper(x):
    return x * scale

class TestAll:
    def made(self):
        return helper(torch.ones(1))

    @pytest.mark.parametrize("a, b", [(1, 2), (3, 4)])
    @pytest.mark.parametrize("names", everything)
    def test_rows(self, a, b, names, devices, other):
        self.made() + a + b

    @pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9])
    def test_many(self, n, keep=True):
        n
"""


def test_what_a_function_needs_comes_with_it() -> None:
    with_rows = functions_in(MODULE, "test_rows")
    texts = [[ast.unparse(node) for node in body.statements] for body in with_rows]
    assert all("scale = 2" in text and any(each.startswith("def helper(") for each in text) for text in texts)
    assert {told.why for body in with_rows for told in body.told} >= {"nothing says what 'other' is"}


def test_of_many_rows_some_are_drafted_and_that_is_told() -> None:
    bodies = functions_in(MODULE, "TestAll::test_many")
    assert [body.name for body in bodies][:2] == ["many, n = 1, keep = True", "many, n = 2, keep = True"]
    assert (len(bodies), {told.why for told in bodies[0].told}) == (8, {"of 9 rows of parameters 8 are drafted"})


@each(
    "text, name, message",
    [
        (MODULE, "test_row", "there is no function 'test_row'"),
        ("def", "f", "this is no Python"),
    ],
)
def test_what_is_not_there_is_told(text: str, name: str, message: str) -> None:
    with pytest.raises(NotReadable, match=message):
        functions_in(text, name)


def stood_in(source: str) -> list[str]:
    tree = ast.parse(textwrap.dedent(source))
    return [line for each in standins_for(tree.body, names_of_imports(tree)) for line in each.code.splitlines()]


@each(
    "source, wanted",
    [
        ("y = model(x)", ["model = nn.Linear(2, 2)", "x = torch.ones(2, 2)"]),
        ("y = textEncoder(x)", ["textEncoder = nn.Linear(2, 2)", "x = torch.ones(2, 2)"]),
        ("f.eval()", ["f = nn.Linear(2, 2)"]),
        ("model = ...", []),
        ("net = ...\nnet(x)", ["net = nn.Linear(2, 2)", "x = torch.ones(2, 2)"]),
        ("l = loss_fn(a, b)", ["loss_fn = nn.MSELoss()", "a = torch.ones(2, 2)", "b = torch.ones(2, 2)"]),
        ("loss.backward()", ["loss = torch.ones(2, 2, requires_grad=True).sum()"]),
        ("x.requires_grad", ["x = torch.ones(2, 2, requires_grad=True)"]),
        ("x.grad", ["x = torch.ones(2, 2, requires_grad=True)", "x.sum().backward()"]),
        ("x.sum().backward()\nx.grad", ["x = torch.ones(2, 2, requires_grad=True)"]),
        ("y = torch.exp(x) + z", ["x = torch.ones(2, 2)", "z = torch.ones(2, 2)"]),
        ("for x in batches:\n    x", ["batches = [torch.ones(2, 2)]"]),
        ("for i in range(n):\n    i", ["n = 2"]),
        ("opt.step()", []),  # there is nothing that it could step
        ("opt.step()\nmodel.train()", ["model = nn.Linear(2, 2)", "opt = torch.optim.SGD(model.parameters(), lr=0.1)"]),
        ("x", []),
        ("f(3)", []),
        ("from somewhere import model\nmodel(x)", []),
        ("import operator\noperator.add(1, 2)", []),
        ("def model(x):\n    return x\nmodel(y)", []),
        ("torch.tensor([1.0])", []),
        ("Tensor.backward(x)", []),
        ("unknown.attribute", []),
    ],
)
def test_how_a_name_is_used_tells_what_may_stand_for_it(source: str, wanted: list[str]) -> None:
    assert sorted(stood_in(source)) == sorted(wanted)


def test_what_stands_for_names_comes_first_and_placeholders_that_it_fills_go() -> None:
    tree = ast.parse("other = ...\nnet = ...\nnet(x)")
    whole = with_standins(tree.body, standins_for(tree.body, {}))
    assert [ast.unparse(node) for node in whole] == [
        "net = nn.Linear(2, 2)", "x = torch.ones(2, 2)", "other = ...", "net(x)",
    ]  # fmt: skip
    assert [node.lineno for node in whole] == [3, 3, 1, 3]
