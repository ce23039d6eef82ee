"""Drafts of snippets, notebooks and tests: what becomes a step, what is expected, and what is told instead."""

from __future__ import annotations

import io
import json
from pathlib import Path

import forks
import pytest
from loops import each

from cli.drafts import bare, comments, drafted, steps_of, told
from conformance.cli.main import main
from conformance.cli.rules import cases_by_rule
from conformance.language.errors import CaseFileError
from conformance.language.files import load_cases

SNIPPET = """
    import torch
    import torch.nn.functional as F

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.tensor([1.0, 2.0], requires_grad=True, device="cpu")
    y = F.relu(x) ** 2
    y.sum().backward()
    print("gradients:", x.grad, y.is_leaf)
    print(f"{y.grad_fn} and {x.shape}")
    print(y.grad)
"""


def test_statements_become_steps_and_prints_what_is_expected(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, SNIPPET)
    assert steps[:3] == [
        "x = tensor([1.0, 2.0], requires_grad=True)",
        "y = torch.nn.functional.relu(x) ** 2",
        "y.sum().backward()",
    ]
    assert steps[3] == {
        "expect": {
            "x": {"grad": [2.0, 4.0], "shape": [2]},
            "y": {"is_leaf": False, "grad_fn": "PowBackward0"},
        }
    }
    assert steps[4]["do"] == "y.grad"
    assert steps[4]["warns"]["type"] == "UserWarning"
    assert steps[5:] == [{"expect": {"y": {"grad": None}}}]


def test_a_draft_does_not_load_and_says_what_to_do(tmp_path: Path) -> None:
    drafted(tmp_path, SNIPPET)
    with pytest.raises(CaseFileError) as raised:
        load_cases([tmp_path / "draft.yaml"])
    problems = {(problem.path, problem.message, problem.hint) for problem in raised.value.problems}
    hint = "`confirm draft.yaml` asks about each such value"
    assert ("expect.x.grad", "was observed, and is to be confirmed", hint) in problems
    assert {path for path, _, _ in problems} == {
        "why", "rules", "warns", "expect.x.grad", "expect.x.shape", "expect.y.is_leaf", "expect.y.grad_fn",
        "expect.y.grad",
    }  # fmt: skip


def test_what_raises_must_raise_and_what_does_not_is_a_statement(tmp_path: Path) -> None:
    steps = steps_of(
        tmp_path,
        """
        a = torch.ones(2, requires_grad=True)
        try:
            b = a * 2
            b.sum().backward()
        except RuntimeError as error:
            print(error)
        try:
            a += 1
            a = None
        except RuntimeError:
            pass
        c = a.exp()
        c.sum().backward()
        c.sum().backward()
        """,
    )
    assert steps[1:3] == ["b = a * 2", "b.sum().backward()"]
    assert steps[3]["do"] == "a += 1"
    assert steps[3]["raises"] == {
        "type": "RuntimeError", "match": "a leaf Variable that requires grad is being used in an in-place operation."
    }  # fmt: skip
    assert steps[4:6] == ["c = a.exp()", "c.sum().backward()"]
    assert steps[6]["raises"]["match"].startswith("Trying to backward through the graph a second time")
    assert "a = None" not in steps


def test_what_has_no_place_in_a_case_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = """
    import numpy as np
    x = torch.ones(1, requires_grad=True)
    z = np.zeros(3)
    while x.sum() < 3:
        x = x + z
    model = ...
    print(x.is_leaf)
    """
    assert steps_of(tmp_path, source) == ["x = torch.ones(1, requires_grad=True)", {"expect": {"x": {"is_leaf": True}}}]
    assert "no place for line 3, z = np.zeros(3): unknown name 'numpy'" in comments(tmp_path)
    assert "no place for line 4, while x.sum() < 3:: while is not part of the language here (use for" in comments(
        tmp_path
    )
    assert "cases: 1; what has no place in one, as comments say: 3" in told(capsys)
    assert "line 6, model = ...: nothing says what model is (write it before)" in comments(tmp_path)


def test_what_a_training_loop_does_not_set_has_a_stand_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = """
    model.train()
    for epoch in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
    print(loss.requires_grad)
    """
    steps = steps_of(tmp_path, source)
    assert steps[:-2] == [
        "model = nn.Linear(2, 2)", "criterion = nn.MSELoss()", "epochs = 2",
        "loader = [(torch.ones(2, 2), torch.ones(2, 2))]",
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", "model.train()",
    ]  # fmt: skip
    assert steps[-1] == {"expect": {"loss": {"requires_grad": True}}}
    assert "# nothing says what optimizer is, which line 4 uses: the first steps have a stand-in" in comments(tmp_path)
    assert "cases: 1; what has no place in one, as comments say: 0" in told(capsys)


