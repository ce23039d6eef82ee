"""The report of a run while it lasts: on disk as soon as anything is known.

It stands in `<build>.partial.json`, and is a whole JSON document after each outcome: what is appended overwrites the
closing brackets and brings its own. A finished run writes `<build>.json` in one go, with the footer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from conformance.model.graph import Graph
from conformance.model.outcome import Outcome
from conformance.model.report import Pair, Report, footer_of, now
from conformance.results.store import encoded, text_of, write_whole

END = b"\n]\n}\n"


class Journal:
    """Keeps the report of one run below `directory`; it begins as a report without outcomes."""

    def __init__(self, directory: Path, report: Report) -> None:
        self.path = directory / f"{report.build.slug}.json"
        self.partial = directory / f"{report.build.slug}.partial.json"
        self.report = report
        self.outcomes: dict[Pair, Outcome] = {}
        self.file: Any = None
        self.end = 0

    def begin(self) -> None:
        """Write what is known before the first outcome."""
        head = text_of(self.report).encode().removesuffix(b"[]\n}\n") + b"["
        self.partial.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.partial.open("wb", buffering=0)
        self.file.write(head + END)
        self.end = len(head)

    def add(self, outcome: Outcome) -> None:
        """Add an outcome, on disk when this returns; a later one for the same pair replaces it at the end."""
        comma = b",\n" if self.outcomes else b"\n"
        self.outcomes[outcome.case, outcome.target] = outcome
        line = comma + encoded(outcome).encode()
        self.file.seek(self.end)
        self.file.write(line + END)
        self.end += len(line)

    def finish(
        self, why_not_run: Mapping[Pair, str], default: str, exit_status: int, graphs: Mapping[str, Graph]
    ) -> Report:
        """Write the finished report and return it; what was planned and has no outcome was not run."""
        for case, target in self.report.pairs:
            if (case, target) not in self.outcomes:
                reason = why_not_run.get((case, target), default)
                self.outcomes[case, target] = Outcome(case=case, target=target, status="not-run", reason=reason)
        ordered = tuple(self.outcomes[pair] for pair in self.report.pairs)
        footer = footer_of(ordered, exit_status, now())
        report = msgspec.structs.replace(self.report, outcomes=ordered, graphs=dict(graphs), footer=footer)
        write_whole(self.path, text_of(report))
        self.file.close()
        self.partial.unlink(missing_ok=True)
        return report
