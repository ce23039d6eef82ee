"""Finds out what stands in the place of an open value, by running its case with one there that can't be observed.

The check fails then and says what it saw, so that a worker needs to know nothing of open values.
"""

from dataclasses import dataclass
from typing import Any

from conformance.execution.attempt import Torch
from conformance.language import versions
from conformance.language.errors import CaseFileError, Problem
from conformance.language.parsing import parse_code
from conformance.language.reader import read_case
from conformance.language.schema import reporter
from conformance.language.unconfirmed import (
    FLAG,
    WORDS,
    Path,
    asked,
    closed,
    impossible,
    is_reference,
    node_of,
    open_values,
    with_value,
)
from conformance.language.yaml import Node
from conformance.model.case import Case
from conformance.model.outcome import Failure, Outcome
from conformance.model.rule import Rule

NOTHING = ("nothing was raised", "no warning")
OF_ANOTHER = "it is not looked at on this torch"
NO_TENSOR = "a tensor, to look at its "
NO_VALUE = frozenset({"a value", "no error"})  # what is expected where looking raises


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What was observed in a place, as reports show it, or why it could not be."""

    text: str = ""
    exception: str = ""
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """What is observed with a torch in cases of certain rules."""

    torch: Torch
    rules: dict[str, Rule]

    def outcome(self, node: Node, file: str) -> Outcome:
        """Return how a case without open values ends; raise CaseFileError where it is no case."""
        return self.torch.outcome(case_of(node, file, self.rules))

    def observe(self, node: Node, path: Path, file: str) -> Observation:
        """Return what stands in the place of the open value at `path` of a case."""
        what = asked(path)
        conditions = [str(path[at + 1]) for at, step in enumerate(path[:-1]) if step == "torch"]
        if not all(versions.holds(condition, self.torch.build.torch) for condition in conditions):
            return Observation(why_not=OF_ANOTHER)
        case = closed(node, path)
        places = list(open_values(case))
        where = places[0][0]
        case = up_to(case, where)
        if is_reference(what):
            names = [*names_before(case, where), *(["null"] if what == "view_of" else [])]
            return self.one_of(names, lambda name: self.tried(case, places, None if name == "null" else name, file))
        value = impossible(what, where)
        if value == FLAG:
            return self.one_of(["true", "false"], lambda word: self.tried(case, places, word == "true", file))
        outcome = self.tried(case, places, value, file)
        return observation_of(outcome, what, subject_of(where)) if isinstance(outcome, Outcome) else outcome

    def tried(self, case: Node, places: list[tuple[Path, Node]], value: Any, file: str) -> Outcome:
        for path, node in places:
            case = with_value(case, path, node_of(value, node))
        return self.outcome(case, file)

    def one_of(self, candidates: list[str], attempt: Any) -> Observation:
        """Return those of the candidates that hold, which are none where nothing is looked at on this torch."""
        outcomes = {each: attempt(each) for each in candidates}
        held = [each for each, outcome in outcomes.items() if outcome.status == "pass"]
        if not held and outcomes:
            last = list(outcomes.values())[-1]
            told = last.failures[0].expected if last.failures else ""
            if last.status != "fail" or told in NO_VALUE or told.startswith(NO_TENSOR) or candidates == FLAGS:
                return Observation(why_not=last.summary)
        if held == FLAGS:
            return Observation(why_not=OF_ANOTHER)
        return Observation(text=", ".join(held) or "none of the names of the case")


FLAGS = ["true", "false"]


def observation_of(outcome: Outcome, what: str, subject: str) -> Observation:
    """Return what the failure of an impossible expectation tells."""
    if outcome.status == "pass":
        return Observation(why_not=OF_ANOTHER)
    failure = next((each for each in outcome.failures if is_of(each, what, subject)), None)
    if failure is None or failure.expected in NO_VALUE or failure.expected.startswith(NO_TENSOR):
        return Observation(why_not=outcome.summary)
    return Observation(text=failure.observed, exception=failure.exception)


def is_of(failure: Failure, what: str, subject: str) -> bool:
    return failure.path.startswith(what if what in ("raises", "warns") else subject) and bool(failure.path)


def up_to(case: Node, path: Path) -> Node:
    """Return a case without the steps after the one that a path leads to: what they do says nothing of it."""
    steps = case.find("steps")
    kept = Node(steps.value[: int(path[1]) + 1], steps.line, steps.column)
    return with_value(case, ("steps",), kept)


def subject_of(path: Path) -> str:
    """Return the subject of an expectation as failures name it, or "" for another step."""
    return str(path[path.index("expect") + 1]) if "expect" in path else ""


def names_before(case: Node, path: Path) -> list[str]:
    """Return the names that a case has set at a step."""
    at, subject = path.index("expect"), subject_of(path)
    listed = case.find(*path[: at - 1])
    names: dict[str, None] = {}
    for step in listed.value[: path[at - 1]]:
        text = step.find("do").plain
        if isinstance(text, str):
            names.update(dict.fromkeys(sorted(parse_code(text).bound)))
    return [name for name in names if name != subject]


def case_of(node: Node, file: str, rules: dict[str, Rule]) -> Case:
    """Return an ordinary case of a tree, whatever its words; raise CaseFileError where it is none."""
    for word in WORDS & node.value.keys():
        given: Any = [next(iter(rules))] if word == "rules" else word
        node = with_value(node, (word,), node_of(given, node.value[word]))
    problems: list[Problem] = []
    data = read_case(node, rules, reporter(file, problems))
    if problems:
        raise CaseFileError(problems)
    return Case(file=file, line=node.line, topic="", text="", digest="", **data)
