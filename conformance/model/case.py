"""Cases: what a case file holds, read, checked and made ready to run.

A step is kept as the plain data that a worker gets, so that nothing is translated between loading and
running; `program.py` chooses among the alternatives for one torch. Of a step

    {"begins": 6, "line": 7, "do": "b = a.exp()", "needs": ["func.vmap"], "torch": ">=2.1",
     "raises": [{"type": "RuntimeError", "match": ["version 1"], "torch": "<2.8", "line": 8}, …], "warns": […]}
    {"line": 9, "expect": [{"line": 10, "subject": "a", "checks": [["grad", <value>, 10], …]}]}

a part of `match` may be {"regex": pattern}; a value is JSON as it stands, {"expr": text}, or
{"torch": {condition: value, …}}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One small program and what must hold during and after it.

    `file` is the name that messages use, `line` where the case begins in it, `text` its YAML. `digest` changes
    whenever what the case does or expects may have, and with nothing else: not with its words or its place.
    `dtypes` and `devices` are empty where any will do. Of a case that is `written_out` from an equivalence only the
    first line stands in the file.
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
