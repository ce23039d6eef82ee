"""Tests of laying out graphs in layers: boxes apart, edges downward and past boxes, few crossings, always the same."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conformance.render.page.layers import Drawing, Edge, Point, Size, lay_out

GAP = (28, 26)
SLACK = 1  # places are rounded
BOX = (60.0, 28.0)
STEPS, LEAF = range(19), 20
GRID = [(6 * row + column, 6 * row + column + 6) for row in range(5) for column in range(6)] + [
    (6 * row + column, 6 * row + column + 1) for row in range(6) for column in range(5)
]
STAGES = [(8 * stage + at, 8 * stage + 8 + to) for stage in range(3) for at in range(8) for to in {at, at ^ 1 << stage}]


def graph_by_chance(seed: int) -> list[Edge]:
    """Return a graph in which each box follows one or two of the twelve before it."""
    chance = random.Random(seed)
    return sorted({(chance.randrange(max(0, at - 12), at), at) for at in range(1, 30 + 4 * seed) for _ in range(2)})


# What each is drawn with at most; the numbers are grandalf's, a library for the same method.
CROSSINGS: dict[str, tuple[list[Edge], int]] = {
    "a chain": ([(step, step + 1) for step in range(39)], 0),
    "a tree": ([(at, (at - 1) // 2) for at in range(1, 63)], 0),
    "a grid": (GRID, 0),
    "four with each of four": ([(at, 4 + other) for at in range(4) for other in range(4)], 36),
    "a leaf used in each step": ([(step, step + 1) for step in STEPS] + [(LEAF, step) for step in STEPS if step], 0),
    "steps with skips": ([(step, step + 1) for step in STEPS] + [(step, step + 3) for step in range(0, 17, 2)], 0),
    "a butterfly": (STAGES, 44),
    **{
        f"by chance, {seed}": (graph_by_chance(seed), most)
        for seed, most in enumerate((38, 33, 30, 55, 79, 83, 95, 99, 94, 93, 118, 145))
    },
}

BOXES = st.lists(st.tuples(st.integers(20, 300), st.integers(20, 90)), min_size=1, max_size=16)


@st.composite
def graphs(draw: st.DrawFn, *, cycles: bool) -> tuple[list[Size], list[Edge]]:
    sizes = draw(BOXES)
    numbers = st.integers(0, len(sizes) - 1)
    edges = draw(st.lists(st.tuples(numbers, numbers), max_size=30, unique=True))
    return [*sizes], edges if cycles else [edge for edge in edges if edge[0] < edge[1]]


def laid_out(sizes: list[Size], edges: list[Edge], *, wide: int = 1000) -> Drawing:
    drawing = lay_out(sizes, edges, gap=GAP, wide=wide, most=6000)
    assert drawing is not None
    return drawing


def sides(centre: Point, size: Size) -> tuple[float, float, float, float]:
    return centre[0] - size[0] / 2, centre[1] - size[1] / 2, centre[0] + size[0] / 2, centre[1] + size[1] / 2


def crossings(ways: list[list[Point]]) -> int:
    """Return in how many points two edges cross, apart from those where they meet."""

    def turn(a: Point, b: Point, c: Point) -> int:
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        return (area > 0) - (area < 0)

    return sum(
        turn(a, b, c) * turn(a, b, d) < 0 and turn(c, d, a) * turn(c, d, b) < 0
        for way, other in combinations(ways, 2) for a, b in pairwise(way) for c, d in pairwise(other)
    )  # fmt: skip


@given(graphs(cycles=True))
@example(([BOX, BOX], [(0, 1), (1, 0)]))
@example(([BOX] * 3, [(0, 1), (1, 2), (2, 0)]))
@example(([BOX] * 9, [(at, other) for at in range(9) for other in range(9)]))
def test_boxes_stand_apart_and_each_edge_runs_from_rim_to_rim_past_the_others(
    graph: tuple[list[Size], list[Edge]],
) -> None:
    sizes, edges = graph
    centres, ways, (width, height) = laid_out(sizes, edges)
    places = [sides(centre, size) for centre, size in zip(centres, sizes, strict=True)]
    for left, top, right, bottom in places:
        assert left >= -SLACK
        assert top >= -SLACK
        assert right <= width + SLACK
        assert bottom <= height + SLACK
    for one, other in combinations(places, 2):
        beside = max(one[0], other[0]) - min(one[2], other[2])
        under = max(one[1], other[1]) - min(one[3], other[3])
        assert beside >= GAP[0] - SLACK or under >= GAP[1] - SLACK, (one, other)
    assert set(ways) == {edge for edge in edges if edge[0] != edge[1]}
    for edge, way in ways.items():
        assert len(way) >= 2
        for box, (x, y) in zip(edge, (way[0], way[-1]), strict=True):
            left, top, right, bottom = places[box]
            assert x == pytest.approx((left + right) / 2, abs=SLACK)
            assert min(abs(y - top), abs(y - bottom)) <= SLACK
        for (x0, y0), (x1, y1) in pairwise(way):
            for box, (left, top, right, bottom) in enumerate(places):
                meets = max(min(x0, x1), left) < min(max(x0, x1), right) - SLACK
                passes = max(min(y0, y1), top) < min(max(y0, y1), bottom) - SLACK
                assert not (meets and passes), (edge, way, box)
                if x0 == x1 and left + SLACK < x0 < right - SLACK:
                    assert not passes, (edge, way, box)


@given(graphs(cycles=False))
def test_edges_lead_down_where_there_is_no_cycle(graph: tuple[list[Size], list[Edge]]) -> None:
    sizes, edges = graph
    centres, ways, _ = laid_out(sizes, edges)
    for (first, second), way in ways.items():
        below = centres[second][1] - sizes[second][1] / 2
        assert centres[first][1] + sizes[first][1] / 2 + GAP[1] <= below + SLACK
        assert all(upper[1] <= lower[1] for upper, lower in pairwise(way))


@pytest.mark.parametrize("name", CROSSINGS)
def test_few_edges_cross(name: str) -> None:
    edges, most = CROSSINGS[name]
    sizes = [BOX] * (1 + max(map(max, edges)))
    assert crossings(list(laid_out(sizes, edges)[1].values())) <= most


def test_edges_that_must_cross_are_counted() -> None:
    assert crossings([[(0, 0), (10, 10)], [(10, 0), (0, 10)], [(0, 0), (0, 10)]]) == 1


def test_a_leaf_stands_right_above_the_first_that_uses_it() -> None:
    centres, _, _ = laid_out([BOX] * 6, [(0, 1), (1, 2), (2, 3), (3, 4), (5, 3), (5, 4)])
    assert centres[5][1] == centres[2][1]


def test_an_edge_past_boxes_is_straight_where_it_can_be() -> None:
    _, ways, _ = laid_out([BOX] * 5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    passing = ways[0, 4][1:-1]
    assert len({x for x, _ in passing}) == 1
    assert len(ways[0, 1]) == 2


def test_parts_stand_in_rows_and_only_one_that_is_wide_by_itself_makes_the_whole_wider() -> None:
    centres, _, (width, height) = laid_out([(100, 30)] * 25, [])
    assert sorted({y for _, y in centres}) == [15, 71, 127, 183]
    assert width <= 1000
    assert height == 198
    _, _, (width, _) = laid_out([BOX, (3000, 30), BOX], [], wide=1000)
    assert width == 3000


def test_no_box_is_no_drawing_and_one_is_itself() -> None:
    assert laid_out([], []) == ([], {}, (0, 0))
    assert laid_out([BOX], [(0, 0)]) == ([(30, 14)], {}, (60, 28))


def test_more_places_than_asked_for_are_not_laid_out() -> None:
    edges = [(at, at + 1) for at in range(9)] + [(0, 9)]
    assert lay_out([BOX] * 10, edges, gap=GAP, wide=1000, most=18) is not None
    assert lay_out([BOX] * 10, edges, gap=GAP, wide=1000, most=17) is None


def test_eighty_nodes_are_laid_out_alike_each_time() -> None:
    edges = graph_by_chance(12)
    sizes = [BOX] * (1 + max(map(max, edges)))
    assert laid_out(sizes, edges) == laid_out(sizes, edges)
