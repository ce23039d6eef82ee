"""Recognizes errors by which a device or build reports a missing feature, as opposed to a wrong result."""

from __future__ import annotations

import re
from typing import Any, Dict, NamedTuple, Optional, Pattern, Tuple

from conformance.worker.values import one_line

LACKS = re.compile(
    r"Could not run '|is not currently (?:implemented|supported) (?:for|on)|not implemented for '\w+'"
    r"|doesn't support|does not support|dtypes not supported|not supported (?:on|for)|is not implemented for the"
)
OF_AUTOGRAD = re.compile("You must implement")  # a Function of the case lacks a method
NOT_BUILT = re.compile(
    r"requires compiling PyTorch with|not compiled with|compiled without|built without|Numpy is not available"
    r"|supported for torch\.compile|torch\.compile is not supported|Dynamo is not supported"
)


# What the profile of a device says: features that it lacks by design, and messages that say "not implemented".
Declared = NamedTuple("Declared", [("absent", Tuple[str, ...]), ("not_implemented", Tuple[Pattern[str], ...])])
NOTHING_DECLARED = Declared((), ())


def declared_by(profile: Dict[str, Any]) -> Declared:
    """Return what a profile declares, as the worker is told of it."""
    return Declared(tuple(profile.get("absent", ())), tuple(map(re.compile, profile.get("not_implemented", ()))))


def why_lacking(
    error: BaseException, device: str, dtype_name: str, declared: Declared = NOTHING_DECLARED
) -> Optional[str]:
    """Return the message of `error` if it reports that this device or build lacks a feature, else None.

    On the CPU with float32 or float64, only a build without the library that an operation needs counts as lacking.
    """
    text = one_line(str(error))
    if NOT_BUILT.search(text):
        return text[:200]
    basic = device == "cpu" and dtype_name in ("float32", "float64")
    says_so = isinstance(error, NotImplementedError) and not OF_AUTOGRAD.search(text)
    if any(pattern.search(f"{type(error).__name__}: {text}") for pattern in declared.not_implemented):
        return f"{type(error).__name__}: {text[:200]}"
    if not basic and (says_so or (isinstance(error, (RuntimeError, TypeError)) and LACKS.search(text))):
        return f"{type(error).__name__}: {text[:200]}"
    return None
