"""Finds where in a case file a place of its text is: below which keys, and after which words.

The text before the place is read by its indentation and brackets alone, so that it may be unfinished or wrong anywhere:
a line that is indented no further than the one which opened a bracket, a quotation or a block ends it. Both styles of
YAML come to the same path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

ITEM = "[]"  # in a path, an entry of a list
QUOTES = "'\""
KEY = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([^\s\[\]{}#,"'&*!|>%@`][^#]*?)) *:(?=\s|$)\s*""")
DASH = re.compile(r"-(?: +|$)")
BLOCK = re.compile(r"[|>][-+0-9]*\s*(?:#.*)?$")


class Place(NamedTuple):
    """A place in a case file.

    `path` holds the keys that it is below, with ITEM for each list; `before` is the text of its value or key up to it.
    `keys` are those that stand before it in the same mapping. Where `is_key`, a key may stand here; where `is_text`,
    text may, as the value of what it is below.
    """

    path: tuple[str, ...]
    before: str
    is_key: bool
    is_text: bool
    keys: frozenset[str]


@dataclass(slots=True)
class Level:
    """A mapping or a list that is open: in which column it is indented, and at which key it is."""

    column: int
    key: str | None = None  # of a list, ITEM; of a mapping, None where the next key may stand
    keys: set[str] = field(default_factory=set)


def place_at(text: str) -> Place:
    """Return the place at the end of `text`, which is a case file up to there."""
    reading = Reading()
    *lines, last = text.split("\n")
    for line in lines:
        reading.take(line.rstrip("\r"))
    reading.take(last, is_last=True)
    return reading.place()


class Reading:
    """What is open after some lines of a case file."""

    def __init__(self) -> None:
        self.levels: list[Level] = []  # in block style
        self.inner: list[Level] = []  # in flow style, inside of those
        self.before = ""
        self.is_key = True
        self.opened = 0  # the column of the line that opened a bracket, a quotation or a block of text
        self.quote = ""
        self.depth = 0  # of brackets in the text of a value
        self.is_block = False

    def place(self) -> Place:
        levels = [*self.levels, *self.inner]
        path = tuple(level.key for level in levels if level.key is not None)
        keys = levels[-1].keys if levels and levels[-1].key is None else set()
        is_text = not self.is_key or not (keys or self.inner)
        return Place(path, self.before, self.is_key, is_text, frozenset(keys))

    def take(self, line: str, *, is_last: bool = False) -> None:
        column = len(line) - len(line.lstrip(" "))
        if self.is_block or self.quote or self.inner:
            if column > self.opened or not (line.strip() or is_last):
                self.before += "\n" if self.is_block or self.before.strip() else ""
                self.go_on(line)
                return
            self.is_block, self.quote, self.depth = False, "", 0
            self.inner.clear()
        if line.strip() or is_last:
            self.begin(line[column:], column)

    def go_on(self, text: str) -> None:
        if self.is_block:
            self.before += text
        else:
            self.flow(text)

    def begin(self, text: str, column: int) -> None:
        """Read a line that goes on with nothing before it."""
        self.opened = column
        if text.startswith("#"):
            return
        while dash := DASH.match(text):
            self.close(column, is_list=True)
            self.levels.append(Level(column, ITEM))
            self.opened = column
            text, column = text[dash.end() :], column + dash.end()
        key = KEY.match(text)
        known = self.close(column)
        self.levels.append(Level(column, keys=known))
        self.before, self.is_key = "", True
        if key:
            self.levels[-1].key = key[1] or key[2] or key[3] or ""
            known.add(self.levels[-1].key)
            self.opened = column
            text, self.is_key = text[key.end() :], False
        self.value(text)

    def close(self, column: int, *, is_list: bool = False) -> set[str]:
        """Leave what ends where a line begins in this column; return the keys of the mapping that goes on there."""
        known: set[str] = set()
        while self.levels and self.levels[-1].column >= column:
            last = self.levels[-1]
            if is_list and last.column == column and last.key != ITEM:  # as in "cases:" above "- id:"
                break
            known = last.keys if last.column == column and last.key != ITEM else set()
            self.levels.pop()
        return known

    def value(self, text: str) -> None:
        """Read the beginning of a value, or of what may become a key."""
        if BLOCK.match(text):
            self.is_block, self.is_key = True, False
        elif text.startswith((*QUOTES, "{", "[")):
            if text[0] in "{[" and self.levels and self.levels[-1].key is None:
                self.levels.pop()
            self.flow(text)
        else:
            self.before = text

    def flow(self, text: str) -> None:
        """Read text in flow style, or in quotation marks, up to the end of its line."""
        for at, letter in enumerate(text):
            following = text[at + 1 : at + 2]
            begins = not self.before.strip()
            if self.quote:
                self.quote = "" if letter == self.quote else self.quote
                self.before += letter if self.quote else ""
            elif letter in QUOTES and begins:
                self.quote, self.before = letter, ""
            elif not self.inner and letter not in "{[":
                return  # what follows a value
            elif letter == "#" and text[at - 1 : at] in ("", " "):
                return
            elif letter in "{[" and begins:
                self.inner.append(Level(0, ITEM if letter == "[" else None))
                self.before, self.is_key = "", letter == "{"
            elif self.depth or letter == "(" or (letter in "[{" and not begins):
                self.depth += (letter in "([{") - (letter in ")]}")
                self.before += letter
            elif letter in "}],":
                self.end(letter)
            elif letter == ":" and following in ("", " ") and self.inner[-1].key is None:
                self.inner[-1].key = self.before.strip()
                self.inner[-1].keys.add(self.before.strip())
                self.before, self.is_key = "", False
            else:
                self.before += letter

    def end(self, letter: str) -> None:
        """End an entry of a collection in flow style, or the collection."""
        if letter in "}]":
            self.inner.pop()
        if self.inner and letter == "," and self.inner[-1].key != ITEM:
            self.inner[-1].key = None
        self.before = ""
        self.is_key = bool(self.inner) and self.inner[-1].key is None
