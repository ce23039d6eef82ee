"""Failures in the format of reports, with the expected and observed values, errors or warnings as text."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any, Dict, List, Optional

import torch

from conformance.worker.storage import keeps_strides
from conformance.worker.values import FULL_DEVICES, one_line, plain

MESSAGE = 2000  # how many characters of an error's message are kept
TORCH = os.path.dirname(os.path.abspath(str(torch.__file__)))
SUITE = re.compile(r"[/\\]conformance[/\\]worker[/\\]")  # whose functions torch may take for its caller
CALLS = re.compile(r"\s+At:\s+\S+(?: \(no source\))?\(\d+\): .*", re.DOTALL)  # added to messages by pybind11
OWN_PLACE = re.compile(
    r'(?<=")[^"\n]*[/\\](?=conformance[/\\]worker[/\\])'
)  # of the suite, in stacks that a compiler tells
FALLS_BACK = re.compile(r"fall\w*[ _-]?back.{,60}\bcpu\b|\bcpu[ _-]fall", re.IGNORECASE | re.DOTALL)
OF_LAYOUT = re.compile(r"do not obey the gradient layout contract")  # once a process, in whichever case is the first
OF_ARRAY = re.compile(r"given NumPy array is not writable")  # no case has one: the device moves values in it
ORIGIN = re.compile(r"\(Triggered internally at (.*):\d+")  # added to warnings of C++
SOURCES = re.compile(r"(?:^|[/\\])(?:aten|c10|torch|functorch)[/\\](?:src|csrc|include|core|util)[/\\]")  # PyTorch's


def failure(line: int, path: str, expected: str, observed: str, exception: str = "") -> Dict[str, Any]:
    """Return a failure; `exception` is the type of the observed error or warning, if any."""
    return {
        "line": line,
        "path": path,
        "expected": expected[:MESSAGE],
        "observed": portable_message(observed)[:MESSAGE],
        **({"exception": exception} if exception else {}),
    }


def exception_name(error: Optional[BaseException]) -> str:
    return "" if error is None else type(error).__name__


def portable_message(text: str) -> str:
    """Return a message without the parts that depend on the machine: torch's and own directories, C++ call stacks."""
    return OWN_PLACE.sub("", CALLS.sub("", text)).replace(TORCH, "torch")


def failures_of_error(expected: Dict[str, Any], raised: Optional[BaseException]) -> List[Dict[str, Any]]:
    if expected["type"] is None:
        observed = None if raised is None else plain(raised)
    elif raised is None:
        observed = "nothing was raised"
    else:
        observed = None if matches(type(raised), str(raised), expected) else plain(raised)
    if observed is None:
        return []
    return [failure(expected["line"], "raises", in_words(expected), observed, exception_name(raised))]


def may_have_other_words(expected: Dict[str, Any], raised: Optional[BaseException], device: str) -> bool:
    """Whether any error that comes is the expected one: that of a kernel, where the device brings its own kernels."""
    of_a_kernel = any(isinstance(part, dict) and "kernel" in part for part in expected["match"])
    return of_a_kernel and isinstance(raised, Exception) and device.partition(":")[0] not in FULL_DEVICES


def is_of_back_end(warning: warnings.WarningMessage, device: str) -> bool:
    """Whether code of a device gave a warning, or a package that changes torch's, which may say what they like."""
    kind, text = device.partition(":")[0], str(warning.message)
    is_own = warning.filename.startswith(TORCH + os.sep) or SUITE.search(warning.filename) is not None
    of_package = "-packages" in warning.filename and not is_own
    if kind == "cpu":
        return of_package and ORIGIN.search(text) is None
    if FALLS_BACK.search(text) or OF_ARRAY.search(text) or (OF_LAYOUT.search(text) and not keeps_strides(kind)):
        return True
    origin = ORIGIN.search(text)
    if origin is not None:
        return not SOURCES.search(origin[1]) or f"/{kind}/" in origin[1].replace("\\", "/")
    return of_package


def is_for_torch(warning: warnings.WarningMessage) -> bool:
    """Whether torch uses what it has deprecated itself: one that is for its users names a place of theirs."""
    is_deprecation = issubclass(warning.category, (DeprecationWarning, FutureWarning))
    return is_deprecation and warning.filename.startswith(TORCH + os.sep)


def failures_of_warnings(
    expected: Dict[str, Any], given: List[warnings.WarningMessage], device: str
) -> List[Dict[str, Any]]:
    if expected["type"] is None:
        given = [each for each in given if not is_of_back_end(each, device) and not is_for_torch(each)]
        fine = not given
    else:
        fine = any(matches(warning.category, str(warning.message), expected) for warning in given)
    if fine:
        return []
    observed = "; ".join(f"{warning.category.__name__}: {one_line(str(warning.message))}" for warning in given)
    exception = given[0].category.__name__ if given else ""
    return [failure(expected["line"], "warns", in_words(expected), observed or "no warning", exception)]


def matches(kind: type, message: str, expected: Dict[str, Any]) -> bool:
    """Whether an error or warning has the expected class, or a subclass, and all expected parts of its message."""
    named = any(cls.__name__ == expected["type"] for cls in kind.__mro__)
    text = one_line(message)
    return named and all(says(text, part) for part in expected["match"])


def says(text: str, part: Any) -> bool:
    """Whether a message in one line contains `part`: text, {"kernel": text}, or a match of {"regex": pattern}."""
    if isinstance(part, dict) and "regex" in part:
        return bool(re.search(part["regex"], text))
    return one_line(part["kernel"] if isinstance(part, dict) else part) in text


def in_words(expected: Dict[str, Any]) -> str:
    if expected["type"] is None:
        return "nothing"
    return f"{expected['type']}: … " + " … ".join(map(part_in_words, expected["match"])) + " …"


def part_in_words(part: Any) -> str:
    if isinstance(part, dict):
        return one_line(part["kernel"]) if "kernel" in part else f"/{part['regex']}/"
    return one_line(part)
