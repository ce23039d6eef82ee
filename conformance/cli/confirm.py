"""Asks about each value that a draft has observed."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from conformance.cli.attempt import add_python, observer_of
from conformance.cli.observe import document
from conformance.cli.output import CommandError, put, save
from conformance.execution.filling import can_fail
from conformance.execution.observing import Observer, up_to
from conformance.language.errors import CaseFileError
from conformance.language.files import load_cases
from conformance.language.observed import flow, has_numbers, value_of
from conformance.language.reader import listed_in
from conformance.language.unconfirmed import WORDS, asked, closed, content, node_of, open_values, unit, with_value
from conformance.language.unconfirmed import Path as Place
from conformance.language.writing import write_case
from conformance.language.yaml import Node

DESCRIPTION = """\
Asks about each value in a draft that was observed and nobody has confirmed, one after another:

  a          accept it
  r          reject it: it is taken out
  q          quit, and keep what has been answered
  …          anything else is what must be there instead, in the language of cases

A number that was computed can't be accepted: say where it comes from, by an expression such as w * sigmoid(x), or by
the numbers that you have worked out. Each answer is tried: it is taken where the case holds with it.

  autograd-conformance confirm mine.yaml
  autograd-conformance confirm mine.yaml --answers answers.txt

With --answers, or where the input is no terminal, answers are lines in the order of the questions, # begins a comment,
and one that isn't taken ends the command.

exit statuses: 0 all is confirmed, and the file's cases pass; 1 some is left; 2 an answer isn't taken, or the file isn't
"""
ACCEPT, REJECT, QUIT = "a", "r", "q"
WHAT_TO_ANSWER = "[a]ccept, [r]eject, [q]uit, or write what must be there: "
WHERE_FROM = "[r]eject, [q]uit, or write where it comes from (an expression, or the numbers): "


class NotTaken(Exception):
    """An answer is none, and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="a draft, as `draft` has written it")
    parser.add_argument("--answers", metavar="ANSWERS", type=Path, help="a file of answers, one in each line")
    add_python(parser)


def run(options: argparse.Namespace) -> int:
    path: Path = options.file
    document(path)  # before anything is read or started
    lines = answers_in(options.answers)
    with observer_of(options.python, trusts=options.trust, near=path) as observer:
        confirmation = Confirmation(path, observer, asking() if lines is None else told(lines), lines is None)
        try:
            is_done = confirmation.go()
        except NotTaken as error:
            raise CommandError(
                f"{path.name}:{confirmation.place}: {error}", "what was answered before is kept"
            ) from None
        finally:
            save(path, confirmation.text)
        if not is_done:
            put(f"{path.name}: kept; `confirm` goes on where you stopped\n")
            return 1
        return passes(path, observer)


def answers_in(path: Path | None) -> list[str] | None:
    """Return the lines of answers, or None where a terminal is to be asked."""
    if path is None and sys.stdin.isatty():
        return None
    try:
        text = sys.stdin.read() if path is None else path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise CommandError(f"{path}: can't be read: {error.strerror}", "expected answers, one in each line") from None
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def asking() -> Callable[[str], str]:
    def ask(prompt: str) -> str:
        try:
            return input(prompt).strip()
        except (EOFError, KeyboardInterrupt):
            return QUIT

    return ask


def told(lines: list[str]) -> Callable[[str], str]:
    waiting = iter(lines)
    return lambda _: next(waiting, QUIT)


