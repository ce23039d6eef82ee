"""pytest's collectors and items: a file for each case file, an item for each case on each target."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr
from _pytest._io import TerminalWriter

from conformance.execution.fork_server import Refused
from conformance.language.errors import CaseFileError
from conformance.model.build import Target
from conformance.model.case import ListedCase
from conformance.model.outcome import Outcome
from conformance.model.status import TABLE
from conformance.pytest_plugin.session import ConformanceSession, marks_of
from conformance.render.failure import failure_text, line_in_file
from conformance.render.visible import printable
from conformance.results.retry import retried


class CaseFailed(Exception):
    """The outcome of an item has a status that fails the run."""


class CaseFile(pytest.File):
    """A YAML file of cases."""

    conformance: ConformanceSession

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, conformance: ConformanceSession) -> CaseFile:
        elsewhere = not path.is_relative_to(parent.config.rootpath)  # pytest's own id would then lack the file's name
        name = os.path.relpath(path, parent.config.rootpath).replace(os.sep, "/")
        own = name.encode("utf-8", "backslashreplace").decode()  # pytest can't write any other
        ids: dict[str, Any] = {"nodeid": own, "name": own.rpartition("/")[2]} if elsewhere or own != name else {}
        node: CaseFile = cls.from_parent(parent, path=path, **ids)
        node.conformance = conformance
        return node

    def collect(self) -> Iterator[pytest.Item]:
        if self.conformance.refused:
            return  # the first file has raised the error
        try:
            cases = self.conformance.case_set.cases(self.path)
        except CaseFileError as error:
            if self.is_asked_for_items():
                raise  # otherwise pytest would say that the items were not found, and not why
            yield BrokenFile.of(self, error)
            return
        try:
            self.conformance.issues.of(self.path.parent)
            self.conformance.confine_for(self.path)
            targets = list(self.conformance.targets())
            covered = self.conformance.case_set.covered(self.path) if self.has_all_pairs() else []
        except (CaseFileError, Refused):
            self.conformance.refused = True
            raise
        if not self.has_all_pairs():
            self.conformance.left_to_pairs += self.conformance.case_set.number_covered(self.path)
        for part in filter(None, (cases, covered)):
            steps = self.conformance.steps_of(part[0])
            for case in part:
                for target in targets:
                    yield CaseItem.of(self, case, target, steps, marks_of(case.topic, case.rules, case.level, target))

    def has_all_pairs(self) -> bool:
        """Whether covered cases are run: also where one is named, or may be among those that failed last."""
        option = self.config.option
        return option.pairs == "all" or getattr(option, "lf", False) or self.is_asked_for_items()

    def is_asked_for_items(self) -> bool:
        """Whether an argument names a case of this file."""
        place = self.config.invocation_params.dir
        named = (str(argument).partition("::") for argument in self.config.args)
        return any(item and (place / file).resolve() == self.path for file, _, item in named)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002 - as pytest calls it
        """Return the problems of the file, without a traceback through the loader."""
        if isinstance(excinfo.value, (CaseFileError, Refused)):
            return printable(str(excinfo.value))
        return super().repr_failure(excinfo)


class BrokenFile(pytest.Item):
    """A failing item in place of the cases of a file that doesn't load; the other files are run."""

    error: CaseFileError

    @classmethod
    def of(cls, parent: CaseFile, error: CaseFileError) -> BrokenFile:
        item: BrokenFile = cls.from_parent(parent, name="does not load")
        item.error = error
        return item

    def runtest(self) -> None:
        raise self.error

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return printable(str(self.error)) if excinfo.value is self.error else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, int, str]:
        return printable(str(self.path)), self.error.problems[0].line - 1, self.name


