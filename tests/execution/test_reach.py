"""What cases reach: torch's nodes by the names that it gives them, and those that a case goes backward through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from running import case_of, request_of, running_engine

from conformance.cli import coverage
from conformance.cli.main import main
from conformance.execution.reach import Reached, nodes_of, specified

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


def test_the_names_are_those_of_the_installed_torch() -> None:
    reached = specified(Path(torch.__file__).parent)
    assert reached is not None
    generated = {name for name in dir(torch._C._functions) if "Backward" in name and not name.endswith("_copy")}
    assert len(reached.nodes) > 500
    assert reached.nodes <= generated
    assert len(generated - reached.nodes) < 6  # written by hand, such as CopyBackwards


def test_all_nodes_below_each_backward_are_noted() -> None:
    steps = "- x = tensor([0.5], requires_grad=True)\n- y = (x.sin() * 2).exp()\n- y.backward()\n- z = x.cos()\n"
    with running_engine() as engine:
        answer = engine.run({**request_of(case_of(f"{steps}- expect: {{x.grad: {{type: Tensor}}}}\n")), "reach": True})
        assert "nodes" not in engine.run(request_of(case_of(f"{steps}- expect: {{x.grad: {{type: Tensor}}}}\n")))
    assert answer["status"] == "pass"
    assert {"SinBackward0", "MulBackward0", "ExpBackward0"} <= set(answer["nodes"])
    assert "CosBackward0" not in answer["nodes"]


def test_the_command_says_what_no_case_uses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("topic: Own\nops:\n  - {id: own-sine, op: x.sin(), elementwise: {x: any}}\n")
    assert main(["coverage", str(file)]) == 0
    printed = capsys.readouterr().out
    unused = printed.partition("backward formulas that no case goes through")[2]
    assert "TanBackward0" in unused
    assert "SinBackward0" not in unused
    assert "CudnnRnnBackward0" in printed.partition("of other devices")[2]


def test_shares_are_of_what_the_cpu_can_reach() -> None:
    nodes = frozenset({"SinBackward0", "CosBackward0", "CudnnRnnBackward0"})
    reached = Reached(nodes, frozenset({"SinBackward0", "CosBackward0"}), {"SinBackward0"}, set())
    assert coverage.text_of(reached).splitlines()[:2] == [
        "backward formulas that cases go through: 1 of 2, 50.0 %",
        "forward formulas whose operations cases differentiate forward: 0 of 2, 0.0 %",
    ]


def test_a_torch_without_its_list_is_an_error(tmp_path: Path) -> None:
    assert specified(tmp_path / "torch") is None
