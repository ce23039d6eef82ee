"""What cases were called in earlier reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from shipped import CASES, all_ids

from conformance.language.errors import CaseFileError
from conformance.language.files import is_case_file
from conformance.language.renames import RENAMES_FILE, load_renames


def test_what_is_shipped_leads_to_cases_that_there_are() -> None:
    ids = all_ids()
    renames = load_renames(CASES / RENAMES_FILE, RENAMES_FILE, ids)
    now = renames["matrix-operations-against-differences"]
    assert len(now) == 30
    assert set(now) <= ids
    assert not is_case_file(CASES / RENAMES_FILE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("renames: {a: [b], b: [c]}", "x.yaml:1:19: renames.b: a case has the id 'b' still, or again"),
        ("renames: {a: [b-one, b]}", "x.yaml:1:15: renames.a: no case has the id 'b-one' (did you mean 'b-on'?)"),
        ("renames: {a: []}", "x.yaml:1:14: renames.a: expected a list of at least 1, got an empty list"),
        ("names: {}", "x.yaml:1:1: names: unknown key 'names' (did you mean 'renames'?)"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CaseFileError) as caught:
        load_renames(path, "x.yaml", {"b", "b-on"})
    assert message in [str(problem) for problem in caught.value.problems]
