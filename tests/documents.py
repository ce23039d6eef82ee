"""Fills the tables of README and CONTRIBUTING that are made of data: `python tests/documents.py`."""

from __future__ import annotations

from collections.abc import Sequence

from places import ROOT

from conformance.language.schema import load_schema
from conformance.model.status import TABLE

CHECKS = load_schema("case.schema.json")["$defs"]["checks"]["properties"]
TABLES = {
    "README.md": (
        "| status | sign | means | pytest says |",
        [f"| {status} | {row.sign} | {row.explanation} | {row.pytest} |" for status, row in TABLE.items()],
    ),
    "CONTRIBUTING.md": (
        "| check | what is expected |",
        [f"| `{name}` | {check['description']} |" for name, check in CHECKS.items()],
    ),
}


def filled(text: str, head: str, rows: Sequence[str]) -> str:
    """Return a document in which the table below the line `head` has these rows."""
    before, _, rest = text.partition(f"\n{head}\n")
    _, _, after = rest.partition("\n\n")
    assert after, f"there is no table {head}"
    ruler = "|".join("---" for _ in head.split(" | "))
    return "\n".join([before, head, f"|{ruler}|", *rows, "", after])


if __name__ == "__main__":
    for name, (head, rows) in TABLES.items():
        path = ROOT / name
        path.write_text(filled(path.read_text(encoding="utf-8"), head, rows), encoding="utf-8")
