"""The differences that derivatives are held to, against functions that are not torch's, in sixty digits.

So a wrong function of torch and differences of it can't agree on a wrong derivative without being noticed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import pytest
import torch
from shipped import all_cases

from conformance.worker.operation import Operation
from conformance.worker.points import elementwise_point
from conformance.worker.trial import SLACK, Trial

DIGITS = 60
STEP = mp.mpf(10) ** -25  # relative to the number that is moved
ZERO, ONE, HALF = mp.mpf(0), mp.mpf(1), mp.mpf(0.5)


def sigmoid(x: Any) -> Any:
    return ONE / (ONE + mp.exp(-x))


def softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x))


def ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def clamped(x: Any, low: Any, high: Any) -> Any:
    return min(max(x, low), high)


def xlogy(x: Any, y: Any) -> Any:
    return x * mp.log(y) if x else ZERO


def scaled_error(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def mish(x: Any) -> Any:
    return x * mp.tanh(softplus(x))


def elu(x: Any) -> Any:
    return x if x > 0 else mp.expm1(x)


def selu(x: Any) -> Any:
    scale, alpha = mp.mpf("1.0507009873554804934193349852946"), mp.mpf("1.6732632423543772848170429916717")
    return scale * (x if x > 0 else alpha * mp.expm1(x))


def gelu_by_tanh(x: Any) -> Any:
    return x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)))


def smooth_loss(x: Any, y: Any) -> Any:
    error = abs(x - y)
    return error**2 / 2 if error < 1 else error - HALF


SINGLE: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sigmoid": ("", torch.sigmoid, sigmoid), "tanh": ("", torch.tanh, mp.tanh), "sin": ("", torch.sin, mp.sin),
    "cos": ("", torch.cos, mp.cos), "tan": ("unit", torch.tan, mp.tan), "asin": ("unit", torch.asin, mp.asin),
    "acos": ("unit", torch.acos, mp.acos), "atan": ("", torch.atan, mp.atan), "sinh": ("", torch.sinh, mp.sinh),
    "cosh": ("", torch.cosh, mp.cosh), "asinh": ("", torch.asinh, mp.asinh), "acosh": ("beyond", torch.acosh, mp.acosh),
    "atanh": ("unit", torch.atanh, mp.atanh), "exp": ("", torch.exp, mp.exp), "exp2": ("", torch.exp2, lambda x: 2**x),
    "expm1": ("", torch.expm1, mp.expm1), "natural-logarithm": ("positive", torch.log, mp.log),
    "log2": ("positive", torch.log2, lambda x: mp.log(x, 2)), "log10": ("positive", torch.log10, mp.log10),
    "log1p": ("positive", torch.log1p, mp.log1p), "logit": ("unit", torch.logit, lambda x: mp.log(x / (1 - x))),
    "sqrt": ("positive", torch.sqrt, mp.sqrt), "rsqrt": ("positive", torch.rsqrt, lambda x: 1 / mp.sqrt(x)),
    "square": ("", torch.square, lambda x: x * x), "reciprocal": ("", torch.reciprocal, lambda x: 1 / x),
    "abs": ("", torch.abs, abs), "sign": ("", torch.sign, mp.sign), "floor": ("", torch.floor, mp.floor),
    "ceil": ("", torch.ceil, mp.ceil), "trunc": ("", torch.trunc, lambda x: mp.mpf(int(x))),
    "frac": ("", torch.frac, lambda x: x - int(x)), "erf": ("", torch.erf, mp.erf), "erfc": ("", torch.erfc, mp.erfc),
    "erfcx": ("", torch.special.erfcx, scaled_error), "erfinv": ("unit", torch.erfinv, mp.erfinv),
    "ndtr": ("", torch.special.ndtr, ndtr), "log-ndtr": ("", torch.special.log_ndtr, lambda x: mp.log(ndtr(x))),
    "ndtri": ("unit", torch.special.ndtri, lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1)),
    "entr": ("positive", torch.special.entr, lambda x: -xlogy(x, x)), "lgamma": ("positive", torch.lgamma, mp.loggamma),
    "digamma": ("positive", torch.digamma, mp.digamma),
    "polygamma": ("positive", lambda x: torch.polygamma(2, x), lambda x: mp.psi(2, x)),
    "i0": ("", torch.i0, lambda x: mp.besseli(0, x)),
    "i0e": ("", torch.special.i0e, lambda x: mp.besseli(0, x) * mp.exp(-abs(x))),
    "i1": ("", torch.special.i1, lambda x: mp.besseli(1, x)),
    "i1e": ("", torch.special.i1e, lambda x: mp.besseli(1, x) * mp.exp(-abs(x))),
    "sinc": ("", torch.sinc, mp.sincpi), "deg2rad": ("", torch.deg2rad, mp.radians),
    "rad2deg": ("", torch.rad2deg, mp.degrees), "relu": ("", torch.relu, lambda x: max(x, ZERO)),
    "relu6": ("", torch.nn.functional.relu6, lambda x: clamped(x, 0, 6)), "elu": ("", torch.nn.functional.elu, elu),
    "selu": ("", torch.selu, selu), "celu": ("", torch.celu, elu),
    "gelu": ("", torch.nn.functional.gelu, lambda x: x * ndtr(x)),
    "gelu by tanh": ("", lambda x: torch.nn.functional.gelu(x, approximate="tanh"), gelu_by_tanh),
    "silu": ("", torch.nn.functional.silu, lambda x: x * sigmoid(x)), "mish": ("", torch.nn.functional.mish, mish),
    "hardswish": ("", torch.nn.functional.hardswish, lambda x: x * clamped(x + 3, 0, 6) / 6),
    "hardsigmoid": ("", torch.nn.functional.hardsigmoid, lambda x: clamped(x / 6 + HALF, 0, 1)),
    "hardtanh": ("", torch.nn.functional.hardtanh, lambda x: clamped(x, -1, 1)),
    "hardshrink": ("", torch.nn.functional.hardshrink, lambda x: x if abs(x) > HALF else ZERO),
    "softshrink": ("", torch.nn.functional.softshrink, lambda x: mp.sign(x) * max(abs(x) - HALF, ZERO)),
    "tanhshrink": ("", torch.nn.functional.tanhshrink, lambda x: x - mp.tanh(x)),
    "logsigmoid": ("", torch.nn.functional.logsigmoid, lambda x: -softplus(-x)),
    "softsign": ("", torch.nn.functional.softsign, lambda x: x / (1 + abs(x))),
    "gammainc": (
        "positive", lambda x: torch.special.gammainc(torch.full_like(x, 2.5), x),
        lambda x: mp.gammainc(mp.mpf("2.5"), 0, x, regularized=True),
    ),
    "zeta": ("positive", lambda x: torch.special.zeta(torch.full_like(x, 3.5), x), lambda x: mp.zeta(mp.mpf("3.5"), x)),
    "number-to-a-power": ("", lambda x: 2.0**x, lambda x: 2**x),
    "power-with-a-number": ("positive", lambda x: x**2.5, lambda x: x ** mp.mpf("2.5")),
}  # fmt: skip
PAIRS: dict[str, tuple[list[str], Callable[..., Any], Callable[..., Any]]] = {
    "mul": (["", ""], torch.mul, lambda x, y: x * y), "div": (["", "positive"], torch.div, lambda x, y: x / y),
    "pow": (["positive", ""], torch.pow, lambda x, y: x**y), "atan2": (["", ""], torch.atan2, mp.atan2),
    "hypot": (["", ""], torch.hypot, mp.hypot), "maximum": (["", ""], torch.maximum, max),
    "minimum": (["", ""], torch.minimum, min), "xlogy": (["", "positive"], torch.xlogy, xlogy),
    "xlog1py": (["", "positive"], torch.special.xlog1py, lambda x, y: xlogy(x, 1 + y)),
    "logaddexp": (["", ""], torch.logaddexp, lambda x, y: mp.log(mp.exp(x) + mp.exp(y))),
    "logaddexp2": (["", ""], torch.logaddexp2, lambda x, y: mp.log(mp.mpf(2) ** x + mp.mpf(2) ** y, 2)),
    "copysign": (["", ""], torch.copysign, lambda x, y: abs(x) * (1 if y > 0 else -1)),
    "mse-loss": (["", ""], lambda x, y: (x - y) ** 2, lambda x, y: (x - y) ** 2),
    "l1-loss": (["", ""], lambda x, y: (x - y).abs(), lambda x, y: abs(x - y)),
    "smooth-l1-loss": (
        ["", ""], lambda x, y: torch.nn.functional.smooth_l1_loss(x, y, reduction="none"), smooth_loss,
    ),
    "kl-div-with-logarithms": (
        ["", ""], lambda x, y: torch.nn.functional.kl_div(x, y, reduction="none", log_target=True),
        lambda x, y: mp.exp(y) * (y - x),
    ),
    "binary-cross-entropy-with-logits": (
        ["", "unit"],
        lambda x, y: torch.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none"),
        lambda x, y: softplus(x) - x * y,
    ),
}  # fmt: skip
ALL = {**{name: ([kind], own, exact) for name, (kind, own, exact) in SINGLE.items()}, **PAIRS}


def derivative(function: Callable[..., Any], numbers: list[float], place: int) -> Any:
    """Return the derivative of a function of mpmath, or None where it has none that is finite."""
    with mp.workdps(DIGITS):
        exact = [mp.mpf(number) for number in numbers]
        step = STEP * max(abs(exact[place]), mp.mpf("1e-3"))
        sides = [[*exact[:place], exact[place] + sign * step, *exact[place + 1 :]] for sign in (1, -1)]
        try:
            plus, minus = (function(*each) for each in sides)
        except (ValueError, ZeroDivisionError, OverflowError, mp.libmp.libhyper.NoConvergence):
            return None
        found = (plus - minus) / (2 * step)
        return float(found) if mp.im(found) == 0 and mp.isfinite(found) and abs(found) < 1e300 else None


def wrong_bounds(kinds: list[str], function: Callable[..., Any], exact: Callable[..., Any]) -> tuple[list[str], int]:
    """Return what is wrong with the bounds of derivatives at the hard numbers, and how many could be compared."""
    point = elementwise_point(kinds)
    bounds = Trial(Operation(function, {}, "cpu"), point, True).first.pulled(torch.ones_like(point.values[0]))
    count = point.values[0].numel()
    wrong, compared = [], 0
    for place in range(len(kinds) * count):
        numbers = [each[place % count].item() for each in point.values]
        low, high = bounds.low[place].item(), bounds.high[place].item()
        if not (math.isfinite(low) and math.isfinite(high) and all(map(math.isfinite, numbers))):
            continue
        wanted = derivative(exact, numbers, place // count)
        if wanted is None:
            continue
        compared += 1
        slack = SLACK + 1e-6 * abs(wanted)
        if not low - slack <= wanted <= high + slack:
            wrong.append(f"by input {place // count} at {numbers}: {wanted}, not in {low} to {high}")
    return wrong, compared


@pytest.mark.parametrize("name", ALL)
def test_differences_have_the_derivatives_of_functions_in_many_digits(name: str) -> None:
    kinds, function, exact = ALL[name]
    wrong, compared = wrong_bounds(kinds, function, exact)
    assert not wrong
    assert compared >= 20


def test_a_wrong_function_is_noticed() -> None:
    wrong, compared = wrong_bounds([""], lambda x: torch.where(x > 2, x.sin() * 1.001, x.sin()), mp.sin)
    assert 0 < len(wrong) < compared


def test_the_functions_are_those_of_entries() -> None:
    ids = {case.id.removeprefix("derivatives-of-") for case in all_cases()}
    assert ALL.keys() - ids == {"gelu by tanh"}
