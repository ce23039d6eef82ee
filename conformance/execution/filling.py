"""Fills a draft: runs its steps, chooses the readings that hold, and observes what nothing is said of.

What raises becomes a step that must raise. What doesn't hold, or isn't part of the language, is taken out and told.
"""

import re
from collections.abc import Iterator
from typing import Any

from conformance.execution.observing import NO_TENSOR, NOTHING, Observer, subject_of
from conformance.language.drafting.statements import OPEN, Step, Untold
from conformance.language.errors import Problem
from conformance.language.observed import value_of
from conformance.language.parsing import parse_code
from conformance.language.reader import read_case
from conformance.language.schema import reporter
from conformance.language.unconfirmed import (
    FLAG,
    Path,
    asked,
    closed,
    content,
    impossible,
    is_open,
    node_of,
    open_values,
    opened,
    unit,
    with_value,
)
from conformance.language.yaml import UNCONFIRMED, Node

HEAD: dict[str, Any] = {"id": "draft", "title": "draft", "why": "draft", "rules": []}
AT_THE_END = ("is_leaf", "requires_grad", "grad", "version")
LAYER = re.compile(r"(\w+) = (?:torch\.)?nn\.\w+\(")
PARAMETERS = ("weight", "bias")
CANT_FAIL = {"do": "pass", "raises": "none"}  # keeps a case that expects nothing yet one that loads


class Draft:
    """The steps of one case while they are tried; it is whole where nothing in it stands for what the source lacks."""

    def __init__(
        self, steps: list[Step], untold: list[Untold], observer: Observer, file: str, *, is_whole: bool = True
    ) -> None:
        self.steps = steps
        self.untold = untold
        self.observer = observer
        self.file = file
        self.is_whole = is_whole

    def fill(self, looks_at_the_end: bool) -> Node | None:
        """Return the case of the draft, with what was observed in its open values; None where nothing is left."""
        self.leave_out_what_is_no_step()
        self.run_until_it_passes()
        if not self.steps:
            return None
        if looks_at_the_end:
            self.look_at_the_end()
        case = self.observed()
        if case is None or not can_fail(case):
            self.look_at_the_end()
            case = self.observed()
        if case is not None and not can_fail(case):
            case = must_not_raise(case)
        return case if case is None else merged(case)

    def observed(self) -> Node | None:
        """Return the case with what was observed in each open value, or without what can't be; None if none is left."""
        case = self.tree()
        for path, node in reversed(list(open_values(case))):  # so that what is taken out moves none of the others
            if content(node) is None:
                case = self.filled(case, path)
        return case if "steps" in case.value else None

    def flat(self) -> list[Any]:
        return [each for step in self.steps for each in step.steps]

    def tree(self, *more: Any) -> Node:
        """Return the case of the current readings and some steps; the lines of its nodes count its steps from 1."""
        listed = [node_of(each, Node(None, at, 1)) for at, each in enumerate([*self.flat(), *more], 1)]
        case = node_of(HEAD, Node(None, 1, 1))
        case.value["rules"] = node_of([next(iter(self.observer.rules))], case)
        case.value["steps"] = Node(listed, 1, 1)
        return case

    def owners(self) -> list[Step]:
        """Return the step that each step of the case is of."""
        return [step for step in self.steps for _ in step.steps]

    def leave_out(self, step: Step, why: str, hint: str = "") -> None:
        self.steps = [each for each in self.steps if each is not step]
        if step.text:
            self.untold.append(Untold(line=step.line, text=step.text, why=why, hint=hint))

    def next_reading(self, step: Step, why: str, hint: str = "") -> None:
        """Take the next reading of a step that is wrong, or leave it out."""
        step.readings = step.readings[1:]
        if not step.readings:
            self.leave_out(step, why, hint)

    def leave_out_what_is_no_step(self) -> None:
        """Leave out what is not part of the language, one after another, since one may be in need of another."""
        while True:
            case = with_impossible(self.tree(CANT_FAIL))
            problems: list[Problem] = []
            read_case(case, self.observer.rules, reporter(self.file, problems))
            if not problems:
                return
            first = min(problems)
            self.next_reading(self.owners()[first.line - 1], first.message, first.hint)

    def run_until_it_passes(self) -> None:
        while True:
            tree = self.tree()
            kept = [at for at, node in enumerate(tree.value["steps"].value) if not is_all_open(node)]
            outcome = self.observer.outcome(closed(self.tree(CANT_FAIL)), self.file)
            if outcome.status == "pass":
                return
            owners = self.owners()
            if outcome.step is None or outcome.step >= len(kept):
                self.untold.append(Untold(line=1, text="the whole case", why=f"{outcome.status}: {outcome.summary}"))
                self.steps = []
                return
            step = owners[kept[outcome.step]]
            if outcome.status == "error" and not step.is_assertion and self.is_whole:
                self.expect_an_error(step)
            else:
                self.next_reading(step, f"does not hold here: {outcome.summary}")

    def expect_an_error(self, step: Step) -> None:
        """Make a statement that raises one that must raise; what is tried together with it and comes after it goes."""
        (text,) = (each if isinstance(each, str) else each["do"] for each in step.steps)
        step.readings = [[{"do": text, "raises": OPEN}]]
        at = next(n for n, each in enumerate(self.steps) if each is step)
        place = sum(len(each.steps) for each in self.steps[:at])
        step.readings = [[self.filled(self.tree(), ("steps", place, "raises")).find("steps", place).plain]]
        later = [each for each in self.steps[at + 1 :] if step.block and each.block == step.block]
        self.steps = [each for each in self.steps if each not in later]

    def look_at_the_end(self) -> None:
        """Add what the tensors that the case has set, and the parameters of its layers, are at its end."""
        names: dict[str, None] = {}
        for each in self.flat():
            text = each if isinstance(each, str) else each.get("do", "")
            parsed = parse_code(text)
            made = LAYER.match(text)
            found = [*sorted(parsed.bound), *([f"{made[1]}.{name}" for name in PARAMETERS] if made else [])]
            names = {name: None for name in [*names, *found] if name not in parsed.deleted}
        entries = {name: dict.fromkeys(AT_THE_END, OPEN) for name in names}
        for name, checks in entries.items():
            self.steps.append(Step(line=1, text="", readings=[[{"expect": {name: checks}}]]))

    def filled(self, case: Node, path: Path) -> Node:
        """Return a case with what was observed at a path, or without that where there is nothing to see."""
        observation = self.observer.observe(case, path, self.file)
        what, step = asked(path), case.find(*path[:2])
        if observation.why_not or observation.text in NOTHING:
            if what == "warns" and is_look(step):
                return with_value(case, path[:2], None)
            if observation.why_not and NO_TENSOR not in observation.why_not:
                self.cannot_see(step.line, f"{subject_of(path) or what}: {observation.why_not}")
            return with_value(case, unit(path), None)
        value = value_of(what, observation.text, observation.exception)
        return with_value(case, path, node_of(opened(value), case.find(*path)))

    def cannot_see(self, line: int, why: str) -> None:
        owners = self.owners()
        step = owners[line - 1] if line <= len(owners) else owners[-1]
        if step.text:
            self.untold.append(Untold(line=step.line, text=step.text, why=why))