def test_a_placeholder_and_a_variable_named_as_a_function_have_stand_ins(tmp_path: Path) -> None:
    assert steps_of(tmp_path, "net = ...\nwith torch.no_grad():\n    y = net(data)\nprint(y.requires_grad)") == [
        "net = nn.Linear(2, 2)", "data = torch.ones(2, 2)", "with torch.no_grad():\n    y = net(data)",
        {"expect": {"y": {"requires_grad": False}}},
    ]  # fmt: skip
    assert steps_of(tmp_path, "tensor.grad.zero_()\nprint(tensor.grad)")[:3] == [
        "tensor_ = torch.ones(2, 2, requires_grad=True)", "tensor_.sum().backward()", "tensor_.grad.zero_()",
    ]  # fmt: skip


def test_where_models_have_stand_ins_and_nothing_goes_backward_a_step_shows_who_gets_a_gradient(tmp_path: Path) -> None:
    source = "model_A = ...\nmodel_B = ...\nout_A = model_A(data)\nout_B = model_B(out_A.detach())\n"
    steps = steps_of(tmp_path, source)
    assert steps[-2] == "out_B.sum().backward()"
    seen = steps[-1]["expect"]
    assert seen["model_A.weight"]["grad"] is None
    assert seen["model_B.weight"]["grad"] is not None
    assert "# nothing goes backward: a step does from out_B" in comments(tmp_path)
    without = steps_of(tmp_path, "with torch.no_grad():\n    y = model(x)\nz = model(y).detach()\n")
    assert "z.sum().backward()" not in without


def test_what_raises_with_a_stand_in_is_told_and_not_expected(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "y = x.view(7, 3)\nprint(x.is_leaf)")
    assert steps == ["x = torch.ones(2, 2, requires_grad=True)", {"expect": {"x": {"is_leaf": True}}}]
    assert "no place for line 1, y = x.view(7, 3): " in comments(tmp_path)
    assert "shape '[7, 3]' is invalid for input of size 4" in comments(tmp_path)


def test_a_parameter_of_a_function_has_a_stand_in_where_its_use_tells_what_it_is(tmp_path: Path) -> None:
    source = """
    def shown(model, x, unused):
        y = model(x.detach())
        print(y.is_leaf)
    """
    steps = steps_of(tmp_path, source, "source.py::shown")
    assert steps[:2] == ["model = nn.Linear(2, 2)", "x = torch.ones(2, 2, requires_grad=True)"]
    assert "no place for line 1, def shown: nothing says what 'unused' is" in comments(tmp_path)
    assert "'x'" not in comments(tmp_path)


def test_the_parameters_of_layers_are_looked_at_at_the_end(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "a = nn.Linear(1, 1)\nb = nn.ReLU()\n")
    assert steps[-1]["expect"].keys() == {"a.weight", "a.bias"}
    assert steps[-1]["expect"]["a.bias"]["requires_grad"] is True


def test_a_snippet_that_shows_nothing_is_looked_at_at_its_end(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "a = torch.ones(2, requires_grad=True)\nb = a.detach()\nb.add_(1)\n")
    assert steps[3:] == [
        {
            "expect": {
                "a": {"is_leaf": True, "requires_grad": True, "grad": None, "version": 1},
                "b": {"is_leaf": True, "requires_grad": False, "grad": None, "version": 1},
            }
        }
    ]


def test_objects_are_compared_where_their_addresses_are_printed(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "a = torch.ones(2)\nprint(id(a))\na.add_(1)\nprint(id(a))\na = a + 1\nprint(id(a))\n")
    assert [step for step in steps if isinstance(step, dict)] == [
        {"expect": {"a is first_1": True}}, {"expect": {"a is first_1": False}}
    ]  # fmt: skip


def test_what_hooks_print_is_logged(tmp_path: Path) -> None:
    source = """
    a = torch.ones((), requires_grad=True)
    a.register_hook(lambda grad: print("of a:", grad))
    (a * 3).backward()
    """
    steps = steps_of(tmp_path, source)
    assert steps[1] == "a.register_hook(lambda grad: log('of a:', grad))"
    assert steps[-1]["expect"]["log"] == [["of a:", 3.0]]


