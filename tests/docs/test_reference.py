"""The reference has all that the code reads: commands, options, names, statuses."""

from __future__ import annotations

import os

import pytest
from generator.reference import FILES, by_release, helps, markers, names, options, reference_pages
from loops import each

from conformance.cli.main import COMMANDS
from conformance.language import vocabulary
from conformance.model.status import TABLE
from docs.books import BOOK

PAGES = reference_pages(BOOK)


def test_each_command_is_told_with_what_its_help_says() -> None:
    found = helps()
    assert list(found) == list(COMMANDS)
    assert found["run"][1] == ""
    for name, (summary, text) in found.items():
        assert summary == COMMANDS[name]
        if name != "run":
            assert text.startswith(f"usage: autograd-conformance {name} ")
            assert "exit status" in text
    assert "--renames FILE" in found["diff"][1]
    assert f"\n## {'known-issues'.replace('-', chr(92) + '-')}\n" in PAGES["reference/commands"]


@each("columns", ["40", None])
def test_help_is_as_wide_on_each_terminal(columns: str | None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", columns) if columns else patch.delenv("COLUMNS", raising=False)
        assert max(map(len, helps()["try"][1].splitlines())) > 80
        assert os.environ.get("COLUMNS") == columns


def test_each_option_of_pytest_is_told(pytestconfig: pytest.Config) -> None:
    found = dict(options())
    own = pytestconfig._parser.getgroup("conformance").options
    assert [name.partition(" ")[0] for name in found] == [option.names()[0] for option in own]
    assert found["--shard I/N"].startswith("run only the Ith of N parts")
    assert "--level documented|observed" in found
    assert all(found.values())


def test_markers_are_told() -> None:
    found = dict(markers())
    assert {"cpu", "cuda", "float64", "documented", "rule(id)"} <= found.keys()
    assert all(found.values())


def test_each_name_of_the_vocabulary_is_told_under_its_release() -> None:
    told = {(title, name): release for title, groups in names().items() for release, own in groups for name in own}
    assert told["torch.func", "vmap"] == "2.0"
    assert told["torch", "tensor"] == "1.13"
    assert told["The suite's own", "custom_op"] == "2.4"
    count = len(vocabulary.SUITE | vocabulary.PYTHON | vocabulary.EXCEPTIONS) + len(vocabulary.ATTRIBUTES)
    assert len(told) == count + sum(map(len, vocabulary.NAMESPACES.values()))
    assert by_release({"b": "2.10", "a": "2.9", "c": "2.9"}) == [("2.9", ["a", "c"]), ("2.10", ["b"])]


def test_each_status_is_told() -> None:
    for status, row in TABLE.items():
        assert f"<td><code>{status}</code></td><td>{row.sign}</td>" in PAGES["reference/statuses"]


def test_each_file_has_a_page_and_the_index_leads_to_all() -> None:
    index = PAGES["reference/index"]
    assert [name for name in PAGES if name != "reference/index" and f"({name[10:]}.md)" not in index] == []
    assert {f"reference/{name}" for name in FILES} < PAGES.keys()
    assert "evaluated on float64 CPU copies" in PAGES["reference/case-language"]
    assert '<a href="#cause">Cause</a>' in PAGES["reference/report-file"]


def test_rules_and_operations_are_listed() -> None:
    assert '<a href="../book/one.html#r-one"><code>r.one</code></a> The rule r.one.' in PAGES["reference/rules"]
    assert "<code>x.cumsum(dim)</code>" in PAGES["reference/operations"]
    assert PAGES["reference/operations"].startswith("# Operations\n\n1 operations")
