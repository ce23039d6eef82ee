"""Says step by step what a case's tensors are and why."""

import argparse
import textwrap
from collections.abc import Iterator
from typing import Any

from conformance.cli.attempt import add_python, torch_of
from conformance.cli.output import CommandError, json_text, put
from conformance.cli.progress import following
from conformance.cli.show import case_of
from conformance.execution.attempt import TARGET, Torch
from conformance.execution.program import why_unsupported
from conformance.language.parsing import parse_code
from conformance.model.case import Case
from conformance.model.graph import Graph, GraphTensor
from conformance.model.outcome import Outcome
from conformance.render.explanation import Explained, Seen, explain

DESCRIPTION = """\
Says of each step of a case, in plain words, what it leaves behind: which tensors are leaves and because of what, what
made the others and what was saved for backward(), what is written in place, who gets a gradient, and who does not and
why. The case is run, and its graph is recorded after each step.

  autograd-conformance explain detached-alias-zeroed-after-sigmoid
  autograd-conformance explain mine.yaml::my-case --python ../venv-2.6/bin/python

exit statuses: 0 done; 1 the case does not pass there, and is explained up to the step at which it diverges; 2 there is
no such case, or no torch that can run it
"""
WIDTH = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", help="the id of a case; of a case of your own, FILE::ID")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")
    add_python(parser)


def run(options: argparse.Namespace) -> int:
    case = case_of(options.case)
    with torch_of(options.python, [options.case], trusts=options.trust) as torch:
        why = why_unsupported(case, TARGET, torch.build.torch)
        if why:
            raise CommandError(f"torch {torch.build.torch} can't run {case.id}: {why}", "--python names another")
        outcome = torch.outcome(case)
        seen = list(seen_after(case, torch, outcome))
    explained = explain(seen, torch.build.torch)
    if options.format == "json":
        put(json_text(facts_of(case, torch.build.torch, outcome, explained)), "utf-8")
    else:
        put("\n".join([*lines_of(case, torch.build.torch, outcome, explained), ""]), "utf-8")
    return 0 if outcome.status == "pass" else 1


def seen_after(case: Case, torch: Torch, outcome: Outcome) -> Iterator[Seen]:
    """Yield the steps up to the one that did not go as expected, with the graph and the tensors after each of them."""
    program = torch.program(case)
    steps = [step for step in program["steps"] if outcome.step is None or step["number"] <= outcome.step]
    bound: set[str] = set()
    for number, step in enumerate(following(steps, "looking at steps", lambda step: f"line {step['line']}"), 1):
        until = {**program, "steps": steps[:number]}
        bound |= parse_code(step.get("do", "")).bound
        graph = torch.graph(until) or without_nodes(sorted(bound), torch, until)
        names = {tensor.name for tensor in graph.tensors} - {""}
        parts = {
            f"{name}.{part}": (name, part) for name in sorted(names) for part in ("grad is None", "_version", "dtype")
        }
        states: dict[str, dict[str, str]] = {name: {} for name in names}
        for text, value in torch.read(until, parts).items():
            name, part = parts[text]
            states[name][part] = value
        yield Seen(step=step, graph=graph, states={name: state for name, state in states.items() if state})


def without_nodes(names: list[str], torch: Torch, program: dict[str, Any]) -> Graph:
    """Return the tensors among variables as a graph, where none can be recorded."""
    found = torch.read(program, [f"{name}.is_leaf" for name in names])
    tensors = [GraphTensor(name=name, shape=(), is_leaf=True) for name in names if f"{name}.is_leaf" in found]
    return Graph(target=str(TARGET), tensors=tuple(tensors), nodes=())


def facts_of(case: Case, torch: str, outcome: Outcome, explained: list[Explained]) -> dict[str, Any]:
    steps = [{"line": each.line, "text": each.text, "told": list(each.told)} for each in explained]
    return {"case": case.id, "torch": torch, "status": outcome.status, "summary": outcome.summary, "steps": steps}


def lines_of(case: Case, torch: str, outcome: Outcome, explained: list[Explained]) -> Iterator[str]:
    yield from (case.title, f"{case.file}:{case.line}, on torch {torch}", "")
    yield from textwrap.wrap(case.why, WIDTH)
    for each in explained:
        yield ""
        yield from (
            f"{each.line:4}  {line}" if not number else f"      {line}"
            for number, line in enumerate(each.text.splitlines())
        )
        for words in each.told:
            yield from textwrap.wrap(words, WIDTH, initial_indent="        - ", subsequent_indent="          ")
    if outcome.status != "pass":
        yield from ("", f"{outcome.status}: {outcome.summary}")