TESTS = """
import torch
from torch.autograd import Function, gradcheck
from torch.testing._internal.common_utils import TestCase, parametrize


def twice(x):
    return x * 2


class TestMine(TestCase):
    def _made(self, size):
        return torch.ones(size, requires_grad=True)

    def test_values(self):
        x = self._made(2)
        for power in (1, 2):
            y = twice(x) ** power
            self.assertEqual(y.sum(), 2 * 2 ** power)
            self.assertTrue(y.requires_grad)
        self.assertIsNone(x.grad)
        self.assertIs(x, x.requires_grad_())
        with self.assertRaisesRegex(RuntimeError, r"does not require grad \\(none\\)|leaf"):
            x += 1
        with self.assertRaises(RuntimeError):
            x.mul_(2)

    def test_inside(self):
        seen = []

        class Mine(Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                self.assertEqual(grad, torch.ones(2))
                return grad

        x = self._made(2)
        with torch.no_grad():
            with self.assertRaisesRegex(RuntimeError, "does not require grad"):
                twice(x).sum().backward()
            self.assertFalse(twice(x).requires_grad)
        Mine.apply(x).sum().backward()

    @parametrize("keep", [True, False])
    def test_rows(self, device, keep):
        x = torch.ones(2, requires_grad=True, device=device)
        x.exp().sum().backward(retain_graph=keep)
        self.assertEqual(x.grad, x.exp())

    def test_wrong(self):
        self.assertEqual(torch.ones(2), torch.zeros(2))
        self.assertTrue(torch._C._is_nothing())

    def test_only_runs(self):
        twice(self._made(1)).backward()
"""


def test_assertions_become_expectations(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, TESTS, "source.py::TestMine::test_values")
    loop = {"y.sum()": "2 * 2 ** power", "y": {"requires_grad": True}}
    assert [step for step in steps if isinstance(step, dict)][:2] == [
        {"expect": loop}, {"expect": {**loop, "x": {"grad": None, "is": "x.requires_grad_()"}}}
    ]  # fmt: skip
    regex = {"type": "RuntimeError", "match": {"regex": r"does not require grad \(none\)|leaf"}}
    assert {"do": "x += 1", "raises": regex} in steps
    assert steps[-1]["do"] == "x.mul_(2)"
    assert steps[-1]["raises"]["match"].startswith("a leaf Variable that requires grad")


def test_assertions_in_functions_and_blocks_are_kept_and_compared_at_the_end(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, TESTS, "source.py::test_inside")
    text = "\n".join(step for step in steps if isinstance(step, str))
    assert "checked.append((as_it_is(grad), as_it_is(torch.ones(2))))" in text
    assert "checked.append(('does not require grad' in str(error), True))" in text
    assert steps[-1]["expect"]["len(checked)"] == 3
    assert steps[-1]["expect"]["[seen for seen, _ in checked]"] == "[wanted for _, wanted in checked]"


def test_each_row_of_a_parametrized_test_is_a_case(tmp_path: Path) -> None:
    cases = drafted(tmp_path, TESTS, "source.py::TestMine::test_rows")
    assert [case["title"] for case in cases] == ["rows, keep = True", "rows, keep = False"]
    assert bare(cases[1]["steps"])[-1] == {"expect": {"x": {"grad": "x.exp()"}}}


def test_an_assertion_that_does_not_hold_is_told_and_left_out(tmp_path: Path) -> None:
    assert drafted(tmp_path, TESTS, "source.py::test_wrong") == []
    said = comments(tmp_path)
    assert "self.assertEqual(torch.ones(2), torch.zeros(2)): does not hold here: " in said
    assert "self.assertTrue(torch._C._is_nothing()): unknown name 'torch._C'" in said


def test_a_test_that_asserts_nothing_must_not_raise(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, TESTS, "source.py::test_only_runs")
    assert steps[-1] == {"do": "twice(made_(1)).backward()", "raises": "none"}


EXPORTED = """
# First steps

In [1]:
import torch
a = torch.ones(2, requires_grad=True)

b = a.exp()
# b = a + 1

print(b.grad_fn)

<ExpBackward0 object at 0x7f3a>

## How it goes on
The gradient is kept in the leaf.

In [None]:
b.sum().backward()
a.grad

tensor([2.7183, 2.7183])

In [7]:
b.sum().backward()

RuntimeError: Trying to backward through the graph a second time

And a block:

```
c = torch.ones(1)
c.requires_grad
>>> False
```
"""


def test_an_exported_notebook_has_a_case_for_cells_that_need_one_another(tmp_path: Path) -> None:
    cases = drafted(tmp_path, EXPORTED, "source.txt")
    assert [case["title"] for case in cases] == ["First steps", "First steps", "First steps", "How it goes on"]
    whole, again, variant, last = (bare(case["steps"]) for case in cases)
    assert [step if isinstance(step, str) else next(iter(step)) for step in whole] == [
        "a = torch.ones(2, requires_grad=True)", "b = a.exp()", "expect", "b.sum().backward()", "expect", "do"
    ]  # fmt: skip
    assert whole[-1]["raises"]["type"] == "RuntimeError"
    assert again[:3] == ["a = torch.ones(2, requires_grad=True)", "b = a.exp()", "b.sum().backward()"]
    assert "b = a + 1" in variant
    assert {"expect": {"b": {"grad_fn": "AddBackward0"}}} in variant
    assert last == ["c = torch.ones(1)", {"expect": {"c": {"requires_grad": False}}}]


