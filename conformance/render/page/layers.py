"""Lays out a directed graph in layers: where the centre of each box stands, and through which points each edge runs.

This is the method of Sugiyama, Tagawa and Toda. Edges that close a cycle are reversed; the longest path to a box
is its layer; an edge that passes layers has a place in each; sweeps order each layer so that few edges
cross; then places are moved towards their neighbours, as far as that order allows. Edges move sideways only
between layers, so that none runs through a box.
"""

from bisect import bisect_right, insort
from collections.abc import Collection, Sequence
from itertools import accumulate, pairwise

SWEEPS = 8  # of ordering layers, down and up in turn
SWAPS = 2  # rounds of them after each sweep
PULLS = 8  # of moving places towards their neighbours, down and up in turn
STRAIGHT = 8  # the weight of an edge that passes a layer, in boxes: a bend is more visible than a shifted box

Size = tuple[float, float]
Point = tuple[int, int]
Edge = tuple[int, int]
Layers = list[list[int]]  # the places of each layer, from left to right
Neighbours = list[list[int]]  # of each place, in the layer above it or below it
Drawing = tuple[list[Point], dict[Edge, list[Point]], Point]  # centres, ways from rim to rim, and the size of the whole


def lay_out(sizes: Sequence[Size], edges: Collection[Edge], *, gap: Size, wide: int, most: int) -> Drawing | None:
    """Lay out boxes of these sizes; unconnected parts stand in rows, none wider than its first part or `wide`.

    None where a part needs more than `most` places.
    """
    centres: list[Point] = [(0, 0)] * len(sizes)
    ways: dict[Edge, list[Point]] = {}
    left = top = width = height = 0
    for part in parts_of(len(sizes), edges):
        number = {box: number for number, box in enumerate(part)}
        own = dict.fromkeys((number[first], number[second]) for first, second in edges if first in number)
        drawing = lay_out_part([sizes[box] for box in part], own, gap, most)
        if drawing is None:
            return None
        if left and left + drawing[2][0] > wide:
            left, top = 0, height + round(gap[1])
        for box, (x, y) in enumerate(drawing[0]):
            centres[part[box]] = x + left, y + top
        for (first, second), points in drawing[1].items():
            ways[part[first], part[second]] = [(x + left, y + top) for x, y in points]
        width, height = max(width, left + drawing[2][0]), max(height, top + drawing[2][1])
        left += drawing[2][0] + round(gap[0])
    return centres, ways, (width, height)


def parts_of(count: int, edges: Collection[Edge]) -> list[list[int]]:
    """Return the connected parts of the graph."""
    part = [[number] for number in range(count)]
    for first, second in edges:
        one, other = part[first], part[second]
        if one is not other:
            one += other
            for number in other:
                part[number] = one
    return [sorted(one) for number, one in enumerate(part) if min(one) == number]


def lay_out_part(sizes: Sequence[Size], edges: Collection[Edge], gap: Size, most: int) -> Drawing | None:
    rank = ranks_of(len(sizes), edges)
    down = {(first, second): (first, second) if rank[first] < rank[second] else (second, first)
            for first, second in edges if first != second}  # fmt: skip
    layer = layers_of(rank, set(down.values()))
    chains: dict[Edge, list[int]] = {}  # the places of each edge, from top to bottom
    for first, second in dict.fromkeys(down.values()):
        passed = range(layer[first] + 1, layer[second])
        chains[first, second] = [first, *range(len(layer), len(layer) + len(passed)), second]
        layer += passed
        if len(layer) > most:
            return None
    above: Neighbours = [[] for _ in layer]
    below: Neighbours = [[] for _ in layer]
    for chain in chains.values():
        for upper, lower in pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    layers = ordered(layer, above, below)
    widths = [*(width for width, _ in sizes), *([0.0] * (len(layer) - len(sizes)))]
    x = placed(layers, above, below, widths, gap[0])
    height = [max((sizes[place][1] for place in row if place < len(sizes)), default=0.0) for row in layers]
    top = list(accumulate((each + gap[1] for each in height), initial=0.0))
    y = [top[layer[box]] + height[layer[box]] / 2 for box in range(len(sizes))]

    def way(chain: list[int]) -> list[Point]:
        """Return the points of an edge: straight down through each layer, and aside between layers only."""
        points = []
        for place in chain:
            ends = top[layer[place]], top[layer[place]] + height[layer[place]]
            if place < len(sizes):
                half = sizes[place][1] / 2
                ends = (y[place] + half, ends[1]) if place == chain[0] else (ends[0], y[place] - half)
            points += [(round(x[place]), round(end)) for end in ends]
        middle = [
            point for before, point, after in zip(points, points[1:], points[2:], strict=False)
            if point not in (before, after) and not before[0] == point[0] == after[0]
        ]  # fmt: skip
        return [points[0], *middle, points[-1]]

    ways = {edge: way(chains[drawn])[:: 1 if drawn == edge else -1] for edge, drawn in down.items()}
    centres = [(round(x[box]), round(y[box])) for box in range(len(sizes))]
    right = max(x[place] + widths[place] / 2 for place in range(len(layer)))
    return centres, ways, (round(right), round(top[-1] - gap[1]))


