"""The parts of a stand-alone script that replace a worker: its arguments, its verdict and readable calls.

Nothing imports this module: scripts include its text, with the definitions of other modules that they need.
"""

from __future__ import annotations

import contextlib
import re
import sys
import types
import warnings
from typing import Any, Dict, Iterable, Iterator, List, NoReturn, Tuple

import torch

from conformance.worker.backend import set_up
from conformance.worker.checks import difference_of
from conformance.worker.failures import failure, failures_of_error, failures_of_warnings, may_have_other_words
from conformance.worker.lacking import why_lacking
from conformance.worker.modes import in_mode_of
from conformance.worker.reference import add_copies, in_double_precision
from conformance.worker.storage import why_hidden
from conformance.worker.values import Unobservable, event_of, one_line, plain

DEVICE = sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].startswith("cpu:") else "cpu"
DTYPE = sys.argv[2] if len(sys.argv) > 2 else "float32"
BACKENDS: Dict[str, Tuple[List[str], str]] = {}
if DEVICE.partition(":")[0] in BACKENDS:
    set_up(*BACKENDS[DEVICE.partition(":")[0]])
torch.set_default_dtype(getattr(torch, DTYPE))
torch.manual_seed(0)
torch.set_warn_always(True)
if DEVICE.startswith("cuda"):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
warnings.simplefilter("ignore")  # must() has a filter of its own
if torch.__version__.startswith("2.3."):
    import torch._dynamo  # it stays broken if a transform is active when it is imported


JUDGED: List[Any] = []  # the expectations that could be looked at
UNOBSERVED: List[str] = []  # and why others couldn't


def stop(verdict: str, failures: Iterable[Dict[str, Any]] = ()) -> NoReturn:
    """End the script; its last line is the verdict with the last failure."""
    if verdict == "pass" and UNOBSERVED and not JUDGED:
        verdict = f"unsupported: nothing can be observed: {UNOBSERVED[0]}"
    told = "{line}, {path}: expected {expected}, observed {observed}"
    lines = [f"{verdict}: line " + told.format(**found) for found in failures]
    for line in lines or [verdict]:
        print(one_line(line).encode("ascii", "backslashreplace").decode())  # noqa: T201 - its verdict
    sys.exit({"pass": 0, "unsupported": 3}.get(verdict.partition(":")[0], 1))


def stop_if_lacking(error: BaseException) -> None:
    """End the script if the error reports that this build, device or dtype lacks a feature."""
    reason = str(error) if isinstance(error, Unobservable) else why_lacking(error, DEVICE, DTYPE)
    if reason is not None:
        stop(f"unsupported: {reason}")


def unexpected(kind: Any, error: Any, trace: Any) -> None:
    """End the script with an error that no step expects."""
    sys.__excepthook__(kind, error, trace)
    stop_if_lacking(error)
    stop(f"error: expected no error, observed {kind.__name__}: {str(error)[:2000]}")


sys.excepthook = unexpected


def torch_is(condition: str) -> bool:
    """Whether this torch is, say, ">=2.1,<2.13"; a nightly counts as its release unless the bound names a build."""
    pattern = (
        r"\s*v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?"
        r"(-\d+|[-_.]?(?:post|rev|r)[-_.]?\d*)?(?:[-_.]?(dev)[-_.]?(\d*))?(\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?\s*$"
    )

    def read(version: str) -> Any:
        release: Any = re.match(r"\d+\.\d+(\.\d+)?", version)  # for versions that are invalid under PEP 440
        found: Any = re.match(pattern, version.lower()) or re.match(pattern, release[0])
        return found.groups()

    def place(version: Any) -> Any:
        """Return the sort key of a version: release, phase, post release, development release and build."""
        epoch, numbers, phase, number, post, dev, day, local = version
        phases = {"a": 0, "b": 1, "c": 2, "r": 2, "p": 2}
        return (
            [int(epoch or 0), *map(int, re.sub(r"(\.0+)+$", "", numbers).split("."))],
            (phases[phase[0]], int(number or 0)) if phase else (-1 if dev and not post else 3, 0),
            int(re.sub(r"\D", "", post) or 0) if post else -1,
            int(day or 0) if dev else float("inf"),
            local or "",
        )

    here = read(torch.__version__)
    for sign, text in re.findall(r"([<>=!]+)([^,]+)", condition):
        bound = read(text)
        is_build = bound[2] or bound[5]
        first, second = place((*here[:7], None) if is_build else (*here[:2], *[None] * 6)), place(bound)
        order = (first > second) - (first < second)
        if order not in {"<": [-1], "<=": [-1, 0], "==": [0], "!=": [-1, 1], ">=": [0, 1], ">": [1]}[sign]:
            return False
    return True


def by_torch(values: Dict[str, Any]) -> Any:
    """Return the value whose condition this torch fulfils."""
    return next(value for condition, value in values.items() if torch_is(condition))


