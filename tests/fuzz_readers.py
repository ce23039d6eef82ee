"""The readers of case files, lists and reports, as a fuzzer calls them: what each must hold to, whatever it is given.

Each returns whether it could read its input, and raises an error where that was neither read nor refused as it should.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec
from samples import CPU, CUDA, GRAPH, broken, failed, outcome, report

from conformance.execution.program import program_of
from conformance.language.errors import CaseFileError
from conformance.language.files import case_files, shipped_cases
from conformance.language.reader import parse_cases
from conformance.language.rules import RULES_FILE, load_rules, rules_in
from conformance.language.yaml import read_document, read_text
from conformance.model.build import Target
from conformance.model.rule import Rule
from conformance.render.script.plain import plain_text
from conformance.results.compact import CompactError, compact_of
from conformance.results.diff import compare
from conformance.results.known_issues import entries_of
from conformance.results.store import ReportError, report_in, text_of

NAME = "t.yaml"
FILE = Path(NAME)
TARGET = Target(device="cpu", dtype="float32")
RELEASES = ("1.13.1", "2.13.0")
PLACE = re.compile(r"^( *)- (?:id|case|cases): *", re.MULTILINE)
SHORT = 1_500  # characters of an entry to begin with
EACH = 40  # of the entries that are short


def read_cases(content: bytes) -> bool:
    """Read a case file; its cases can be sent to each release, and be written as plain torch."""
    with told(content):
        for case in parse_cases(read_text(content, NAME), NAME, shipped_rules()):
            for torch in RELEASES:
                json.dumps(program_of(case, TARGET, torch))
                with warnings.catch_warnings():  # of what Python finds odd in a case
                    warnings.simplefilter("ignore", SyntaxWarning)
                    compile(plain_text(case, torch), NAME, "exec")
        return True
    return False


def read_list(content: bytes) -> bool:
    """Read a list of rules, or one of known issues."""
    with told(content):
        rules_in(content, NAME)
        return True
    with told(content):
        list(entries_of(FILE, NAME, FILE, (), read_document(read_text(content, NAME), NAME)))
        return True
    return False


def read_report(content: bytes) -> bool:
    """Read a report, which as it is written again is the same, also in compact form, and in nothing unlike itself."""
    try:
        found = report_in(content, FILE)
    except ReportError:
        return False
    assert report_in(text_of(found).encode(), FILE) == found
    with suppress(CompactError):
        report_in(text_of(compact_of(found)).encode(), FILE)
    assert not compare(found, found).changes
    return True


@cache
def shipped_rules() -> dict[str, Rule]:
    return load_rules(shipped_cases() / RULES_FILE, RULES_FILE)


class told:  # noqa: N801 - it is read as a word of a `with` statement
    """Lets a file be refused, with places that it has and words."""

    def __init__(self, content: bytes) -> None:
        self.lines = content.count(b"\n") + content.count(b"\r") + 2

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, CaseFileError):
            return False
        assert error.problems
        for each in error.problems:
            assert each.file == NAME, each
            assert each.message, each
            assert 1 <= each.line <= self.lines, each
            assert each.column >= 1, each
        return True


EQUIVALENCE = """\
cases:
  - id: two-ways
    title: Two ways agree
    why: To be read.
    rules: [agrad.no-side-effect]
    spellings:
      backward: [f(*inputs).backward(g), "found = [x.grad for x in inputs]"]
      grad: ["found = autograd.grad(f(*inputs), inputs, g)"]
"""


def case_texts() -> Iterator[str]:
    """Yield files of one entry each, of the shipped ones: a case, an operation, or a program for an equivalence."""
    for path in case_files([shipped_cases()]):
        text = path.read_text(encoding="utf-8")
        programs, _, cases = text.rpartition("\ncases:\n")
        yield from (f"topic: T\nprograms:\n{entry}{EQUIVALENCE}" for entry in entries_in(programs))
        if not programs.count("\nprograms:\n"):
            key = "cases" if programs else "ops"
            yield from (f"topic: T\n{key}:\n{entry}" for entry in entries_in(cases))


def entries_in(text: str) -> list[str]:
    """Return some of the entries of a list in the text of a file, those that are short."""
    places = [*(found.start() for found in PLACE.finditer(text) if len(found[1]) <= 2), len(text)]
    entries = [text[place:end] for place, end in pairwise(places)]
    return [each for each in entries if len(each) <= SHORT][::EACH]


def list_texts() -> Iterator[str]:
    for name, key in (("known-issues", "issues"), ("rules", "rules")):
        for entry in entries_in((shipped_cases() / f"{name}.yaml").read_text(encoding="utf-8")):
            yield f"{key}:\n{entry}"


def report_texts() -> Iterator[str]:
    mixed = {("a", CPU): outcome("pass"), ("a", CUDA): failed(), ("b", CPU): broken(), ("b", CUDA): outcome("crash")}
    whole = report(mixed)
    for each in (
        report({}),
        report({("a", CPU): outcome("pass")}),
        report(dict.fromkeys(mixed), finished=False),
        whole,
    ):
        yield text_of(each)
        yield text_of(compact_of(each))
    yield text_of(msgspec.structs.replace(whole, graphs={"a": GRAPH}))
    yield text_of(whole).replace('"format": 2', '"format": 1')


READERS: dict[str, tuple[Callable[[bytes], bool], Callable[[], Iterator[str]]]] = {
    "cases": (read_cases, case_texts),
    "lists": (read_list, list_texts),
    "reports": (read_report, report_texts),
}