def can_fail(case: Node) -> bool:
    ends = {"expect", "raises", "warns"}
    return any(type(step.value) is dict and step.value.keys() & ends for step in case.value["steps"].value)


def must_not_raise(case: Node) -> Node:
    """Return a case that expects nothing as one whose last statement must not raise."""
    place = ("steps", len(case.value["steps"].value) - 1)
    last = case.find(*place)
    return with_value(case, place, node_of({"do": last.plain, "raises": opened("none")}, last))


def is_look(step: Node) -> bool:
    text = step.find("do").plain
    return isinstance(text, str) and text.endswith(".grad") and "\n" not in text


def is_all_open(step: Node) -> bool:
    """Whether nothing of an expectation is left when its open values are taken out."""
    expected = step.find("expect").value if type(step.value) is dict and "expect" in step.value else None
    return expected is not None and not list(kept_in(step.find("expect")))


def kept_in(node: Node) -> Iterator[Node]:
    for inner in node.inner:
        if not is_open(inner) and type(inner.value) is dict and any(map(is_open, inner.inner)):
            yield from kept_in(inner)
        elif not is_open(inner):
            yield inner


def with_impossible(case: Node) -> Node:
    """Return a case with something that can be read in the place of each open value."""
    for path, node in list(open_values(case)):
        value = impossible(asked(path), path)
        case = with_value(case, path, node_of(True if value == FLAG else value, node))
    return case


def merged(case: Node) -> Node:
    """Return a case in which expectations that follow one another are one, as far as they look at different things."""
    steps: list[Node] = []
    for step in case.value["steps"].value:
        both = joined(steps[-1], step) if steps else None
        if both is None:
            steps.append(step)
        else:
            steps[-1] = both
    return with_value(case, ("steps",), Node(steps, 1, 1))


def joined(one: Node, other: Node) -> Node | None:
    """Return two expectations as one, or None where that can't be."""
    if not all(type(each.value) is dict and "expect" in each.value for each in (one, other)):
        return None
    entries = one.value["expect"].plain
    for subject, checks in other.value["expect"].plain.items():
        before = entries.setdefault(subject, checks)
        if before != checks and not (are_checks(before) and are_checks(checks)):
            return None
        if before != checks:
            entries[subject] = {**before, **checks}
    return node_of({"expect": entries}, one)


def are_checks(value: Any) -> bool:
    return type(value) is dict and not value.keys() & {"text", "torch", UNCONFIRMED}
