"""The hooks of a run: collect case files, run each case on each target, and write the report.

pytest's own process never imports torch, except with `--isolation none`. The worker is started before collection if
an argument holds cases, so that it imports torch while the case files are read.
"""

import dataclasses
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import nullcontext
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from _pytest._code.code import ReprFileLocation

from conformance.execution.fork_server import Refused
from conformance.execution.variables import settings_kept_back
from conformance.language.errors import CaseFileError
from conformance.language.files import SUFFIXES, is_case_file, nearest
from conformance.language.garbage import without_collections
from conformance.language.profile import Profile
from conformance.language.rules import RULES_FILE
from conformance.model.outcome import Outcome, outcome_of
from conformance.model.report import Pair
from conformance.model.shard import Shard
from conformance.model.status import TABLE
from conformance.pytest_plugin import distributed
from conformance.pytest_plugin.arguments import is_of_cases
from conformance.pytest_plugin.invocation import note_command, tell_command
from conformance.pytest_plugin.items import CaseFile, CaseItem, FailureRepr
from conformance.pytest_plugin.options import add_markers, add_options, profile_of, refuse_several_interpreters
from conformance.pytest_plugin.protocol import is_shortened, needs_phases, run_shortened
from conformance.pytest_plugin.recorder import Recorder, directory_of, run_of, suite_of
from conformance.pytest_plugin.session import ConformanceSession
from conformance.render.visible import printable
from conformance.results.merge import another_build
from conformance.results.resume import Past, past_runs, resumed

NARROWING = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "quick")  # options that leave cases out
GREEN = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    note_command(config)
    distributed.end_with_controller(config)
    refuse_several_interpreters(config)
    profile = profile_of(config)
    add_markers(config)
    if not config.option.help:
        config.pluginmanager.register(RunHooks(config, profile), "conformance-run")


