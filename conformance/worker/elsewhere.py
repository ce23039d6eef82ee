"""What is asked of an operation on a device other than the CPU: less, in the target's dtype and with wide tolerances.

Derivatives by differences are the CPU's. The device is held to them in the dtype that it is used with, at points where
its kernels need no more than a few digits; which numbers are hard for a formula is asked of the CPU.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import torch

from conformance.worker.differences import Slopes, real_vector
from conformance.worker.lacking import message_of
from conformance.worker.operation import Operation
from conformance.worker.points import EQUAL, FIRST_ALONE, ORDINARY, OTHER, Point
from conformance.worker.trial import NARROW_COMPLEX, ROUGH, Judgement, Trial
from conformance.worker.ways import EVERYWHERE, ONCE, Differentiation, backward, joined, natively
from conformance.worker.ways_mapped import per_sample
from conformance.worker.ways_twice import NARROW, SECOND

EMPTY = " = 0"  # what names of points without numbers end with
WIDE = (torch.float32, torch.float64)  # dtypes with the digits that second derivatives need

Lacking = Callable[[Exception, Callable[[], Any]], Optional[str]]  # of an error and what raises it, what is missing


def has_own_tensors(device: str) -> bool:
    """Whether tensors of a device are of a class of its own, by which it may take over what is computed on the CPU."""
    try:
        return type(torch.ones(1).to(device)) is not torch.Tensor
    except Exception:  # the operations will show it
        return False


def is_asked_elsewhere(point: Point, is_elementwise: bool) -> bool:
    """Whether a point is one of those that devices other than the CPU are asked about."""
    usual = (ORDINARY, OTHER, FIRST_ALONE, "0-dimensional")
    return is_elementwise or point.name in usual or point.name.endswith((EMPTY, " with zeros", EQUAL))


def narrowed(trial: Trial, dtype: torch.dtype) -> Optional[Trial]:
    """Return a trial in a dtype of a device, or None where it has too few digits, or no complex numbers."""
    is_complex = any(each.is_complex() for each in [*trial.point.values, *trial.given])
    if is_complex and dtype not in NARROW_COMPLEX:
        return None
    return trial.narrowed(dtype, from_values=trial.point.name.endswith(EMPTY))  # there the CPU has bugs of its own


def ways_elsewhere(trial: Trial, row: int, dtype: torch.dtype, *, is_first: bool) -> Dict[str, Differentiation]:
    """Return the ways to try at a point on a device other than the CPU, each of a trial in `dtype`."""
    is_usual = trial.point.name == ORDINARY
    if trial.is_elementwise or dtype not in WIDE:
        is_asked = is_first and (trial.is_elementwise or is_usual)
        return {"native dtype": lambda _: natively(trial, dtype, ROUGH)} if is_asked else {}
    ways: Dict[str, Differentiation] = {}
    if is_usual and is_first:
        ways = {**EVERYWHERE, **NARROW} if row else {**EVERYWHERE, **SECOND, **ONCE, "per sample": per_sample}
    return {**ways, "backward": results_and_gradient}


def results_and_gradient(trial: Trial) -> Judgement:
    """Go backward, unless the results are wrong already; they are looked at where numbers are ordinary."""
    count, told = results(trial) if trial.point.name in (ORDINARY, OTHER, FIRST_ALONE) else (0, [])
    return (count, told) if told else joined(iter([(count, told), backward(trial)]))


def results(trial: Trial) -> Judgement:
    """Compute without a graph: the results are those of the CPU in double precision."""
    with torch.no_grad():
        found = trial.operation(trial.on_device(trial.point.values))
        own = Operation(trial.operation.function, trial.operation.others, "cpu")  # spellings share derivatives alone
        wanted = own(trial.exactly.values)
    shapes = [[list(each.shape) for each in tensors] for tensors in (found, wanted)]
    if shapes[0] != shapes[1]:
        return 1, [trial.line(f"the results have the shapes {shapes[0]}, expected {shapes[1]}")]
    exact = real_vector(wanted)
    largest = exact[exact.isfinite()].abs().max().item() if bool(exact.isfinite().any()) else 0.0
    bound = torch.full_like(exact, trial.slack + ROUGH * largest)
    return trial.wrong("the result", found, Slopes(exact - bound, exact + bound).kept(exact.isfinite()))


def why_not_there(trial: Trial, lacking: Lacking) -> Optional[str]:
    """Return why a device can't compute an operation at all, or None where it can or is at fault."""

    def compute() -> None:
        with torch.no_grad():
            for each in trial.operation(trial.on_device(trial.point.values)):
                each.to("cpu")

    try:
        compute()
    except Exception as error:
        return message_of(error) if isinstance(error, NotImplementedError) else lacking(error, compute)
    return None
