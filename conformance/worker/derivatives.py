"""Differentiates an operation at its hard points in all ways that must agree, and compares with differences.

The derivatives of the first order are held to differences of the operation's values in double precision on the CPU,
those of the second order to differences of the gradients. A way that this torch or device has not implemented is left
out and said so; a point where the differences do not converge is not judged. Another device is asked less, see
`elsewhere`.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

import torch

from conformance.worker.differences import slopes
from conformance.worker.elsewhere import (
    Lacking,
    has_own_tensors,
    is_asked_elsewhere,
    narrowed,
    ways_elsewhere,
    why_not_there,
)
from conformance.worker.lacking import message_of
from conformance.worker.large import Large, large_values
from conformance.worker.operation import Operation, Others
from conformance.worker.points import (
    EQUAL,
    FIRST_ALONE,
    FULLY,
    ORDINARY,
    OTHER,
    Point,
    elementwise_point,
    ordinary,
    points,
)
from conformance.worker.trial import NARROW_COMPLEX, Judgement, Trial
from conformance.worker.values import Unobservable, plain
from conformance.worker.ways import EVERYWHERE, ONCE, expanded_inputs, natively, on_meta, some_tangents
from conformance.worker.ways_mapped import per_sample
from conformance.worker.ways_twice import NARROW, SECOND, backward_three_times, some_inputs_twice

BROKEN = re.compile(r"Trying to set a forward gradient that has a different size")  # a formula for tangents gave it
MOST_TOLD = 4  # disagreements of one way
MISSING = re.compile(
    r"(?:has|have) not been implemented|is not implemented|not implemented for|not currently support"
    r"|(?:is|are) (?:unsupported|not supported)|^vmap: .* is not possible|is not differentiable"
    r"|NestedTensor|to be nested|Sparse (?:CS|BS)[RC] tensors do not|sparse coordinate tensor layout|Sparse division"
    r"|on sparse tensor|expected to contain only concrete integers"
)
BROADCAST = (["n", "m"], ["m"], ["n", 1])  # shapes of the inputs of an elementwise function
NATIVE_WAY = "native dtype"
TWICE = "some inputs twice"  # which is not tried where a way disagrees that takes all inputs, or some once
COMPLEX = "complex numbers"  # what may be missing of an operation that is there for real ones
LookedAt = Callable[[Any], Judgement]  # of a trial, or of many numbers
OWN = frozenset(
    function.__code__.co_filename
    for function in (natively, backward_three_times, points, slopes, Trial.line, Large.line, Operation.values)
)
WAYS = (
    *EVERYWHERE,
    *SECOND,
    *ONCE,
    "per sample",
    "some tangents",
    TWICE,
    "backward three times",
    "on meta",
    NATIVE_WAY,
)


class Found:
    """What derivatives() found: for each way the disagreements, each in a line."""

    def __init__(self, is_elsewhere: bool, lacking: Optional[Lacking] = None) -> None:
        self.is_elsewhere = is_elsewhere
        self.lacking: Lacking = lacking or (lambda *_: None)
        self.told: Dict[str, List[str]] = {way: [] for way in WAYS}
        self.missing: Dict[str, str] = {}
        self.judged: Dict[str, int] = dict.fromkeys(WAYS, 0)
        self.told_already: Set[str] = set()  # ways that say again what others have said, and weren't tried

    def __getitem__(self, way: str) -> List[str]:
        """Return the disagreements of a way; raise Unobservable if nothing can be said of it.

        Of another device not each way is asked, which needn't be said where others are.
        """
        told = self.told[way]
        is_left_out = way in self.told_already or (
            self.is_elsewhere and way not in self.missing and any(self.judged.values())
        )
        if not told and not self.judged[way] and not is_left_out:
            raise Unobservable(self.missing.get(way, "no point could be judged"))
        return told[:MOST_TOLD] + [f"and {len(told) - MOST_TOLD} more"] * (len(told) > MOST_TOLD)


def derivatives(  # noqa: PLR0913 - the keys of an entry, and the target
    function: Any,
    inputs: Mapping[str, Any],
    rows: Sequence[Others] = ({},),
    *,
    complex_too: bool = False,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    lacking: Optional[Lacking] = None,
) -> Found:
    """Return the disagreements of the derivatives of `function` in all ways, at all points, for all rows of arguments.

    `function` is one, or a list of several that have the same derivatives. `inputs` has the shape of each
    differentiable input, a list in which names stand for sizes, or a mapping from a kind of numbers to it; for an
    elementwise function it has the kind alone, and there are hard numbers, too. What the function itself refuses at a
    hard point is not differentiated there. `lacking` finds out what another device lacks, where words don't tell.
    """
    found = Found(device != "cpu", lacking)
    if found.is_elsewhere and has_own_tensors(device):
        raise Unobservable(f"tensors of {device} are of a class of its own, which may take over what the CPU computes")
    functions = function if isinstance(function, list) else [function]
    for place, others in enumerate(rows):
        operations = [Operation(each, others, device) for each in functions]
        look_at_all(found, operations, all_points(inputs, complex_too, place), dtype, place)
    look_at_large(found, Operation(functions[0], rows[0], device), inputs, dtype)
    return found


def look_at_all(
    found: Found,
    operations: Sequence[Operation],
    chosen: Iterable[Tuple[Point, bool]],
    dtype: torch.dtype,
    row: int,
) -> None:
    """Differentiate the spellings of an operation at points; an error that one raises at its first is raised here."""
    missing: List[Dict[str, str]] = [{} for _ in operations]
    refused = list(operations)
    for point, is_elementwise in chosen:
        if found.is_elsewhere and not is_asked_elsewhere(point, is_elementwise):
            continue
        trial = None
        is_for_all = is_elementwise or point.name in (ORDINARY, FIRST_ALONE)
        for operation, own in zip(operations if is_for_all else operations[:1], missing):
            try:
                trial = Trial(operation, point, is_elementwise) if trial is None else trial.spelled(operation)
            except Exception:
                if operation in refused:
                    raise
                break
            refused = [each for each in refused if each is not operation]
            is_first = operation is operations[0]
            if found.is_elsewhere:
                look_elsewhere(found, trial, ways_elsewhere(trial, row, dtype, is_first=is_first), dtype, own)
            else:
                look(found, trial, ways_at(trial, row, dtype, is_first=is_first), dtype, own)
    for each in missing:
        found.missing.update(each)


def look_elsewhere(
    found: Found, trial: Trial, ways: Mapping[str, LookedAt], dtype: torch.dtype, missing: Dict[str, str]
) -> None:
    """Try an operation at a point on a device other than the CPU, if it can be computed there at all."""
    try:
        given = narrowed(trial, dtype)
    except Exception:  # the CPU itself has no gradients there
        return
    if given is None or (COMPLEX in missing and has_complex(trial)):
        return
    why = why_not_there(given, found.lacking) if trial.point.name == ORDINARY else None
    if why is None:
        look(found, given, ways, dtype, missing)
    elif has_complex(trial):
        missing[COMPLEX] = why
    else:
        missing.update(dict.fromkeys(WAYS, why))


def has_complex(trial: Trial) -> bool:
    return any(each.is_complex() for each in trial.point.values)


def look_at_large(found: Found, operation: Operation, inputs: Mapping[str, Any], dtype: torch.dtype) -> None:
    """Differentiate an operation on many numbers; one that refuses them, as its other arguments may, is not."""
    shapes, kinds = shapes_and_kinds(inputs)
    values = large_values(shapes, kinds)
    try:
        large = None if values is None else Large(operation, values)
    except Exception:
        return
    if large is None:
        return
    ways: Dict[str, LookedAt] = {} if found.is_elsewhere else {"backward": Large.backward}
    if dtype == torch.float32:
        ways[NATIVE_WAY] = lambda large: large.natively(dtype)
    look(found, large, {way: ways[way] for way in ways if not found.told[way]}, dtype, found.missing)


def is_elementwise(inputs: Mapping[str, Any]) -> bool:
    return all(isinstance(given, str) for given in inputs.values())


def shapes_and_kinds(inputs: Mapping[str, Any]) -> Tuple[Dict[str, Sequence[Any]], Dict[str, str]]:
    """Return the shape of each input and the kind of its numbers; those of an elementwise function are broadcast."""
    shapes: Dict[str, Sequence[Any]] = {}
    kinds: Dict[str, str] = {}
    for place, (name, given) in enumerate(inputs.items()):
        if is_elementwise(inputs):
            kinds[name], shapes[name] = given, BROADCAST[min(place, len(BROADCAST) - 1)]
        else:
            kinds[name], shapes[name] = next(iter(given.items())) if isinstance(given, dict) else ("", given)
    return shapes, kinds


def all_points(inputs: Mapping[str, Any], complex_too: bool, row: int) -> Iterator[Tuple[Point, bool]]:
    """Yield the points of such inputs, and whether each element is by itself there."""
    shapes, kinds = shapes_and_kinds(inputs)
    for dtype in (torch.float64, torch.complex128)[: 1 + complex_too]:
        chosen = points(shapes, kinds, dtype, has_hard_values=not is_elementwise(inputs), row=row)
        yield from ((point, False) for point in chosen)
    if is_elementwise(inputs):
        yield Point("0-dimensional", [ordinary((), kind, place) for place, kind in enumerate(kinds.values())]), False
        yield elementwise_point(list(kinds.values())), True


def why_missing(error: BaseException) -> Optional[str]:
    """Return the message of an error that says that a way is not implemented for an operation, or None."""
    if BROKEN.search(str(error)):  # which says "not supported", too
        return None
    return message_of(error) if isinstance(error, NotImplementedError) or MISSING.search(str(error)) else None


def is_own(error: BaseException) -> bool:
    """Whether an error is one of these modules: torch's are RuntimeErrors, or raised in its own code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return not isinstance(error, RuntimeError) and trace is not None and trace.tb_frame.f_code.co_filename in OWN