@contextlib.contextmanager
def must(raises: Tuple[Any, ...] = (), warns: Tuple[Any, ...] = ()) -> Iterator[None]:
    """Run a block that must raise or warn: (line, class, parts of the message), or must not: (line, None)."""
    raised = None
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            yield
        except (Exception, GeneratorExit) as error:
            raised = error
    if raised is not None and not raises:
        raise raised
    wrong = failures_of_error(expected_of(*raises), raised) if raises else []
    failures = failures_of_warnings(expected_of(*warns), given, DEVICE) if warns else []
    if raised is not None and (wrong or failures):
        stop_if_lacking(raised)
    if wrong and not may_have_other_words(expected_of(*raises), raised, DEVICE):
        failures = wrong + failures
    if raised is not None:
        raised.__traceback__ = None  # its frames keep tensors alive
    JUDGED.append(wrong)
    if failures:
        stop("fail", failures)


def expected_of(line: int, kind: Any, *parts: str) -> Dict[str, Any]:
    return {"line": line, "type": kind, "match": parts}


# What checks need of a case: its target, and the values of expressions on its own objects and on float64 copies.
CASE = types.SimpleNamespace(device=DEVICE, dtype_name=DTYPE, dtype=getattr(torch, DTYPE))
CASE.live = lambda expression: expression["function"]()
CASE.reference = lambda expected: expected


def check(line: int, path: str, it: Any, tolerance: Any = (), **wanted: Any) -> List[Dict[str, Any]]:
    """Return the failures of the checks of an object; line and path are those in the case file."""
    failures: List[Dict[str, Any]] = []
    hidden = why_hidden(path, DEVICE)
    if hidden:
        UNOBSERVED.append(f"{path}: {hidden}")
        return failures
    try:
        subject = it if path.isidentifier() else it()
    except Unobservable as error:
        UNOBSERVED.append(f"{path}: {error}")
        return []
    except (Exception, GeneratorExit) as error:
        stop_if_lacking(error)
        return [failure(line, path, "a value", plain(error))]
    for key, value in wanted.items():
        name = key.rstrip("_")
        place = path if name in ("value", "log") else f"{path}.{name}"
        try:
            difference = difference_of(subject, name, as_data(value), CASE, dict(tolerance))
        except Unobservable as error:
            UNOBSERVED.append(f"{place}{error.within}: {error}")
            if error.within:
                JUDGED.append(place)
            continue
        except (Exception, GeneratorExit) as error:
            stop_if_lacking(error)
            difference = "no error", plain(error)
        JUDGED.append(place)
        if difference is not None:
            failures.append(failure(line, place, *difference))
    return failures


def as_data(wanted: Any) -> Any:
    """Return an expected value in the format of checks: expressions and checks of a gradient are mappings."""
    if isinstance(wanted, list):
        return [as_data(item) for item in wanted]
    if isinstance(wanted, dict):
        return {"checks": [(name, as_data(value), 0) for name, value in wanted.items()]}
    if callable(wanted):
        return {"expr": f"the expression in line {wanted.__code__.co_firstlineno}", "function": wanted}
    return wanted


def expect(*checked: List[Dict[str, Any]]) -> None:
    if any(checked):
        stop("fail", [found for failures in checked for found in failures])


# The target of factories; while an expected value is computed, it is the CPU.
TARGET = types.SimpleNamespace(device=DEVICE, generator=torch.Generator().manual_seed(0))


def evaluated(expected: Any) -> Any:
    """Return an expected value; expressions in it are evaluated on copies."""
    if isinstance(expected, list):
        return [plain(evaluated(item)) for item in expected]
    return reference(expected["function"]) if isinstance(expected, dict) else expected


def reference(function: Any) -> Any:
    """Evaluate an expression on copies of the case's tensors: on the CPU, in double precision, without a graph."""
    names = {name: value for name, value in function.__globals__.items() if name.startswith("__")}
    add_copies(names, function.__code__, function.__globals__, {})
    names["dtype"] = torch.float64
    if names.get("device") is DEVICE:
        names["device"] = "cpu"
    TARGET.device = "cpu"
    try:
        return in_double_precision(types.FunctionType(function.__code__, names))
    finally:
        TARGET.device = DEVICE


CASE.reference = evaluated
EVENTS: List[Any] = []


def log(*event: Any) -> None:
    """Record an event with the current values of tensors."""
    EVENTS.append(event_of(event))


def compiled(function: Any, backend: str = "aot_eager", **options: bool) -> Any:
    """Return a function as torch.compile() makes it; with aot_eager it is traced by autograd, run eagerly."""
    return torch.compile(function, backend=backend, **options)


in_mode = in_mode_of(DEVICE)


def with_names(module: types.ModuleType, **names: Any) -> types.SimpleNamespace:
    """Return a namespace like a module of torch, with some names replaced."""
    return types.SimpleNamespace(**{**vars(module), **names})