def test_a_notebook_is_read_by_nbformat(tmp_path: Path) -> None:
    pytest.importorskip("nbformat")
    lines = [
        ("markdown", "# Leaves"),
        ("code", "%matplotlib inline\nimport torch\na = torch.ones(1)"),
        ("code", "a.is_leaf"),
    ]
    cells: list[dict[str, object]] = [
        {"cell_type": kind, "metadata": {}, "source": text, "id": str(at)}
        | ({"outputs": [], "execution_count": None} if kind == "code" else {})
        for at, (kind, text) in enumerate(lines)
    ]
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    (case,) = drafted(tmp_path, notebook, "source.ipynb")
    assert case["title"] == "Leaves"
    assert bare(case["steps"]) == ["a = torch.ones(1)", {"expect": {"a": {"is_leaf": True}}}]
    assert "no place for line 1, %matplotlib inline: this is IPython's" in comments(tmp_path)


def test_standard_input_is_drafted_and_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a = torch.ones(1)\nprint(a.is_leaf)\n"))
    assert main(["draft", "-", "--python", forks.python()]) == 0
    assert "{expect: {a: {is_leaf: {unconfirmed: true}}}}" in capsys.readouterr().out


def test_an_id_is_no_other_one_of_the_suite_and_says_where_a_case_is_from(tmp_path: Path) -> None:
    cells = "## \u53f6\nIn [1]:\nx = torch.ones(2)\nprint(x.is_leaf)\n\n"
    cells += "## backward for once only\nIn [2]:\ny = torch.ones(2)\nprint(y.is_leaf)\n"
    first, second = drafted(tmp_path, cells, "notes.txt")
    assert first["id"].startswith("line-")
    assert first["id"].endswith("-of-notes-txt")
    assert second["id"] == "backward-for-once-only-2"  # there is one of that name


def test_what_is_looked_at_suggests_rules_where_operations_do_not(tmp_path: Path) -> None:
    (case,) = drafted(tmp_path, "x = torch.ones(2, requires_grad=True)\ny = x ** 2\nprint(y.is_leaf)\n")
    assert any(name.startswith("leaf.") for name in bare(case["rules"]))


def test_cases_that_are_much_alike_are_named_and_their_rules_suggested(tmp_path: Path) -> None:
    source = """
    p = torch.tensor([2.0], requires_grad=True)
    total = p.sigmoid().sum()
    alias = total.data
    alias.zero_()
    print(alias, total, total._version, alias._version)
    total.backward()
    print(p.grad)
    """
    (case,) = drafted(tmp_path, source)
    (alike,) = [line for line in comments(tmp_path).splitlines() if "# much alike: " in line]
    assert "data-zeroed-after-s" in alike
    cited = {name for name, cases in cases_by_rule().items() if "data-zeroed-after-sum" in cases}
    assert cited & set(bare(case["rules"]))


@each(
    "name, text, words",
    [
        ("absent.py", None, "can't be read: No such file or directory\nhint: name a file"),
        ("a.py::absent", "def nearby(): pass", "there is no function 'absent'\nhint: name one"),
        ("a.py::nearbi", "def nearby(): pass", "there is no function 'nearbi'\nhint: did you mean 'nearby'?"),
        ("a.py::f", "def f(:", "this is no Python\nhint: write it in Python 3"),
        ("a.ipynb", "no notebook", "can't be read as a notebook: "),
    ],
)
def test_a_source_that_can_not_be_read_is_an_error_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str | None, words: str
) -> None:
    file = tmp_path / name.partition("::")[0]
    if text is not None:
        file.write_text(text)
    named = f"{file}::{name.partition('::')[2]}" if "::" in name else str(file)
    assert main(["draft", named, "--python", forks.python()]) == 2
    assert words in told(capsys)


def test_what_can_be_no_case_ends_with_status_1(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import numpy\nnumpy.zeros(3)\n")
    output = tmp_path / "draft.yaml"
    assert main(["draft", str(tmp_path / "a.py"), "-o", str(output), "--python", forks.python()]) == 1
    assert "no place for line 2, numpy.zeros(3): unknown name 'numpy'" in output.read_text()
