"""Tells on a terminal what a command is doing and how far it is; where standard error is none, nothing.

Colour and width follow the variables that pytest heeds: PY_COLORS, NO_COLOR, FORCE_COLOR, COLUMNS.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from conformance.render.visible import printable

CLEAR = "\r\x1b[K"
DIM, PLAIN = "\x1b[2m", "\x1b[0m"
WIDTH = 80  # where the terminal doesn't say

Item = TypeVar("Item")


def following(items: Iterable[Item], what: str, name: Callable[[Any], str] = str) -> Iterator[Item]:
    """Yield items, and tell which of them is taken."""
    listed = list(items)
    try:
        for number, item in enumerate(listed, 1):
            show(f"{what} {number} of {len(listed)}: {name(item)}")
            yield item
    finally:
        clear()


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Tell what is done while something without parts takes long."""
    show(what)
    try:
        yield
    finally:
        clear()


def show(text: str) -> None:
    if is_terminal():
        line = printable(text, keep="").encode(sys.stderr.encoding, "replace").decode(sys.stderr.encoding)
        line = line[: width() - 1]  # one that was broken could not be taken back
        sys.stderr.write(CLEAR + (f"{DIM}{line}{PLAIN}" if has_colour() else line))
        sys.stderr.flush()


def clear() -> None:
    if is_terminal():
        sys.stderr.write(CLEAR)
        sys.stderr.flush()


def is_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def has_colour() -> bool:
    """Whether a terminal is to be given colours."""
    if os.environ.get("PY_COLORS") in ("0", "1"):
        return os.environ["PY_COLORS"] == "1"
    return not os.environ.get("NO_COLOR") or bool(os.environ.get("FORCE_COLOR"))


def width() -> int:
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or WIDTH
    except OSError:
        return WIDTH
