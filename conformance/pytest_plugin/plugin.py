"""The pytest plugin: collects case files, runs each case on each target, and writes the report.

pytest's own process never imports torch, save with `--isolation none`. The worker is started as soon as
it is known that there are cases, so that importing torch and reading YAML overlap.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.execution.workers import Refused
from conformance.language.files import SUFFIXES, is_case_file
from conformance.language.rules import RULES_FILE, find_rules
from conformance.model.build import Build
from conformance.model.outcome import Outcome, outcome_of
from conformance.model.report import Pair
from conformance.model.shard import Shard
from conformance.model.status import TABLE
from conformance.pytest_plugin.arguments import is_of_cases
from conformance.pytest_plugin.items import CaseFile, CaseItem
from conformance.pytest_plugin.options import add_markers, add_options
from conformance.pytest_plugin.protocol import nobody_listens, run_briefly
from conformance.pytest_plugin.recorder import Recorder
from conformance.pytest_plugin.session import ConformanceSession
from conformance.results.merge import another_build

HANDED_OVER = "conformance_sketches"  # the key of what workers of pytest-xdist have gathered
BROKEN = "conformance_broken"  # and of the case files that they could not load
NARROWING = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf")  # options that leave cases out


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    add_markers(config)
    if not config.option.help:
        config.pluginmanager.register(Running(config), "conformance-running")


Collected = tuple[str, str, str]  # a case's id, a target and a case file


class Running:
    """The hooks of one run and what they share.

    With pytest-xdist each worker runs items, and what it found out travels on pytest's own reports to
    the controller, which records. Without it, one process does both.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.conformance = ConformanceSession(config)
        self.runs_items = hasattr(config, "workerinput") or not getattr(config.option, "tx", None)
        self.recorder = None if hasattr(config, "workerinput") else Recorder(config, self.conformance)
        self.collected: list[Collected] = []
        self.why_deselected: dict[Pair, str] = {}
        self.introduced = False
        self.defects = 0  # items at which the suite itself failed
        self.strangers: dict[Any, str] = {}  # workers that test another build, and what tells so
        self.named = {path_of(argument, config) for argument in config.args}
        self.broken: list[str] = []  # a line for each case file that workers of pytest-xdist could not load

    def pytest_sessionstart(self) -> None:
        """Start the worker before anything is collected, if there are cases among the arguments."""
        if self.runs_items and any(holds_cases(path) for path in self.named):
            try:
                self.conformance.scheduler.start()
            except Refused as error:
                raise pytest.UsageError(str(error)) from None
            if self.recorder is not None:
                self.recorder.prepare()

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if not is_case_file(file_path):
            return None
        if file_path not in self.named and not self.is_among_cases(file_path):
            return None
        self.conformance.case_set.known.append(file_path)
        return CaseFile.of(parent, file_path, self.conformance)

    def is_among_cases(self, path: Path) -> bool:
        """Whether rules.yaml below pytest's root or an argument governs a file, or it is a case file in an argument."""
        rules = find_rules(path.parent)
        if rules is not None and any(rules.is_relative_to(place) for place in (self.config.rootpath, *self.named)):
            return True
        return path.parent in self.named and is_of_cases(path)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        self.collected = [item.entry for item in items if isinstance(item, CaseItem)]
        others = {item for item in items if isinstance(item, CaseItem) and self.why_not(item)}
        if others:
            config.hook.pytest_deselected(items=[item for item in items if item in others])
            items[:] = [item for item in items if item not in others]

    def why_not(self, item: CaseItem) -> str:
        """Return why an option of the suite's own deselects an item, or an empty string."""
        level = self.config.option.level
        part: Shard | None = self.config.option.shard
        if part is not None and not part.holds(item.case.id):
            return part.elsewhere
        return f"not {level}" if level is not None and not item.get_closest_marker(level) else ""

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        for item in items:
            if isinstance(item, CaseItem):
                case, target, _ = item.entry
                self.why_deselected[case, target] = self.why_not(item) or "deselected"

    @cached_property
    def is_brief(self) -> bool:
        return nobody_listens(self.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        items = [item for item in session.items if isinstance(item, CaseItem)]
        self.conformance.scheduler.order(items)
        if self.recorder is not None and self.collected and not self.config.option.collectonly:
            self.begin_report(self.collected, self.why_deselected)

    def begin_report(self, collected: Sequence[Collected], why_deselected: dict[Pair, str]) -> None:
        """Open the report; its plan is all that was collected, so that shards of a run have the same plan."""
        assert self.recorder is not None
        for file in dict.fromkeys(file for *_, file in collected):
            self.conformance.case_set.cases(Path(file))
        self.recorder.why_not_run = why_deselected
        plan = list(dict.fromkeys((case, target) for case, target, _ in collected))
        cases = dict.fromkeys(case for case, _ in plan)
        self.recorder.begin([self.conformance.case_set.ids[case] for case in cases], plan)

    def pytest_report_collectionfinish(self) -> list[str]:
        return self.conformance.scheduler.build.header() if self.conformance.scheduler.items else []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not isinstance(item, CaseItem):
            return None
        self.conformance.scheduler.offer(item, nextitem if isinstance(nextitem, CaseItem) else None)
        if not self.is_brief or item.is_marked_by_others:
            return None
        run_briefly(item)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if not isinstance(item, CaseItem):
            return report
        outcome = item.outcome if call.when == "call" else None
        if call.when == "setup" and report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped by a marker"
            outcome = Outcome(status="not-run", reason=reason)
        if outcome is not None:
            outcome = msgspec.structs.replace(outcome, case=item.case.id, target=str(item.target))
            attached = outcome.record()
            if self.recorder is None and not self.introduced:
                self.introduced = True
                build = msgspec.to_builtins(self.conformance.scheduler.build)
                attached["introduction"] = (build, self.collected, list(self.why_deselected.items()))
            report.__dict__["conformance"] = attached  # plain, so that pytest-xdist carries it across
            if outcome.status == "unsupported":  # where pytest says why it was skipped, the case is of more use than us
                report.longrepr = (item.case.file, item.case.line, f"Skipped: {outcome.reason}")
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        attached = report.__dict__.get("conformance")
        if attached is None or self.recorder is None:
            return
        self.defects += TABLE[attached["status"]].pytest == "error"
        introduction = attached.pop("introduction", None)
        if introduction is not None:
            self.meet(introduction, getattr(report, "node", None))
        if getattr(report, "node", None) not in self.strangers:
            self.recorder.add(outcome_of(attached))

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Let what says nothing of torch count as an error, not as a failure."""
        attached = report.__dict__.get("conformance")
        is_error = attached is not None and TABLE[attached["status"]].pytest == "error"
        return ("error", "E", "ERROR") if is_error else None

    def meet(self, introduction: tuple[dict[str, Any], Sequence[Collected], Any], node: Any) -> None:
        """Take note of what a worker of pytest-xdist says of itself; one that tests another build is a stranger."""
        assert self.recorder is not None
        facts, collected, why_deselected = introduction
        build = msgspec.convert(facts, Build)
        if self.recorder.journal is None:
            self.conformance.scheduler.build = build
            self.collected = list(collected)
            self.begin_report(collected, {(case, target): why for (case, target), why in why_deselected})
            return
        difference = another_build(self.conformance.build, build)
        if difference is not None:
            fact, expected, found = difference
            name = getattr(getattr(node, "gateway", None), "id", "a worker")
            self.strangers[node] = f"{name} tests another build: {fact} is {found}, and elsewhere {expected}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.config.option.shard and self.collected:
            session.exitstatus = exitstatus = pytest.ExitCode.OK  # a shard may well hold none of few cases
        green = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if self.recorder is not None and exitstatus in green and any(self.complaints()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.defects and exitstatus in (*green, pytest.ExitCode.TESTS_FAILED):
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR  # so that nobody takes the run for a verdict on torch
        scheduler = self.conformance.scheduler
        scheduler.finish(is_over=exitstatus in (*green, pytest.ExitCode.TESTS_FAILED) and not stopped(session))
        if self.recorder is None:
            self.config.workeroutput[BROKEN] = self.conformance.case_set.broken()  # type: ignore[attr-defined]
            if scheduler.knows_build:
                self.config.workeroutput[HANDED_OVER] = scheduler.sketches.handed_over()  # type: ignore[attr-defined]
        elif self.recorder.journal is not None:
            graphs = scheduler.sketches.graphs(self.recorder.journal.report.pairs)
            scheduler.sketches.keep()
            self.recorder.finish(int(session.exitstatus), graphs)

    def complaints(self) -> Iterator[str]:
        """Yield a line for each reason why a run is red besides its outcomes."""
        yield from (f"required device {line}" for line in self.conformance.lost_devices())
        yield from self.broken or self.conformance.case_set.broken()
        yield from (f"known issue {line}" for line in self.stray_issues())
        yield from self.strangers.values()
        if self.defects:
            yield f"internal error: {self.defects} item{'s' * (self.defects > 1)}: {TABLE['internal-error'].headline}"

    def stray_issues(self) -> list[str]:
        """Return a line for each known issue that is about no case, if all cases that it could be about were found."""
        narrowed = any(getattr(self.config.option, name, None) for name in NARROWING)
        is_recorded = self.recorder is not None and self.recorder.journal is not None
        broken = self.broken or self.conformance.case_set.broken()  # entries may be about their cases
        if narrowed or broken or not is_recorded or not all(map(Path.is_dir, self.named)):
            return []
        return self.conformance.issues.without_case(self.named)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of pytest-xdist has gathered; one that died has left nothing."""
        gathered = getattr(node, "workeroutput", {})
        self.broken = gathered.get(BROKEN, self.broken)
        handed_over = gathered.get(HANDED_OVER)
        if handed_over is not None and self.conformance.scheduler.knows_build:
            self.conformance.scheduler.sketches.take_over(handed_over)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        complaints = list(self.complaints())
        if self.recorder is None or (self.recorder.journal is None and not complaints):
            return
        terminalreporter.section("autograd conformance")
        if self.recorder.journal is not None:
            for line in [*self.conformance.scheduler.build.header(), *self.recorder.table()]:
                terminalreporter.write_line(line)
        for line in complaints:
            terminalreporter.write_line(line, red=True)
        for line in self.conformance.issues.overdue(date.today()):
            terminalreporter.write_line(f"known issue {line}", yellow=True)
        for path in self.recorder.written:
            kind = "page" if path.suffix == ".html" else "report"
            terminalreporter.write_line(f"{kind}: {self.conformance.case_set.name_of(path)}")
        if self.recorder.error:
            terminalreporter.write_line(self.recorder.error, red=True)


def stopped(session: pytest.Session) -> bool:
    """Whether a run was ended before its last item, as by -x."""
    return bool(session.shouldstop or session.shouldfail)


def path_of(argument: object, config: pytest.Config) -> Path:
    return (config.invocation_params.dir / str(argument).partition("::")[0]).resolve()


def holds_cases(path: Path) -> bool:
    """Whether a path that stands on the command line is a case file or a directory of cases."""
    return path.suffix in SUFFIXES or (path / RULES_FILE).is_file() or is_of_cases(path)
