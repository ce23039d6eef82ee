"""Plain values: the contents of tensors and other objects as JSON values, and their comparison with a tolerance.

Values are compared in plain Python, so that broken arithmetic of torch is noticed.
"""

from __future__ import annotations

import cmath
import contextlib
import itertools
import math
import operator
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

# Relative and absolute tolerance by dtype: those of torch.testing.assert_close, but about ten rounding errors for the
# 16-bit types, as for float32: a gradient is the result of many operations.
TOLERANCES: Dict[torch.dtype, Tuple[float, float]] = {
    torch.float16: (1e-2, 1e-3), torch.bfloat16: (8e-2, 1e-2), torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7), torch.complex32: (1e-2, 1e-3), torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}  # fmt: skip
EXACT = (0.0, 0.0)
LARGEST = 10**4000  # of integers that are shown in decimals
MOST_DISPLAYED = 16  # elements of a list in a message
LONG = 16  # elements of a list that are compared together
# On these everything that checks look at can be read: there an error of looking is one of torch. PyTorch's own kernels
# are on these, too, and raise the same errors in the same words.
FULL_DEVICES = frozenset({"cpu", "cuda"})


class Unobservable(Exception):
    """A device can't show a property of a tensor, which says nothing of autograd on it.

    `within` is the part of a check that can't be seen, such as `.stride` of a gradient, if other parts were looked at.
    """

    within = ""


def plain(value: Any, depth: int = 0) -> Any:
    """Return `value` as numbers, text, lists and dicts; other objects become text."""
    if isinstance(value, torch.Tensor):
        return elements(value)
    if type(value) is int and not -LARGEST < value < LARGEST:
        return hex(value)  # Python reads no decimals of that length
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    if depth > 20:
        return "…"
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value).rpartition(".")[2]
    if isinstance(value, torch.device):
        return value.type
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {one_line(str(value))}"
    return name_of_node(value) if is_node(value) else type(value).__name__


def event_of(parts: Sequence[Any]) -> Any:
    """Return an event of the log with the current values of tensors: one value, or a list of several."""
    entries = [plain(part) for part in parts]
    return entries[0] if len(entries) == 1 else entries


def elements(tensor: torch.Tensor) -> Any:
    """Return the elements of a tensor of any layout as nested lists."""
    if tensor.layout is not torch.strided:
        return on_cpu(tensor).to_dense().tolist()
    # tolist() copies from a device, which autograd would record or refuse
    return (tensor if tensor.device.type == "cpu" else on_cpu(tensor)).tolist()


def on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """Return `tensor` detached and on the CPU, by one transfer and no other operation of its device.

    Raises Unobservable where a device can't transfer a layout that isn't strided.
    """
    detached = tensor.detach()
    if tensor.device.type == "cpu":
        return detached
    noted = tensor.is_conj(), tensor.is_neg()  # the device would have to compute what these bits only note
    try:
        with without_tangents():
            moved = flipped(detached, *noted).to("cpu")
    except Exception as error:
        if tensor.layout is torch.strided or tensor.device.type in FULL_DEVICES:
            raise
        raise Unobservable(f"its elements can't be read: {plain(error)}") from None
    return flipped(moved, *noted)


def flipped(tensor: torch.Tensor, is_conj: bool, is_neg: bool) -> torch.Tensor:
    """Return a view of `tensor` with the noted conjugation, the noted negation, or both, taken off or put on."""
    tensor = torch._neg_view(tensor) if is_neg else tensor
    return torch.conj(tensor) if is_conj else tensor


def without_tangents() -> Any:
    """Return a block in which operations leave tangents of forward mode alone."""
    switch = getattr(torch.autograd.forward_ad, "_set_fwd_grad_enabled", None)
    return contextlib.nullcontext() if switch is None else switch(False)


def is_node(value: Any) -> bool:
    return hasattr(value, "next_functions") and hasattr(value, "name")


def name_of_node(node: Any) -> Optional[str]:
    """Return the name of a node of the graph as its repr shows it, or None for no node."""
    return None if node is None else str(node.name()).rpartition("::")[2]


def one_line(text: str) -> str:
    return " ".join(text.split())