def ranks_of(count: int, edges: Collection[Edge]) -> list[int]:
    """Return the number of each box in an order in which edges lead on; as many as may be where there are cycles."""
    after: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for first, second in edges:
        if first != second:
            after[first].append(second)
            waits[second] += 1
    rank = [-1] * count
    for number in range(count):
        # Without a cycle, one of those that are left waits for none.
        box = min((box for box in range(count) if rank[box] < 0), key=waits.__getitem__)
        rank[box] = number
        for other in after[box]:
            waits[other] -= 1
    return rank


def layers_of(rank: list[int], down: Collection[Edge]) -> list[int]:
    """Return the layer of each box: below all that lead to it, and where more lead away, right above the first."""
    layer = [0] * len(rank)
    for first, second in sorted(down, key=lambda edge: rank[edge[0]]):
        layer[second] = max(layer[second], layer[first] + 1)
    after: dict[int, list[int]] = {}
    before = [0] * len(rank)
    for first, second in down:
        after.setdefault(first, []).append(second)
        before[second] += 1
    for box in sorted(after, key=rank.__getitem__, reverse=True):
        if len(after[box]) > before[box]:
            layer[box] = min(layer[other] for other in after[box]) - 1
    return layer


def ordered(layer: list[int], above: Neighbours, below: Neighbours) -> Layers:
    """Return the places of each layer in an order in which few edges cross."""
    layers: Layers = [[] for _ in range(max(layer) + 1)]
    seen = [False] * len(layer)
    for start in sorted(range(len(layer)), key=layer.__getitem__):
        waiting = [start]
        while waiting:  # depth first, so that connected places begin side by side
            place = waiting.pop()
            if not seen[place]:
                seen[place] = True
                layers[layer[place]].append(place)
                waiting += reversed(below[place])
    best, fewest = layers, crossings(layers, below)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        layers = [list(row) for row in layers]
        rows, others = (layers, above) if sweep % 2 == 0 else (layers[::-1], below)
        at = {place: number for row in rows for number, place in enumerate(row)}
        for row in rows:
            row.sort(key=lambda place: mean([at[other] for other in others[place]], at[place]))
            at.update((place, number) for number, place in enumerate(row))
        swap(layers, above, below)
        count = crossings(layers, below)
        if count < fewest:
            best, fewest = layers, count
    return best


def mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def swap(layers: Layers, above: Neighbours, below: Neighbours) -> None:
    """Exchange neighbours in a layer where that makes fewer edges cross."""
    at = {place: number for row in layers for number, place in enumerate(row)}
    for _ in range(SWAPS):
        for row in layers:
            for number in range(len(row) - 1):
                left, right = row[number : number + 2]
                gain = sum(
                    (at[one] > at[other]) - (at[one] < at[other])
                    for near in (above, below) for one in near[left] for other in near[right]
                )  # fmt: skip
                if gain > 0:
                    row[number : number + 2] = right, left
                    at[left], at[right] = number + 1, number


def crossings(layers: Layers, below: Neighbours) -> int:
    """Return how many pairs of edges cross."""
    count = 0
    for row, lower in pairwise(layers):
        at = {place: number for number, place in enumerate(lower)}
        ends: list[int] = []
        for place in row:
            mine = [at[other] for other in below[place]]
            count += sum(len(ends) - bisect_right(ends, end) for end in mine)
            for end in mine:
                insort(ends, end)
    return count


def placed(layers: Layers, above: Neighbours, below: Neighbours, widths: Sequence[float], gap: float) -> list[float]:
    """Return how far right the middle of each place is: in order, apart, and near the middle of its neighbours."""
    x = [0.0] * len(widths)
    # How far right of its layer's first place each is where all stand as close as they may.
    close = {
        place: far for row in layers
        for place, far in zip(row, accumulate(
            ((widths[one] + widths[other]) / 2 + gap for one, other in pairwise(row)), initial=0.0), strict=True)
    }  # fmt: skip
    for row in layers:
        for place in row:
            x[place] = close[place] - (close[row[0]] + close[row[-1]]) / 2
    for pull in range(PULLS):
        rows, others = (layers, above) if pull % 2 == 0 else (layers[::-1], below)
        for row in rows:
            wishes = []
            for place in row:
                near = others[place] or above[place] or below[place]
                wish = mean([x[other] for other in near], x[place])
                wishes.append((wish - close[place], 1.0 if widths[place] else STRAIGHT))
            for place, shift in zip(row, increasing(wishes), strict=True):
                x[place] = shift + close[place]
    left = min(middle - width / 2 for middle, width in zip(x, widths, strict=True))
    return [middle - left for middle in x]


def increasing(wishes: Sequence[tuple[float, float]]) -> list[float]:
    """Return the numbers, none below the one before it, that are nearest to these by weighted squares."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight and length of runs that share one number
    for wish, weight in wishes:
        mean, total, length = wish, weight, 1
        while blocks and blocks[-1][0] >= mean:
            mean_before, weight_before, length_before = blocks.pop()
            mean = (mean * total + mean_before * weight_before) / (total + weight_before)
            total, length = total + weight_before, length + length_before
        blocks.append((mean, total, length))
    return [mean for mean, _, length in blocks for _ in range(length)]
