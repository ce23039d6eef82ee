"""Tests of the causes on the page: one number for a cause in all builds, and rows that lead to its cases."""

from __future__ import annotations

from samples import CPU, CUDA, failed, outcome, report

from conformance.render.page.matrix import index_of, matrix_of

EXP = outcome("error", reason="no exp for [1]")
LOG = outcome("error", reason="no log for [1]")
LACKS = outcome("unsupported", reason="no svd")


def test_causes_are_listed_once_for_all_builds_and_each_build_has_its_own_rows() -> None:
    old = report({("a", CPU): LOG, ("b", CPU): EXP, ("c", CPU): LACKS}, torch="2.12.0")
    new = report({("a", CPU): EXP, ("a", CUDA): EXP, ("b", CPU): outcome("pass"), ("c", CPU): failed()}, torch="2.13.0")
    index = index_of(matrix_of([old, new]))
    assert [(title, count, is_red) for _, title, count, is_red in index["causes"]] == [
        ("no exp for […]", 3, True), ("Tests: grad: another value", 1, True), ("no log for […]", 1, True),
        ("no svd", 1, False),
    ]  # fmt: skip
    assert [build["causes"] for build in index["builds"]] == [
        [(0, {"error": 1}, (CPU,), "b", CPU), (2, {"error": 1}, (CPU,), "a", CPU),
         (3, {"unsupported": 1}, (CPU,), "c", CPU)],
        [(0, {"error": 2}, (CPU, CUDA), "a", CPU), (1, {"fail": 1}, (CPU,), "c", CPU)],
    ]  # fmt: skip
    assert [column["cells"]["0"]["notes"][4::5] for column in index["columns"]] == [[2, 0, 3], [0, 1], [0]]


def test_a_page_without_anything_red_has_no_causes() -> None:
    assert index_of(matrix_of([report({("a", CPU): outcome("pass"), ("b", CPU): outcome("not-run")})]))["causes"] == []