def ways_at(trial: Trial, row: int, dtype: torch.dtype, *, is_first: bool) -> Dict[str, LookedAt]:
    """Return the ways to try at a point: fewer for later rows of arguments, and for spellings that are not the first.

    Those may have formulas of their own, as operations in place have.
    """
    ways = dict(EVERYWHERE)
    name, is_usual = trial.point.name, trial.point.name == ORDINARY
    is_telling = name in (OTHER, FIRST_ALONE) or "zeros" in name
    is_short = row > 0 or name == FIRST_ALONE or not bool(trial.is_smooth.any())
    if is_usual or trial.is_elementwise or (is_telling and not is_short):
        ways.update(SECOND)
    elif is_telling:  # the gradient is linear in the given one at kinks, too
        ways["backward twice"] = SECOND["backward twice"]
    if is_usual and is_first and row < FULLY:
        ways.update({**ONCE, "some tangents": some_tangents, TWICE: some_inputs_twice})
    if is_usual and row < FULLY:
        ways["per sample"] = per_sample
    if is_usual and is_first and row == 0:
        ways.update({"backward three times": backward_three_times, "on meta": on_meta})
    if name.endswith(EQUAL) and is_first:
        ways["memory"] = expanded_inputs
    is_narrow = dtype in NARROW_COMPLEX or not any(each.is_complex() for each in [*trial.point.values, *trial.given])
    if dtype != torch.float64 and is_narrow and is_first and (is_usual or trial.is_elementwise):
        ways[NATIVE_WAY] = lambda trial: natively(trial, dtype)
    if dtype == torch.float32 and is_narrow and is_usual:
        own = NARROW if is_first else {"backward": EVERYWHERE["backward"]}
        ways.update({f"{NATIVE_WAY}: {name}": way for name, way in own.items()})
    return ways


