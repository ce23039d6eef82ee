"""Puts a limit on the CPU that a device has silently: a case that has to fail for that fails there in the same way.

Some devices accept double precision and compute in single precision, or give single precision in its place; on others
views are copies, or random numbers are never the same again. None of them raises an error, so that a case which does
not hold there may have another cause.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any, Dict, List, Optional, Sequence

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

NARROW = {torch.float64: torch.float32, torch.complex128: torch.complex64}
OTHER = {**NARROW, torch.int64: torch.int32}
GRADCHECK = "GradcheckError"
METHODS = {
    torch.Tensor.double: torch.Tensor.float, torch.Tensor.cdouble: torch.Tensor.cfloat,
    torch.Tensor.long: torch.Tensor.int,
}  # fmt: skip


class Rounding(TorchDispatchMode):  # type: ignore[misc]  # torch has no types for it
    """While it is on, results in double precision have the digits of single precision.

    With a number of units, each is off by up to so many in the last place, as what is computed in single precision is:
    how much of that is left where terms cancel is chance. Whole numbers, which are computed without error, stay.
    """

    is_on = True

    def __init__(self, units: str = "0") -> None:
        super().__init__()
        self.units, self.draws = float(units), random.Random(0)  # noqa: S311 - the same in each run

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for each in tree_flatten(result)[0] if self.is_on and not gives_view(func) else ():
            if isinstance(each, torch.Tensor) and each.dtype in NARROW and each.layout is torch.strided:
                each.data.copy_(self.rounded(each.data))  # counts as no write to it
        return result

    def rounded(self, tensor: torch.Tensor) -> torch.Tensor:
        near = tensor.to(NARROW[tensor.dtype])
        if not self.units:
            return near
        off = near * (1 + self.draws.uniform(-1, 1) * self.units * torch.finfo(torch.float32).eps)
        parts = torch.view_as_real(near) if near.is_complex() else near
        is_whole = (parts == parts.round()).reshape(*near.shape, -1).all(-1)
        return torch.where(is_whole, near, off)


class Narrowing(TorchFunctionMode):  # type: ignore[misc]  # torch has no types for it
    """While it is on, who asks for double precision is given single precision, and integers have 32 bits."""

    is_on = True

    def __enter__(self) -> Any:
        self.default, self.put = torch.get_default_dtype(), torch._C._set_default_dtype
        torch._C._set_default_dtype = self.set_default  # not at each call: a compiler would find another than it had
        self.set_default(self.default)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch._C._set_default_dtype = self.put
        torch.set_default_dtype(self.default)

    def set_default(self, dtype: Any) -> None:
        self.put(narrow(dtype) if self.is_on else dtype)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self.is_on:
            return func(*args, **(kwargs or {}))
        given, named = tree_map(narrow, (args, kwargs or {}))
        call = METHODS.get(func, func)
        try:
            result = call(*given, **named)
        except RuntimeError:
            if not any(map(is_short, tree_flatten((given, named))[0])):
                raise
            given, named = tree_map(long, (given, named))  # indices have to be long on the CPU
            result = call(*given, **named)
        return tree_map(short, result) if isinstance(result, (torch.Tensor, tuple, list)) else result


class Copying(TorchDispatchMode):  # type: ignore[misc]  # torch has no types for it
    """While it is on, views have memory of their own; detach() shares it, by which autograd itself keeps gradients.

    With names of operations, such as aten::unfold, only what these give.
    """

    is_on = True

    def __init__(self, *operations: str) -> None:
        super().__init__()
        self.operations = operations

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self.is_on or not gives_view(func) or func.__name__ == "detach.default":
            return result
        if self.operations and func._schema.name not in self.operations:
            return result
        return tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each, result)


class Filling(TorchDispatchMode):  # type: ignore[misc]  # torch has no types for it
    """While it is on, zeros without memory, which formulas skip, are zeros like any others, with which they compute."""

    is_on = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        is_made = self.is_on and func.__name__.startswith("_efficientzerotensor")
        return (torch.zeros if is_made else func)(*args, **(kwargs or {}))


class Forgetting:
    """While it is on, the state of random numbers can't be brought back."""

    is_on = True

    def __enter__(self) -> None:
        self.put = torch.random.set_rng_state
        torch.set_rng_state = torch.random.set_rng_state = lambda _: None

    def __exit__(self, *_: object) -> None:
        torch.set_rng_state = torch.random.set_rng_state = self.put


class Unshown:
    """While it is on, the text of a tensor says nothing of its values and its place in the graph."""

    is_on = True

    def __enter__(self) -> None:
        self.put = [(each, each.__repr__) for each in (torch.Tensor, torch.nn.Parameter)]
        for each, _ in self.put:
            each.__repr__ = lambda *_, **__: "a tensor"

    def __exit__(self, *_: object) -> None:
        for each, put in self.put:
            each.__repr__ = put


LIMITS: Dict[str, Any] = {
    "rounding": Rounding, "narrowing": Narrowing, "copying": Copying, "filling": Filling, "forgetting": Forgetting,
    "unshown": Unshown,
}  # fmt: skip


class Limits:
    """The run of a case under limits: names in LIMITS, each with what it is about.

    What is expected of the case is worked out without them.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.modes: List[Any] = [LIMITS[name](*operations) for name, *operations in map(str.split, names)]
        self.references: Any = None

    def __call__(self, run: Any) -> Dict[str, Any]:
        self.references, run.references = run.references, self
        with contextlib.ExitStack() as stack:
            for mode in self.modes:
                stack.enter_context(mode)
            outcome: Dict[str, Any] = run.all_steps()
        return outcome

    def evaluate(self, *arguments: Any) -> Any:
        """Evaluate an expected value."""
        for mode in self.modes:
            mode.is_on = False
        try:
            return self.references.evaluate(*arguments)
        finally:
            for mode in self.modes:
                mode.is_on = True


def narrow(value: Any) -> Any:
    return OTHER.get(value, value) if isinstance(value, torch.dtype) else value


def short(value: Any) -> Any:
    is_long = isinstance(value, torch.Tensor) and value.dtype is torch.int64
    return value.to(torch.int32) if is_long else value


def is_short(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype is torch.int32


def long(value: Any) -> Any:
    return value.to(torch.int64) if is_short(value) else value


def gives_view(operation: Any) -> bool:
    schema = operation._schema
    return not schema.is_mutable and any(each.alias_info is not None for each in schema.returns)


def is_alike(answer: Dict[str, Any], limited: Optional[Dict[str, Any]]) -> bool:
    """Whether a case ended under limits as it did on a device: at the same step, and in no other check there.

    Which of several calls of gradcheck is the first to see differences of rounded values is chance. An error that
    gradcheck meets on the device alone is no such difference.
    """
    if limited is None or limited["status"] not in ("fail", "error"):
        return False
    kinds = {"", GRADCHECK, *(failure.get("exception", "") for failure in limited["failures"])}
    is_of_values = all(is_of_gradcheck(each) and each.get("exception", "") in kinds for each in answer["failures"])
    if is_of_values and any(map(is_of_gradcheck, limited["failures"])):
        return True
    same = (answer["status"], answer["step"]) == (limited["status"], limited["step"])
    return same and checks_of(answer) <= checks_of(limited)


def is_of_gradcheck(failure: Dict[str, Any]) -> bool:
    return "gradcheck(" in failure["path"] or failure.get("exception") == GRADCHECK


def checks_of(answer: Dict[str, Any]) -> "set[tuple[str, str]]":
    """Return the checks that failed, with the type of the error where that is what was seen."""
    return {(failure["path"], failure.get("exception", "")) for failure in answer.get("failures", ())}
