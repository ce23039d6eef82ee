"""Reads YAML into nodes that keep their line and column.

The language is YAML 1.2's core schema with one document, text keys, no duplicate keys, no anchors, aliases or tags.
`yes`, `on` and `1:30` are text; only `true` and `false` are booleans. A bare `?` in the place of a value is short for
`{unconfirmed: "?"}`, of which `language/unconfirmed` says what it means.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from conformance.language import misreading
from conformance.language.errors import CaseFileError, Problem, quoted_value

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where PyYAML was built with it

MAX_DEPTH = 40
TOO_DEEP = f"more than {MAX_DEPTH} lists and mappings stand inside one another"
PARSER_TOO_DEEP = "maximum nesting depth"  # in what newer parsers say by themselves
MAX_BYTES = 32 * 2**20
INT = re.compile(r"[-+]?[0-9]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
UNCONFIRMED = "unconfirmed"
BREAK = re.compile(r"\r\n?")  # of lines, in files of other systems
OTHER_BREAK = re.compile("[\x85\u2028\u2029]")  # at which the parser breaks lines, and editors don't
HALF_OF_A_PAIR = re.compile("[\ud800-\udfff]")  # of surrogates; in the name of a file it stands for a byte
UNKNOWN = "?"
BARE_UNKNOWN = re.compile(r"(?<=[ \[])\?(?=[ \t]*(?:[,}\]]|$| #))", re.MULTILINE)
STAND_IN = "\ue000"  # of a bare `?`, which YAML takes for a sign of its own
CORE_SCALARS: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".nan": float("nan"), ".NaN": float("nan"), ".NAN": float("nan"),
    ".inf": float("inf"), "+.inf": float("inf"), "-.inf": float("-inf"), ".Inf": float("inf"), "-.Inf": float("-inf"),
}  # fmt: skip


class Node:
    """A value of a document (a scalar, a list of nodes or a dict of nodes) with its place.

    `line` and `column` count from 1; `keys` holds the place of each key of a mapping. `style` is a quotation mark, `|`,
    nothing, or `>` for any text that YAML has joined from several lines; `indent` is that of a literal block.
    """

    __slots__ = ("column", "indent", "keys", "line", "style", "value")

    def __init__(self, value: Any, line: int, column: int, style: str = "", indent: int = 0) -> None:
        self.value = value
        self.line = line
        self.column = column
        self.style = style
        self.indent = indent
        self.keys: dict[str, tuple[int, int]] = {}

    @property
    def plain(self) -> Any:
        """The value without its places."""
        if type(self.value) is dict:
            return {key: node.plain for key, node in self.value.items()}
        if type(self.value) is list:
            return [node.plain for node in self.value]
        return self.value

    @property
    def inner(self) -> list[Node]:
        """The nodes that a list or mapping holds."""
        return list(self.value.values()) if type(self.value) is dict else self.value if type(self.value) is list else []

    def lines(self) -> Iterator[int]:
        """Yield the line of this node, of its keys and of all that it holds."""
        yield self.line
        yield from (line for line, _ in self.keys.values())
        for node in self.inner:
            yield from node.lines()

    def place_in(self, line: int, column: int) -> tuple[int, int]:
        """Return the place in the file of a place inside this node's text; both count from 1.

        Where YAML has joined lines, that is the beginning of the text.
        """
        if self.style == "|":
            return self.line + line, self.indent + column
        if self.style == ">":
            return self.line, self.column
        return (self.line, self.column + len(self.style) + column - 1) if line == 1 else (self.line, self.column)

    def find(self, *path: str | int) -> Node:
        """Return the node at `path`, or the last one on the way to it that exists."""
        node = self
        for step in path:
            try:
                node = node.value[step]
            except (KeyError, IndexError, TypeError):
                break
        return node


def content_of(path: Path) -> bytes:
    """Return what is in a file, of one that is too large no more than shows that; raise OSError for what is no file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe that nobody writes to would block
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(path))
        return file.read(MAX_BYTES + 1)