def agree(observed: Any, expected: Any, tolerance: Tuple[float, float]) -> bool:
    """Whether two plain values are the same, numbers within `tolerance` (relative, absolute)."""
    kind = type(expected)
    if kind is float and type(observed) is float:  # the most frequent case
        limit = tolerance[1] + tolerance[0] * abs(expected)
        return (
            observed == expected or abs(observed - expected) <= limit < math.inf or near(observed, expected, tolerance)
        )
    if kind is bool or type(observed) is bool:
        return observed is expected
    if isinstance(expected, (int, float, complex)):
        return isinstance(observed, (int, float, complex)) and near(observed, expected, tolerance)
    if kind is list:
        if not isinstance(observed, list) or len(observed) != len(expected):
            return False
        return is_within(observed, expected, tolerance[1]) or all(
            map(agree, observed, expected, itertools.repeat(tolerance))
        )
    if isinstance(expected, dict):
        if not isinstance(observed, dict) or observed.keys() != expected.keys():
            return False
        return all(agree(observed[key], expected[key], tolerance) for key in expected)
    return type(observed) is type(expected) and bool(observed == expected)


def is_within(observed: List[Any], expected: List[Any], limit: float) -> bool:
    """Whether two long lists have finite floats only, of which none differ by more than `limit`.

    It loops in C, and so takes a fifth of the time that comparing each pair takes.
    """
    if len(expected) < LONG or not {float} == set(map(type, observed)) == set(map(type, expected)):
        return False
    differences = list(map(abs, map(operator.sub, observed, expected)))
    return math.isfinite(sum(differences)) and max(differences) <= limit


def all_are(observed: Any, expected: Any, tolerance: Tuple[float, float]) -> bool:
    """Whether nested lists have elements, and all of them agree with `expected`."""
    found = leaves(observed)
    return bool(found) and agree(found, [expected] * len(found), tolerance)


def leaves(value: Any) -> List[Any]:
    found = [value]
    while list in set(map(type, found)):
        found = [leaf for item in found for leaf in (item if isinstance(item, list) else (item,))]
    return found


def near(observed: complex, expected: complex, tolerance: Tuple[float, float]) -> bool:
    if isinstance(observed, complex) or isinstance(expected, complex):
        first, second = complex(observed), complex(expected)
        if cmath.isfinite(first) and cmath.isfinite(second):
            return abs(first - second) <= tolerance[1] + tolerance[0] * abs(second)
        return near(first.real, second.real, tolerance) and near(first.imag, second.imag, tolerance)
    if isinstance(observed, int) and isinstance(expected, int):
        return observed == expected
    if math.isnan(expected) or math.isnan(observed):
        return math.isnan(expected) and math.isnan(observed)
    if math.isinf(expected) or math.isinf(observed):
        return observed == expected
    return abs(observed - expected) <= tolerance[1] + tolerance[0] * abs(expected)


def display_value(value: Any) -> str:
    """Return a plain value as a message shows it: a number to seven digits, a long list cut."""
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return f"{value:.1f}" if value.is_integer() and abs(value) < 1e7 else f"{value:.7g}"
    if isinstance(value, complex):
        return f"{value.real:.7g}{value.imag:+.7g}j"
    cut = ["…"] if isinstance(value, (list, dict)) and len(value) > MOST_DISPLAYED else []
    if isinstance(value, list):
        return "[" + ", ".join([display_value(item) for item in value[:MOST_DISPLAYED]] + cut) + "]"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join([f"{key}: {display_value(item)}" for key, item in list(value.items())[:MOST_DISPLAYED]] + cut)
            + "}"
        )
    return str(value)


def display_difference(expected: Any, observed: Any, tolerance: Tuple[float, float]) -> Tuple[str, str]:
    """Return two plain values that don't agree as a message shows them, so that the difference is seen.

    Where both look alike, in few digits or behind a cut, the first place where they differ is shown.
    """
    shown = display_value(expected), display_value(observed)
    if shown[0] != shown[1]:
        return shown
    pairs: List[Tuple[str, Any, Any]] = []
    if isinstance(expected, list) and isinstance(observed, list):
        pairs = [(f"[{index}]", *pair) for index, pair in enumerate(zip(expected, observed))]
        pairs += [("the length", len(expected), len(observed))]
    elif isinstance(expected, dict) and isinstance(observed, dict):
        pairs = [(f"{key}", value, observed[key]) for key, value in expected.items() if key in observed]
        pairs += [("the keys", sorted(expected), sorted(observed))]
    for place, first, second in pairs:
        if not agree(second, first, tolerance):
            inner = display_difference(first, second, tolerance)
            return f"{place}: {inner[0]}", f"{place}: {inner[1]}"
    if isinstance(expected, float) and isinstance(observed, float):
        for digits in range(8, 18):
            shown = f"{expected:.{digits}g}", f"{observed:.{digits}g}"
            if shown[0] != shown[1]:
                return shown
    return repr(expected), repr(observed)
