"""The checks of expectations: each compares one property of an object with its expected value.

A check takes the object, the expected value, the running case, and the rtol and atol of the expectation. It returns
None when the expectation holds, else the expected and the observed value as text. Warnings during a check are not part
of any step; the runner drops them.

A check raises Unobservable where the device can't show what it looks at. That may be how a tensor lies in memory: its
storage, strides and layout, the elements of a layout that isn't strided, and whether it is an inference tensor. It is
never what autograd itself keeps (leaf, requires_grad, gradient, node, version) or a result; an error there is torch's.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from conformance.worker.storage import keeps_strides, shares_storage
from conformance.worker.values import (
    EXACT,
    FULL_DEVICES,
    TOLERANCES,
    Unobservable,
    agree,
    all_are,
    display_difference,
    display_value,
    name_of_node,
    plain,
)

Mismatch = Optional[Tuple[str, str]]
Check = Callable[[Any, Any, Any, Dict[str, float]], Mismatch]
# Nodes of functions that PyTorch composes of others on the CPU, and those that stand there on some other devices.
OTHER_NODES = {
    "LinalgVectorNormBackward0": r"NormBackward\d",
    "AddmmBackward0": "LinearBackward0",
}


def difference_of(subject: Any, name: str, expected: Any, case: Any, tolerance: Dict[str, float]) -> Mismatch:
    """Run the check `name` on `subject`; `tolerance` holds the rtol and atol that the case gives."""
    check = CHECKS[name]
    if name not in OF_ANYTHING and not isinstance(subject, torch.Tensor):
        return f"a tensor, to look at its {name}", display_value(plain(subject))
    return check(subject, expected, case, tolerance)


def sees(look: Callable[[Any], Any], meant: Optional[Callable[[Any, Any], Any]] = None) -> Check:
    """Return a check that compares `look(subject)` with the expected value, after converting that by `meant`."""

    def compare(subject: Any, expected: Any, case: Any, _: Dict[str, float]) -> Mismatch:
        if meant is not None:
            expected = meant(expected, case)
        observed = look(subject)
        return None if agree(observed, expected, EXACT) else display_difference(expected, observed, EXACT)

    return compare


def looks_at_memory(look: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `look`, with Unobservable in place of the errors of devices that may be unable to show it."""

    def seen(tensor: torch.Tensor) -> Any:
        try:
            return look(tensor)
        except Unobservable:
            raise
        except Exception as error:
            if tensor.device.type in FULL_DEVICES:
                raise
            raise Unobservable(plain(error)) from None

    return seen


