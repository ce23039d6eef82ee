"""Formats builds, counts and outcomes of reports as short lines.

The lines are not escaped: the caller escapes them for the place where they are written.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from conformance.model.build import Build
from conformance.model.outcome import Outcome
from conformance.model.report import Report
from conformance.model.status import RED, STATUSES

SHORT, LONG = 120, 300  # characters of one value, and of one line of prose


def build_name(build: Build) -> str:
    """Return a line that identifies a build."""
    debug = ", debug" if build.debug else ""
    own = f"torch {build.torch} ({build.git[:8]}{debug})"
    return ", ".join([" with ".join([own, *build.backend_titles]), f"Python {build.python}", build.system])


def run_lines(report: Report) -> list[str]:
    """Return how many outcomes are of which run, where a report has several runs; partial runs come first."""
    if not report.header.partial_runs:
        return []
    ran = Counter(outcome.run for outcome in report.outcomes if outcome.status != "not-run")
    calls = [
        f"{run.run.started} ({run.run.command} {' '.join(run.run.arguments)})".replace(" )", ")") for run in report.runs
    ]
    first, *partial = [f"of the run of {shortened(call, LONG)}" for call in calls]
    counted = [
        f"{ran[at]:,} of {ran.total():,} outcomes are {of_run}" for at, of_run in enumerate(partial, 1) if ran[at]
    ]
    return [*counted, f"the others are {first}"] if counted else []


def count_words(counts: Mapping[str, int], order: Sequence[str] = STATUSES) -> str:
    """Return the counts that are not zero, in order, such as `3 pass, 1 fail`."""
    return ", ".join(f"{counts[name]} {name.replace('-', ' ')}" for name in order if counts.get(name))


def unobserved_line(outcomes: Iterable[Outcome]) -> str:
    """Return how many expectations of how many cases were left out; empty if none were."""
    counts = [len(outcome.unobserved) for outcome in outcomes if outcome.unobserved]
    return f"{sum(counts):,} expectations of {len(counts):,} cases could not be observed" if counts else ""


def retries_line(outcomes: Iterable[Outcome]) -> str:
    """Return how the red outcomes stand of which the cases were run once more; empty if none were."""
    red = [outcome for outcome in outcomes if outcome.status in RED]
    retried = [outcome.status == "flaky" for outcome in red if outcome.retry is not None]
    if not retried:
        return ""
    told = {"red again": retried.count(False), "flaky": retried.count(True), "not run again": len(red) - len(retried)}
    return f"red cases were run once more, each alone in a fresh worker: {count_words(told, list(told))}"


def outcome_line(outcome: Outcome) -> str:
    """Return the summary of an outcome, in which long values are cut."""
    issue = outcome.issue and replace(outcome.issue, reason=shortened(outcome.issue.reason))
    failures = [
        replace(each, path=shortened(each.path), expected=shortened(each.expected), observed=shortened(each.observed))
        for each in outcome.failures
    ]
    return replace(outcome, reason=shortened(outcome.reason, LONG), failures=tuple(failures), issue=issue).summary


def phrase(names: Sequence[str], word: str = "and") -> str:
    """Return names as a phrase: `a`, `a and b`, `a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def shortened(text: str, length: int = SHORT) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
