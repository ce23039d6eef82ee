"""The commands for those who write cases: check, list, similar, new, explain, mutate and try, by what they print."""

from __future__ import annotations

import json
import re
from pathlib import Path

import forks
import pytest
import torch
from running import HEAD

from conformance.cli import main as cli
from conformance.cli import mutate
from conformance.cli.attempt import torch_of
from conformance.cli.explain import seen_after
from conformance.execution import formulas
from conformance.execution.faults import FAULTS, fitting
from conformance.language.files import shipped_cases
from conformance.language.reader import parse_cases
from conformance.language.rules import load_rules
from conformance.model.outcome import Outcome
from conformance.releases import environment
from conformance.releases.catalogue import Release
from conformance.releases.environment import NotInstalled

RULE = "detach.shares-storage"
OWN = HEAD.replace("[a.b]", f"[{RULE}]")
RULES_HERE = load_rules(shipped_cases() / "rules.yaml", "rules.yaml")
LEAF = "      - a = tensor([1.0], requires_grad=True)\n"
GOOD = f"{OWN}{LEAF}      - expect: {{a: {{is_leaf: true, version: 0}}}}\n"
TAUGHT = f"""{OWN}{LEAF}\
      - w = tensor([2.0], requires_grad=True)
      - b = a * 2
      - c = b.detach()
      - |
        with no_grad():
            d = b + 1
      - n = b.argmax()
      - c.mul_(3)
      - b.retain_grad()
      - b.sum().backward()
      - a.grad = None
      - g, = autograd.grad((a * w).sum(), a)
      - do: a.add_(1)
        raises: {{type: RuntimeError, match: a leaf Variable that requires grad is being used in an in-place operation}}
      - expect: {{c: {{version: 1}}, a: {{grad: null}}}}
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory without cases, in which the command is given."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], status: int, *arguments: str) -> str:
    """Give a command, hold it to its exit status, and return what it prints, or what it complains of."""
    assert cli.main(arguments) == status
    printed = capsys.readouterr()
    return printed.err if status == 2 else printed.out


def test_check_says_everything_of_several_files_at_once(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "good.yaml").write_text(GOOD, encoding="utf-8")
    (own / "bad.yaml").write_text(GOOD.replace("is_leaf", "is_laef").replace(RULE, "a.c"), encoding="utf-8")
    (own / "odd.yaml").write_text(GOOD.replace("id: c", "id: d").replace("[1.0]", "[1]"), encoding="utf-8")
    (own / "rules.yaml").write_text("rules: [1]\n", encoding="utf-8")
    assert said(capsys, 1, "check", "rules.yaml").startswith("rules.yaml:1:9: rules[0]: expected a mapping")
    (own / "rules.yaml").unlink()
    assert said(capsys, 0, "check", "good.yaml") == "1 case loads, 0 problems\n"
    lines = said(capsys, 1, "check", "good.yaml", "bad.yaml", "odd.yaml").splitlines()
    assert [line.split(": ")[0] for line in lines[:-1]] == [
        "bad.yaml:3:1", "bad.yaml:6:13", "bad.yaml:9:22", "odd.yaml:8:7",
    ]  # fmt: skip
    assert lines[0] == "bad.yaml:3:1: id: 'c' stands twice (first in good.yaml:3)"
    assert lines[-1] == "2 cases load, 4 problems"
    told = json.loads(said(capsys, 1, "check", "odd.yaml", "--format", "json"))
    assert (told["cases"], told["problems"][0]["line"]) == (1, 8)
    assert "no.yaml: can't be read" in said(capsys, 2, "check", "no.yaml")


def test_check_tells_an_id_of_the_suite(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "mine.yaml").write_text(GOOD.replace("id: c", "id: detached-alias-untouched"), encoding="utf-8")
    told = said(capsys, 1, "check", "mine.yaml")
    assert "'detached-alias-untouched' stands twice (first in cases/detach.yaml:" in told


def test_list_finds_by_words_topic_rule_and_file(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = said(capsys, 0, "list", "zeroed", "alias", "sigmoid").splitlines()
    assert first[0].startswith("detached-alias-zeroed-after-sigmoid  (cases/detach.yaml:")
    assert first[1] == "    Zeroing a detached alias of a saved output makes backward() raise"
    by_rule = json.loads(said(capsys, 0, "list", "--rule", "detach.shares-*", "--format", "json"))["cases"]
    assert {rule for case in by_rule for rule in case["rules"]} >= {RULE}
    assert all(any(rule.startswith("detach.shares-") for rule in case["rules"]) for case in by_rule)
    (own / "mine.yaml").write_text(GOOD, encoding="utf-8")
    assert said(capsys, 0, "list", "--file", "mine.yaml") == "mine.yaml: T\n  c\n      t\n"
    assert said(capsys, 1, "list", "--file", "mine.yaml", "--topic", "hooks") == "no case fits\n"
    assert "no case has these words" in said(capsys, 1, "list", "xyzzy")


def test_similar_finds_the_case_that_a_file_repeats(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = (shipped_cases() / "detach.yaml").read_text(encoding="utf-8")
    begin = entry.index("  - id: detached-alias-zeroed-after-sigmoid")
    text = entry[begin : entry.index("\n  - id: ", begin)].replace("detached-alias-zeroed-after-sigmoid", "mine")
    (own / "mine.yaml").write_text(f"topic: T\ncases:\n{text}\n  - id: other\n    steps: [", encoding="utf-8")
    lines = said(capsys, 0, "similar", "mine.yaml").splitlines()
    assert lines[0] == "mine.yaml:3: mine"
    assert lines[1].startswith("  100%  detached-alias-zeroed-after-sigmoid  (cases/detach.yaml:")
    assert "operations: " in lines[3]
    assert lines[-1].endswith(": other: no case asks the same")
    told = json.loads(said(capsys, 1, "similar", "mine.yaml::other", "--format", "json"))
    assert told["cases"][0]["similar"] == []
    assert "there is no such case" in said(capsys, 2, "similar", "mine.yaml::none")


def test_new_writes_a_file_that_loads_and_is_never_written_over(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, 0, "new", "In-place: some/my-case").startswith("in_place_some.yaml\n")
    text = (own / "in_place_some.yaml").read_text(encoding="utf-8")
    (case,) = parse_cases(text, "x.yaml", RULES_HERE)
    assert (case.id, case.topic) == ("my-case", "In-place: some")
    assert said(capsys, 0, "check", "in_place_some.yaml") == "1 case loads, 0 problems\n"
    assert "there is such a file" in said(capsys, 2, "new", "in place some/other")
    assert "expected TOPIC/ID" in said(capsys, 2, "new", "hooks/Other")
    assert "there is a case 'detached-alias-untouched'" in said(capsys, 2, "new", "hooks/detached-alias-untouched")
    schema = text.splitlines()[0].partition("$schema=")[2]
    assert Path(schema).is_file()


def test_explain_says_what_each_step_leaves_behind(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "mine.yaml").write_text(TAUGHT, encoding="utf-8")
    arguments = ("explain", "mine.yaml::c", "--trust", "--python", forks.python(), "--format", "json")
    told = json.loads(said(capsys, 0, *arguments))
    assert told["status"] == "pass"
    steps = {step["text"]: step["told"] for step in told["steps"]}
    assert steps["b = a * 2"][0] == "b is not a leaf: a recorded operation has made it, and its grad_fn is MulBackward0"
    assert steps["b = a * 2"][1] == "MulBackward0 passes gradients on to a.grad; 1 of its inputs requires none"
    assert "detach() gives the values without the way back" in steps["c = b.detach()"][0]
    assert steps["c = b.detach()"][1] == "c shares memory with b"
    assert steps["with no_grad():\n    d = b + 1"][1].endswith("in the mode of no_grad() its making was not recorded")
    assert "it is of int64" in steps["n = b.argmax()"][0]
    assert steps["c.mul_(3)"] == ["mul_() writes into c in place: b is at version 1 and c is at version 1"]
    backward = steps["b.sum().backward()"]
    assert "a.grad is there from here on: a is a leaf that requires grad, and a way leads to it" in backward
    assert (
        "b.grad is there from here on: b is no leaf, but retain_grad() asked for it, and a way leads to it" in backward
    )
    assert "w.grad is None: no gradient has come to w" in backward
    assert "c.grad is None: c requires no grad" in backward
    assert steps["a.grad = None"] == ["a.grad is None again"]
    gradient = steps["g, = autograd.grad((a * w).sum(), a)"]
    assert gradient[-1] == "autograd.grad() returns gradients, and leaves every .grad as it is"
    assert "create_graph=True" in gradient[0]
    assert steps["a.add_(1)"][1].startswith("why: a leaf holds the value at which a gradient is asked for")


def test_explain_tells_leaves_without_a_graph_other_names_and_views_written_to(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = ["u = tensor([1.0])", "k = u + 1", "x = tensor([1.0, 2.0], requires_grad=True)", "v = x[:1]", "same = x"]
    steps += ["like = torch.ones(x.shape)", "x.sum().backward()", "found = [t.grad for t in [x]]"]
    steps += ['"with no_grad(): v.add_(1)"', "expect: {x: {version: 1}}"]
    text = OWN + "".join(f"      - {step}\n" for step in steps)
    (own / "mine.yaml").write_text(text, encoding="utf-8")
    arguments = ("explain", "mine.yaml::c", "--trust", "--python", forks.python(), "--format", "json")
    told = {step["text"]: step["told"] for step in json.loads(said(capsys, 0, *arguments))["steps"]}
    assert "it was made without requires_grad=True" in told["u = tensor([1.0])"][0]
    assert told["k = u + 1"] == ["k is a leaf and requires no grad: nothing that it is made of requires grad"]
    assert told["same = x"] == ["same is another name of x"]
    assert "it was made without requires_grad=True" in told["like = torch.ones(x.shape)"][0]
    assert "it is a gradient, whose making" in told["found = [t.grad for t in [x]]"][0]
    written = told["with no_grad(): v.add_(1)"]
    assert "add_() writes into v in place: v is at version 1 and x is at version 1" in written
    assert any(line.startswith("v is not a leaf: what it is a view of was written to") for line in written)


def test_explain_goes_up_to_the_step_that_diverges(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "mine.yaml").write_text(TAUGHT.replace("b = a * 2", "b = a * 2\n      - expect: {b: 7.0}"), encoding="utf-8")
    text = said(capsys, 1, "explain", "mine.yaml::c", "--trust", "--python", forks.python())
    assert text.endswith("fail: b: expected 7.0, observed [2.0]\n")
    assert "detach()" not in text
    assert "there is no case 'd' in mine.yaml" in said(capsys, 2, "explain", "mine.yaml::d")


def test_what_is_read_after_each_step_is_what_there_is() -> None:
    (case,) = parse_cases(TAUGHT, "t.yaml", RULES_HERE)
    with torch_of(forks.python(), [], trusts=True) as here:
        states = [seen.states for seen in seen_after(case, here, Outcome(status="pass"))]
    assert states[0] == {"a": {"grad is None": "true", "_version": "0", "dtype": "float32"}}
    assert [each["a"]["grad is None"] for each in states[7:10]] == ["true", "false", "true"]


def test_mutate_tells_an_expectation_that_can_not_fail(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weak = GOOD.replace("version: 0", "version: 0, value: 1.0, atol: 9.0")
    (own / "mine.yaml").write_text(weak, encoding="utf-8")
    text = said(capsys, 1, "mutate", "mine.yaml::c", "--python", forks.python(), "--trust")
    assert "a.is_leaf: can fail\n" in text
    assert "a.value: CAN'T FAIL: changed, it comes to pass\n" in text
    assert "2 of 3 can fail\n" in text
    (own / "mine.yaml").write_text(weak.replace("true, version", "false, version"), encoding="utf-8")
    refused = said(capsys, 2, "mutate", "mine.yaml::c", "--python", forks.python(), "--trust")
    assert "c must pass first, and comes to fail" in refused


def test_mutate_plants_the_faults_that_fit(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = f"{LEAF}      - b = a.detach()\n      - expect: {{b: {{shares_storage: a}}}}\n"
    (own / "mine.yaml").write_text(OWN + steps, encoding="utf-8")
    arguments = ("mutate", "mine.yaml::c", "--trust", "--python", forks.python(), "--format", "json")
    told = json.loads(said(capsys, 0, *arguments))
    assert [(each["what"], each["is_seen"]) for each in told["faults"]] == [("detach() copies", True)]
    assert [each["is_seen"] for each in told["expectations"]] == [True]


def test_mutate_breaks_the_formulas_of_a_case_about_derivatives(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formulas, "KINDS", ("sign",))
    monkeypatch.setattr(mutate, "fitting", lambda *_: [])
    steps = "      - x = tensor([0.0], requires_grad=True)\n      - (x.relu() * 2).sum().backward()\n"
    text = f"{OWN}{steps}      - expect: {{x: {{grad: [0.0]}}}}\n".replace(RULE, "subgrad.relu-zero")
    (own / "mine.yaml").write_text(text, encoding="utf-8")
    arguments = ("mutate", "mine.yaml::c", "--trust", "--python", forks.python())
    lines = said(capsys, 1, *arguments).splitlines()
    assert lines[-4:] == [
        "faults of torch:",
        "  MulBackward0, sign: NOT NOTICED, pass",
        "  ReluBackward0, sign: changes no number here",
        "  SumBackward0, sign: NOT NOTICED, pass",
    ]
    (own / "mine.yaml").write_text(text.replace("0.0", "2.0"), encoding="utf-8")
    told = json.loads(said(capsys, 0, *arguments, "--format", "json"))
    assert [each["is_seen"] for each in told["faults"]] == [True, True, True]


def test_faults_fit_by_rule_or_else_by_check() -> None:
    assert fitting([RULE], ["version"]) == ["detach() copies"]
    assert "a write in place isn't counted" in fitting(["no.rule"], ["version"])
    assert fitting(["no.rule"], ["is_leaf"]) == []
    assert all(fault.rules for fault in FAULTS.values())


def test_try_prints_a_table_and_where_a_case_diverged(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    red = f"  - id: red\n    title: t\n    why: w\n    rules: [{RULE}]\n    steps:\n{LEAF}      - expect: {{a: 2.0}}\n"
    (own / "mine.yaml").write_text(GOOD + red, encoding="utf-8")
    version = str(torch.__version__).partition("+")[0]
    lines = said(capsys, 1, "try", "mine.yaml", "--trust", "--python", forks.python()).splitlines()
    assert lines[2:5] == [
        f"     {version}",
        f"c    {'✓':^{len(version)}}".rstrip(),
        f"red  {'✗':^{len(version)}}".rstrip(),
    ]
    assert lines[-2:] == ["red", f"  torch {version}: fail: line 16: a: expected 2.0, observed [1.0]"]
    assert "✗" not in said(capsys, 0, "try", "mine.yaml::c", "--trust", "--python", forks.python())
    told = json.loads(
        said(capsys, 1, "try", "mine.yaml::red", "--format", "json", "--trust", "--python", forks.python())
    )
    assert told["cases"][0]["outcomes"][0]["status"] == "fail"
    assert "there is no case 'none' in mine.yaml" in said(capsys, 2, "try", "mine.yaml::none")


def test_try_installs_releases_the_oldest_first_and_tells_those_that_can_not_be_had(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, str]] = []

    def create(directory: Path, release: Release, python: str) -> Path:
        made.append((release.torch, directory.name))
        if release.torch == "2.0.1":
            raise NotInstalled(f"no wheel for Python {python}")
        return Path(forks.python())

    monkeypatch.setattr(environment, "create", create)
    (own / "mine.yaml").write_text(GOOD, encoding="utf-8")
    arguments = ("try", "mine.yaml", "--trust", "--install", "2.6.0", "--install", "2.0.1", "--install", "2.6.0")
    assert cli.main([*arguments, "--environments", "kept"]) == 2
    printed = capsys.readouterr()
    assert made == [("2.0.1", "kept"), ("2.6.0", "kept")]
    assert "torch 2.0.1 can't be installed: no wheel for Python 3.11" in printed.err
    assert re.search(r"(?m)^c +✓$", printed.out)
    assert "releases are such as 2.6.0, or all" in said(capsys, 2, "try", "mine.yaml", "--install", "newest")
    made.clear()
    assert said(capsys, 0, *arguments[:-4]).startswith("torch ")
    assert [name for name, _ in made] == ["2.6.0"]


def test_try_takes_the_environments_of_nox(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "mine.yaml").write_text(GOOD, encoding="utf-8")
    python = own / ".nox" / "torch-2-6-0" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 7\n", encoding="utf-8")
    python.chmod(0o755)
    assert str(python) in said(capsys, 2, "try", "mine.yaml", "--trust")
