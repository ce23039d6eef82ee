"""The JSON report: all outcomes of one build, on disk as soon as they are known.

While a run lasts, the report stands in `<build>.partial.json`, and is a whole JSON document after each
outcome: what is appended overwrites the closing brackets and brings its own. A finished run writes
`<build>.json` in one go, with the footer; a report without a footer is of a run that did not finish.
`report.schema.json` describes both.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from conformance.case import Case
from conformance.outcome import Outcome
from conformance.rule import Rule, level_of

FORMAT = 1
END = b"\n]\n}\n"


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def case_record(case: Case, rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Return what a report says of a case."""
    return {
        "id": case.id,
        "file": case.file,
        "line": case.line,
        "topic": case.topic,
        "title": case.title,
        "why": case.why,
        "level": level_of(rules, case.rules),
        "rules": list(case.rules),
        "source": list(case.source),
        "digest": case.digest,
        "yaml": case.text,
    }


def rule_records(rules: Mapping[str, Rule], cases: Iterable[Case]) -> dict[str, Any]:
    """Return the rules that `cases` cite, as a report holds them."""
    cited = sorted({rule for case in cases for rule in case.rules})
    return {name: asdict(rules[name]) for name in cited}


def write_whole(path: Path, content: str) -> None:
    """Write a file that is never seen half-written: under another name first, then in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(content, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


class ReportWriter:
    """Writes the report of one run; `plan` holds the (case, target) pairs in the order of the run."""

    def __init__(self, directory: Path, slug: str, header: dict[str, Any]) -> None:
        self.path = directory / f"{slug}.json"
        self.partial = directory / f"{slug}.partial.json"
        self.header = header
        self.head = b""
        self.outcomes: dict[tuple[str, str], dict[str, Any]] = {}
        self.file: Any = None
        self.end = 0

    def begin(self, rules: Mapping[str, Any], cases: list[dict[str, Any]], plan: Iterable[tuple[str, str]]) -> None:
        """Write what is known before the first outcome."""
        self.plan = list(plan)
        parts = {
            "format": FORMAT,
            "header": self.header,
            "rules": rules,
            "cases": cases,
            "plan": [{"case": case, "target": target} for case, target in self.plan],
        }
        lines = [f"{json.dumps(name)}: {dump(value)}" for name, value in parts.items()]
        self.head = ("{\n" + ",\n".join(lines)).encode()
        self.partial.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.partial.open("wb", buffering=0)
        self.file.write(self.head + b',\n"outcomes": [' + END)
        self.end = self.file.tell() - len(END)

    def add(self, case: str, target: str, outcome: Outcome) -> None:
        """Add an outcome, on disk when this returns; a later one for the same pair replaces it at the end."""
        record = {"case": case, "target": target, **outcome.record()}
        comma = b",\n" if self.outcomes else b"\n"
        self.outcomes[case, target] = record
        line = comma + json.dumps(record).encode()
        self.file.seek(self.end)
        self.file.write(line + END)
        self.end += len(line)

    def finish(self, why_not_run: Mapping[tuple[str, str], str], default: str, exit_status: int) -> Path:
        """Write the finished report and return its path; what was planned and has no outcome was not run."""
        for pair in self.plan:
            if pair not in self.outcomes:
                outcome = Outcome(status="not-run", reason=why_not_run.get(pair, default))
                self.outcomes[pair] = {"case": pair[0], "target": pair[1], **outcome.record()}
        ordered = [self.outcomes[pair] for pair in self.plan]
        footer = {
            "finished": now(),
            "exit_status": exit_status,
            "counts": dict(sorted(Counter(record["status"] for record in ordered).items())),
        }
        outcomes = dump(ordered)
        write_whole(self.path, f'{self.head.decode()},\n"outcomes": {outcomes},\n"footer": {dump(footer)}\n}}\n')
        self.file.close()
        self.partial.unlink(missing_ok=True)
        return self.path


def dump(value: Any) -> str:
    """Return JSON with one line for each entry of a list or mapping, so that reports can be compared by line."""
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(item)}" for key, item in value.items()) + "\n}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    return json.dumps(value)


class ReportError(Exception):
    """A file that is no report, or that this version can't read."""


def load_report(path: Path) -> dict[str, Any]:
    """Return the report at `path`; raise ReportError with the reason when it is none."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"{path}: can't be read as a report: {error}") from None
    if not isinstance(report, dict) or "format" not in report:
        raise ReportError(f"{path}: not a report: no format number")
    if type(report["format"]) is not int or report["format"] != FORMAT:
        raise ReportError(f"{path}: format {report['format']!r}, expected {FORMAT}")
    return report