class RunHooks:
    """The hooks of one run and their state.

    With pytest-xdist, the workers run items and the controller records: outcomes travel on pytest's own reports.
    Without it, one process does both.
    """

    def __init__(self, config: pytest.Config, profile: Profile) -> None:
        self.config = config
        self.conformance = ConformanceSession(config, profile)
        # Files that options name are no case files, wherever they lie.
        given = filter(None, (config.option.profile, config.option.known_issues))
        self.of_options = {(config.invocation_params.dir / name).resolve() for name in given}
        if isinstance(profile.issues, Path):
            self.of_options.add(profile.issues.resolve())
        self.recorder = None if distributed.is_worker(config) else Recorder(config, self.conformance)
        self.collected: list[distributed.CollectedItem] = []
        self.why_deselected: dict[Pair, str] = {}
        self.is_start_sent = False  # of a pytest-xdist worker
        self.defects = 0  # the number of items with an internal error
        self.lost = 0  # the number of items without an outcome for which nothing accounts
        self.other_builds: dict[Any, str] = {}  # pytest-xdist workers whose build differs, and a line about each
        self.named = {(config.invocation_params.dir / str(each).partition("::")[0]).resolve() for each in config.args}
        self.resumed = ""  # a line about the run that this one resumes
        self.broken: list[str] = []  # a line for each case file that pytest-xdist workers could not load

    def pytest_sessionstart(self) -> None:
        """Start the worker process before collection, if an argument holds cases."""
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            self.conformance.scheduler.tell = partial(
                tell, self.config.pluginmanager.getplugin("capturemanager"), terminal
            )
        if not distributed.is_controller(self.config) and any(holds_cases(path) for path in self.named):
            try:
                self.conformance.scheduler.start()
            except Refused as error:
                raise pytest.UsageError(printable(str(error))) from None
            if self.recorder is not None:
                self.recorder.prepare(is_whole=not self.is_narrowed)

    @cached_property
    def is_narrowed(self) -> bool:
        """Whether an option or an argument leaves out cases."""
        narrowing = any(getattr(self.config.option, name, None) for name in NARROWING)
        return narrowing or not all(map(Path.is_dir, self.named))

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if not is_case_file(file_path):
            return None
        if file_path not in self.named and (file_path in self.of_options or not self.is_among_cases(file_path)):
            return None
        if any(map(file_path.resolve().is_relative_to, self.named)):  # pytest finds those beside a named one, too
            self.conformance.case_set.known.append(file_path)
        return CaseFile.of(parent, file_path, self.conformance)

    def is_among_cases(self, path: Path) -> bool:
        """Whether rules.yaml below the root or an argument applies to a file, or an argument is its directory."""
        rules = nearest(path.parent, RULES_FILE)
        if rules is not None and any(rules.is_relative_to(place) for place in (self.config.rootpath, *self.named)):
            return True
        return path.parent in self.named and is_of_cases(path)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        self.collected = [item.entry for item in items if isinstance(item, CaseItem)]
        deselected = [item for item in items if isinstance(item, CaseItem) and self.why_excluded(item)]
        if deselected:
            config.hook.pytest_deselected(items=deselected)
            excluded = set(deselected)
            items[:] = [item for item in items if item not in excluded]

    def why_excluded(self, item: CaseItem) -> str:
        """Return why `--shard`, `--level` or `--quick` deselects an item, or an empty string."""
        level = self.config.option.level
        part: Shard | None = self.config.option.shard
        if part is not None and not part.includes(item.case.id):
            return part.elsewhere
        if level is not None and not item.get_closest_marker(level):
            return f"not {level}"
        try:
            quick = self.config.option.quick
            is_left_out = quick and self.conformance.case_set.is_left_out(item.case.id, item.path.parent)
        except CaseFileError as error:
            raise pytest.UsageError(f"--quick: {error}") from None
        return "left out by --quick" if is_left_out else ""

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        for item in items:
            if isinstance(item, CaseItem):
                case, target, _ = item.entry
                self.why_deselected[case, target] = self.why_excluded(item) or "deselected"

    @cached_property
    def is_shortened(self) -> bool:
        return is_shortened(self.config)

    @cached_property
    def has_phases(self) -> bool:
        return needs_phases(self.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        items = [item for item in session.items if isinstance(item, CaseItem)]
        if self.config.option.resume and items:
            self.resume(items)
        self.conformance.scheduler.order(items)
        if self.recorder is not None and self.collected and not self.config.option.collectonly:
            self.begin_report(self.collected, self.why_deselected)

    @cached_property
    def past(self) -> list[Past]:
        """The runs of which there are reports."""
        return past_runs(directory_of(self.config))

    def resume(self, items: Sequence[CaseItem]) -> None:
        """Take over what an interrupted run has found, before the report of this one begins."""
        past = distributed.past_of(self.config)
        past = self.past if past is None else past
        digests = {item.case.id: item.case.digest for item in items}
        run = run_of(self.config, "")
        self.conformance.resumed = resumed(past, self.conformance.build, suite_of(()), run, digests)
        self.resumed = self.conformance.resumed.line

    def begin_report(self, collected: Sequence[distributed.CollectedItem], why_deselected: dict[Pair, str]) -> None:
        """Begin the report; its plan is everything that was collected, so that all shards have the same plan."""
        assert self.recorder is not None
        for file in dict.fromkeys(file for *_, file in collected):
            self.conformance.case_set.cases(Path(file))
        self.recorder.why_not_run = why_deselected
        plan = list(dict.fromkeys((case, target) for case, target, _ in collected))
        known, ids = self.conformance.case_set, dict.fromkeys(case for case, _ in plan)
        for case in ids:
            known.listed(case)  # a covered one is written out
        self.recorder.begin([known.ids[case] for case in ids], plan)

    def pytest_report_collectionfinish(self) -> list[str]:
        return list(map(printable, self.header())) if self.conformance.scheduler.items else []

    def header(self) -> list[str]:
        scheduler = self.conformance.scheduler
        more = self.conformance.left_to_pairs
        pairs = f"pairs: each way with each feature of a program; --pairs all adds {more} cases" if more else ""
        kept_back = "" if scheduler.settings.in_process else settings_kept_back(os.environ)
        more_lines = [kept_back, pairs, self.resumed]
        return [*scheduler.build.header(), scheduler.sandbox.line, *filter(None, more_lines)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not isinstance(item, CaseItem):
            return None
        self.conformance.scheduler.offer(item, nextitem if isinstance(nextitem, CaseItem) else None)
        if not self.is_shortened or item.is_marked_by_others:
            return None
        run_shortened(item, has_phases=self.has_phases)
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
            if outcome.status == "pass":
                item.outcome = None  # nothing is said of it any more
            if self.recorder is None and not self.is_start_sent:
                self.is_start_sent = True
                deselected = list(self.why_deselected.items())
                start = distributed.WorkerStart(
                    build=self.conformance.build,
                    sandbox=self.conformance.scheduler.sandbox,
                    collected=self.collected,
                    why_deselected=deselected,
                    resumed=self.resumed,
                )
                attached["start"] = msgspec.to_builtins(start)
            if isinstance(report.longrepr, FailureRepr):
                attached["where"] = dataclasses.asdict(report.longrepr.reprcrash)
            report.__dict__["conformance"] = attached  # builtins alone, which pytest-xdist can serialize
            if outcome.status == "unsupported":  # else pytest shows a line of this package as the place of the skip
                report.longrepr = (item.case.file, item.case.line, f"Skipped: {outcome.reason}")
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        attached = report.__dict__.get("conformance")
        if attached is None or self.recorder is None:
            return
        self.defects += TABLE[attached["status"]].pytest == "error"
        node = getattr(report, "node", None)  # a pytest-xdist worker
        where = attached.pop("where", None)
        if isinstance(report.longrepr, str) and where is not None:  # pytest-xdist sends the text alone
            report.longrepr = FailureRepr(partial(str, report.longrepr), ReprFileLocation(**where))
        start = attached.pop("start", None)
        if start is not None:
            self.take_start(msgspec.convert(start, distributed.WorkerStart), node)
        if node not in self.other_builds:
            self.recorder.add(outcome_of(attached))

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count an internal error as an error, not as a failure."""
        attached = report.__dict__.get("conformance")
        is_error = attached is not None and TABLE[attached["status"]].pytest == "error"
        return ("error", "E", "ERROR") if is_error else None

    def take_start(self, start: distributed.WorkerStart, node: Any) -> None:
        """Begin the report with the first pytest-xdist worker's start; compare the build of each other with its."""
        assert self.recorder is not None
        if self.recorder.journal is None:
            self.conformance.scheduler.build = start.build
            self.conformance.scheduler.sandbox = start.sandbox
            self.collected, self.resumed = start.collected, start.resumed
            self.begin_report(start.collected, dict(start.why_deselected))
            return
        difference = another_build(self.conformance.build, start.build)
        if difference is not None:
            fact, expected, found = difference
            name = getattr(getattr(node, "gateway", None), "id", "a worker")
            self.other_builds[node] = f"{name} tests another build: {fact} is {found}, and elsewhere {expected}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):  # another one, before pytest had noted the first
            session.exitstatus = exitstatus = pytest.ExitCode.INTERRUPTED
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.config.option.shard and self.collected:
            session.exitstatus = exitstatus = pytest.ExitCode.OK  # with few cases a shard may be empty
        if self.recorder is not None and exitstatus in GREEN:
            self.lost = self.recorder.lost_items()
        if self.recorder is not None and exitstatus in GREEN and any(self.complaints()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        is_over = exitstatus in (*GREEN, pytest.ExitCode.TESTS_FAILED)
        if self.defects and is_over:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR  # TESTS_FAILED would be a verdict on torch
        scheduler = self.conformance.scheduler
        scheduler.finish(is_over=is_over)
        if self.recorder is None:
            graphs = list(scheduler.graph_recorder.found.values()) if scheduler.knows_build else []
            distributed.send_end(
                self.config, distributed.WorkerEnd(broken=self.conformance.case_set.broken(), graphs=graphs)
            )
        elif self.recorder.journal is not None:
            scheduler.graph_recorder.write_cache()
            of_cases = scheduler.graph_recorder.graphs(self.recorder.journal.report.pairs)
            with without_collections():  # hardly anything of which report and page are made is garbage
                self.recorder.finish(int(session.exitstatus), of_cases)
            if self.recorder.error and session.exitstatus in GREEN:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def complaints(self) -> Iterator[str]:
        """Yield a line for each reason other than an outcome for which the run fails."""
        yield from (f"required device {line}" for line in self.conformance.lost_devices())
        yield from self.broken or self.conformance.case_set.broken()
        yield from self.strays()
        yield from self.other_builds.values()
        if self.lost:
            yield f"{self.lost} item{'s' * (self.lost > 1)} without an outcome, and nothing says why"
        if self.defects:
            yield f"internal error: {self.defects} item{'s' * (self.defects > 1)}: {TABLE['internal-error'].headline}"

    def strays(self) -> list[str]:
        """Return a line for each known issue or rename that matches no case, if all cases were collected."""
        is_recorded = self.recorder is not None and self.recorder.journal is not None
        broken = self.broken or self.conformance.case_set.broken()  # an entry may match one of their cases
        if self.is_narrowed or broken or not is_recorded:
            return []
        renames = self.conformance.case_set.stray_renames(self.named)
        return [*self.conformance.issues.without_case(self.named), *renames]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        tell_command(node)
        if self.config.option.resume:
            distributed.tell_past(node, self.past)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a pytest-xdist worker sent at its end."""
        end = distributed.end_of(node)
        if end is not None:
            self.broken = end.broken
            if self.conformance.scheduler.knows_build:
                self.conformance.scheduler.graph_recorder.found.update((graph.pair, graph) for graph in end.graphs)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        complaints = list(self.complaints())
        if self.recorder is None or (self.recorder.journal is None and not complaints):
            return
        terminalreporter.section("autograd conformance")
        if self.recorder.journal is not None:
            for line in [*self.header(), *self.recorder.table()]:
                terminalreporter.write_line(printable(line))
        for line in complaints:
            terminalreporter.write_line(printable(line), red=True)
        for line in self.conformance.issues.waiting(date.today()):
            terminalreporter.write_line(printable(f"known issue {line}"), yellow=True)
        for line in self.recorder.written:
            terminalreporter.write_line(printable(line))
        for line in filter(None, (self.recorder.error, self.recorder.page_error)):
            terminalreporter.write_line(printable(line), red=True)


def tell(capture: Any, terminal: Any, line: str) -> None:
    """Write a line to the terminal now, although pytest captures what is printed while it collects."""
    with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
        terminal.ensure_newline()
        terminal.write_line(printable(line))


def holds_cases(path: Path) -> bool:
    """Whether an argument of the command line is a case file or a directory of cases."""
    return path.suffix in SUFFIXES or (path / RULES_FILE).is_file() or is_of_cases(path)
