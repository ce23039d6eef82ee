"""Tests of the matrix: the order of builds, what they are called, whose words count, and what the cells hold."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from msgspec.structs import replace
from samples import CPU, CUDA, HOSTILE, any_report, broken, case, outcome, report, rule, valid_case

from conformance.model.build import BackEnd
from conformance.model.outcome import Outcome, Unobserved
from conformance.model.report import Report
from conformance.model.status import RED, STATUSES
from conformance.render.page.builds import release_of
from conformance.render.page.matrix import MARKS, index_of, matrix_of
from conformance.results.fingerprint import fingerprint

GOOD = outcome("pass")
DOUBLE = "cpu-float64"
BY_VERSION = """\
  - id: a
    title: The case a
    why: To test.
    rules: [r.one]
    steps:
      - a = tensor([1.0], requires_grad=True)
      - expect: {a: {torch: {"<2.1": [1.0], ">=2.1": [1.0]}}}
      - expect: {a: [1.0]}
        torch: ">=2.6"
"""


def one(torch: str = "2.13.0", **facts: Any) -> Report:
    return report({("a", CPU): GOOD}, torch=torch, **facts)


def indexed(*reports: Report, own: Report | None = None) -> dict[str, Any]:
    matrix = matrix_of(reports)
    return index_of(matrix, own)


def started(made: Report, when: str) -> Report:
    run = msgspec.structs.replace(made.header.run, started=when)
    return msgspec.structs.replace(made, header=msgspec.structs.replace(made.header, run=run))


def labels(*reports: Report, own: Report | None = None) -> list[str]:
    return [" ".join(build["label"]) for build in indexed(*reports, own=own)["builds"]]


def test_builds_stand_in_the_order_of_releases_and_what_nobody_understands_comes_first() -> None:
    ordered = [
        "banana", "1.13.1", "2.9.1", "2.10.0.dev20250901", "2.10.0a0+git1234", "2.10.0rc1", "2.10.0", "2.10.0+cpu",
        "2.10.0+cu126", "2.10.0.post1", "2.11.0-custom",
    ]  # fmt: skip
    made = [one(torch) for torch in ordered]
    for listed in (made, made[::-1], sorted(made, key=lambda each: each.build.torch)):
        assert [each.build.torch for each in matrix_of(listed).reports] == ordered


def test_builds_of_one_torch_stand_in_the_order_of_pythons_numbers() -> None:
    made = [one(python=python) for python in ("3.10.9", "3.9.1", "3.14.0b1", "3.13.2")]
    pythons = [each.build.python for each in matrix_of(made).reports]
    assert pythons == ["3.9.1", "3.10.9", "3.13.2", "3.14.0b1"]


@each(
    "torch, release",
    [("2.13.0", "2.13.0"), ("2.13.0rc1+cpu", "2.13.0"), ("2.13.0.dev20260101", "2.13.0"), ("2.13.0-odd", "2.13.0"),
     ("banana", "banana"), ("", "")],
)  # fmt: skip
def test_a_build_is_of_the_release_that_it_leads_to_or_of_whatever_it_calls_itself(torch: str, release: str) -> None:
    assert release_of(one(torch).build) == release
    assert indexed(one(torch))["builds"][0]["release"] == release


def test_a_device_has_one_column_and_the_usual_devices_come_first() -> None:
    targets = ("npu-float32", "xpu-float32", "cuda-float32", "cpu-float64", "cpu-float32", "privateuseone:0-float32")
    matrix = matrix_of([report({("a", target): GOOD for target in targets})])
    assert [column.device for column in matrix.columns] == ["cpu", "cuda", "xpu", "npu", "privateuseone:0"]
    assert matrix.columns[0].targets == {"float64": "cpu-float64", "float32": "cpu-float32"}
    assert index_of(matrix)["dtypes"] == ["float32", "float64"]


def test_a_device_may_have_dashes_and_what_has_no_dtype_keeps_its_whole_name() -> None:
    targets = ("my-npu-float32", "cpu", "cpu-", "-cpu", "-", "")
    matrix = matrix_of([report({("a", target): GOOD for target in targets})])
    found = {(column.device, dtype): target for column in matrix.columns for dtype, target in column.targets.items()}
    assert found == {
        ("my-npu", "float32"): "my-npu-float32", ("cpu", ""): "cpu", ("cpu-", ""): "cpu-", ("-cpu", ""): "-cpu",
        ("-", ""): "-", ("", ""): "",
    }  # fmt: skip


@given(st.lists(st.text(alphabet="a-", max_size=5), unique=True))
def test_no_two_targets_share_a_place(targets: list[str]) -> None:
    matrix = matrix_of([report({("a", target): GOOD for target in targets})])
    assert sorted(target for column in matrix.columns for target in column.targets.values()) == sorted(targets)


def test_a_build_alone_in_its_release_is_told_by_its_python() -> None:
    assert labels(one("2.6.0"), one("2.7.0+cu126", python="3.12.1")) == ["py3.11", "py3.12"]


def test_a_back_end_stands_behind_the_cpu_of_its_release_under_its_name() -> None:
    xla = BackEnd(device="xla", modules=("torch_xla",), name="torch-xla", version="2.9.0", commit="5fab7053df")
    other = replace(xla, commit="c0ffee0000")
    made = [one("2.9.0", backends=(xla,)), one("2.9.0+cu128"), one("2.8.0")]
    assert [report.build.torch for report in matrix_of(made).reports] == ["2.8.0", "2.9.0+cu128", "2.9.0"]
    assert labels(*made) == ["py3.11", "py3.11 cu128", "torch-xla 2.9.0 py3.11 5fab7053"]
    assert labels(one("2.9.0", backends=(xla,)), one("2.9.0", backends=(other,))) == [
        "torch-xla 2.9.0 py3.11 5fab7053", "torch-xla 2.9.0 py3.11 c0ffee00",
    ]  # fmt: skip
    record = index_of(matrix_of(made))["builds"][2]
    assert record["name"].startswith("torch 2.9.0 with torch-xla 2.9.0 (5fab7053), Python")
    assert ("back-end", "torch-xla 2.9.0 (5fab7053), from torch_xla") in record["facts"]
    assert record["command"] == "pytest --device xla --device-module torch_xla"


def test_a_back_end_is_compared_with_torch_alone_of_its_release() -> None:
    own = BackEnd(device="xla", modules=("torch_xla",), name="torch-xla", version="2.9.0")
    made = [one("2.9.0", backends=(own,)), one("2.9.1"), one("2.8.0", backends=(own,)), one("2.9.2")]

    def found(*reports: Report) -> list[str]:
        records = {record["id"]: record for record in indexed(*reports)["builds"]}
        return [records[record["beside"]]["torch"] if record["beside"] else "" for record in records.values()]

    assert found(*made) == ["", "2.9.2", "", ""]
    assert found(*made, one("2.9.0+cpu")) == ["", "", "2.9.0+cpu", "", ""]


def test_a_label_says_what_leads_to_a_release() -> None:
    assert labels(one("2.13.0rc1"), one("2.14.0.dev20260101+cpu")) == ["rc1 py3.11", "dev20260101 py3.11"]


@each(
    "first, second, told",
    [
        (one(), one(python="3.12.1"), ["py3.11", "py3.12"]),
        (one("2.13.0+cpu"), one("2.13.0+cu126"), ["py3.11 cpu", "py3.11 cu126"]),
        (one("2.13.0"), one("2.13.0+cpu"), ["py3.11", "py3.11 cpu"]),
        (one(system="linux-x86_64"), one(system="macos-arm64"), ["py3.11 linux-x86_64", "py3.11 macos-arm64"]),
        (one(), one(implementation="PyPy"), ["py3.11 CPython", "py3.11 PyPy"]),
        (one(git="a" * 40), one(git="b" * 40), ["py3.11 aaaaaaaa", "py3.11 bbbbbbbb"]),
        (one("2.13.0rc1"), one("2.13.0"), ["rc1 py3.11", "py3.11"]),
        (started(one(), "day 1"), started(one(), "day 2"), ["py3.11 day 1", "py3.11 day 2"]),
        (one(), one(), ["py3.11", "py3.11 ~2"]),
    ],
)
def test_labels_tell_the_builds_of_a_release_apart(first: Report, second: Report, told: list[str]) -> None:
    assert labels(first, second) == told


def test_the_run_that_has_just_ended_is_marked() -> None:
    published, own = one("2.12.0"), one()
    assert labels(published, own, own=own) == ["py3.11", "py3.11 this run"]
    assert [build["is_own"] for build in indexed(published, own, own=own)["builds"]] == [False, True]


def test_no_two_builds_have_the_same_id() -> None:
    twin = one(system="linux-x86_64~2")
    ids = [build["id"] for build in indexed(one(), one(), twin, one())["builds"]]
    slug = one().build.slug
    assert len(set(ids)) == 4
    assert {slug, f"{slug}~2", f"{slug}~3"} < set(ids)


def test_the_newest_words_of_a_case_and_a_rule_count() -> None:
    old = report({("a", CPU): GOOD, ("b", CPU): GOOD}, cases=[case("a", title="Old"), case("b")], torch="2.0.0")
    new = report({("a", CPU): GOOD}, cases=[case("a", title="New", line=15)])
    new = msgspec.structs.replace(new, rules={"r.one": rule("r.one", text="In new words.")})
    for listed in ([old, new], [new, old]):
        matrix = matrix_of(listed)
        assert [(record.id, record.title, record.line) for record in matrix.cases] == [
            ("a", "New", 15), ("b", "The case b", 20)
        ]  # fmt: skip
        assert matrix.rules["r.one"].text == "In new words."


def test_cases_stand_in_the_order_of_their_files() -> None:
    places = {"a": ("z.yaml", 1), "b": ("x.yaml", 9), "c": ("x.yaml", 2)}
    cases = [case(name, file=file, line=line) for name, (file, line) in places.items()]
    index = indexed(report({(name, CPU): GOOD for name in "abc"}, cases=cases))
    assert [entry[0] for entry in index["cases"]] == ["c", "b", "a"]
    assert [index["files"][entry[5]] for entry in index["cases"]] == ["x.yaml", "x.yaml", "z.yaml"]


def test_revisions_tell_which_builds_ran_another_case_than_the_one_shown() -> None:
    def ran(torch: str, digest: str) -> Report:
        return report({("a", CPU): GOOD, ("b", CPU): GOOD}, cases=[case("a", digest=digest), case("b")], torch=torch)

    index = indexed(ran("2.0.0", "first"), ran("2.1.0", "second"), ran("2.2.0", "first"), ran("2.3.0", "third"))
    revisions = index["revisions"]
    assert set(revisions) == {"0"}
    assert set(revisions["0"]) == {"0", "1", "2"}
    assert revisions["0"]["0"] == revisions["0"]["2"] != revisions["0"]["1"]


def test_a_build_whose_report_lacks_a_case_has_no_revision_of_it() -> None:
    old, new = one("2.0.0"), report({("a", CPU): GOOD, ("b", CPU): GOOD}, torch="2.1.0")
    assert indexed(old, new)["revisions"] == {"1": {"0": None}}


def test_variants_tell_which_conditions_of_a_case_hold_for_each_build() -> None:
    record = valid_case("a", yaml=BY_VERSION)
    made = [
        report({("a", CPU): GOOD}, cases=[record], torch=torch)
        for torch in ("nonsense", "2.0.1", "2.1.0rc1+cpu", "2.6.0")
    ]
    matrix = matrix_of(made)
    assert index_of(matrix)["variants"] == {"0": (["", "<2.1", ">=2.1", ">=2.1 and >=2.6"], [0, 1, 2, 3])}


def test_what_another_case_has_read_is_not_taken_for_its_own() -> None:
    plain, conditional = valid_case("b", digest="same"), valid_case("a", yaml=BY_VERSION, digest="same", line=30)
    matrix = matrix_of([report({("a", CPU): GOOD, ("b", CPU): GOOD}, cases=[plain, conditional])])
    assert set(index_of(matrix)["variants"]) == {"1"}


def test_a_cell_has_a_letter_for_its_status_and_a_blank_where_nothing_was_planned() -> None:
    names = [f"{number:03}" for number in range(len(STATUSES))]
    outcomes = {(name, CPU): outcome(status) for name, status in zip(names, STATUSES, strict=True)}
    index = indexed(report({**outcomes, ("last", CUDA): GOOD}))
    cpu, cuda = index["columns"]
    assert cpu["cells"]["0"]["marks"] == "".join(MARKS[status] for status in STATUSES) + " "
    assert cuda["cells"]["0"]["marks"] == " " * len(STATUSES) + MARKS["pass"]
    assert len(set(MARKS.values())) == len(STATUSES)


def test_what_an_unfinished_run_did_not_reach_is_not_run() -> None:
    index = indexed(report({("a", CPU): GOOD, ("b", CPU): None}, finished=False))
    cells = index["columns"][0]["cells"]["0"]
    assert cells["marks"] == MARKS["pass"] + MARKS["not-run"]
    assert index["messages"][cells["notes"][1]] == "the report is incomplete"


def notes(index: dict[str, Any], column: int) -> dict[int, tuple[int, int, int]]:
    flat = index["columns"][column]["cells"]["0"]["notes"]
    return {flat[at]: (flat[at + 1], flat[at + 2], flat[at + 3]) for at in range(0, len(flat), 5)}


def test_notes_share_a_number_where_messages_failures_and_words_are_the_same() -> None:
    other_values = broken(failures=tuple(msgspec.structs.replace(each, observed="3") for each in broken().failures))
    made: dict[str, Outcome] = {"a": GOOD, "b": broken(), "c": broken(line=99), "d": other_values, "e": broken("error")}
    index = indexed(report({(name, CPU): each for name, each in made.items()}))
    of = notes(index, 0)
    assert set(of) == {1, 2, 3, 4}
    assert of[1] == of[2]
    message, failure, words = zip(of[1], of[3], strict=True)
    assert message[0] != message[1]
    assert failure[0] == failure[1]
    assert words[0] != words[1]
    assert of[4][0] == of[1][0]
    assert of[4][1] != of[1][1]
    assert index["messages"][of[1][0]] == "b.is_leaf: expected false, observed true (and 1 more)"


def test_a_long_message_is_cut() -> None:
    index = indexed(report({("a", CPU): outcome("not-run", reason="x" * 10_000)}))
    assert index["messages"] == ["x" * 299 + "…"]


def test_a_build_has_its_counts_and_why_some_of_its_plan_was_not_run() -> None:
    absent, lacks = outcome("not-run", reason="no cuda"), outcome("unsupported", reason="no such dtype")
    made = report({
        ("a", CPU): GOOD, ("b", CPU): broken(), ("c", CPU): lacks, ("a", CUDA): absent, ("b", CUDA): absent,
    })  # fmt: skip
    (build,) = indexed(made)["builds"]
    assert build["counts"] == {CPU: {"pass": 1, "fail": 1, "unsupported": 1}, CUDA: {"not-run": 2}}
    assert build["why"] == [[CUDA, "not-run", "no cuda", 2]]
    assert [(counts, case) for _, counts, _, case, _ in build["causes"]] == [
        ({"fail": 1}, "b"),
        ({"unsupported": 1}, "c"),
    ]


def test_a_report_without_anything_makes_an_empty_matrix() -> None:
    index = indexed(report({}))
    assert (index["cases"], index["columns"], index["topics"]) == ([], [], [])
    assert len(index["builds"]) == 1
    assert indexed()["builds"] == []


@given(st.lists(any_report(), max_size=4))
def test_any_reports_keep_every_outcome(reports: list[Report]) -> None:
    matrix = matrix_of(reports)
    index = index_of(matrix)
    names = [entry[0] for entry in index["cases"]]
    assert sorted(names) == sorted({record.id for each in reports for record in each.cases})
    fingerprints: dict[int, object] = {}
    for packed, column in zip(index["columns"], matrix.columns, strict=True):
        outcomes = matrix.reports[column.report].by_pair()
        for number, cells in packed["cells"].items():
            target = column.targets[index["dtypes"][int(number)]]
            flat = cells["notes"]
            noted = {flat[at]: flat[at + 1 : at + 5] for at in range(0, len(flat), 5)}
            for at, name in enumerate(names):
                found = outcomes.get((name, target))
                assert cells["marks"][at] == (" " if found is None else MARKS[found.status])
                if found is None or found.status == "pass":
                    assert at not in noted
                    continue
                message, failure, _, cause = noted[at]
                assert (cause >= 0) == (found.status in RED or found.status == "unsupported")
                assert found.summary.startswith(index["messages"][message].removesuffix("…"))
                assert fingerprints.setdefault(failure, fingerprint(found)) == fingerprint(found)
    planned = sum(len(each.plan) for each in reports)
    shown = sum(len(cells["marks"].replace(" ", "")) for each in index["columns"] for cells in each["cells"].values())
    assert shown == planned


def test_hostile_names_stay_what_they_are() -> None:
    index = indexed(report({("a", f"{HOSTILE}-{HOSTILE}"): GOOD}, cases=[case("a", topic=HOSTILE)], torch=HOSTILE))
    assert index["topics"] == [HOSTILE]
    assert index["builds"][0]["torch"] == HOSTILE
    assert index["builds"][0]["release"] == HOSTILE


def test_a_pass_of_which_something_was_left_out_is_noted() -> None:
    hidden = Unobserved(line=1, path="a.stride", reason="npu keeps no strides")
    left_out = outcome("pass", unobserved=(hidden,))
    index = indexed(report({("a", CPU): left_out, ("b", CPU): GOOD}))
    cells = index["columns"][0]["cells"]["0"]
    assert cells["marks"] == MARKS["pass"] * 2
    assert cells["notes"][0] == 0
    assert index["messages"][cells["notes"][1]] == "not observed: a.stride (npu keeps no strides)"
    assert len(cells["notes"]) == 5
