"""The command line: `python -m conformance`, also installed as `autograd-conformance`.

What is slow to import, or belongs to pytest, is imported by the command that needs it.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.cli.grammar import parser
from conformance.language.errors import CaseFileError
from conformance.model.report import Report
from conformance.render.visible import visible
from conformance.results.store import ReportError, load_report, text_of, write_whole

if TYPE_CHECKING:
    from conformance.model.case import Case
    from conformance.model.rule import Rule
    from conformance.results.diff import Difference, Differences

SURROGATE = re.compile("[\ud800-\udfff]")

Named = tuple[str, Report]  # a report and the file that it is from


class CommandError(Exception):
    """Why a command can't do what it was asked for, and a hint."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["run"]:
        return run(given[1:])
    options = parser().parse_args(given)
    commands = {
        "cases": cases, "report": report, "compact": compact, "merge": merge, "diff": diff, "summary": summary,
        "history": history, "known-issues": known_issues, "bisect": bisect, "absent": absent, "badge": badge,
    }  # fmt: skip
    try:
        return commands[options.command](options)
    except CommandError as error:
        complain(f"error: {error}")
        complain(f"hint: {error.hint}")
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 2


def run(arguments: Sequence[str]) -> int:
    """Run the shipped cases, or those that `arguments` name, in pytest; reports go below the current directory."""
    import pytest

    from conformance.language.files import holds_case_files, shipped_cases
    from conformance.pytest_plugin.arguments import PATH_OPTIONS, PLUGIN

    here = Path.cwd()
    places = [word for option, word in pairwise(["", *arguments]) if option not in PATH_OPTIONS]
    named = any(holds_case_files(Path(word.partition("::")[0])) for word in places)
    cases = shipped_cases()
    own = [
        *("-c", os.devnull, "--rootdir", str(here if named else cases.parent), "-p", PLUGIN),
        *(f"--report={here / 'reports'}", "-o", f"cache_dir={here / '.pytest_cache'}"),
        *("-W", "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning"),
    ]
    return int(pytest.main([*own, *arguments, *([] if named else [str(cases)])]))


def cases(_: argparse.Namespace) -> int:
    from conformance.language.files import shipped_cases

    put(f"{shipped_cases()}\n")
    return 0


def report(options: argparse.Namespace) -> int:
    from conformance.model.report import without_machine
    from conformance.render.page.page import page_of
    from conformance.render.script.script import script_for

    skipped: list[str] = []
    found = [report for _, report in read(options.reports, skipped if options.skip_unreadable else None)]
    if not found:
        raise CommandError("none of the reports can be read", "; ".join(skipped))
    if options.without_machines:
        found = [without_machine(report) for report in found]
    suite = [(case, script_for(case)) for case in shipped()[0]]
    save(options.output, page_of(found, skipped, suite))
    put(f"{options.output}\n")
    return 0


def compact(options: argparse.Namespace) -> int:
    from conformance.results.compact import CompactError, compact_of

    for path in options.reports:
        for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            report = load(file)
            try:
                text = text_of(compact_of(report))
            except CompactError as error:
                raise CommandError(f"{file}: {error}", "shards are merged first") from None
            place = options.output / visible(f"{report.build.slug}.json", keep="")
            save(place, text)
            put(f"{place}\n")
    return 0


def merge(options: argparse.Namespace) -> int:
    from conformance.results.merge import MergeError
    from conformance.results.merge import merge as merged

    try:
        result = merged(read(options.reports))
    except MergeError as error:
        raise CommandError(str(error), "shards are of the same build, suite and cases") from None
    for note in result.notes:
        complain(f"note: {note}")
    if options.output is None:
        put(text_of(result.report), "utf-8")
        return 0
    place = Path(options.output)
    if place.is_dir() or options.output.endswith(("/", os.sep)):
        place /= visible(f"{result.report.build.slug}.json", keep="")
    save(place, text_of(result.report))
    return 0


def diff(options: argparse.Namespace) -> int:
    from conformance.render import diff as words
    from conformance.results.diff import record_of

    encoding = None if options.format == "text" else "utf-8"
    if options.old.is_dir() and options.new.is_dir():
        several = differences(options.old, options.new)
        told = {"text": words.texts_of, "markdown": words.markdowns_of}.get(options.format)
        put(told(several) if told else json_text(words.records_of(several)), encoding)
        return 1 if several.worse else 0
    one = difference(options.old, options.new)
    said = {"text": words.text_of, "markdown": words.markdown_of}.get(options.format)
    put(said(one) if said else json_text(record_of(one)), encoding)
    return 1 if one.gates else 0


def difference(old: Path, new: Path) -> Difference:
    from conformance.results.diff import compare, why_incomparable

    reports = worded([load(old), load(new)])
    why = why_incomparable(*reports)
    if why:
        raise CommandError(f"{old} and {new} can't be compared: {why}", "are these the right files?")
    return compare(*reports)


def differences(old: Path, new: Path) -> Differences:
    """Return the differences between the files of two directories that are named alike."""
    from conformance.results.diff import Differences

    before, after = ({path.name: path for path in sorted(place.glob("*.json"))} for place in (old, new))
    if not after:
        raise CommandError(f"{new}: there is no *.json in this directory", "name a report, or where reports are")
    found = {name: difference(before[name], path) if name in before else None for name, path in after.items()}
    return Differences(found=found, gone=tuple(name for name in before if name not in after))


def summary(options: argparse.Namespace) -> int:
    from conformance.render.summary import summary_of

    put(summary_of([report for _, report in read(options.reports)], options.limit), "utf-8")
    return 0


