"""What the book tells of a case."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from generator.cases import graphs_of, load_single, newest_for, owner_of, told_cases
from loops import each
from samples import GRAPH, case
from shipped import rules

from conformance.language.files import case_files, shipped_cases
from conformance.language.outline import entries
from docs.books import ENTRIES, NEW, OLD, RULES, SINGLE, TOLD

FIRST, SEVERAL, OPERATION = TOLD


def test_a_case_is_told_as_plain_torch_and_several_as_their_file_has_them() -> None:
    assert FIRST.text.splitlines()[:2] == ["a = tensor([1.0], requires_grad=True)", "b = a.sigmoid()"]
    assert "assert b.output_nr == 0" in FIRST.text
    assert (FIRST.language, FIRST.torch, FIRST.why) == ("python", "2.13.0", "One reason.")
    assert SEVERAL.text.startswith("  - id: several\n")
    assert (SEVERAL.language, SEVERAL.torch, SEVERAL.why) == ("yaml", "", "Another reason.")
    assert OPERATION.entry.title == "Derivatives of x.cumsum(dim)"


def test_how_a_case_stood_is_that_of_all_it_is_written_out_to() -> None:
    assert FIRST.words == ("known issue", "holds")
    assert SEVERAL.words == ("holds", "holds")
    assert OPERATION.words == ("not there", "holds")
    assert FIRST.issues == (("2.1.2", "It <rounds>.", "https://issue"),)
    assert [stretch.word for stretch in FIRST.stretches] == ["known issue", "holds"]


def test_what_a_case_expects_otherwise_is_told() -> None:
    assert FIRST.changes == (("2.6", "b.output_nr", "1", "0"),)


def test_a_case_is_at_home_under_its_first_rule() -> None:
    assert (FIRST.home, SEVERAL.home) == ("r.one", "s.two")
    assert OPERATION.rules


def test_a_case_has_the_drawing_of_its_graph() -> None:
    assert FIRST.drawing is not None
    assert [box[1][0] for box in FIRST.drawing["boxes"]][:1] == ["a [1]"]
    assert SEVERAL.drawing is None


def test_a_case_that_no_report_has_is_not_published() -> None:
    (told,) = told_cases(ENTRIES[:1], SINGLE, [], {}, ["2.13.0"])
    assert (told.words, told.issues) == ((), ())


def test_the_graph_is_that_of_the_newest_report_of_the_same_revision() -> None:
    graph = msgspec.structs.replace(GRAPH, cut=True)
    old = msgspec.structs.replace(OLD, graphs={"first-case": GRAPH, "unknown": GRAPH})
    new = msgspec.structs.replace(NEW, graphs={"first-case": graph})
    assert graphs_of([old, new], SINGLE) == {"first-case": graph}
    edited = msgspec.structs.replace(new, cases=(case("first-case", digest="edited"),))
    assert graphs_of([old, edited], SINGLE) == {"first-case": GRAPH}


@each(
    "case_id, owner",
    [("a-b-x", "a-b"), ("a-x", "a"), ("a-b", "a-b"), ("x-a", "a"), ("a-bc", "a"), ("ab", ""), ("x", "")],
)
def test_a_case_belongs_to_the_entry_with_the_longest_name_that_fits(case_id: str, owner: str) -> None:
    assert owner_of(case_id, {"a", "a-b"}) == owner


def test_a_case_is_told_for_the_newest_release_that_runs_it() -> None:
    text = ENTRIES[0].text.replace("title:", 'torch: "<2.6"\n    title:')
    old = replace(ENTRIES[0], text=text.replace('{torch: {"<2.6": 1, ">=2.6": 0}}', "0"))
    (found,) = load_single([old], RULES).values()
    assert newest_for(found, ["2.1.2", "2.13.0"]) == "2.1.2"
    assert newest_for(found, ["2.13.0"]) == "2.13.0"


def test_the_cases_of_the_suite_load_without_what_is_written_out() -> None:
    place = shipped_cases()
    files = [path for path in case_files([place]) if path.stem in ("detach", "hooks")]
    listed = list(entries(files, place.parent))
    wanted = {entry.id for entry in listed if not (entry.is_several or entry.is_operation)}
    found = load_single(listed, rules())
    assert found.keys() == wanted
    assert "detached-alias-zeroed-after-sigmoid" in found
