"""What stands in the place of a `?`, on one torch or on several."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import forks
import pytest
import torch

from cli.drafts import told
from conformance.cli.main import main
from conformance.execution.observing import Observation, Observer
from conformance.language.errors import CaseFileError
from conformance.language.files import load_cases

FILE = """\
topic: T
cases:
  - id: first
    title: Is a ? in a text ?
    why: "?"
    rules: [bwd.accumulates]
    steps:
      - a = tensor([1.0], requires_grad=True)
      - b = a.sigmoid()
      - c = b.detach()
      - expect:
          c: {is_leaf: ?, shares_storage: ?, view_of: ?, shape: ?, dtype: ?, grad_fn: ?, version: ?}
          b: {next_functions: [?], value: ?, grad: ?}
          1 + len(a): ?
      - {do: c.zero_(), warns: ?}
      - do: b.sum().backward()
        raises: ?
      - expect: {b: {is_leaf: {torch: {"<2": ?, ">=2": ?}}}, a.grad: ?}
"""
OBSERVED = """\
mine.yaml:12: c.is_leaf: true
mine.yaml:12: c.shares_storage: b
mine.yaml:12: c.view_of: null
mine.yaml:12: c.shape: [1]
mine.yaml:12: c.dtype: float32
mine.yaml:12: c.grad_fn: null
mine.yaml:12: c.version: 0
mine.yaml:13: b.next_functions.0: [AccumulateGrad]
mine.yaml:13: b.value: [0.7310586]
mine.yaml:13: b.grad: null
mine.yaml:14: 1 + len(a): 2
mine.yaml:15: warns: no warning
mine.yaml:17: raises: RuntimeError: one of the variables needed for gradient computation has been modified"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mine.yaml").write_text(FILE, encoding="utf-8")
    return tmp_path / "mine.yaml"


def test_each_is_told_and_what_comes_after_an_error_too(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["observe", str(file), "--python", forks.python()]) == 1
    said = told(capsys)
    assert OBSERVED in said
    assert "mine.yaml:18: b.is_leaf.torch.<2: can't be seen: it is not looked at on this torch" in said
    assert said.endswith("mine.yaml:18: b.is_leaf.torch.>=2: false\nmine.yaml:18: a.grad: null\n")


def test_such_a_file_does_not_load_and_the_message_names_the_command(file: Path) -> None:
    with pytest.raises(CaseFileError) as raised:
        load_cases([file])
    first = raised.value.problems[0]
    assert str(first) == (
        "mine.yaml:12:24: expect.c.is_leaf: ? stands for what nobody has looked at yet "
        "(`observe mine.yaml` says what it is)"
    )
    assert {problem.line for problem in raised.value.problems} == {12, 13, 14, 15, 17, 18}  # and no text that has a ?


def test_what_several_builds_of_torch_show_is_told_apart(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two are one torch here, of which the second is made to answer otherwise."""
    file.write_text(
        FILE.partition("      - c = ")[0] + "      - expect: {b: {value: ?, is_leaf: ?}}\n", encoding="utf-8"
    )
    observe, observers = Observer.observe, []

    def otherwise(self: Observer, *asked: Any) -> Observation:
        observers.append(self)
        found = observe(self, *asked)
        return replace(found, text="[0.0]") if self is not observers[0] and found.text[:1] == "[" else found

    monkeypatch.setattr(Observer, "observe", otherwise)
    assert main(["observe", str(file), "--python", forks.python(), "--python", forks.python()]) == 0
    assert told(capsys).endswith(
        "mine.yaml:10: b.value:\n"
        f"  torch {torch.__version__}: [0.7310586]\n  torch {torch.__version__}: [0.0]\n"
        "mine.yaml:10: b.is_leaf: false\n"
    )


def test_a_file_without_one_or_with_one_where_none_may_stand_is_an_error(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(FILE.replace(": ?", ": 1").replace("[?]", "[]"), encoding="utf-8")
    assert main(["observe", str(file), "--python", forks.python()]) == 2
    assert "there is no ? in it\nhint: write ? where a value is expected" in told(capsys)
    file.write_text(FILE.replace("id: first", "id: ?"), encoding="utf-8")
    assert main(["observe", str(file), "--python", forks.python()]) == 2
    assert "mine.yaml:3: ? can't stand here" in told(capsys)


def test_an_interpreter_without_torch_is_an_error(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["observe", str(file), "--python", "/nowhere/python"]) == 2
    assert "hint: --python names the interpreter" in told(capsys)
