"""Reports for tests: small ones by hand, and hypothesis strategies for any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import strategies as st

from conformance.language.errors import CaseFileError, Problem
from conformance.language.reader import parse_cases
from conformance.model.build import Build, Device
from conformance.model.case import Case
from conformance.model.graph import Graph, GraphEdge, GraphNode, GraphTensor, SavedTensor
from conformance.model.outcome import Failure, Outcome
from conformance.model.report import (
    FORMAT,
    CaseRecord,
    Header,
    Pair,
    PlanEntry,
    Report,
    Run,
    SuiteVersion,
    footer_of,
    set_digest,
    step_record,
)
from conformance.model.rule import Rule
from conformance.model.status import STATUSES, Status
from conformance.render.script.script import Script, script_for

CPU, CUDA = "cpu-float32", "cuda-float32"
STARTED, FINISHED = "2026-01-02T03:04:05+00:00", "2026-01-02T03:05:00+00:00"
HOSTILE = 'x|`` <img src=x> @someone #1 [a](http://b) </details>\n\n<script>\x1b[31m\u202e\ud800 "quoted" \\'
VALID = """\
  - id: {id}
    title: {title}
    why: To test.
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
FAILURES = (
    Failure(line=9, path="b.is_leaf", expected="false", observed="true"),
    Failure(line=10, path="a.grad", expected="null", observed="[0.25]"),
)
GRAPH = Graph(
    target=CPU,
    tensors=(
        GraphTensor(
            name="a", line=6, shape=(1,), is_leaf=True, requires_grad=True, has_grad=True, accumulates=True, version=0,
            version_at_backward=0,
        ),
        GraphTensor(name="b", line=7, shape=(1,), requires_grad=True, node=0, version=0, version_at_backward=0),
    ),
    nodes=(
        GraphNode(
            name="SigmoidBackward0", next=(GraphEdge(tensor=0),), saved=(SavedTensor(name="result", tensor=1),)
        ),
        GraphNode(name="SumBackward0", next=(GraphEdge(node=0),)),
    ),
)  # fmt: skip


def rule(name: str, **facts: Any) -> Rule:
    values = {"text": f"The rule {name}.", "topic": "Rules", "level": "documented", "link": "https://x", **facts}
    return Rule(id=name, since="1.13", **values)


def device(kind: str, **facts: Any) -> Device:
    values = {"name": kind.upper(), "count": 1, "driver": None, "absent": None, "unknown": False, **facts}
    return Device(type=kind, **values)


def build(**facts: Any) -> Build:
    values = {
        "torch": "2.13.0+cpu", "git": "0123456789abcdef", "debug": False, "cuda": None, "hip": None,
        "config": "PyTorch built with:\n  - GCC 13.3\n  - CPU capability usage: AVX2\n", "path": "/torch",
        "python": "3.11.7", "implementation": "CPython", "executable": "/python", "system": "linux-x86_64",
        "platform": "Linux", "devices": (device("cpu"), device("cuda", absent="torch.cuda is not available")), **facts,
    }  # fmt: skip
    return Build(**values)


def case(name: str, **facts: Any) -> CaseRecord:
    values = {
        "file": "cases/x.yaml", "line": 10 * (ord(name[:1] or "a") - 96), "topic": "Tests", "title": f"The case {name}",
        "why": "To test.", "level": "documented", "rules": ("r.one",), "source": (), "digest": f"digest-{name}",
        "yaml": f"- id: {name}\n", **facts,
    }  # fmt: skip
    return CaseRecord(id=name, **values)


def valid_case(name: str, **facts: Any) -> CaseRecord:
    """Return a case whose text is that of a valid one, with steps that stand 5, 6, 7, 10 and 11 lines below its first.

    It begins in line 1, if nothing else is said, where `broken` has its failures.
    """
    known = {"line": 1, "title": f"The case {name}", "rules": ("r.one",), **facts}
    text = VALID.format(id=name, title=known["title"], rules=", ".join(known["rules"]))
    record = case(name, **{"yaml": text, **known})
    read = read_case(record)
    steps = map(step_record, read.steps) if read is not None else ()
    moved = (msgspec.structs.replace(step, line=step.line - 2 + record.line) for step in steps)
    return msgspec.structs.replace(record, steps=tuple(moved))


