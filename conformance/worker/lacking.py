"""Recognizes errors by which a device or build says that it lacks a feature, as opposed to a wrong result.

These are the errors whose words leave no doubt. Of others, `probing` finds out whether the operation works at all.
"""

from __future__ import annotations

import re
from typing import Any, Dict, NamedTuple, Optional, Pattern, Sequence, Tuple

import torch

from conformance.worker.values import FULL_DEVICES, one_line

REASON = 200  # how many characters of a message are kept
LACKS = re.compile(
    r"Could not run '|is not currently (?:implemented|supported) (?:for|on)|not implemented for '\w+'"
    r"|is not implemented for (?:the )?\S+|\[NOT IMPLEMENTED\]|has no lowering|only supports? float"
    r"|is only supported on [A-Z]{3}|has no implementation for the backend|must be contiguous"
    r"|Cannot access (?:data pointer|storage) of Tensor that doesn't have storage"
    r"|__torch_dispatch__ handlers returned NotImplemented"
    r"|during the functionalization pass\. For now, this is not supported"
    r"|We only support functionalizing operators|^Batching rule not implemented for aten::"
    r"|Expected tensor to have \w+ Backend, but got tensor with|^Unsupported dtype \w+"
    r"|Tried to use AMP with the|unsupported autocast device_type"
    r"|can't use the foreach API on \w+ tensors|^foreach=True is not supported with"
    r"|supported devices: \[[^\]]*\] but torch\.b?float\w+ and \w+|must be on supported devices: \["
    r"|PyTorch is not linked with support for|^Backend not supported for \w+"
    r"|SymIntArrayRef expected to contain only concrete|mutating a non-functional tensor with a functional tensor"
    r"|found two different devices (\w+)(?:, \1:\d|:\d, \1\b(?!:))"  # the same one, named with its index and without
    # No complex number has parts in bfloat16, and some operations have no half precision.
    r"|invalid default scalar type for complex|Half, Float or Double tensors but got BFloat16\b"
    r"|expects float\d+ or float\d+ dtypes, got: torch\.b?float16|\bnot implemented for BFloat16\b"
    r"|one of the following scalar types: [\w, ]+; but got CPUBFloat16Type\b"
)
# The CPU has each feature, and may have it in single and double precision alone: an error that is about that says so.
OF_HALF = re.compile(
    r"\b(?:(?:CPU)?B?Float16(?:Type)?|Complex(?:Half|32)|Half|BF16)\b|low precision|scalar type for complex",
    re.IGNORECASE,
)
# In an error of an operation these may also be about how it was called.
MAY_LACK = re.compile(
    r"doesn't support|does not support|does not have support for|dtypes not supported|not supported (?:on|for)"
)
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
# Says nothing of what a device can do: the same call works where less is in use.
NO_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)
NO_ATTRIBUTE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
# Refusals of autograd itself, which have such words too; a Function of the case may lack a method.
OF_AUTOGRAD = re.compile(
    "You must implement|does not support automatic differentiation|because it is an out= function|does not require grad"
)
DISABLED = "is not supported here, as a variable of the environment disables it"  # what torch would leave out silently
NOT_BUILT = re.compile(
    rf"{DISABLED}|"
    r"requires compiling PyTorch with|not compiled with|compiled without|built without|Numpy is not available"
    r"|supported for torch\.compile|torch\.compile is not supported|Dynamo is not supported"
    r"|No working C\+\+ compiler found|Cannot find a working triton installation|\bNo module named '(?!torch|functorch)"
)


# What PyTorch's fallback to the CPU warns of when it gives a copy in place of a view.
COPIED = re.compile(r"operator (aten::\w+)\S* appears to be a view operator, but it has no implementation")
# What PyTorch warns of when it leaves out what a device lacks, and goes on; before 2.7 on one line for some devices.
LEFT_OUT = re.compile(r"In (\w+) autocast, but the target dtype is not supported\. Disabling autocast")


# What the profile of a device says: features that it lacks by design, and messages that say "not implemented".
Declared = NamedTuple("Declared", [("absent", Tuple[str, ...]), ("not_implemented", Tuple[Pattern[str], ...])])
NOTHING_DECLARED = Declared((), ())


def declared_by(profile: Dict[str, Any]) -> Declared:
    """Return what a profile declares, as the worker is told of it."""
    return Declared(tuple(profile.get("absent", ())), tuple(map(re.compile, profile.get("not_implemented", ()))))


def why_lacking(
    error: BaseException, device: str, dtype_name: str, declared: Declared = NOTHING_DECLARED
) -> Optional[str]:
    """Return the message of `error` if it says that this device or build lacks a feature, else None.

    On the CPU only a build without the library that an operation needs counts as lacking; with a dtype of half
    precision also an operation that names it.
    """
    text = one_line(str(error))
    if is_out_of_memory(error):
        return None
    if NOT_BUILT.search(text):
        return text[:REASON]
    if (device == "cpu" and dtype_name in ("float32", "float64")) or OF_AUTOGRAD.search(text):
        return None
    if any(pattern.search(f"{type(error).__name__}: {text}") for pattern in declared.not_implemented):
        return message_of(error)
    if device == "cpu" and not OF_HALF.search(text):
        return None
    is_lacking = (
        isinstance(error, NotImplementedError)
        or LACKS.search(text)
        or (device.partition(":")[0] in FULL_DEVICES and may_be_lacking(error))
        or is_of_module(text, device.partition(":")[0])
    )
    return message_of(error) if is_lacking else None


def why_left_out(warned: Sequence[str], device: str) -> Optional[str]:
    """Return the warning by which PyTorch has said that it leaves out what a device lacks, or None."""
    found = ((LEFT_OUT.search(text), text) for text in warned)
    kind = device.partition(":")[0]
    return next((one_line(text)[:REASON] for match, text in found if match and match[1].lower() == kind), None)


def is_of_module(text: str, device: str) -> bool:
    """Whether a message says that there is no module of a device, such as torch.npu, or that it lacks an attribute."""
    found = NO_ATTRIBUTE.search(text)
    if found is None:
        return False
    if found[1] == "torch":
        return found[2] == device
    own = getattr(torch, device, None)
    return device not in FULL_DEVICES and own is not None and found[1] == own.__name__


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or bool(NO_MEMORY.search(str(error)))


def message_of(error: BaseException) -> str:
    """Return the type and the words of an error, which are the same each time that it is raised.

    Where the compiler was in a program is left out.
    """
    text, _, _ = one_line(str(error)).partition(" from user code: ")
    return f"{type(error).__name__}: {ADDRESS.sub('0x…', text)[:REASON]}"


def may_be_lacking(error: BaseException) -> bool:
    """Whether an error has words that speak of something missing unless an operation that works has raised it."""
    text = str(error)
    return isinstance(error, (RuntimeError, TypeError)) and bool(MAY_LACK.search(text) and not OF_AUTOGRAD.search(text))
