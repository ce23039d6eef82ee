"""Says what was probably meant where text can't be read as YAML, or is read as another text than it seems to be."""

import re
from typing import Any

import yaml

STARTS = {
    "did not find expected comment or line break": "quote text that begins with > or |",
    "found character that cannot start any token": "quote text that begins with a sign such as @, ` or %",
}
UNENDED = "found unexpected end of stream"
NO_TAB = "a tab can't indent; use spaces"
KEY = re.compile(r" *(?:- +)*[\w.-]+:(?: |$)")  # how a line of a mapping begins
LONGEST_SHOWN = 60  # characters of the text that a hint repeats


def place_of(error: yaml.MarkedYAMLError) -> Any:
    """Return the mark of what is wrong: of a text without an end, that is where it begins."""
    is_endless = UNENDED in (error.problem or "") and error.context_mark is not None
    return error.context_mark if is_endless else error.problem_mark or error.context_mark


def hint_of(error: yaml.MarkedYAMLError, lines: list[str]) -> str:
    """Return the hint for an error of the parser in a text of these lines, or an empty string."""
    told, mark = error.problem or "", place_of(error)
    if mark is None:
        return ""
    line = lines[mark.line] if mark.line < len(lines) else ""
    rest = line[mark.column :]
    if UNENDED in told and rest[:1] in ("'", '"'):
        return f"this {rest[0]} is never closed; text that holds ': ' is quoted as a whole"
    if rest.startswith("\t"):
        return NO_TAB
    if "mapping values are not allowed" in told:
        return deeper(mark.line, lines) or "quote text that holds ': '"
    start = error.context_mark
    if rest.startswith(("}", "]")) and told == "did not find expected key":
        return f"this {rest[0]} closes nothing: is there one too many, or a ': ' missing before the opening one?"
    if told == "did not find expected key" and line[: mark.column].strip():
        return "quote all of a text, or nothing of it"
    if told == "did not find expected key" and start is not None and mark.column == start.column:
        return f"a line of the mapping from line {start.line + 1} on begins with a key and ': '"
    if told == "did not find expected key" and start is not None:
        place = f"the keys from line {start.line + 1} on begin in column {start.column + 1}"
        return f"this line begins in column {mark.column + 1}: {place}; indent it as they are"
    if told == "did not find expected '-' indicator" and start is not None:
        place = f"the list from line {start.line + 1} on has its - in column {start.column + 1}"
        return f"this line begins in column {mark.column + 1}: {place}, and what belongs to an entry stands deeper"
    if told.startswith("did not find expected ','") and start is not None:
        return unquoted(line, mark.column) if mark.line == start.line and rest else unclosed(start, lines)
    return next((words for begin, words in STARTS.items() if begin in told), "")


def deeper(number: int, lines: list[str]) -> str:
    """Return the hint for a line that begins with a key, and deeper than one above that it can't continue."""
    above = next((text for text in reversed(lines[:number]) if text.strip()), "")
    indent, other = (re.match("(?:- |[ ])*", text).end() for text in (lines[number], above))  # type: ignore[union-attr]
    if not KEY.match(lines[number]) or indent <= other or above.rstrip().endswith(":"):
        return ""
    return f"this line begins deeper than the one above, whose text it goes on with; begin it in column {other + 1}"


def unquoted(line: str, column: int) -> str:
    """Return the hint for text in flow style that goes on after a bracket, such as masks[1], or has a ': '."""
    if line[column] not in "[]{}":
        return (
            "quote text that holds ': '"
            if line[column] == ":"
            else "separate entries with ', ', and quote text that holds one"
        )
    begin = max(line.rfind(sign, 0, column) for sign in ("{", "[", ", ", ": "))
    text = line[begin + 1 : column + 1].lstrip() + re.split(r"(?<=[\])}])[,}\]]|: ", line[column + 1 :] + "}")[0]
    shown = text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
    return f'quote text that holds a bracket: "{shown}"'


def unclosed(start: Any, lines: list[str]) -> str:
    return f"the {lines[start.line][start.column]} in line {start.line + 1}, column {start.column + 1}, isn't closed"


def joined_entry(first: int, last: int, lines: list[str]) -> tuple[int, int] | None:
    """Return the place of a line that begins with - but goes on with text; its `first` and `last` count from 0."""
    for number in range(first + 1, min(last, len(lines) - 1) + 1):
        text = lines[number].lstrip(" ")
        if text.startswith("- "):
            return number + 1, len(lines[number]) - len(text) + 1
    return None
