"""Tests that the published schemas of reports are those of the records."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from conformance.language.schema import load_schema
from conformance.results.schemas import PACKAGE, RECORDS, schema_text


@pytest.mark.parametrize("name", RECORDS)
def test_the_file_is_what_the_records_say(name: str) -> None:
    """`python -m conformance.results.schemas` writes it again."""
    assert (PACKAGE / name).read_text(encoding="utf-8") == schema_text(RECORDS[name])
    Draft202012Validator.check_schema(load_schema(name))


def test_each_record_is_closed_and_says_what_it_is() -> None:
    for name in RECORDS:
        for title, definition in load_schema(name)["$defs"].items():
            if definition["type"] == "object":
                assert definition["additionalProperties"] is False, title
                assert "\n" not in definition["description"], title
