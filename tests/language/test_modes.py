"""What need not hold in modes."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import ROOT
from shipped import CASES, all_ids

from conformance.language.errors import CaseFileError
from conformance.language.files import is_case_file
from conformance.language.modes import MODES_FILE, load_exemptions
from conformance.model.mode import MODES, needed_for


def test_what_is_shipped_is_about_modes_and_cases_that_there_are() -> None:
    exemptions = load_exemptions(CASES / MODES_FILE, MODES_FILE, all_ids())
    assert {mode for each in exemptions for mode in each.modes} <= MODES.keys()
    assert not is_case_file(CASES / MODES_FILE)


def test_the_documentation_lists_the_modes() -> None:
    text = (ROOT / "docs" / "modes.md").read_text(encoding="utf-8")
    assert [f"| {name} | {what} | {since} |" for name, (what, since) in MODES.items()] == [
        line for line in text.splitlines() if line.startswith("| ") and line.split(" | ")[0][2:] in MODES
    ]


def test_a_mode_of_ones_own_is_there_in_each_release() -> None:
    assert needed_for("module:name") == ">=1.13"
    assert needed_for("one-thread") == ">=2.0"


WHY = "why: It says so., link: 'https://example.org'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"exemptions: [{{modes: [anomly], {WHY}, says: x}}]",
            "x.yaml:1:23: exemptions[0].modes: there is no mode 'anomly' (did you mean 'anomaly'?)",
        ),
        (
            f"exemptions: [{{modes: [anomaly], {WHY}}}]",
            "x.yaml:1:14: exemptions[0]: expected what failures say, or the cases that fail "
            "(give `says`, `cases` or both)",
        ),
        (
            f"exemptions: [{{modes: [anomaly], {WHY}, says: '('}}]",
            "exemptions[0].says: expected a regular expression: missing ), unterminated subpattern at position 0",
        ),
        (
            f"exemptions: [{{modes: [anomaly], {WHY}, cases: [b-one]}}]",
            "exemptions[0].cases: no case has the id 'b-one' (did you mean 'b-on'?)",
        ),
        ("exemptions: [{modes: [anomaly], says: x}]", "x.yaml:1:14: exemptions[0]: the key 'why' is missing"),
    ],
)
def test_a_list_that_is_wrong_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CaseFileError) as caught:
        load_exemptions(path, "x.yaml", {"b", "b-on"})
    assert any(message in str(problem) for problem in caught.value.problems), str(caught.value)
