"""Says whether each expectation of a case can fail, and which faults of torch the case notices."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from conformance.cli.attempt import TARGET, Torch, add_python, torch_of
from conformance.cli.output import CommandError, json_text, put
from conformance.cli.progress import following
from conformance.cli.show import case_of
from conformance.execution.faults import FAULTS, answer_with, fitting
from conformance.execution.mutation import mutants
from conformance.execution.program import why_unsupported
from conformance.language.files import is_shipped
from conformance.model.case import Case
from conformance.model.outcome import Outcome, outcome_of
from conformance.model.status import BROKEN

DESCRIPTION = """\
Says whether a case can turn red. Each of its expectations is changed in turn so that what held of it is wrong, and the
case is run: where it passes all the same, that expectation can't fail. Then faults are planted into torch, one at a
time: those that break a rule of the case, or else those that its checks should show.

  autograd-conformance mutate detached-alias-zeroed-after-sigmoid
  autograd-conformance mutate mine.yaml::my-case --trust

exit statuses: 0 each expectation can fail, and of the faults that fit one at least is noticed; 1 not so; 2 there is no
such case, or no torch on which it passes
"""


class Tried(NamedTuple):
    """An expectation that was changed, or a fault that was planted, and how the case ended then."""

    line: int
    what: str
    is_seen: bool
    ended: str


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
        planted = list(planted_faults(case, program, options.python)) if is_safe else None
    is_proven = all(each.is_seen for each in changed) and (not planted or any(each.is_seen for each in planted))
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


def planted_faults(case: Case, program: dict[str, Any], python: str) -> Iterator[Tried]:
    """Yield how the case ends with each of the faults that fit its rules or its checks."""
    checks = {name for step in case.steps for entry in step.get("expect", ()) for name, _, _ in entry["checks"]}
    for name in following(fitting(case.rules, checks), "planting faults"):
        outcome = ended_with(answer_with(FAULTS[name], python, program))
        yield Tried(
            outcome.line or 0, name, outcome.status in BROKEN, f"{outcome.status}: {outcome.summary}".rstrip(": ")
        )


def ended_with(answer: dict[str, Any]) -> Outcome:
    return outcome_of({name: value for name, value in answer.items() if name not in ("n", "must_restart")})


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
        yield from (
            f"  {each.what}: {'noticed, ' if each.is_seen else 'NOT NOTICED, '}{each.ended}" for each in planted
        )