def history(options: argparse.Namespace) -> int:
    from conformance.language.files import case_files, load_cases, shipped_cases
    from conformance.render.history import markdown_of, text_of, turns_of

    hint = "expected case files, as in the directory that `cases` prints"
    try:
        files = list(case_files(options.cases or [shipped_cases()]))
        if not files:
            raise CommandError("there is no case file in this directory", hint)
        turns = turns_of(load_cases(files))
    except CaseFileError as error:
        *others, last = map(str, error.problems)
        for problem in others:
            complain(f"error: {problem}")
        raise CommandError(last, hint) from None
    except OSError as error:
        raise CommandError(f"{error.filename}: can't be read: {error.strerror}", hint) from None
    if options.format == "json":
        put(json_text({"turns": [turn.record() for turn in turns]}), "utf-8")
    else:
        put(markdown_of(turns) if options.format == "markdown" else text_of(turns), "utf-8")
    return 0


def known_issues(options: argparse.Namespace) -> int:
    from conformance.results.drafts import text_of as entries_text

    try:
        text = entries_text([report for _, report in read(options.reports)], date.today())
    except ValueError as error:
        raise CommandError(str(error), "known issues are of releases") from None
    put(text, "utf-8")
    return 0


def bisect(options: argparse.Namespace) -> int:
    from conformance.releases.bisect import Unanswerable
    from conformance.releases.catalogue import load_releases
    from conformance.releases.trial import Trial, UnknownCase
    from conformance.render.text import listed

    try:
        releases = load_releases().between(options.good, options.bad)
        trial = Trial(options.case, options.target, lambda line: put(f"{line}\n"))
    except ValueError as error:
        raise CommandError(str(error), "releases are such as 2.6.0, and targets such as cpu-float32") from None
    except (UnknownCase, CaseFileError) as error:
        raise CommandError(str(error), "`cases` prints where the cases are") from None
    is_old_good = releases[0].torch == options.good
    try:
        found = trial.bisect(releases, is_old_good=is_old_good, kept=options.environments)
    except Unanswerable as error:
        raise CommandError(str(error), "an end must hold, and the other fail") from None
    what = "bad" if is_old_good else "good"
    first = listed((*found.untold, found.first), "or")
    put(f"\nthe first {what} release is {first}; {found.last} is the last before it\n\n{trial.script}\n", "utf-8")
    return 0


def absent(options: argparse.Namespace) -> int:
    from conformance.releases.catalogue import reason_in
    from conformance.results.placeholder import absent_report

    why = options.why
    if options.log is not None:
        try:
            why = f"{why}: {reason_in(options.log.read_text(encoding='utf-8', errors='replace'))}"
        except OSError as error:
            raise CommandError(
                f"{options.log}: can't be read: {error.strerror}", "expected an installer's output"
            ) from None
    report = absent_report(*shipped(), options.torch, why)
    place = options.output / visible(f"{report.build.slug}.json", keep="")
    save(place, text_of(report))
    put(f"{place}\n")
    return 0


def badge(options: argparse.Namespace) -> int:
    from conformance.render.badge import badge_of

    put(json_text(badge_of(load(options.report), options.label)))
    return 0


def read(paths: Iterable[Path], skipped: list[str] | None = None) -> list[Named]:
    """Return the reports at `paths`; what can't be read is an error, or told to `skipped` where that is given."""
    found: list[Named] = []
    for path in paths:
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not files:
            raise CommandError(f"{path}: there is no *.json in this directory", "name a report, or where reports are")
        for file in files:
            try:
                found.append((str(file), load(file)))
            except CommandError as error:
                if skipped is None:
                    raise
                skipped.append(str(error))
    return list(zip((name for name, _ in found), worded([report for _, report in found]), strict=True))


def worded(reports: list[Report]) -> list[Report]:
    """Return reports with the words of their cases, which compact ones lack: those of the others, or of the suite."""
    from conformance.results.compact import filled, has_bare

    if not has_bare(reports):
        return reports
    reports = filled(reports)
    if not has_bare(reports):
        return reports
    from conformance.model.report import case_record

    cases, rules = shipped()
    return filled(reports, [case_record(case, rules) for case in cases], rules.values())


def shipped() -> tuple[list[Case], Mapping[str, Rule]]:
    """Return the cases that come with the suite, and their rules."""
    from conformance.language.files import case_files, load_cases, shipped_cases
    from conformance.language.rules import FILE, load_rules

    place = shipped_cases()
    return load_cases(case_files([place]), place.parent), load_rules(place / FILE, FILE)


def load(file: Path) -> Report:
    try:
        return load_report(file)
    except ReportError as error:
        raise CommandError(str(error), "expected the report of a run, as in reports/*.json") from None


def save(path: Path, content: str) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise CommandError(f"{path}: can't be written: {error.strerror}", "-o names another place") from None


def json_text(content: Mapping[str, Any]) -> str:
    """Return JSON in ASCII; of text only what no other program could read is changed, halves of pairs."""
    whole = SURROGATE.sub(lambda found: visible(found[0]), json.dumps(content, ensure_ascii=False))
    return json.dumps(json.loads(whole), indent=2) + "\n"


def put(text: str, encoding: str | None = None) -> None:
    """Print `text`, in an encoding of its own or as the terminal takes it."""
    code = encoding or sys.stdout.encoding
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(code, "backslashreplace"))
    sys.stdout.flush()


def complain(text: str) -> None:
    code = sys.stderr.encoding
    sys.stderr.write(visible(text, keep="").encode(code, "backslashreplace").decode(code) + "\n")
