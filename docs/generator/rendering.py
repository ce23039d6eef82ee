"""Renders Markdown pages from templates in which values are escaped as HTML, and writes those that have changed."""

import html
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def rendered(template: str, context: Mapping[str, Any]) -> str:
    """Return the page of a template; what stands in its blocks of HTML is escaped, and in one line."""
    return environment().get_template(template).render(context)


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, autoescape=True, finalize=in_one_line,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    made.filters.update(anchor=anchor, plain=plain, fenced=fenced, spans=spans, compact=compact)
    return made


def in_one_line(value: Any) -> Any:
    """Return text without line breaks: a blank line ends a block of HTML in Markdown."""
    return " ".join(value.split()) if type(value) is str else value


def anchor(name: str) -> str:
    """Return the anchor that a heading of this name has."""
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")


def plain(text: str) -> Markup:
    """Return text for Markdown, without any markup in it."""
    return Markup(PUNCTUATION.sub(r"\\\1", " ".join(text.split())))  # noqa: S704 - no punctuation has a meaning


def fenced(text: str, language: str) -> Markup:
    """Return text as a block of code, which may be no valid code of its language."""
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    body = text.strip("\n")
    return Markup(f"{ticks}{{code-block}} {language}\n:force:\n\n{body}\n{ticks}")  # noqa: S704 - a block of code


def spans(text: str) -> Markup:
    """Return text as HTML in which what stands in backquotes is code."""
    parts = html.escape(" ".join(text.split())).split("`")
    if len(parts) % 2 == 0:
        return Markup("`".join(parts))  # noqa: S704 - it has been escaped
    return Markup("".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts)))  # noqa: S704


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def write_changed(path: Path, text: str) -> None:
    """Write a file unless it holds that already: a page that has not changed is not read again."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