class Confirmation:
    """A draft while somebody goes through it: each answer changes a case."""

    def __init__(self, path: Path, observer: Observer, ask: Callable[[str], str], is_patient: bool) -> None:
        self.observer = observer
        self.ask = ask
        self.is_patient = is_patient  # asks again where an answer isn't taken
        self.file = path.name
        self.root = document(path)
        self.lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
        self.cases: list[Node | None] = list(listed_in(self.root, "cases"))
        self.place = 1

    def go(self) -> bool:
        """Ask until all is confirmed; return whether it is."""
        for at in range(len(self.cases)):
            while (case := self.cases[at]) is not None and (found := next(open_values(case), None)) is not None:
                if not self.question(at, case, *found):
                    return False
        return True

    def question(self, at: int, case: Node, path: Place, node: Node) -> bool:
        """Ask about one value, and change the case; return False where somebody quits."""
        what, self.place = asked(path), node.line
        if not what:
            raise NotTaken("an unconfirmed value can't stand here")
        known = content(node)
        if known is None and what not in WORDS:
            found = self.observer.observe(case, path, self.file)
            text = found.why_not or found.text
            value = None if found.why_not else value_of(what, found.text, found.exception)
        else:
            value = None if known is None else known.plain
            text = "nothing is there yet" if known is None else in_words(value)
        if what == "rules":
            text = "".join(f"\n    {name}: {self.observer.rules[name].text}" for name in self.known_rules(value))
        self.tell(case, path, text)
        is_computed = has_numbers(what, value)
        while True:
            answer = self.ask(WHERE_FROM if is_computed else WHAT_TO_ANSWER)
            if answer == QUIT:
                return False
            try:
                self.cases[at] = self.answered(case, path, answer, value, is_computed=is_computed)
                return True
            except NotTaken as error:
                if not self.is_patient:
                    raise
                put(f"  {error}\n")

    def known_rules(self, value: object) -> list[str]:
        return [str(name) for name in as_list(value) if name in self.observer.rules]

    def answered(self, case: Node, path: Place, answer: str, value: object, *, is_computed: bool) -> Node | None:
        """Return the case with an answer in it, or None where a rejection leaves nothing that could fail."""
        what = asked(path)
        if answer == REJECT:
            if what in WORDS:
                raise NotTaken(f"a case needs its {what}")
            case = with_value(case, unit(path), None)
            if "steps" in case.value and can_fail(case):
                return case
            put(f"{case.find('id').plain}: expects nothing any more, and is taken out\n")
            return None
        if answer == ACCEPT and is_computed:
            raise NotTaken("a number that was computed needs a derivation: an expression, or the numbers")
        if answer == ACCEPT and value is None and content(case.find(*path)) is None:
            raise NotTaken("there is nothing to accept")
        given = value if answer == ACCEPT else flow(answer)
        if what == "rules":
            given = [each.strip() for each in answer.split(",")] if answer != ACCEPT else given
            unknown = [str(each) for each in as_list(given) if each not in self.observer.rules]
            if unknown or not given:
                told = f"there is no rule {', '.join(unknown)}" if unknown else "no rule is named"
                raise NotTaken(f"{told}; `rules WORDS` finds them")
        elif what in WORDS:
            given = str(given if answer == ACCEPT else answer)
        found = with_value(case, path, node_of(given, case.find(*path)))
        if what not in WORDS:
            self.try_(up_to(closed(found), path))
        return found

    def try_(self, case: Node) -> None:
        """Raise NotTaken where a case doesn't hold."""
        try:
            outcome = self.observer.outcome(case, self.file)
        except CaseFileError as error:
            problem = error.problems[0]
            raise NotTaken(f"{problem.message}{f' ({problem.hint})' if problem.hint else ''}") from None
        if outcome.status != "pass":
            raise NotTaken(f"that does not hold: {outcome.summary}")

    def tell(self, case: Node, path: Place, text: str) -> None:
        """Say what is asked about: the case, the statement before it, and what was observed."""
        steps = case.find("steps").value
        before = steps[: int(path[1]) + ("expect" not in path)] if "steps" in path else []
        words = [own for step in before if isinstance(own := step.find("do").plain, str)]
        after = f"  after {words[-1].strip().splitlines()[-1].strip()}" if words else ""
        where = ".".join(map(str, path[path.index("expect") + 1 :] if "expect" in path else path[-1:]))
        put(f"\n{self.file}:{self.place}: {case.find('id').plain}{after}\n  {where}: {text}\n", "utf-8")

    @property
    def text(self) -> str:
        """The text of the file, in which the cases that were changed are written anew."""
        before = list(listed_in(self.root, "cases"))
        starts = [case.line - 1 for case in before]
        pieces = ["".join(self.lines[: starts[0]])] if starts else ["".join(self.lines)]
        for at, start in enumerate(starts):
            end = starts[at + 1] if at + 1 < len(starts) else len(self.lines)
            own = end
            while own > start + 1 and self.lines[own - 1].strip()[:1] in ("", "#"):
                own -= 1
            case = self.cases[at]
            changed = "" if case is None else write_case(case, 1)[0]
            pieces.append("".join(self.lines[start:own]) if case is before[at] else changed)
            pieces.append("".join(self.lines[own:end]))
        return "".join(pieces)


def as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def in_words(value: object) -> str:
    return {None: "null", True: "true", False: "false"}[value] if value is None or type(value) is bool else str(value)


def passes(path: Path, observer: Observer) -> int:
    """Say whether the file loads and its cases pass, and return the exit status."""
    try:
        cases = load_cases([path])
    except CaseFileError as error:
        raise CommandError(str(error), "edit the file, and try again") from None
    outcomes = {case.id: observer.torch.outcome(case) for case in cases}
    wrong = {name: outcome for name, outcome in outcomes.items() if outcome.status != "pass"}
    lines = [f"{name}: {outcome.status}: {outcome.summary}" for name, outcome in wrong.items()]
    done = f"{path.name}: all is confirmed; {len(cases) - len(wrong)} of {len(cases)} cases pass"
    put("\n".join([*lines, f"{done} with torch {observer.torch.build.torch}", ""]), "utf-8")
    return 1 if wrong else 0
