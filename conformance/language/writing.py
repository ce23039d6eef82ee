"""Writes an expanded case, which is in no file, as YAML, and gives its nodes their places in that text."""

import json
import math
import re
import textwrap
from functools import lru_cache
from typing import Any

from conformance.language.yaml import CORE_SCALARS, FLOAT, INT, Node

LINE_WIDTH = 110
SHORT = 90  # characters of a collection that stands on one line
FOLDED = frozenset({"title", "why"})
PLAIN = re.compile(r"[A-Za-z0-9_(][^\n]*")
PLAIN_IN_FLOW = re.compile(r"[A-Za-z0-9_(][\w .()*+/=-]*")


def write_case(case: Node, line: int) -> tuple[str, Node]:
    """Return a case as YAML, an entry of a list that begins in `line`, and the case with its places in that text."""
    writer = Writer(line)
    writer.put("  -")
    placed = writer.mapping(case, 4)
    return "\n".join(writer.lines) + "\n", placed


class Writer:
    """Appends text to the lines that have been written."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.lines = [""]

    def put(self, text: str) -> None:
        self.lines[-1] += text

    def break_line(self, indent: int, text: str = "") -> None:
        self.lines.append(" " * indent + text)

    def here(self) -> tuple[int, int]:
        return self.line + len(self.lines) - 1, len(self.lines[-1]) + 1

    def mapping(self, node: Node, indent: int) -> Node:
        """Write a mapping with one line for each key; the first key continues the current line."""
        self.put(" ")
        placed = Node({}, *self.here())
        for index, (key, value) in enumerate(node.value.items()):
            if index:
                self.break_line(indent)
            placed.keys[key] = self.here()
            self.put(f"{plain_or_quoted(key)}:")
            placed.value[key] = self.value(value, indent, fold=key in FOLDED)
        return placed

    def value(self, node: Node, indent: int, fold: bool = False) -> Node:
        """Write the value of a key, or the item of a list, that is indented by `indent`."""
        indent += 2
        kind = type(node.value)
        if kind is str and (fold or "\n" in node.value):
            return self.text(node.value, indent, fold)
        if kind not in (dict, list) or is_short(node):
            self.put(" ")
            return self.scalar(node.value, plain_or_quoted(node.value)) if kind is str else self.flow(node)
        self.break_line(indent)
        if kind is dict:
            self.lines[-1] = self.lines[-1][:-1]  # mapping() begins with a space
            return self.mapping(node, indent)
        placed = Node([], *self.here())
        for index, item in enumerate(node.value):
            if index:
                self.break_line(indent)
            self.put("-")
            block = type(item.value) is dict and not is_short(item)
            placed.value.append(self.mapping(item, indent + 2) if block else self.value(item, indent))
        return placed

    def text(self, text: str, indent: int, fold: bool) -> Node:
        """Write text on several lines if it is the same when read again, else as a scalar on one line."""
        self.put(" ")
        if fold and len(text) > LINE_WIDTH - indent and " ".join(text.split()) == text and text.isprintable():
            lines, style = textwrap.wrap(text, LINE_WIDTH - indent, break_long_words=False, break_on_hyphens=False), ">"
        elif "\n" in text and stands_in_block(text):
            lines, style = text.removesuffix("\n").split("\n"), "|"
        else:
            return self.scalar(text, plain_or_quoted(text))
        placed = Node(text, *self.here(), style, indent)
        self.put(style if text.endswith("\n") else f"{style}-")
        for line in lines:
            self.break_line(indent if line else 0, line)
        return placed

    def scalar(self, value: Any, text: str) -> Node:
        placed = Node(value, *self.here(), '"' if type(value) is str and text[:1] == '"' else "")
        self.put(text)
        return placed

    def flow(self, node: Node) -> Node:
        """Write a value on the current line."""
        if type(node.value) is list:
            placed = Node([], *self.here())
            for index, item in enumerate(node.value):
                self.put(", " if index else "[")
                placed.value.append(self.flow(item))
            self.put("]" if node.value else "[]")
            return placed
        if type(node.value) is dict:
            placed = Node({}, *self.here())
            for index, (key, value) in enumerate(node.value.items()):
                self.put(", " if index else "{")
                placed.keys[key] = self.here()
                self.put(f"{plain_or_quoted(key, PLAIN_IN_FLOW)}: ")
                placed.value[key] = self.flow(value)
            self.put("}" if node.value else "{}")
            return placed
        return self.scalar(node.value, scalar_text(node.value))


def is_short(node: Node) -> bool:
    """Whether a collection is written on one line."""
    return width_in_flow(node, SHORT) <= SHORT


def width_in_flow(node: Node, most: int) -> int:
    """Return how many characters `Writer.flow` writes, or some number above `most` for more than that, or for lines."""
    value = node.value
    if type(value) not in (dict, list):
        return most + 1 if type(value) is str and "\n" in value else len(scalar_text(value))
    width = 2 + max(0, 2 * (len(value) - 1))  # brackets and commas
    for item in value:
        if type(value) is dict:
            width += most + 1 if "\n" in item else len(plain_or_quoted(item, PLAIN_IN_FLOW)) + len(": ")
        if width <= most:
            width += width_in_flow(value[item] if type(value) is dict else item, most - width)
        if width > most:
            break
    return width


def stands_in_block(text: str) -> bool:
    """Whether text can be written as a literal block and read back unchanged."""
    lines = text.removesuffix("\n").split("\n")
    return (
        all(line.isprintable() and line.rstrip() == line for line in lines)
        and bool(lines[0] and lines[-1])
        and not lines[0].startswith(" ")
    )


def scalar_text(value: Any) -> str:
    if type(value) is str:
        return plain_or_quoted(value, PLAIN_IN_FLOW)
    if type(value) is float and not math.isfinite(value):
        return ".nan" if math.isnan(value) else f"{'-' if value < 0 else ''}.inf"
    return {None: "null", True: "true", False: "false"}[value] if value is None or type(value) is bool else repr(value)


@lru_cache(maxsize=4096)
def plain_or_quoted(text: str, pattern: re.Pattern[str] = PLAIN) -> str:
    """Return text as a scalar on one line, with quotes only if it needs them."""
    if (
        pattern.fullmatch(text)
        and text.isprintable()
        and text.rstrip(" ") == text
        and ": " not in text
        and " #" not in text
        and not text.endswith(":")
        and text not in CORE_SCALARS
        and not INT.fullmatch(text)
        and not FLOAT.fullmatch(text)
    ):
        return text
    literal = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in literal)
