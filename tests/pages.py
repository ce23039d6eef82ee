"""Makes reports for the tests of what is done with them: small, valid, and different in what a test is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.graph import Graph, GraphEdge, GraphNode, GraphTensor, SavedTensor
from conformance.outcome import Failure, Outcome
from conformance.report import FORMAT, CaseRecord, Entry, Header, Report, Run, Suite, footer_of
from conformance.rule import Rule
from conformance.target import Build, Device

STEPS = """\
  - id: {id}
    title: {title}
    why: To test the report.
    rules: [{rules}]
    steps:
      - a = tensor([1.0], requires_grad=True)
      - b = a.sigmoid()
      - expect:
          b: {{is_leaf: false, grad_fn: SigmoidBackward0}}
          a: {{is_leaf: true, grad: null}}
      - b.sum().backward()
      - expect: {{a: {{grad: sigmoid(a) * (1 - sigmoid(a))}}}}
"""
RULES = {
    name: Rule(
        id=name, text=f"What {name} promises.", topic="Reports", level=level, since="1.13",
        link=f"https://docs.pytorch.org/docs/stable/notes/autograd.html#{name}",
    )
    for name, level in (("test.first", "documented"), ("test.second", "observed"))
}  # fmt: skip
FAILURES = (
    Failure(line=9, path="b.is_leaf", expected="false", observed="true"),
    Failure(line=10, path="a.grad", expected="null", observed="[0.25]"),
)
GRAPH = Graph(
    target="cpu-float32",
    tensors=(
        GraphTensor(
            name="a", line=6, shape=(1,), is_leaf=True, requires_grad=True, retains_grad=False, has_grad=True,
            accumulates=True, node=None, output_nr=0, shares_storage=None,
        ),
        GraphTensor(
            name="b", line=7, shape=(1,), is_leaf=False, requires_grad=True, retains_grad=False, has_grad=False,
            accumulates=False, node=0, output_nr=0, shares_storage=None,
        ),
    ),
    nodes=(
        GraphNode(
            name="SigmoidBackward0", next=(GraphEdge(node=None, tensor=0),), saved=(SavedTensor(name="result", tensor=1),)
        ),
        GraphNode(name="SumBackward0", next=(GraphEdge(node=0, tensor=None),), saved=()),
    ),
)  # fmt: skip


def build_of(torch: str = "2.13.0+cpu", devices: Sequence[str] = ("cpu",), **facts: Any) -> Build:
    """Return a build that has `devices`."""
    known: dict[str, Any] = {
        "torch": torch, "git": "0123456789abcdef", "debug": False, "cuda": None, "hip": None, "config": "GCC 13.3",
        "path": "site-packages/torch", "python": "3.11.7", "implementation": "CPython", "executable": "python",
        "system": "linux-x86_64", "platform": "Linux-6.1",
    }  # fmt: skip
    listed = tuple(
        Device(type=name, name=f"A {name}", count=1, driver=None, absent=None, unknown=False) for name in devices
    )
    return Build(**{**known, **facts}, devices=listed)


def record_of(id: str, **facts: Any) -> CaseRecord:  # noqa: A002 - as the record calls it
    """Return the record of a case, with the text of one that is valid."""
    title = facts.get("title", f"The case {id}")
    rules = facts.get("rules", ("test.first",))
    known: dict[str, Any] = {
        "id": id, "file": "cases/first.yaml", "line": 1, "topic": "First", "title": title, "why": "To test the report.",
        "level": "documented", "rules": rules, "source": (), "digest": f"digest-{id}",
        "yaml": STEPS.format(id=id, title=title, rules=", ".join(rules)),
    }  # fmt: skip
    return CaseRecord(**{**known, **facts})


def outcome_of(case: str, status: Any = "pass", target: str = "cpu-float32", **facts: Any) -> Outcome:
    """Return an outcome; one that failed or raised has failures at the third step."""
    known: dict[str, Any] = {}
    if status in ("fail", "error"):
        known = {"step": 2, "line": 9, "failures": FAILURES}
    elif status not in ("pass", "fixed"):
        known = {"reason": f"{status} for a reason"}
    return Outcome(case=case, target=target, status=status, **{**known, **facts})


def report_of(
    build: Build | None = None,
    outcomes: Sequence[Outcome] = (),
    cases: Sequence[CaseRecord] | None = None,
    rules: Mapping[str, Rule] = RULES,
    finished: bool = True,
    missing: Sequence[tuple[str, str]] = (),
    graphs: Mapping[str, Graph] | None = None,
) -> Report:
    """Return the report of `outcomes`, with the cases that they are of; `missing` pairs are planned on top of them."""
    pairs = [*((outcome.case, outcome.target) for outcome in outcomes), *missing]
    ids = list(dict.fromkeys(case for case, _ in pairs))
    listed = [record_of(name, line=1 + 20 * at) for at, name in enumerate(ids)] if cases is None else cases
    return Report(
        format=FORMAT,
        header=Header(
            suite=Suite(version="0.1.0", commit=None, cases="0" * 16),
            run=Run(started="2026-01-01T00:00:00+00:00", arguments=("-q",)),
            build=build or build_of(),
        ),
        rules=dict(rules),
        cases=tuple(listed),
        plan=tuple(Entry(case=case, target=target) for case, target in pairs),
        outcomes=tuple(outcomes),
        graphs=dict(graphs or {}),
        footer=footer_of(outcomes, 0, "2026-01-01T00:00:09+00:00") if finished else None,
    )
