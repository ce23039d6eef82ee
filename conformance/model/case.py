"""Cases, as they are loaded from case files.

Steps are in the format of requests to a worker; `program.py` chooses the alternatives for one torch. Examples:

    {"begins": 6, "line": 7, "do": "b = a.exp()", "needs": ["func.vmap"], "torch": ">=2.1",
     "raises": [{"type": "RuntimeError", "match": ["version 1"], "torch": "<2.8", "line": 8}, …], "warns": […]}
    {"line": 9, "expect": [{"line": 10, "subject": "a", "checks": [["grad", <value>, 10], …]}]}

a part of `match` may be {"regex": pattern} or {"kernel": text}; a value is JSON as it stands, {"expr": text}, or
{"torch": {condition: value, …}}.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from conformance.model.rule import Level

Needs = tuple[tuple[str, str], ...]  # names of the vocabulary, each with the condition on torch of its step, or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One small program and what must hold during and after it.

    `file` is the name in messages, `line` the first line, `text` the YAML. `digest` depends on what the case does and
    expects, but not on its descriptions or its place. Empty `dtypes` and `devices` allow any. A case that is
    `written_out` was expanded from spellings or rows, and its text isn't in the file. One that `is_covered` tries
    spellings on a program each of whose features they meet on another one, too.
    """

    file: str
    line: int
    topic: str
    id: str
    title: str
    why: str
    rules: tuple[str, ...]
    source: tuple[str, ...] = ()
    torch: str | None = None
    dtypes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    steps: tuple[dict[str, Any], ...]
    text: str
    digest: str
    written_out: bool = False
    is_covered: bool = False

    @property
    def needs(self) -> Needs:
        """The names of the vocabulary that the steps need, without repetition."""
        every = ((name, step.get("torch", "")) for step in self.steps for name in step.get("needs", ()))
        return tuple(dict.fromkeys(every))


class ListedCase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a run keeps in memory of a case, which is at `place` in its file, counted from 0."""

    file: str
    line: int
    place: int
    topic: str
    id: str
    level: Level
    rules: tuple[str, ...]
    torch: str | None
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    needs: Needs
    digest: str
    is_covered: bool
