"""Tests of conditions on torch: which release each holds for, and whether alternatives tile."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from conformance.language import versions


@each(
    "text",
    [">=2.1", "<2.13", ">=2.1,<2.4", "==2.1.0", "!=2.1", " >= 2.1 , < 2.4 ", ">2.1", "<=2.1.2", ">=2.13.0.dev20260101"],
)
def test_a_condition_is_a_pep_440_specifier(text: str) -> None:
    assert versions.specifier_of(text)


@each("text", ["", " ", "2.1", "~=2.1", "==2.1.*", "===2.1", ">=2.x", "old", ">=", "=2.1", ">=2.1;<2.4", ">=2.1 or <2"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="expected a condition on torch such as") as caught:
        versions.specifier_of(text)
    assert str(caught.value).endswith(f"got {text!r}")


@each(
    "condition, torch, verdict",
    [
        (">=2.1", "2.1.0", True),
        (">=2.1", "2.0.1", False),
        ("<2.1", "2.1.0", False),
        (">=2.1,<2.4", "2.3.1", True),
        (">=2.1,<2.4", "2.4.0", False),
        ("==2.1", "2.1.0", True),
        ("!=2.1", "2.1.0", False),
        ("!=2.1", "2.1.1", True),
        (">2.1", "2.1.0", False),
        (">2.1", "2.1.1", True),
        ("<=2.1", "2.1.1", False),
        (">=2.9", "2.10.0", True),
    ],
)
def test_a_release_meets_a_condition_or_not(condition: str, torch: str, verdict: bool) -> None:
    assert versions.holds(condition, torch) is verdict


@each("local", ["+cpu", "+cu130", "+git1a2b3c", "+rocm6.4", ""])
def test_the_local_part_is_dropped(local: str) -> None:
    assert versions.holds("==2.13.0", f"2.13.0{local}")
    assert not versions.holds(">2.13", f"2.13.0{local}")
    assert not versions.holds("!=2.13.0", f"2.13.0{local}")


@each("torch", ["2.13.0.dev20260101", "2.13.0.dev20260101+cpu", "2.13.0a0+git123", "2.13.0rc2", "2.13.0b1"])
def test_a_build_on_the_way_to_a_release_counts_as_that_release(torch: str) -> None:
    assert versions.holds(">=2.13", torch)
    assert versions.holds("==2.13", torch)
    assert not versions.holds("<2.13", torch)
    assert not versions.holds(">2.13", torch)
    assert not versions.holds("!=2.13", torch)


@each("torch", ["9" * 5000, f"{'9' * 5000}.0", f"2.{'9' * 5000}", "foo", ""])
def test_what_is_no_version_is_refused_with_an_example(torch: str) -> None:
    with pytest.raises(ValueError, match="expected a version such as"):
        versions.version_of(torch)


def test_a_bound_that_names_a_nightly_tells_nightlies_apart() -> None:
    assert versions.holds(">=2.13.0.dev20260101", "2.13.0.dev20260101+cu130")
    assert versions.holds(">=2.13.0.dev20260101", "2.13.0")
    assert not versions.holds(">=2.13.0.dev20260101", "2.13.0.dev20251231")
    assert versions.holds("<2.13.0.dev20260101", "2.13.0.dev20251231")
    assert not versions.holds("<2.13.0.dev20260101", "2.13.0.dev20260102")


def test_only_the_bound_with_a_dev_part_sees_the_nightly_as_one() -> None:
    assert versions.holds(">=2.13.0.dev20260101,<2.14", "2.13.0.dev20260102")
    assert not versions.holds(">=2.13.0.dev20260101,<2.13", "2.13.0.dev20260102")


@each(
    "conditions, within",
    [
        ([None], None),
        ([None], ">=2.1"),
        (["<2.1", ">=2.1"], None),
        (["<=2.1", ">2.1"], None),
        (["<2.1", ">=2.1,<2.4", ">=2.4"], None),
        (["<2.1.2", ">=2.1.2"], None),
        (["==2.1", "!=2.1"], None),
        ([">=2.1"], ">=2.1"),
        ([">=2.1"], ">=2.4"),
        (["<2.4", ">=2.4"], ">=2.1"),
        ([">=2.1,<2.4", ">=2.4"], ">=2.1"),
        (["<3", ">=3"], None),
        ([">=1.0"], None),
    ],
)
def test_these_alternatives_tile(conditions: list[str | None], within: str | None) -> None:
    assert versions.gaps_and_overlaps(conditions, within) == ""


@each(
    "conditions, within, problem",
    [
        (["<2.1", ">2.1"], None, "torch 2.1.0 has no alternative"),
        (["<=2.1", ">=2.1"], None, "torch 2.1.0 has 2 alternatives"),
        (["<2.1", ">=2.2"], None, "torch 2.1.0 has no alternative"),
        (["<2.3", ">=2.2"], None, "torch 2.2.0 has 2 alternatives"),
        ([">=2.1"], None, "torch 1.13.0 has no alternative"),
        (["<2.1"], None, "torch 2.1.0 has no alternative"),
        ([None, None], None, "torch 1.13.0 has 2 alternatives"),
        ([None, ">=2.1"], None, "torch 2.1.0 has 2 alternatives"),
        ([">=2.1"], ">=2.0", "torch 2.0.0 has no alternative"),
        (["<2.1.2", ">2.1.2"], None, "torch 2.1.2 has no alternative"),
        (["<2.1", ">=2.1.1"], None, "torch 2.1.0 has no alternative"),
        (["<2.1", ">=2.1,<3", ">3"], None, "torch 3.0.0 has no alternative"),
    ],
)
def test_these_alternatives_leave_a_gap_or_overlap(
    conditions: list[str | None], within: str | None, problem: str
) -> None:
    assert versions.gaps_and_overlaps(conditions, within) == problem


RELEASES = [
    f"{major}.{minor}.{patch}"
    for major, minors in ((1, (13,)), (2, range(16)))
    for minor in minors
    for patch in range(3)
]
CONDITIONS = st.builds(
    lambda parts: ",".join(f"{operator}{release}" for operator, release in parts),
    st.lists(
        st.tuples(st.sampled_from(versions.OPERATORS), st.builds("2.{}".format, st.integers(0, 14))),
        min_size=1,
        max_size=2,
    ),
)


@given(st.lists(st.none() | CONDITIONS, min_size=1, max_size=3), st.none() | CONDITIONS)
def test_alternatives_tile_when_every_release_has_exactly_one(conditions: list[str | None], within: str | None) -> None:
    covered = all(
        sum(condition is None or versions.holds(condition, release) for condition in conditions) == 1
        for release in RELEASES
        if within is None or versions.holds(within, release)
    )
    if versions.gaps_and_overlaps(conditions, within) == "":
        assert covered
    elif covered:
        assert "torch " in versions.gaps_and_overlaps(conditions, within)


@given(st.lists(st.integers(0, 14), unique=True, min_size=1, max_size=4))
def test_half_open_ranges_between_sorted_bounds_always_tile(minors: list[int]) -> None:
    bounds = [f"2.{minor}" for minor in sorted(minors)]
    ranges = [f"<{bounds[0]}", *(f">={low},<{high}" for low, high in itertools.pairwise(bounds)), f">={bounds[-1]}"]
    assert versions.gaps_and_overlaps(ranges) == ""
    assert versions.gaps_and_overlaps(ranges[1:]) != ""
    assert versions.gaps_and_overlaps([*ranges, f"=={bounds[0]}"]) != ""
