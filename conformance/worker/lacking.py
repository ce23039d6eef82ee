"""Tells what a device or build says that lacks something, as opposed to one that gets it wrong."""

from __future__ import annotations

import re
from typing import Optional

from conformance.worker.values import one_line

LACKS = re.compile(
    r"Could not run '|is not currently (?:implemented|supported) (?:for|on)|not implemented for '\w+'"
    r"|doesn't support|does not support|dtypes not supported|not supported (?:on|for)|is not implemented for the"
)
OF_AUTOGRAD = re.compile("You must implement")  # what a case leaves out of a Function, on any device
NOT_BUILT = re.compile(
    r"requires compiling PyTorch with|not compiled with|compiled without|built without|Numpy is not available"
    r"|supported for torch\.compile|torch\.compile is not supported|Dynamo is not supported"
)


def why_lacking(error: BaseException, device: str, dtype_name: str) -> Optional[str]:
    """Return what `error` says that this device or build lacks, or None if it says no such thing.

    Float32 and float64 on the CPU are what autograd is defined on: nothing excuses them but a build
    without the library that an operation is made of.
    """
    text = one_line(str(error))
    if NOT_BUILT.search(text):
        return text[:200]
    basic = device == "cpu" and dtype_name in ("float32", "float64")
    says_so = isinstance(error, NotImplementedError) and not OF_AUTOGRAD.search(text)
    if not basic and (says_so or (isinstance(error, (RuntimeError, TypeError)) and LACKS.search(text))):
        return f"{type(error).__name__}: {text[:200]}"
    return None
