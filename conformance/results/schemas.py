"""Writes the schemas of reports, made of their records: `python -m conformance.results.schemas`."""

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec

from conformance.model.report import Report
from conformance.results.compact import Compact
from conformance.results.store import write_whole

PACKAGE = Path(__file__).parent.parent
RECORDS: dict[str, type[msgspec.Struct]] = {"report.schema.json": Report, "compact.schema.json": Compact}


def schema_text(record: type[msgspec.Struct]) -> str:
    """Return the schema of a record as its file holds it."""
    (reference,), definitions = msgspec.json.schema_components([record])
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **reference, "$defs": definitions}
    return json.dumps(with_prose(schema), indent=2, ensure_ascii=False) + "\n"


def with_prose(value: Any) -> Any:
    """Return a schema whose descriptions are not broken into lines as docstrings are."""
    if isinstance(value, list):
        return [with_prose(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {
        key: " ".join(inspect.cleandoc(entry).split())
        if key == "description" and isinstance(entry, str)
        else with_prose(entry)
        for key, entry in value.items()
    }


if __name__ == "__main__":
    for name, record in RECORDS.items():
        write_whole(PACKAGE / name, schema_text(record))