class CaseItem(pytest.Item):
    """A case on a target; `steps` are the encoded ones of its file, and `number` that of its request to the worker."""

    __slots__ = ("case", "conformance", "marks_given", "number", "outcome", "steps", "target")  # there are many items

    case: ListedCase
    target: Target
    steps: Sequence[str]
    conformance: ConformanceSession
    outcome: Outcome | None
    marks_given: int
    number: int

    @classmethod
    def of(cls, parent: CaseFile, case: ListedCase, target: Target, steps: Sequence[str], marks: Any) -> CaseItem:
        # The id is given as text: pytest 9.2 takes brackets in a name for something else than those in an id.
        name = f"{case.id}[{target}]"
        item: CaseItem = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.case = case
        item.target = target
        item.steps = steps
        item.conformance = parent.conformance
        item.outcome = None
        item.number = -1  # until the order of the run is known
        item.marks_given = len(marks)
        item.own_markers.extend(marks)
        item.keywords.update((mark.name, mark) for mark in marks)
        return item

    @property
    def encoded_steps(self) -> str:
        return self.steps[self.case.place]

    @property
    def is_marked_by_others(self) -> bool:
        """Whether the item has markers that the suite didn't give it, such as skip or xfail."""
        return self.marks_given != sum(len(node.own_markers) for node in self.listchain())

    @property
    def entry(self) -> tuple[str, str, str]:
        """The case, the target and the file of the item, by which it is known in other processes."""
        return self.case.id, str(self.target), str(self.path)

    @property
    def found_before(self) -> Outcome | None:
        """The outcome that an interrupted run has found, which this run resumes."""
        return self.conformance.found_before(self.case.id, str(self.target))

    def runtest(self) -> None:
        try:
            outcome = self.found_before
            if outcome is None:
                observed = self.conformance.scheduler.run(self)
                self.show(self.conformance.scheduler.printed)
                outcome = self.judged(observed)
                row = TABLE[outcome.status]
                if row.is_red and row.tells_of_torch:
                    alone = self.conformance.scheduler.run_alone(self, outcome.status)
                    outcome = outcome if alone is None else retried(outcome, self.judged(alone))
            else:
                self.conformance.scheduler.take_over(self, outcome)
            self.outcome = outcome
        except Exception as error:
            self.outcome = Outcome(status="internal-error", reason=f"{type(error).__name__}: {error}")
            raise
        reported = TABLE[outcome.status].pytest
        if reported == "skipped":
            pytest.skip(printable(f"{outcome.status}: {outcome.reason}"))
        if reported == "xfailed" and outcome.issue is not None:
            pytest.xfail(" ".join(filter(None, (outcome.issue.reason, outcome.issue.link))))  # returns with --runxfail
        if reported != "passed":
            raise CaseFailed(printable(outcome.summary))

    def judged(self, observed: Outcome) -> Outcome:
        return self.conformance.judged(self.case, self.path, self.target, observed)

    def show(self, printed: str) -> None:
        """Show what the case has printed: at once where pytest captures nothing, else with its failure."""
        if printed and self.config.option.capture == "no":
            sys.stdout.write(printable(printed))
            sys.stdout.flush()
        elif printed:
            self.add_report_section("call", "stdout", printable(printed))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if not isinstance(excinfo.value, (CaseFailed, pytest.xfail.Exception)) or self.outcome is None:
            return super().repr_failure(excinfo, style)
        message = printable(f"{self.outcome.status}: {self.outcome.summary}")
        line = line_in_file(self.conformance.case_set.whole_case(self.case), self.outcome)
        return FailureRepr(self.failure_text, ReprFileLocation(self.case.file, line, message))

    def failure_text(self) -> str:
        assert self.outcome is not None
        known = self.conformance.issues.of(self.path.parent).about(self.case.id, self.target, self.conformance.build)
        cases = self.conformance.case_set
        whole = cases.whole_case(self.case)
        text = failure_text(whole, self.target, self.outcome, cases.rules_of(self.path), known)
        return f"{text}\n\nrun it alone: {self.conformance.command(self.path, self.name)}"

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        return self.path, self.case.line - 1, self.name


class FailureRepr(TerminalRepr):
    """The text of a failing item, made only if it is printed."""

    def __init__(self, text: Callable[[], str], where: ReprFileLocation) -> None:
        self.text = text
        self.reprcrash = where  # its message stands in pytest's short summary

    def toterminal(self, tw: TerminalWriter) -> None:
        for line in printable(self.text()).splitlines():
            tw.line(line, red=line.startswith(">"), bold=line.startswith(">"))