def read_text(content: bytes, file: str) -> str:
    """Return the text of a file that should be UTF-8, as should its name: it stands in reports and in pytest's ids."""
    if HALF_OF_A_PAIR.search(file):
        raise CaseFileError(
            [Problem(file=file, line=1, column=1, message="expected a file name in UTF-8", hint="rename the file")]
        )
    if len(content) > MAX_BYTES:
        message = f"expected at most {MAX_BYTES} bytes, got more"
        raise CaseFileError([Problem(file=file, line=1, column=1, message=message, hint="split the file")])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        message = f"expected UTF-8 text, got the byte 0x{content[error.start]:02x}"
        raise CaseFileError([Problem(file=file, line=line, column=column, message=message)]) from None


def read_document(text: str, file: str) -> Node:
    """Return the root of the document in `text`; raise CaseFileError with all problems that were found."""
    problems: list[Problem] = []

    def problem(place: tuple[int, int], message: str, hint: str = "") -> None:
        problems.append(Problem(file=file, line=place[0], column=place[1], message=message, hint=hint))

    text = BREAK.sub("\n", text)
    half = HALF_OF_A_PAIR.search(text)
    if half is not None:
        problem(place_at(text, half.start()), f"expected text, got half of a surrogate pair, U+{ord(half[0]):04X}")
        raise CaseFileError(problems)
    other = OTHER_BREAK.search(text)
    if other is not None:
        hint = "no editor shows it as one; write it as an escape in double quotes, or break the line"
        message = f"expected lines that end with a newline, got U+{ord(other[0]):04X}, at which YAML breaks them, too"
        problem(place_at(text, other.start()), message, hint)
        raise CaseFileError(problems)
    root: Node | None = None
    own, unknowns = BARE_UNKNOWN.subn(STAND_IN, text) if STAND_IN not in text else (text, 0)
    events = Events(own, problem, has_unknowns=unknowns > 0)
    try:
        for event in yaml.parse(own, Loader=Loader):
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                problem(
                    place_of_mark(event.start_mark), "expected one document, got a second one", "remove the line ---"
                )
                break
            root = events.take(event) or root
    except yaml.MarkedYAMLError as error:
        mark = misreading.place_of(error)
        told = error.problem or error.context or ""
        message = f"can't be read as YAML: {TOO_DEEP if PARSER_TOO_DEEP in told else told}"
        hint = misreading.hint_of(error, text.split("\n"))
        line, column = place_of_mark(mark) if mark else (1, 1)
        lines = text.split("\n")
        if line > len(lines) or (line > 1 and line == len(lines) and not lines[-1]):  # at the end of the text
            line = max(1, len(lines) - (not lines[-1]))
            column = len(lines[line - 1]) + 1
        problem((line, column), message, hint)
    except yaml.reader.ReaderError as error:
        code = error.character if isinstance(error.character, int) else ord(error.character)
        index = max(0, text.find(chr(code)))  # the parser's own position counts bytes
        problem(place_at(text, index), f"can't be read as YAML: the character U+{code:04X} can't stand in it")
    if root is None and not problems:
        problem((1, 1), "expected a mapping, got an empty file")
    if problems:
        raise CaseFileError(problems)
    assert root is not None
    return root


def unknown(place: tuple[int, int]) -> Node:
    """Return what a bare `?` stands for."""
    node = Node({UNCONFIRMED: Node(UNKNOWN, *place)}, *place)
    node.keys[UNCONFIRMED] = place
    return node


def place_at(text: str, index: int) -> tuple[int, int]:
    """Return the line and column, from 1, of the character at `index`."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def place_of_mark(mark: Any) -> tuple[int, int]:
    """Return the line and column, from 1, of one of the parser's marks, which count from 0."""
    return mark.line + 1, mark.column + 1