def once_more(way: LookedAt, trial: Any) -> Callable[[], Judgement]:
    return lambda: way(trial)


def look(
    found: Found,
    trial: Union[Trial, Large],
    ways: Mapping[str, LookedAt],
    dtype: torch.dtype,
    missing: Dict[str, str],
) -> None:
    """Try ways at a point, and note in `missing` those that are not implemented."""
    for name, way in ways.items():
        told_as, _, narrow = name.partition(": ")
        if not missing.keys().isdisjoint((name, told_as, narrow)) or (narrow and found.told[narrow]):
            continue  # what is wrong in double precision is not told again
        if name == TWICE and any(found.told.values()):
            found.told_already.add(name)
            continue
        try:
            count, told = way(trial.narrowed(dtype) if narrow and isinstance(trial, Trial) else trial)
        except Exception as error:
            if is_own(error) and (not found.is_elsewhere or isinstance(error, (NameError, AttributeError))):
                raise
            why = why_missing(error) or found.lacking(error, once_more(way, trial))
            if why is None and len(trial.is_smooth) and not (trial.point.name == ORDINARY or trial.is_smooth.any()):
                continue  # where there are no derivatives, an error is as good as a number
            if why is None:
                found.told[told_as].append(trial.line(str(plain(error))))
            else:
                missing[name] = why
            continue
        found.judged[told_as] += count
        found.told[told_as] += told
