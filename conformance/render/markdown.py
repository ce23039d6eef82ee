"""Renders Markdown templates with untrusted values in code spans, and cuts the result to a size.

In a code span GitHub finds no markup, link, mention or reference to an issue. The filter `ours` prints a value without
one, for text of the suite itself.
"""

import html
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from conformance.render.text import LONG, SHORT
from conformance.render.visible import line_of

TEMPLATES = Path(__file__).parent / "templates"
LONGEST = 2 * LONG + SHORT  # of an outcome, as text.outcome_line writes it
END = "</details>\n"


def code(text: str) -> Markup:
    """Return `text` as a code span of one line."""
    line = line_of(text, LONGEST) or " "
    ticks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    pad = " " if line.strip() and (line[0] in "` " or line[-1] in "` ") else ""
    return Markup(f"{ticks}{pad}{line}{pad}{ticks}")  # noqa: S704 - a code span has no markup


def cell(text: str) -> Markup:
    """Return `text` as a code span in a table, where a bar ends the cell even inside of one."""
    return code(text.replace("|", "⟨U+007C⟩"))


def tagged(text: str) -> Markup:
    """Return `text` as HTML, for places inside of tags, where Markdown is not parsed."""
    return Markup(f"<code>{html.escape(line_of(text, LONGEST))}</code>")  # noqa: S704 - it has just been escaped


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return the Markdown of a template with `context`."""
    return environment().get_template(template).render(context)


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, autoescape=True, finalize=escaped,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    made.filters.update(cell=cell, tagged=tagged, ours=Markup)
    return made


def escaped(value: Any) -> Any:
    return value if isinstance(value, (Markup, int)) else code(str(value))


def fitted(text: str, limit: int) -> str:
    """Return the lines of a Markdown text that `limit` bytes hold, its tags closed, and how many are left out."""
    if len(text.encode()) <= limit:
        return text
    lines = text.splitlines(keepends=True)
    kept, size, is_open = 0, 0, False
    end = ""
    for index, line in enumerate(lines):
        closing = ending(len(lines) - index, is_open)
        if size + len(closing) <= limit:
            kept, end = index, closing
        size += len(line.encode())
        if size > limit:
            break
        is_open = line.startswith("<details>") or (is_open and line != END)
    return "".join(lines[:kept]) + end


def ending(count: int, is_open: bool) -> str:
    """Return the text that replaces the last `count` lines."""
    return ("\n" + END if is_open else "") + f"\n*{count:,} more lines are left out.*\n"
