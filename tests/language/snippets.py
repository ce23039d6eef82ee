"""Reads the mistakes of `bad_cases`: a name, a snippet of a case file, and what a person who wrote it is told.

A snippet of `yaml steps` stands in FRAME, and its lines and columns are counted from its own beginning; any other is a
whole file. After a change that is meant, `pytest tests/language/test_bad_cases.py --update-snippets`
writes what is told now; the diff is what there is to review.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from conformance.language.errors import CaseFileError
from conformance.language.reader import parse_cases
from conformance.language.yaml import read_text
from conformance.model.rule import Rule

RULE = Rule(id="a.b", text="A rule.", topic="Rules", level="documented", link="https://example.org", since="1.13")
FRAME = """\
topic: Mistakes
cases:
  - id: one
    title: A title
    why: A reason
    rules: [a.b]
    steps:
      - a = tensor([1.0], requires_grad=True)
{steps}      - expect: {{a: {{is_leaf: true}}}}
"""
ABOVE = FRAME.partition("{steps}")[0].count("\n")  # lines
INDENT = 6  # columns
SECTION = re.compile(r"## ([^\n]+)\n\n```(yaml|yaml steps)\n(.*?)```\n\n```text\n(.*?)```\n", re.DOTALL)
AREAS = sorted((Path(__file__).parent / "bad_cases").glob("*.md"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A snippet of a case file and the words that are recorded for it."""

    name: str
    kind: str
    snippet: str
    words: str

    @property
    def file(self) -> str:
        return f"{self.name}.yaml"

    @property
    def is_steps(self) -> bool:
        return self.kind == "yaml steps"

    @property
    def content(self) -> bytes:
        """The whole case file."""
        if not self.is_steps:
            return self.snippet.encode()
        return FRAME.format(steps=textwrap.indent(self.snippet, " " * INDENT)).encode()

    def told(self) -> str:
        """Return what is told now, with places as they are recorded."""
        lines = []
        for problem in error_of(self.content, self.file).splitlines():
            _, line, column, message = problem.split(":", 3)
            above, indent = (ABOVE, INDENT) if self.is_steps else (0, 0)
            lines.append(f"{int(line) - above}:{int(column) - indent}:{message}\n")
        return "".join(lines)


def error_of(content: bytes, name: str) -> str:
    """Return what reading a case file tells, or nothing where it loads."""
    try:
        parse_cases(read_text(content, name), name, {RULE.id: RULE})
    except CaseFileError as error:
        return str(error)
    return ""


def mistakes_of(area: Path) -> list[Mistake]:
    text = area.read_text(encoding="utf-8")
    return [
        Mistake(name=name, kind=kind, snippet=snippet, words=words)
        for name, kind, snippet, words in SECTION.findall(text)
    ]


def text_of(area: Path, told: dict[str, str]) -> str:
    """Return the file of an area with what is told of each mistake, by its name."""
    sections = [
        f"## {mistake.name}\n\n```{mistake.kind}\n{mistake.snippet}```\n\n```text\n{told[mistake.name]}```\n"
        for mistake in mistakes_of(area)
    ]
    return "\n".join([f"# Mistakes of {area.stem}\n", *sections])


MISTAKES = [mistake for area in AREAS for mistake in mistakes_of(area)]