def parse_at(text: str, line: int, name: str, rules: Mapping[str, Rule]) -> Case:
    """Return the case whose YAML, as an entry of a list, is `text`, as if it began in `line` of its file."""
    above = "\n" * (line - 2)
    cases = parse_cases(f"cases:\n{above}{text}\ntopic: any\n", name, rules)
    if len(cases) != 1:
        raise CaseFileError([Problem(file=name, line=line, column=1, message="expected one case")])
    return cases[0]


def read_case(record: CaseRecord) -> Case | None:
    """Return the case whose text a record has, as if it began in line 2; None where it is no valid case."""
    try:
        read = parse_at(record.yaml, 2, record.file, {name: rule(name) for name in record.rules})
    except CaseFileError:
        return None
    return replace(read, topic=record.topic, text=record.yaml, digest=record.digest) if read.id == record.id else None


def suite_of(*reports: Report) -> dict[tuple[str, str], Script]:
    """Return the scripts of the cases of some reports by id and digest, as a suite has them that ran them all."""
    read = [read_case(record) for made in reports for record in made.cases]
    return {(case.id, case.digest): script_for(case) for case in read if case is not None}


def outcome(status: Status, **facts: Any) -> Outcome:
    return Outcome(status=status, **facts)


def failed(
    path: str = "a.grad", expected: str = "1", observed: str = "2", *, exception: str = "", **facts: Any
) -> Outcome:
    failure = Failure(line=11, path=path, expected=expected, observed=observed, exception=exception)
    return Outcome(**{"status": "fail", "step": 2, "line": 12, "failures": (failure,), **facts})


def broken(status: Status = "fail", **facts: Any) -> Outcome:
    """Return the outcome of a valid case that breaks at its third step."""
    return Outcome(**{"status": status, "step": 2, "line": 9, "failures": FAILURES, **facts})


def report(
    outcomes: Mapping[Pair, Outcome | None],
    *,
    cases: Iterable[CaseRecord] | None = None,
    finished: bool = True,
    status: int = 0,
    arguments: tuple[str, ...] = (),
    **facts: Any,
) -> Report:
    """Return a report whose plan is `outcomes`, None standing for what has none; `facts` are the build's."""
    listed = (
        tuple(case(name) for name in dict.fromkeys(name for name, _ in outcomes)) if cases is None else tuple(cases)
    )
    known = tuple(
        msgspec.structs.replace(given, case=name, target=target)
        for (name, target), given in outcomes.items()
        if given is not None
    )
    digest = set_digest((record.id, record.digest) for record in listed)
    return Report(
        format=FORMAT,
        header=Header(
            suite=SuiteVersion(version="0.1.0", commit="c0ffee", cases=digest),
            run=Run(started=STARTED, arguments=arguments, shard=facts.pop("shard", None)),
            build=build(**facts),
        ),
        rules={name: rule(name) for name in sorted({name for record in listed for name in record.rules})},
        cases=listed,
        plan=tuple(PlanEntry(case=name, target=target) for name, target in outcomes),
        outcomes=known,
        footer=footer_of(known, status, FINISHED) if finished else None,
    )


TEXTS = st.sampled_from(["", "1", "2", "a.grad", "RuntimeError: no", "TypeError: no", HOSTILE]) | st.text(max_size=8)
ANY_FAILURE = st.builds(Failure, line=st.integers(1, 99), path=TEXTS, expected=TEXTS, observed=TEXTS)
OUTCOMES = st.builds(
    Outcome, status=st.sampled_from(STATUSES), step=st.none() | st.integers(0, 2), reason=TEXTS,
    failures=st.lists(ANY_FAILURE, max_size=2).map(tuple),
)  # fmt: skip


@st.composite
def any_report(draw: st.DrawFn) -> Report:
    """Draw a report of a few cases on a few targets, finished or not, some of its cases edited."""
    cases = [
        case(name, digest=draw(st.sampled_from("12")), title=draw(TEXTS))
        for name in draw(st.lists(st.sampled_from("abcd"), unique=True))
    ]
    pairs = [(record.id, target) for record in cases for target in (CPU, CUDA, HOSTILE)]
    plan = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    finished = draw(st.booleans())
    given = OUTCOMES if finished else st.none() | OUTCOMES
    return report({pair: draw(given) for pair in plan}, cases=cases, finished=finished, torch=draw(TEXTS) or "2.13.0")
