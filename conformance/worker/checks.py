"""The checks of expectations: each observes one thing about an object and says whether it is as expected.

A check takes the object, what is expected and the case that is running; it returns None when the
expectation holds, else what was expected and what was observed, as text. What torch warns of while somebody looks
at a tensor belongs to no step, and is dropped by whoever runs the case.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from conformance.worker.values import EXACT, TOLERANCES, agree, all_are, name_of_node, plain, shown

Difference = Optional[Tuple[str, str]]

OBSERVED: Dict[str, Callable[[Any], Any]] = {
    "is_leaf": lambda t: t.is_leaf,
    "requires_grad": lambda t: t.requires_grad,
    "retains_grad": lambda t: t.retains_grad,
    "is_inference": lambda t: t.is_inference(),
    "grad_fn": lambda t: name_of_node(t.grad_fn),
    "next_functions": lambda t: [name_of_node(node) for node, _ in t.grad_fn.next_functions],
    "version": lambda t: t._version,
    "output_nr": lambda t: t.output_nr,
    "shape": lambda t: list(t.shape),
    "stride": lambda t: list(t.stride()),
    "layout": lambda t: str(t.layout).rpartition(".")[2],
    "dtype": lambda t: str(t.dtype).rpartition(".")[2],
    "device": lambda t: t.device.type,
    "type": lambda t: type(t).__name__,
}


def check(subject: Any, name: str, expected: Any, case: Any, tolerance: Dict[str, float]) -> Difference:
    """Check one thing about `subject`; `tolerance` holds the rtol and atol that the case itself gives."""
    if name in ("value", "log"):
        return check_value(subject, expected, case, tolerance)
    if name in ("is", "is_not"):
        other = case.live(expected)
        return None if (subject is other) is (name == "is") else same_object(name, expected, subject)
    if name != "type" and not isinstance(subject, torch.Tensor):
        return f"a tensor, to look at its {name}", shown(plain(subject))
    if name == "grad":
        return check_grad(subject, expected, case, tolerance)
    if name in ("shares_storage", "not_shares_storage"):
        other = case.live(expected)
        if not isinstance(other, torch.Tensor):
            return f"{expected['expr']} to be a tensor", shown(plain(other))
        shared = shares_storage(subject, other)
        if shared is (name == "shares_storage"):
            return None
        return f"{'' if name == 'shares_storage' else 'not '}to share memory with {expected['expr']}", (
            "the same memory" if shared else "memory of its own"
        )
    if name == "view_of":
        return check_view(subject, expected, case)
    if name in ("dtype", "device") and expected == "target":
        expected = case.dtype_name if name == "dtype" else case.device.partition(":")[0]
    if name == "grad_fn" and expected is not None:
        expected = expected.rpartition("::")[2]
    observed = OBSERVED[name](subject)
    return None if agree(observed, expected, EXACT) else (shown(expected), shown(observed))


def same_object(name: str, expected: Any, subject: Any) -> Tuple[str, str]:
    if name == "is_not":
        return f"another object than {expected['expr']}", "the same object"
    return f"the same object as {expected['expr']}", f"another object, {shown(plain(subject))}"


def check_value(subject: Any, expected: Any, case: Any, tolerance: Dict[str, float]) -> Difference:
    wanted = case.reference(expected)
    relative, absolute = default_tolerance(subject, case)
    limits = (tolerance.get("rtol", relative), tolerance.get("atol", absolute))
    observed = plain(subject)
    is_tensor = isinstance(subject, torch.Tensor)
    if is_tensor and isinstance(wanted, (bool, int, float, complex)):
        fine = all_are(observed, wanted, limits)  # one number stands for every element
    elif isinstance(wanted, torch.Tensor) and is_tensor and list(wanted.shape) != list(subject.shape):
        return (
            f"{shown(plain(wanted))} of shape {list(wanted.shape)}",
            f"{shown(observed)} of shape {list(subject.shape)}",
        )
    else:
        wanted = wanted if type(expected) is list else plain(wanted)
        fine = agree(observed, wanted, limits)
    if fine:
        return None
    source = f" ({expected['expr']})" if isinstance(expected, dict) and "expr" in expected else ""
    return shown(plain(wanted)) + source, shown(observed)


def default_tolerance(subject: Any, case: Any) -> Tuple[float, float]:
    if isinstance(subject, torch.Tensor):
        return TOLERANCES.get(subject.dtype, EXACT)
    return TOLERANCES[case.dtype]


def check_grad(subject: torch.Tensor, expected: Any, case: Any, tolerance: Dict[str, float]) -> Difference:
    """Check a gradient; one that is there must have the tensor's shape, dtype and device too."""
    grad = subject.grad
    if expected is None or grad is None:
        if expected is None and grad is None:
            return None
        return "null" if expected is None else describe(expected), shown(plain(grad))
    inner: List[List[Any]] = expected["checks"] if isinstance(expected, dict) and "checks" in expected else []
    named = {name for name, _, _ in inner}
    for name in ("shape", "dtype", "device"):
        observed, wanted = OBSERVED[name](grad), OBSERVED[name](subject)
        if name not in named and observed != wanted:
            return f"{name} {shown(wanted)}, the tensor's own", f"{name} {shown(observed)}"
    if not inner:
        return check_value(grad, expected, case, tolerance)
    own = {name: value for name, value, _ in inner if name in ("rtol", "atol")}
    for name, value, _ in inner:
        difference = None if name in own else check(grad, name, value, case, {**tolerance, **own})
        if difference:
            return f"{name} {difference[0]}", difference[1]
    return None


def describe(expected: Any) -> str:
    if isinstance(expected, dict) and "checks" in expected:
        return "a gradient with " + ", ".join(f"{name} {describe(value)}" for name, value, _ in expected["checks"])
    if isinstance(expected, list):
        return "[" + ", ".join(map(describe, expected)) + "]"
    return str(expected["expr"]) if isinstance(expected, dict) else shown(expected)


def check_view(subject: torch.Tensor, expected: Any, case: Any) -> Difference:
    base = subject._base
    if expected is None:
        return None if base is None else ("null: no view", f"a view of a tensor of shape {list(base.shape)}")
    if base is case.live(expected):
        return None
    return f"a view of {expected['expr']}", "no view" if base is None else "a view of another tensor"


def shares_storage(first: torch.Tensor, second: torch.Tensor) -> bool:
    pointers = [storage_pointer(first), storage_pointer(second)]
    if 0 not in pointers:
        return pointers[0] == pointers[1]
    is_alias = getattr(torch._C, "_is_alias_of", None)  # for devices that don't tell addresses
    return bool(is_alias(first, second)) if is_alias is not None else False


def storage_pointer(tensor: torch.Tensor) -> int:
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return int(storage.data_ptr())
