"""What cases reach: torch's nodes by the names that it gives them, and those that a case goes backward through."""

from __future__ import annotations

import mmap
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from running import case_of, request_of, running_engine
from shipped import all_cases

from conformance.cli import coverage
from conformance.cli.main import main
from conformance.execution.reach import Reached, Share, left_out, nodes_of, nodes_of_foreach, specified
from conformance.language.files import LEFT_OUT_FILE, read_left_out, shipped_cases

ENTRIES: list[dict[str, Any]] = [
    {"name": "sin(Tensor self) -> Tensor", "self": "grad * self.cos()", "result": "auto_element_wise"},
    {"name": "add.Tensor(Tensor self, Tensor other) -> Tensor", "self": "grad", "other": "grad", "result": "self_t"},
    {"name": "add.Scalar(Tensor self, Scalar other) -> Tensor", "self": "grad"},
    {"name": "_cdist_forward(Tensor x1) -> Tensor", "x1": "_cdist_backward(grad)"},
    {"name": "argmax(Tensor self) -> Tensor", "output_differentiability": [False], "self": "non_differentiable"},
    {
        "name": "view(Tensor self) -> Tensor",
        "dispatch": {
            "Default": {"self": "grad.reshape()", "result": "auto_linear"},
            "AutogradNested": {"self": "grad"},
        },
    },
]


def test_nodes_have_the_names_that_torch_gives_them() -> None:
    assert nodes_of(ENTRIES) == {
        "SinBackward0": True, "AddBackward0": True, "AddBackward1": False, "CdistBackward0": False,
        "ViewBackward0": True, "ViewBackwardAutogradNested0": False,
    }  # fmt: skip


def test_functions_of_lists_have_the_nodes_of_the_function_with_the_same_arguments() -> None:
    functions = """
- func: _foreach_sin(Tensor[] self) -> Tensor[]
- func: _foreach_sin_(Tensor(a!)[] self) -> ()
- func: _foreach_sin.out(Tensor[] self, *, Tensor(a!)[] out) -> ()
- func: _foreach_add.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]
- func: _foreach_add.List(Tensor[] self, Tensor[] other) -> Tensor[]
- func: _foreach_copy(Tensor[] self, Tensor[] src, bool non_blocking=False) -> Tensor[] self_out
- func: _foreach_view(Tensor[] self) -> Tensor[]
- func: add.Tensor(Tensor self, Tensor other) -> Tensor
"""
    own: list[dict[str, Any]] = [*ENTRIES, {"name": "_foreach_view(Tensor[] self) -> Tensor[]", "self": "grads[i]"}]
    assert nodes_of_foreach(own, functions) == {
        "ForeachSinBackward0": True, "ForeachAddBackward1Scalar": False, "ForeachAddBackward0List": True,
    }  # fmt: skip


def test_the_nodes_of_functions_of_lists_are_those_in_the_installed_library() -> None:
    reached = specified(Path(torch.__file__).parent)
    library = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    if reached is None or not library.exists():
        pytest.skip("torch has its nodes in a file of another name")
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        compiled = {
            name.decode() for name in re.findall(rb"(?<=\0)N5torch8autograd9generated\d+(Foreach\w+)E(?=\0)", data)
        }
    assert {name for name in reached.nodes if name.startswith("Foreach")} == compiled


def test_the_names_are_those_of_the_installed_torch() -> None:
    reached = specified(Path(torch.__file__).parent)
    assert reached is not None
    generated = {name for name in dir(torch._C._functions) if "Backward" in name and not name.endswith("_copy")}
    assert len(reached.nodes) > 500
    assert {name for name in reached.nodes if not name.startswith("Foreach")} <= generated
    assert len(generated - reached.nodes) < 6  # written by hand, such as CopyBackwards


def test_all_nodes_below_each_backward_are_noted() -> None:
    steps = "- x = tensor([0.5], requires_grad=True)\n- y = (x.sin() * 2).exp()\n- y.backward()\n- z = x.cos()\n"
    with running_engine() as engine:
        answer = engine.run({**request_of(case_of(f"{steps}- expect: {{x.grad: {{type: Tensor}}}}\n")), "reach": True})
        assert "uses" not in engine.run(request_of(case_of(f"{steps}- expect: {{x.grad: {{type: Tensor}}}}\n")))
    assert answer["status"] == "pass"
    assert {"SinBackward0", "MulBackward0", "ExpBackward0"} <= set(answer["uses"])
    assert "CosBackward0" not in answer["uses"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("- x = zeros(2, requires_grad=True)\n- (x * x).sum().backward()\n", "MulBackward0 self zero"),
        ("- x = ones(2, requires_grad=True)\n- (x * 0.1).exp().sum().backward()\n", "ExpBackward0 torch.float32"),
        ("- x = full((2,), 9.0, requires_grad=True)\n- (x * x).sum().backward()\n", "MulBackward0 self large"),
        ("- x = full((2,), 0.1, requires_grad=True)\n- (x * x).sum().backward()\n", "MulBackward0 self small"),
        ("- x = full((2,), inf, requires_grad=True)\n- (x * x).sum().backward()\n", "MulBackward0 self not finite"),
        ("- x = zeros(0, requires_grad=True)\n- (x * x).sum().backward()\n", "MulBackward0 self none"),
        ("- x = ones(2, requires_grad=True)\n- (x * ones(2)).sum().backward()\n", "MulBackward0 in part"),
        ("- x = ones(2, 3, requires_grad=True)\n- x.sum(1, keepdim=True).exp().sum().backward()\n",
         "SumBackward1 keepdim=True"),
        ("- x = ones(2, 3, requires_grad=True)\n- x.cumsum(1).sum().backward()\n", "CumsumBackward0 dim>0"),
        ("- x = ones(1, 3, requires_grad=True)\n- (x * ones(2, 3)).sum().backward()\n", "MulBackward0 of size one"),
        ("- x = ones(1, 3, requires_grad=True)\n- (x + ones(2, 3)).sum().backward()\n", "AddBackward0 summed"),
        ("- x = ones(2, 3, requires_grad=True)\n- x.exp().backward(ones(3, 2).t())\n", "ExpBackward0 not contiguous"),
        ("- x = ones(2, requires_grad=True)\n- autograd.grad(x.exp().sum(), x, create_graph=True)\n",
         "ExpBackward0 recorded"),
        ("- x = ones(2, requires_grad=True)\n- func.vmap(partial(autograd.grad, x.exp(), x))(ones(3, 2))\n",
         "ExpBackward0 wrapped"),
    ],
)  # fmt: skip
def test_the_circumstances_of_each_node_are_noted(steps: str, expected: str) -> None:
    ordinary = "- x = full((2,), 1.5).double().requires_grad_()\n- (x * x).exp().backward(ones(2).double())\n"
    assert expected in uses_of(steps)
    assert expected not in uses_of(ordinary)


