"""Says whether each expectation of a case can fail, and which faults of torch the case notices."""

import argparse
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from conformance.cli.attempt import add_python, torch_of
from conformance.cli.output import CommandError, json_text, put
from conformance.cli.progress import following
from conformance.cli.show import case_of
from conformance.execution.attempt import TARGET, Torch
from conformance.execution.faults import FAULTS, Fault, answer_with, fitting
from conformance.execution.formulas import formula_faults, is_about_derivatives
from conformance.execution.mutation import mutants
from conformance.execution.program import why_unsupported
from conformance.language.files import is_shipped, rules_for, shipped_cases
from conformance.language.rules import RULES_FILE
from conformance.model.case import Case
from conformance.model.outcome import Outcome, outcome_of
from conformance.model.status import BROKEN

DESCRIPTION = """\
Says whether a case can turn red. Each of its expectations is changed in turn so that what held of it is wrong, and the
case is run: where it passes all the same, that expectation can't fail. Then faults are planted into torch, one at a
time: those that break a rule of the case, or else those that its checks should show. Of a case that is about
derivatives, such as an operation's, the formulas that it goes through get a wrong sign and factor, and lose a term.

  autograd-conformance mutate detached-alias-zeroed-after-sigmoid
  autograd-conformance mutate mine.yaml::my-case --trust

exit statuses: 0 each expectation can fail, and of the faults that fit one at least is noticed; 1 not so; 2 there is no
such case, or no torch on which it passes
"""

LONGEST_END = 240  # characters of how a case ends with a fault, of which some cases say pages


class Tried(NamedTuple):
    """An expectation that was changed, or a fault that was planted, and how the case ended then."""

    line: int
    what: str
    is_seen: bool
    ended: str
    is_effective: bool = True  # of a fault: whether it changed a number in the case, if it is one of formulas


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", help="the id of a case; of a case of your own, FILE::ID")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")
    add_python(parser)


def run(options: argparse.Namespace) -> int:
    case = case_of(options.case)
    file = options.case.rpartition("::")[0]
    with torch_of(options.python, [options.case], trusts=options.trust) as torch:
        program = passing(case, torch)
        changed = list(changed_expectations(program, torch))
        is_safe = options.trust or not file or is_shipped(Path(file))
        faults = faults_for(case, program, torch, options.case) if is_safe else {}
        planted = list(planted_faults(faults, program, options.python)) if is_safe else None
    effective = [each for each in planted or () if each.is_effective]
    is_proven = all(each.is_seen for each in changed) and (not effective or any(each.is_seen for each in effective))
    if options.format == "json":
        tried = {"expectations": facts_of(changed), "faults": facts_of(planted or [])}
        told = {"case": case.id, "torch": torch.build.torch, **tried}
        put(json_text(told), "utf-8")
    else:
        put("\n".join([*lines_of(case, torch.build.torch, changed, planted), ""]), "utf-8")
    return 0 if is_proven else 1


def passing(case: Case, torch: Torch) -> dict[str, Any]:
    """Return the program of a case that passes; raise CommandError for another."""
    why = why_unsupported(case, TARGET, torch.build.torch)
    outcome = torch.outcome(case)
    if outcome.status != "pass":
        ended = f"{outcome.status} on torch {torch.build.torch}: {why or outcome.summary}"
        message = f"{case.id} must pass first, and comes to {ended}"
        raise CommandError(message, "--python names another torch; `try` says on which it passes")
    return torch.program(case)


def changed_expectations(program: dict[str, Any], torch: Torch) -> Iterator[Tried]:
    for mutant in following(mutants(program), "changing expectations", lambda mutant: mutant.path):
        outcome = torch.run(mutant.program)
        is_seen = outcome.status == "fail" and bool(outcome.failures)
        yield Tried(mutant.line, mutant.path, is_seen, outcome.status)


def faults_for(case: Case, program: dict[str, Any], torch: Torch, named: str) -> dict[str, Fault]:
    """Return the faults that fit the rules of a case or its checks, and those in the formulas that it is about."""
    checks = {name for step in case.steps for entry in step.get("expect", ()) for name, _, _ in entry["checks"]}
    found = {name: FAULTS[name] for name in fitting(case.rules, checks)}
    file = named.rpartition("::")[0]
    rules = rules_for(Path(file) if file else shipped_cases() / RULES_FILE)
    if is_about_derivatives(case, rules):
        found |= formula_faults(case, program, torch.uses(program))
    return found


def planted_faults(faults: dict[str, Fault], program: dict[str, Any], python: str) -> Iterator[Tried]:
    """Yield how the case ends with each of the faults."""
    for name in following(faults, "planting faults"):
        answer = answer_with(faults[name], python, program)
        outcome = ended_with(answer)
        ended = f"{outcome.status}: {outcome.summary}".rstrip(": ")
        is_effective = faults[name].is_of_library or outcome.status != "pass" or answer["changed"]
        yield Tried(outcome.line or 0, name, outcome.status in BROKEN, ended, is_effective)


def ended_with(answer: dict[str, Any]) -> Outcome:
    own = ("n", "must_restart", "changed")
    return outcome_of({name: value for name, value in answer.items() if name not in own})


def facts_of(tried: list[Tried]) -> list[dict[str, Any]]:
    return [each._asdict() for each in tried]


def lines_of(case: Case, torch: str, changed: list[Tried], planted: list[Tried] | None) -> Iterator[str]:
    weak = [each for each in changed if not each.is_seen]
    yield f"{case.id} passes on torch {torch}; {len(changed)} expectations, each changed in turn:"
    for each in changed:
        verdict = "can fail" if each.is_seen else f"CAN'T FAIL: changed, it comes to {each.ended}"
        yield f"  {each.line:5}  {each.what}: {verdict}"
    yield f"{len(changed) - len(weak)} of {len(changed)} can fail"
    if planted is None:
        yield "no faults were planted: what runs with one is not confined; --trust runs your own cases so"
    elif not planted:
        yield "no fault is known that breaks a rule of the case or that its checks should show"
    else:
        yield "faults of torch:"
        yield from (f"  {each.what}: {verdict_on(each)}" for each in planted)


def verdict_on(fault: Tried) -> str:
    if not fault.is_effective:
        return "changes no number here"
    ended = textwrap.shorten(fault.ended, LONGEST_END, placeholder=" …")
    return f"{'noticed' if fault.is_seen else 'NOT NOTICED'}, {ended}"