class Events:
    """Builds nodes from a stream of YAML events, without recursion."""

    def __init__(self, text: str, problem: Any, has_unknowns: bool) -> None:
        self.problem = problem
        self.has_unknowns = has_unknowns
        self.lines = text.split("\n")
        self.open: list[tuple[Node, list[Node]]] = []  # each open collection with what it holds so far

    def take(self, event: Any) -> Node | None:
        """Take one event; return the root when it is complete."""
        kind = type(event)
        place = place_of_mark(event.start_mark)
        if kind is yaml.ScalarEvent:
            value = event.value
            if self.has_unknowns and STAND_IN in value:
                if value == STAND_IN and event.implicit[0]:
                    return self.add(unknown(place))
                value = value.replace(STAND_IN, UNKNOWN)  # in text, which it is part of
            if event.tag is not None and not event.implicit[1]:
                self.problem(place, f"a tag ({event.tag}) is not part of the case language", "remove it")
            elif event.implicit[0]:
                value = self.scalar(value, place)
            elif not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
                self.problem(place, "a lone surrogate is not text")
            if event.anchor is not None:
                self.anchor(event)
            style = event.style or ""
            if style != "|" and event.end_mark.line > event.start_mark.line:
                self.joined(event)
                style = ">"
            return self.add(Node(value, *place, style, self.indent_below(place[0]) if style == "|" else 0))
        if kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            if event.anchor is not None:
                self.anchor(event)
            if event.tag is not None:
                self.problem(place, f"a tag ({event.tag}) is not part of the case language", "remove it")
            if len(self.open) == MAX_DEPTH:
                raise yaml.MarkedYAMLError(problem=TOO_DEEP, problem_mark=event.start_mark)
            empty: Any = {} if kind is yaml.MappingStartEvent else []
            self.open.append((Node(empty, *place), []))
        elif kind is yaml.MappingEndEvent:
            node, held = self.open.pop()
            self.fill(node, iter(held))
            return self.add(node)
        elif kind is yaml.SequenceEndEvent:
            node, held = self.open.pop()
            node.value = held
            return self.add(node)
        elif kind is yaml.AliasEvent:
            self.anchor(event)
            self.add(Node(None, *place))
        return None

    def joined(self, event: Any) -> None:
        """Report a line that begins with - and that plain text of several lines has taken for its own."""
        first = event.start_mark.line
        place = misreading.joined_entry(first, event.end_mark.line, self.lines) if not event.style else None
        if place is not None:
            column = len(self.lines[first]) - len(self.lines[first].lstrip(" ")) + 1
            hint = f"begin it in column {column}, or quote the text"
            self.problem(place, f"this - begins no entry: it goes on with the text of line {first + 1}", hint)

    def indent_below(self, line: int) -> int:
        """Return the indentation of the first line below `line` that is not blank."""
        first = next((text for text in self.lines[line:] if text.strip()), "")
        return len(first) - len(first.lstrip(" "))

    def anchor(self, event: Any) -> None:
        sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
        self.problem(
            place_of_mark(event.start_mark), f"{sign}{event.anchor} is not part of the case language",
            "quote text that begins with & or *; repeat a value where it is needed twice",
        )  # fmt: skip

    def add(self, node: Node) -> Node | None:
        if not self.open:
            return node
        self.open[-1][1].append(node)
        return None

    def fill(self, node: Node, held: Iterator[Node]) -> None:
        for key, value in zip(held, held, strict=True):
            name, place = key.value, (key.line, key.column)
            if type(name) is not str:
                hint = "" if type(name) in (dict, list) else "quote it"
                self.problem(place, f"expected text as the key, got {quoted_value(key.plain)}", hint)
            elif name in node.value:
                self.problem(place, f"the key {quoted_value(name)} stands twice", f"first in line {node.keys[name][0]}")
            else:
                node.value[name] = value
                node.keys[name] = place

    def scalar(self, value: str, place: tuple[int, int]) -> Any:
        if value in CORE_SCALARS:
            return CORE_SCALARS[value]
        first = value[0]
        if first in "+-.0123456789":
            try:
                if INT.fullmatch(value):
                    return int(value)
                if FLOAT.fullmatch(value):
                    return float(value)
            except ValueError:
                self.problem(place, f"a number of {len(value)} digits is too long")
        return value
