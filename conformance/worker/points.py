"""The points at which an operation is differentiated: ordinary ones, and the hard points of each class of input.

All numbers come from a formula, so that each device, dtype and run has the same. Nothing is chosen for an operation:
where one is not defined or not differentiable, the point says nothing of it.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence

import torch

from conformance.worker.differences import Values

# Numbers at which formulas break: zeros, ends of domains, where series and asymptotic formulas take over, and what
# underflows or overflows once it is squared, multiplied or exponentiated.
HARD = (
    0.0, 1e-20, 1e-8, 1e-3, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.5, 2.0, 2.5, 3.0, 3.7, 4.0, 5.0, 6.0, 7.3, 8.0,
    10.0, 15.0, 20.0, 31.0, 50.0, 89.0, 100.0, 710.0, 1e3, 1e4, 1e8,
)  # fmt: skip
FEW = (0.0, 0.3, 0.5, 1.0, 1.7, 2.0, 3.0, 20.0, 800.0)  # of each of several inputs
STRANGE = (math.nan, math.inf, -math.inf)  # which must not change what the elements beside them have
AROUND = 20  # ordinary numbers around them
LEAST = {"positive": 0.0, "unit": 0.0, "beyond": 1.0}  # of the numbers of a kind
ORDINARY = "ordinary"  # the name of the point that is looked at in most ways
EQUAL = "of equal numbers"
FIRST_ALONE = "n = 1"  # the name of the point of a single row, most often
MAGNITUDES = "of many magnitudes"
OTHER = "other"
MOST_TELLING = ("with zeros", "of zeros", EQUAL)
FULLY = 2  # inputs, and rows of arguments, that get all points
SIZES = {"n": 3, "m": 2, "k": 4}  # of the names in shapes; others are 2


Point = NamedTuple("Point", [("name", str), ("values", Values)])  # of the differentiable inputs


def in_few_digits(values: torch.Tensor, digits: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Return real or complex numbers rounded to those of `digits`, by default such as all dtypes have."""
    if values.is_complex():
        return torch.complex(in_few_digits(values.real, digits), in_few_digits(values.imag, digits))
    return values.to(digits).to(values.dtype)