def looks_at_strides(look: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `look`, with Unobservable on devices that keep no strides, too."""

    def seen(tensor: torch.Tensor) -> Any:
        if not keeps_strides(tensor.device.type):
            raise Unobservable(f"{tensor.device.type} keeps no strides")
        return look(tensor)

    return looks_at_memory(seen)


def is_node_of(observed: Any, expected: Any, device: str) -> bool:
    """Whether a node's name, or each of a list, is the expected one, or one that PyTorch may use in its place."""
    if isinstance(expected, list):
        return len(observed) == len(expected) and all(map(is_node_of, observed, expected, [device] * len(expected)))
    pattern = OTHER_NODES.get(expected) if device not in FULL_DEVICES else None
    return agree(observed, expected, EXACT) or bool(pattern and observed and re.fullmatch(pattern, observed))


MODULES_OF_CASES = ("__case__", "__main__")  # of the classes that a case defines, here and in a script


def class_of(value: Any) -> str:
    """Return the name of a value's class; one that a device has for all its tensors may be that of a Parameter too."""
    is_tensor = isinstance(value, torch.Tensor) and value.device.type not in FULL_DEVICES
    parameter = torch.nn.Parameter
    is_of_case = type(value).__module__ in MODULES_OF_CASES
    is_marked = is_tensor and isinstance(value, parameter) and not issubclass(type(value), parameter) and not is_of_case
    return "Parameter" if is_marked else type(value).__name__


def sees_nodes(look: Callable[[Any], Any]) -> Check:
    """Return a check that compares names of nodes."""

    def compare(subject: torch.Tensor, expected: Any, _: Any, __: Dict[str, float]) -> Mismatch:
        if isinstance(expected, str):
            expected = expected.rpartition("::")[2]
        observed = look(subject)
        if is_node_of(observed, expected, subject.device.type):
            return None
        return display_value(expected), display_value(observed)

    return compare


def shape_of(tensor: torch.Tensor) -> List[int]:
    return list(tensor.shape)


def dtype_of(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def device_of(tensor: torch.Tensor) -> str:
    return str(tensor.device.type)


def grad_of(tensor: torch.Tensor) -> Optional[torch.Tensor]:
    return tensor.grad


def base_of(tensor: torch.Tensor) -> Optional[torch.Tensor]:
    return tensor._base


def is_same(same: bool) -> Check:
    """Return the check that an object is identical to another one, or that it isn't."""

    def compare(subject: Any, expected: Any, case: Any, _: Dict[str, float]) -> Mismatch:
        if (subject is case.live(expected)) is same:
            return None
        if not same:
            return f"another object than {expected['expr']}", "the same object"
        return f"the same object as {expected['expr']}", f"another object, {display_value(plain(subject))}"

    return compare


def check_value(subject: Any, expected: Any, case: Any, tolerance: Dict[str, float]) -> Mismatch:
    wanted = case.reference(expected)
    is_tensor = isinstance(subject, torch.Tensor)
    usual = TOLERANCES.get(subject.dtype, EXACT) if is_tensor else TOLERANCES[case.dtype]
    limits = limits_of(tolerance, usual, case.device)
    observed = plain(subject)
    if is_tensor and isinstance(wanted, (bool, int, float, complex)):
        fine = all_are(observed, wanted, limits)  # a number is compared with every element
    elif isinstance(wanted, torch.Tensor) and is_tensor and shape_of(wanted) != shape_of(subject):
        return (
            f"{display_value(plain(wanted))} of shape {shape_of(wanted)}",
            f"{display_value(observed)} of shape {shape_of(subject)}",
        )
    else:
        wanted = wanted if type(expected) is list else plain(wanted)
        fine = agree(observed, wanted, limits)
    if fine:
        return None
    source = f" ({expected['expr']})" if isinstance(expected, dict) and "expr" in expected else ""
    told, seen = display_difference(plain(wanted), observed, limits)
    return told + source, seen


def limits_of(tolerance: Dict[str, float], usual: Tuple[float, float], device: str) -> Tuple[float, float]:
    """Return the relative and absolute tolerance that a case gives, or else the usual ones of a dtype.

    Kernels other than PyTorch's may round otherwise: on their devices a tolerance is no smaller than the usual one,
    unless it is 0.
    """
    given = tuple(tolerance.get(name, each) for name, each in zip(("rtol", "atol"), usual))
    if device.partition(":")[0] in FULL_DEVICES:
        return given[0], given[1]
    return max(given[0], usual[0] * (given[0] > 0)), max(given[1], usual[1] * (given[1] > 0))


def check_grad(subject: torch.Tensor, expected: Any, case: Any, tolerance: Dict[str, float]) -> Mismatch:
    """Check a gradient; unless it is None, its shape, dtype and device must be the tensor's too."""
    grad = grad_of(subject)
    if expected is None or grad is None:
        if expected is None and grad is None:
            return None
        return "null" if expected is None else described(expected), display_value(plain(grad))
    inner: List[List[Any]] = expected["checks"] if isinstance(expected, dict) and "checks" in expected else []
    named = {name for name, _, _ in inner}
    for name, look in (("shape", shape_of), ("dtype", dtype_of), ("device", device_of)):
        observed, wanted = look(grad), look(subject)
        if name not in named and observed != wanted:
            return f"{name} {display_value(wanted)}, the tensor's own", f"{name} {display_value(observed)}"
    if not inner:
        return check_value(grad, expected, case, tolerance)
    own = {name: value for name, value, _ in inner if name in ("rtol", "atol")}
    hidden: Optional[Unobservable] = None
    for name, value, _ in inner:
        try:
            difference = None if name in own else difference_of(grad, name, value, case, {**tolerance, **own})
        except Unobservable as error:
            error.within = f".{name}{error.within}"
            hidden = hidden or error
            continue
        if difference:
            return f"{name} {difference[0]}", difference[1]
    if hidden is not None:
        raise hidden
    return None


def described(expected: Any) -> str:
    if isinstance(expected, dict) and "checks" in expected:
        return "a gradient with " + ", ".join(f"{name} {described(value)}" for name, value, _ in expected["checks"])
    if isinstance(expected, list):
        return "[" + ", ".join(map(described, expected)) + "]"
    return str(expected["expr"]) if isinstance(expected, dict) else display_value(expected)


def check_view(subject: torch.Tensor, expected: Any, case: Any, _: Dict[str, float]) -> Mismatch:
    base = base_of(subject)
    if expected is None:
        return None if base is None else ("null: no view", f"a view of a tensor of shape {shape_of(base)}")
    if base is case.live(expected):
        return None
    return f"a view of {expected['expr']}", "no view" if base is None else "a view of another tensor"


def is_shared(shared: bool) -> Check:
    """Return the check that a tensor shares memory with another one, or that it doesn't."""

    def compare(subject: torch.Tensor, expected: Any, case: Any, _: Dict[str, float]) -> Mismatch:
        other = case.live(expected)
        if not isinstance(other, torch.Tensor):
            return f"{expected['expr']} to be a tensor", display_value(plain(other))
        if shares_storage(subject, other) is shared:
            return None
        if not shared:
            return f"not to share memory with {expected['expr']}", "the same memory"
        return f"to share memory with {expected['expr']}", "memory of its own"

    return compare


# Each check by its name in cases; a script includes only the entries that it needs.
CHECKS: Dict[str, Check] = {
    "is_leaf": sees(lambda t: t.is_leaf),
    "requires_grad": sees(lambda t: t.requires_grad),
    "retains_grad": sees(lambda t: t.retains_grad),
    "is_inference": sees(looks_at_memory(lambda t: t.is_inference())),
    "grad": check_grad,
    "grad_fn": sees_nodes(lambda t: name_of_node(t.grad_fn)),
    "next_functions": sees_nodes(lambda t: [name_of_node(node) for node, _ in t.grad_fn.next_functions]),
    "value": check_value,
    "log": check_value,
    "version": sees(lambda t: t._version),
    "output_nr": sees(lambda t: t.output_nr),
    "shape": sees(shape_of),
    "stride": sees(looks_at_strides(lambda t: list(t.stride()))),
    "is_contiguous": sees(looks_at_strides(lambda t: t.is_contiguous())),
    "layout": sees(looks_at_memory(lambda t: str(t.layout).rpartition(".")[2])),
    "dtype": sees(dtype_of, lambda name, case: case.dtype_name if name == "target" else name),
    "device": sees(device_of, lambda name, case: case.device.partition(":")[0] if name == "target" else name),
    "type": sees(class_of),
    "is": is_same(True),
    "is_not": is_same(False),
    "shares_storage": is_shared(True),
    "not_shares_storage": is_shared(False),
    "view_of": check_view,
}
OF_ANYTHING = frozenset({"value", "log", "is", "is_not", "type"})  # the others need a tensor