def uses_of(steps: str) -> list[str]:
    with running_engine() as engine:
        answer = engine.run({**request_of(case_of(f"{steps}- expect: {{int(1): 1}}\n")), "reach": True})
    assert answer["status"] == "pass"
    return list(answer["uses"])


def test_the_command_says_what_no_case_uses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own.yaml"
    entry = "  - {id: own-sine, op: x.sin(), elementwise: {x: any}}\n"
    more = "  - {id: own-sine-again, op: torch.sin(x), elementwise: {x: any}}\n"
    file.write_text(f"topic: Own\nops:\n{entry}{more}")
    own = tmp_path / "left-out.txt"
    assert main(["coverage", str(file), "-o", str(own)]) == 0
    head, left = own.read_text().splitlines()
    assert head == coverage.LEFT_OUT_HEAD
    assert left in ("derivatives-of-own-sine", "derivatives-of-own-sine-again")  # whichever took longer
    printed = capsys.readouterr().out
    unused = printed.partition("backward formulas that no case goes through")[2]
    assert " TanBackward0" in unused
    assert " SinBackward0" not in unused
    assert "CudnnRnnBackward0" in printed.partition("of kernels of other devices")[2]


def test_shares_are_of_what_the_cpu_can_reach() -> None:
    nodes = frozenset({"SinBackward0", "CosBackward0", "ForeachSinBackward0", "CudnnRnnBackward0"})
    reached = Reached(
        nodes, frozenset({"SinBackward0", "CosBackward0"}), {"SinBackward0", "ForeachSinBackward0"}, set()
    )
    assert coverage.text_of(reached).splitlines()[:4] == [
        "backward formulas that cases go through: 2 of 3, 66.7 %",
        "  without functions of lists (foreach): 1 of 2, 50.0 %",
        "forward formulas whose operations cases differentiate forward: 0 of 2, 0.0 %",
        "  without functions of lists (foreach): 0 of 2, 0.0 %",
    ]


def test_what_adds_most_for_its_time_is_not_left_out() -> None:
    shares = {
        "long": Share(frozenset("abcdefgh"), 3.0),
        "short": Share(frozenset("abc"), 0.5),
        "also-short": Share(frozenset("cd"), 0.5),
        "nothing-new": Share(frozenset("bd"), 0.5),
        "nothing": Share(frozenset(), 0.0),
    }
    assert left_out(shares, 1.0) == ["nothing", "nothing-new"]
    assert left_out(shares, 0.45) == ["long", "nothing", "nothing-new"]
    assert left_out(shares, 0.12) == ["also-short", "long", "nothing", "nothing-new"]
    assert left_out({}, 1.0) == []


def test_a_case_that_generates_code_is_left_out_whatever_it_adds() -> None:
    shares = {"plain": Share(frozenset("a"), 1.0), "built": Share(frozenset("bcdefgh"), 0.1, generates_code=True)}
    assert left_out(shares, 1.0) == ["built"]


def test_circumstances_count_for_less_than_formulas_and_rules() -> None:
    shares = {
        "rule": Share(frozenset("a"), 1.0),
        "details": Share(frozenset(), 1.0, frozenset("xyz")),
        "many-details": Share(frozenset(), 1.0, frozenset("uvwxyz")),
    }
    assert left_out(shares, 0.4) == ["details", "rule"]
    assert left_out(shares, 0.7) == ["details"]
    assert left_out(shares, 1.0) == ["details"]  # adds nothing


def test_what_the_quick_run_leaves_out_is_there_and_few_rules_but_the_compilers_need_it() -> None:
    ids = read_left_out(shipped_cases() / LEFT_OUT_FILE, LEFT_OUT_FILE)
    cases = all_cases()
    assert ids <= {case.id for case in cases}
    kept = {rule for case in cases if case.id not in ids for rule in case.rules}
    needing = {rule for case in cases for rule in case.rules} - kept
    assert len([rule for rule in needing if not rule.startswith(("compile.", "hop."))]) < 10


def test_what_a_case_reaches_is_never_of_another_device() -> None:
    nodes = frozenset({"CudnnRnnBackward0", "PinMemoryBackward0", "ScaledDotProductFlashAttentionForCpuBackward0"})
    assert Reached(nodes, frozenset(), {"CudnnRnnBackward0"}, set()).elsewhere == {
        "PinMemoryBackward0": "of memory for an accelerator"
    }


def test_a_torch_without_its_list_is_an_error(tmp_path: Path) -> None:
    assert specified(tmp_path / "torch") is None