def elementwise_point(kinds: Sequence[str]) -> Point:
    """Return a vector for each input, of such kinds: all hard numbers of one, all pairs (triples, …) of several.

    Around them are ordinary numbers, some beside a nan or an infinity, so that each lane and tail of a vector has some.
    """
    numbers = HARD if len(kinds) == 1 else FEW if len(kinds) == 2 else FEW[::3]
    signed = [*numbers, *(-number for number in numbers)]
    chosen = [[number for number in signed if number >= LEAST.get(kind, -math.inf)] for kind in kinds]
    usual = list(zip(*(ordinary([AROUND], kind, place).tolist() for place, kind in enumerate(kinds))))
    strange = [
        (*row[:place], number, *row[place + 1 :])
        for place, number in itertools.product(range(len(kinds)), STRANGE) for row in usual[:1]
    ]  # fmt: skip
    rows = [*usual[1 : AROUND // 2], *itertools.product(*chosen), *strange, *usual[AROUND // 2 :]]
    columns = [torch.tensor([row[place] for row in rows], dtype=torch.float64) for place in range(len(kinds))]
    return Point("", [in_few_digits(each) for each in columns])


def ordinary(
    shape: Sequence[int],
    kind: str,
    seed: int,
    dtype: torch.dtype = torch.float64,
    digits: torch.dtype = torch.bfloat16,
) -> torch.Tensor:
    """Return a tensor of distinct, unremarkable numbers: between -2 and 2, or what `kind` says.

    They are rounded to those of `digits`; many are distinct only if it has many.

    Kinds: `positive` (0.3 to 2.3), `unit` (0.2 to 0.8), `beyond` (1.3 to 3.3), `invertible` (matrices of full
    rank).
    """
    count = 1
    for size in shape:
        count *= size
    places = torch.arange(count, dtype=torch.float64) + 1
    fraction = (places * 0.6180339887498949 + seed * 0.7548776662466927) % 1
    least, span = {"positive": (0.3, 2), "unit": (0.2, 0.6), "beyond": (1.3, 2)}.get(kind, (-2, 4))
    values = least + span * fraction
    if kind not in LEAST:
        values = torch.where(values.abs() < 0.05, values + 0.1, values)
    made = values.reshape(tuple(shape))
    if dtype.is_complex:
        made = torch.complex(made, 0.7 * ordinary(shape, "", seed + 5, digits=digits))
    return in_few_digits(invertible(made) if kind == "invertible" else made, digits)


def invertible(matrices: torch.Tensor) -> torch.Tensor:
    """Return matrices of full rank, with distinct eigenvalues, made of any that have numbers between -2 and 2."""
    rows, columns = matrices.shape[-2:]
    return 0.5 * matrices + torch.eye(rows, columns, dtype=matrices.dtype) * (2 + torch.arange(columns))


def shape_of_sizes(shape: Sequence[Any], sizes: Mapping[str, int]) -> List[int]:
    return [sizes.get(size, 2) if isinstance(size, str) else size for size in shape]


def points(
    inputs: Mapping[str, Sequence[Any]],
    kinds: Mapping[str, str],
    dtype: torch.dtype,
    *,
    has_hard_values: bool,
    row: int = 0,
) -> Iterator[Point]:
    """Yield the points of an operation on inputs of such shapes; the names in them stand for sizes.

    For complex numbers, for later rows of arguments and for inputs behind the second there are fewer. Inputs without
    hard values are those of an elementwise function, which may have each other's shapes, too.
    """

    def made(sizes: Mapping[str, int], seed: int = 0, turned: bool = False) -> Values:
        shapes = list(inputs.values())
        return [
            ordinary(shape_of_sizes(shape, sizes), kinds.get(name, ""), seed + place, dtype)
            for place, (name, shape) in enumerate(zip(inputs, reversed(shapes) if turned else shapes))
        ]

    yield Point(ORDINARY, made(SIZES))
    if row == 0:
        yield Point(OTHER, made(SIZES, 3, turned=not has_hard_values))
    named = dict.fromkeys(size for shape in inputs.values() for size in shape if isinstance(size, str))
    for name, size in itertools.product(named, (1, 0)):
        yield Point(f"{name} = {size}", made({**SIZES, name: size}, 3))
    usual = made(SIZES) if has_hard_values else []
    for place, name in enumerate(inputs if has_hard_values else ()):
        is_invertible = kinds.get(name) == "invertible"
        plain = ordinary(usual[place].shape, "", place, dtype) if is_invertible else usual[place]
        for what, values in hard_values(plain).items():
            if what not in MOST_TELLING and (dtype.is_complex or place >= FULLY or row >= FULLY):
                continue
            hard = in_few_digits(invertible(values)) if is_invertible else values
            yield Point(f"{name} {what}", [*usual[:place], hard, *usual[place + 1 :]])


def hard_values(usual: torch.Tensor) -> Dict[str, torch.Tensor]:
    """Return an input with zeros, ties and numbers of very different size in place of ordinary ones."""
    if usual.numel() == 0:
        return {}
    flat = usual.reshape(-1)
    places = torch.arange(flat.numel())

    def at(chosen: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return torch.where(chosen, values, flat).reshape(usual.shape)

    zero = torch.zeros_like(flat)
    sizes = torch.tensor([1024, 1 / 1024, 1.0], dtype=torch.float64)[places % 3]
    return {
        "with a zero": at(places == flat.numel() // 2, zero),
        "with zeros": at(places % 2 == 0, zero),
        "of zeros": torch.zeros_like(usual),
        "with ties": at(places % 3 != 1, flat[:1].expand_as(flat)),
        EQUAL: at(places >= 0, flat[:1].expand_as(flat)),
        MAGNITUDES: (flat * sizes).reshape(usual.shape),
    }


def weights(like: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """Return numbers to weigh a tensor's elements with, few alike, none 0, and none the mean of its neighbours."""
    return weights_of(like.numel(), like.is_complex(), seed).reshape(like.shape).to(like.dtype, copy=True)


@lru_cache(maxsize=None)
def weights_of(count: int, is_complex: bool, seed: int) -> torch.Tensor:
    places = torch.arange(count, dtype=torch.float64) + 1
    signs = 1 - 2 * ((places + seed) % 3 == 0).double()
    made = signs * (0.5 + (places**2 * 0.7548776662466927 + seed * 0.56984029) % 1)
    if is_complex:
        made = torch.complex(made, 0.5 + (places**2 * 0.6180339887498949 + seed * 0.3) % 1)
    return in_few_digits(made)
