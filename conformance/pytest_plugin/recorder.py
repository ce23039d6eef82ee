"""Records a run: adds each outcome to the report, and writes report, page and summary at the end."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from conformance import __version__
from conformance.language.errors import CaseFileError
from conformance.model.case import ListedCase
from conformance.model.graph import Graph
from conformance.model.outcome import Outcome
from conformance.model.report import (
    FORMAT,
    CaseRecord,
    Header,
    Pair,
    PlanEntry,
    Report,
    Run,
    SuiteVersion,
    cited_rules,
    now,
    set_digest,
)
from conformance.model.status import RED
from conformance.pytest_plugin.cache import PageCache
from conformance.pytest_plugin.case_set import Records
from conformance.pytest_plugin.session import ConformanceSession
from conformance.render.causes import cause_lines
from conformance.render.text import count_words, retries_line, run_lines, unobserved_line
from conformance.results.causes import groups_of
from conformance.results.checkout import suite_commit
from conformance.results.compact import filled
from conformance.results.journal import Journal
from conformance.results.merge import PLACES, without
from conformance.results.renamed import joined
from conformance.results.store import ReportError, load_report, write_whole


def why(error: BaseException) -> str:
    return str(error) or "out of memory"


class Recorder:
    """The report of one run, in the process in which pytest reports."""

    def __init__(self, config: pytest.Config, conformance: ConformanceSession) -> None:
        self.config = config
        self.conformance = conformance
        self.started = now()
        self.directory = directory_of(config)
        self.page = self.directory / "index.html"
        self.journal: Journal | None = None
        self.topics: dict[str, str] = {}
        self.why_not_run: dict[Pair, str] = {}
        self.written: list[str] = []  # a line for the report, and one for the page
        self.notes: list[str] = []
        self.lost = ""  # what could not be written when it was known
        self.error = ""  # why there is no report
        self.page_error = ""

    @property
    def run(self) -> Run:
        """How this run was called."""
        return run_of(self.config, self.started)

    def begin(self, cases: Sequence[ListedCase], plan: Sequence[Pair]) -> None:
        """Begin the report, before the first item runs."""
        rules = self.conformance.case_set.all_rules()
        records: Any = Records(self.conformance.case_set, cases)  # as good as a tuple of them
        self.topics = {case.id: case.topic for case in cases}
        report = Report(
            format=FORMAT,
            header=Header(suite=suite_of(cases), run=self.run, build=self.conformance.build),
            rules=cited_rules(rules, cases),
            cases=records,
            plan=tuple(PlanEntry(case=case, target=target) for case, target in plan),
            outcomes=(),
        )
        self.journal = Journal(self.directory, report, self.conformance.case_set.all_renames())
        try:
            self.journal.begin()
        except (OSError, MemoryError) as error:
            self.lost = f"nothing was written before its end: {why(error)}"
            # What hinders it now may be gone at the end; if not, half an hour would have been for nothing.
            tell = self.conformance.scheduler.tell
            tell(f"no report so far: {why(error)}; --report DIRECTORY puts it elsewhere")

    def add(self, outcome: Outcome) -> None:
        """Record an outcome; when it can't be written, the run goes on, and all are written at its end if they can."""
        if self.journal is not None:
            try:
                self.journal.add(outcome)
            except (OSError, MemoryError) as error:
                self.lost = f"not all was written before its end: {why(error)}"

    def finish(self, exit_status: int, graphs: Mapping[str, Graph]) -> None:
        """Write the report and the page; items that were planned and didn't run are in both, with the reason."""
        if self.journal is None:
            return
        try:
            report = self.journal.finish(self.why_not_run, exit_status, graphs, self.is_gone)
        except (OSError, MemoryError) as error:
            self.error = f"no report: {why(error)}; --report DIRECTORY puts it elsewhere"
            if self.journal.file is not None:
                self.error += f"; outcomes up to an earlier one are in {self.journal.partial.name}"
            return
        self.notes = [f"report: {self.lost}"] if self.lost else []
        name_of = self.conformance.case_set.name_of
        self.written.append(f"report: {name_of(self.journal.written)}")
        self.notes += [*run_lines(report), *filter(None, [self.journal.note])]
        page = f"page: {name_of(self.page)}"
        if self.wants_page(is_whole=len(self.journal.outcomes) == len(report.plan)):
            try:
                self.write_page(report)
                self.written.append(page)
            except Exception as error:  # noqa: BLE001 - the report is written; a traceback would hide pytest's summary
                self.page_error = f"no page: {type(error).__name__}: {error}"
        elif self.config.option.page == "never":
            self.written.append("page: not written, as --page never says")
        else:
            self.written.append(f"{page} is of an earlier run: this one left out cases of the report; see --page")

    def wants_page(self, *, is_whole: bool) -> bool:
        """Whether a run is to write the page; `is_whole` if it comes to every case of the report on every target."""
        when = self.config.option.page
        is_there = os.path.exists(self.page)  # noqa: PTH110 - pathlib's own raises where it may not look
        return when == "always" or (when == "full" and (is_whole or not is_there))

    def is_gone(self, record: CaseRecord) -> bool:
        """Whether a case of an earlier report is known to be no longer in the suite."""
        known = self.conformance.case_set
        if known.is_known(record.id):
            return False
        file = self.config.rootpath / record.file
        named = (self.config.invocation_params.dir / name.partition("::")[0] for name in self.config.args)
        is_read = isinstance(known.read.get(file), list)  # and did load: the cases of a broken file are unknown
        return is_read or (not file.exists() and any(map(file.is_relative_to, named)))

    def prepare(self, *, is_whole: bool) -> None:
        """Import the module that writes the page, and its template, while the worker imports torch."""
        if self.wants_page(is_whole=is_whole):
            from conformance.render.page.page import template  # noqa: PLC0415 - not needed in a session without a page

            template()

    def write_page(self, report: Report) -> None:
        """Write the page of this run and the published reports."""
        from conformance.render.page.details import Keepers  # noqa: PLC0415 - see above
        from conformance.render.page.page import Suite, page_of  # noqa: PLC0415 - see above

        published: list[Report] = []
        skipped: list[str] = []
        places = (self.directory / "published", self.config.rootpath / "reports" / "published")
        place = next(filter(Path.is_dir, places), None)
        for path in sorted(place.glob("*.json")) if place is not None else ():
            try:
                published.append(load_report(path))
            except ReportError as error:
                skipped.append(str(error))
        known = self.conformance.case_set
        read_before = frozenset(known.read)
        for name in dict.fromkeys(
            record.file for record in report.cases
        ):  # also those that only earlier runs collected, for the scripts
            path_of_cases = self.config.rootpath / name
            try:
                known.cases(path_of_cases)
            except CaseFileError:
                if path_of_cases not in read_before:
                    del known.read[path_of_cases]  # this run didn't collect it, so it must not fail the run
        known.write_ahead()
        report = replace(report, cases=tuple(report.cases))
        *published, own = joined([*published, report], known.all_renames())
        drawings = PageCache[Any](known.cache, Any, own.build, forgets=False)
        parts = PageCache[str](known.cache, str, own.build, forgets=True)
        reports = [*filled([*published, own])[:-1], own]
        suite = Suite(script_of=known.script, case_of=known.revision)
        kept = Keepers(drawing=drawings.of, part=parts.of)
        write_whole(self.page, page_of(reports, skipped, suite, own=own, kept=kept))
        drawings.keep()
        parts.keep()

    def lost_items(self) -> int:
        """Return how many items have no outcome, though nothing left them out."""
        if self.journal is None:
            return 0
        accounted = {*self.journal.outcomes, *self.why_not_run}
        return sum(pair not in accounted for pair in self.journal.report.pairs)

    def table(self) -> list[str]:
        """Return the lines of a table of outcomes by topic and target; with -q, of red topics and the total alone."""
        if self.journal is None:
            return []
        totals: dict[str, Counter[str]] = defaultdict(Counter)
        topics: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        for pair in self.journal.report.pairs:
            outcome = self.journal.outcomes.get(pair)
            if outcome is not None or pair not in self.why_not_run:
                status = outcome.status if outcome is not None else "not-run"
                totals[pair[1]][status] += 1
                topics[self.topics[pair[0]]][pair[1]][status] += 1
        if not totals:
            return self.notes
        rows = sorted(topics.items())
        if self.config.get_verbosity() < 0:
            rows = [row for row in rows if any(RED & counts.keys() for counts in row[1].values())]
            rows.append(("all topics", totals))
        cells = [["topic", *totals], *([name, *(count_words(by[each]) or "-" for each in totals)] for name, by in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
        run = [self.journal.outcomes[pair] for pair in self.journal.report.pairs if pair in self.journal.outcomes]
        lines += filter(None, [unobserved_line(run)])
        lines += [*self.unobserved_lines(run), *filter(None, [retries_line(run)]), *self.causes(), *self.notes]
        return lines

    def unobserved_lines(self, run: Sequence[Outcome]) -> list[str]:
        """Return a line for each case with expectations that could not be observed; none without -v."""
        if self.config.get_verbosity() < 1:
            return []
        return [
            f"  {outcome.case}[{outcome.target}] {outcome.unobserved_text}" for outcome in run if outcome.unobserved
        ]

    def causes(self) -> list[str]:
        """Return the lines of the causes of what is red in this run."""
        if self.journal is None or not any(each.status in RED for each in self.journal.outcomes.values()):
            return []
        records = {record.id: record for record in self.journal.report.cases}
        return cause_lines([cause for cause, _ in groups_of(self.journal.outcomes.values(), records)])


def directory_of(config: pytest.Config) -> Path:
    """Return where the reports of a run go."""
    given = config.option.report
    return config.invocation_params.dir / given if given else config.rootpath / "reports"


def run_of(config: pytest.Config, started: str) -> Run:
    """Return how a run was called, for its report."""
    option = config.option
    return Run(
        started=started, arguments=without(option.given, *PLACES), shard=option.shard, command=option.called_as
    )  # fmt: skip


def suite_of(cases: Iterable[ListedCase]) -> SuiteVersion:
    """Return what runs, with the digest of its cases, for its report."""
    digest = set_digest((case.id, case.digest) for case in cases)
    return SuiteVersion(version=__version__, commit=suite_commit(), cases=digest)
