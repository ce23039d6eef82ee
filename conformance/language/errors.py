"""Problems of case files and other YAML files, as messages with place, path and hint."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One mistake in one file.

    `line` and `column` count from 1; `path` is that of the value (`expect.a.is_leaf`), or empty for the whole file.
    """

    file: str
    line: int
    column: int
    path: str = ""
    message: str = ""
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}:"
        path = f" {self.path}:" if self.path else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{path} {self.message}{hint}"


class CaseFileError(Exception):
    """All problems of a file that can't be used, in the order of their places."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the hint `did you mean 'x'?` for the known word nearest to `word`, or an empty string."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f"did you mean {near[0]!r}?" if near else ""


def quoted_value(value: object, limit: int = 60) -> str:
    """Return `value` as an error message quotes it: with YAML's words, cut at `limit` characters."""
    if value is None or isinstance(value, bool):
        return {None: "nothing (null)", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        keys = [key if str(key).isidentifier() else repr(key) for key in value]
        text = "a mapping with the keys " + ", ".join(keys) if value else "an empty mapping"
    elif isinstance(value, list):
        text = f"a list of {len(value)}" if value else "an empty list"
    else:
        text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
