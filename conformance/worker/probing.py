"""Finds out what a device lacks, by trying: features by themselves, and the operation that raised an error.

An operation is missing, and its error no fault of autograd, if it fails alone too: without a graph, on each plain input
that the CPU accepts. One that works there and fails in a case is at fault.
"""

from __future__ import annotations

import contextlib
import re
from typing import (
    Any,
    Callable,
    Collection,
    Container,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from conformance.worker.features import (
    BECOMES,
    DOUBLES,
    FEATURES,
    WRONG,
    LessPrecise,
    device_module,
    name_of_dtype,
    why_missing,
)
from conformance.worker.lacking import is_out_of_memory, message_of

# An error about how an operation was called: it is there, and refuses what it should take. Complex numbers it may lack.
ABOUT_ARGUMENTS = re.compile(
    r"\bbut got\b(?! C(?:64|128)\b)|\bbut \d+ were given|positional argument|must have rank|must match|mismatch"
)


class Call(NamedTuple):
    """A call of an operation that raised `error`."""

    operation: Any
    arguments: Any  # a tuple and a dict
    error: BaseException

    @property
    def tensors(self) -> List[torch.Tensor]:
        return [each for each in tree_flatten(self.arguments)[0] if isinstance(each, torch.Tensor)]

    @property
    def is_uniform(self) -> bool:
        """Whether all tensors have one shape and none has indices: then kernels, which trust theirs, take others."""
        shapes = {tuple(each.shape) for each in self.tensors}
        return len(shapes) < 2 and all(has_fractions(each) for each in self.tensors)

    @property
    def dtypes(self) -> List[str]:
        return dtypes_in(self.arguments)


class FunctionRecorder(TorchFunctionMode):  # type: ignore[misc]  # torch has no types for it
    """While it is on, keeps the last call of a function of torch that raised an error.

    A device with a class of tensors of its own may do what it is asked for before PyTorch dispatches any operation. For
    others it is of use where `is_on` says so.
    """

    def __init__(self, device: str, *, is_on: bool = False) -> None:
        super().__init__()
        self.is_on = is_on
        with contextlib.suppress(Exception):  # such as that there is no memory left
            self.is_on = is_on or type(torch.ones(1).to(device)) is not torch.Tensor
        self.raised: Optional[Call] = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            return func(*args, **(kwargs or {}))
        except Exception as error:
            if self.is_on:
                self.raised = Call(func, (args, kwargs or {}), error)
            raise


class Waiting(TorchDispatchMode):  # type: ignore[misc]  # torch has no types for it
    """While it is on, waits for the device after each operation, and keeps nothing."""

    def __init__(self, wait: Callable[[], Any]) -> None:
        super().__init__()
        self.wait = wait

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        finish(result, self.wait)
        return result


class Recorder(TorchDispatchMode):  # type: ignore[misc]  # torch has no types for it
    """While it is on, keeps the last call of an operation that raised an error, and notes what a device is used for.

    What runs on the CPU beside it, such as the expected values in double precision, is no use of the device.

    It waits for the device after each operation and reads the result, so that a late error is raised by the operation
    whose it is.
    """

    def __init__(self, device: str, wait: Callable[[], Any]) -> None:
        super().__init__()
        self.kind = device.partition(":")[0]
        self.wait = wait
        self.raised: Optional[Call] = None
        # dtypes; zero-tensors; and aliasing-views, where a view or what it is of is written to
        self.used: Set[str] = set()
        self.viewed: Dict[int, torch.Tensor] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        arguments = args, kwargs or {}
        if self.is_there(arguments):
            self.used.update(dtypes_in(arguments))
            if func.__name__.startswith("_efficientzerotensor"):
                self.used.add("zero-tensors")
        if func._schema.is_mutable and any(id(each) in self.viewed for each in args):
            self.used.add("aliasing-views")
        try:
            result = func(*args, **(kwargs or {}))
            finish(result, self.wait)
        except Exception as error:
            self.raised = Call(func, arguments, error)
            raise
        is_view = not func._schema.is_mutable and any(each.alias_info is not None for each in func._schema.returns)
        if is_view and func.__name__ != "detach.default":  # which autograd itself calls when it accumulates
            self.viewed.update((id(each), each) for each in (args[0], result) if isinstance(each, torch.Tensor))
        return result

    def is_there(self, arguments: Any) -> bool:
        """Whether a call takes tensors of the device, or makes some there."""
        leaves = tree_flatten(arguments)[0]
        places = [each.device if isinstance(each, torch.Tensor) else each for each in leaves]
        return any(isinstance(place, torch.device) and place.type == self.kind for place in places)


def finish(result: Any, wait: Callable[[], Any]) -> None:
    """Wait for an operation, and read what it gave: some devices begin with it only then."""
    wait()
    for each in tree_flatten(result)[0]:
        if isinstance(each, torch.Tensor) and each.layout is torch.strided and each.device.type not in ("cpu", "meta"):
            each.detach().to("cpu")


def dtypes_in(arguments: Any) -> List[str]:
    """Return the names of the dtypes of all tensors in arguments, and of those that are arguments themselves."""
    leaves = tree_flatten(arguments)[0]
    found = [each.dtype for each in leaves if isinstance(each, torch.Tensor)]
    found += [each for each in leaves if isinstance(each, torch.dtype)]
    return list(dict.fromkeys(map(name_of_dtype, found)))


def waiter(device: str) -> Callable[[], Any]:
    """Return a function that waits until a device has done what it was asked for, and raises the error of that.

    Of a device that has none, or one that does not work, it does nothing.
    """
    wait: Callable[[], Any] = getattr(device_module(device), "synchronize", None) or wait_of_accelerator(device)
    try:
        wait()
    except Exception:
        return lambda: None
    return wait


def wait_of_accelerator(device: str) -> Callable[[], Any]:
    """Return the function that waits for torch's accelerator if that is this device, which may offer none itself."""
    accelerator = getattr(torch, "accelerator", None)  # newer than torch 2.5
    if accelerator is None or getattr(accelerator.current_accelerator(), "type", None) != device.partition(":")[0]:
        return lambda: None
    wait: Callable[[], Any] = accelerator.synchronize
    return wait


# Words of errors that are about a feature, if the device lacks it.
OF_FEATURE = {
    "strides": re.compile(r"\baten::as_strided\b"),
    "int64": re.compile(r"\b(?:Long|int64)\b.*\bgot\b.*\b(?:Int|IntTensor|int32)\b"),
    "subclasses": re.compile(r"\bCreating a new Tensor subclass\b"),
}
NAMED = ("deepcopy", "pickle")  # errors about these say so
# A device that lacks these raises outside of its operations.
UNRECORDED = ("nested", "deepcopy", "pickle", "threads", "subclasses", "repr", "functionalization", "tracing")


def features_of(call: Call) -> Iterator[str]:
    """Yield the features that the arguments of a call need: dtypes of the CPU only if nothing else is there."""
    there = [each for each in tree_flatten(call.arguments)[0] if not is_on_cpu(each)]
    has_tensors = any(isinstance(each, torch.Tensor) for each in there)
    yield from (name for name in (dtypes_in(there) if has_tensors else call.dtypes) if name in FEATURES)
    layouts = [each.layout for each in call.tensors]
    if any(layout is getattr(torch, "jagged", None) for layout in layouts):
        yield "nested"
    elif any(layout is not torch.strided for layout in layouts):
        yield "sparse"
    elif not all(each.is_contiguous() for each in call.tensors):
        yield "strides"
    if any(each.numel() == 0 for each in call.tensors):
        yield "empty"


def is_on_cpu(argument: Any) -> bool:
    return isinstance(argument, torch.Tensor) and argument.device.type == "cpu"


class Prober:
    """Answers for one device, and keeps the answers; `absent` are features that it is said to lack by design."""

    def __init__(self, device: str, absent: Sequence[str] = ()) -> None:
        self.device = device
        self.wait = waiter(device)
        self.absent = frozenset(absent)
        self.missing: Dict[str, str] = dict.fromkeys(absent, "by design, as its profile says")
        self.found: Dict[str, str] = {}
        self.operations: Dict[Tuple[Any, ...], str] = {}

    def why_missing(self, feature: str) -> str:
        if feature not in self.missing:
            self.missing[feature] = self.tried(feature)
        return self.missing[feature]

    def tried(self, feature: str) -> str:
        """Return why a feature is missing, whatever the profile says of it."""
        if feature not in self.found:
            self.found[feature] = why_missing(feature, self.device)
        return self.found[feature]

    def why_silent(self, used: Container[str]) -> Optional[str]:
        """Return why a case that uses double precision, which a device refuses, has no results, or None."""
        lacked = [name for name in DOUBLES if name in used and self.lacks(name) and not self.is_less_precise(name)]
        return f"{self.device} lacks {lacked[0]}: {self.missing[lacked[0]]}" if lacked else None

    def lacks(self, feature: str) -> bool:
        return self.why_missing(feature) not in ("", WRONG)

    def is_less_precise(self, dtype: str) -> bool:
        """Whether a dtype is accepted and not kept, without an error."""
        return self.tried(dtype).startswith(LessPrecise.__name__)

    def limits(self, used: Container[str]) -> Dict[str, str]:
        """Return the limits under which the CPU is as a device that lacks features without an error, with the reasons.

        Where tensors get another dtype, none of the one that was asked for is seen to be used.
        """
        found: Dict[str, str] = {}
        for name in filter(self.is_less_precise, (*DOUBLES, "int64")):
            becomes = BECOMES in self.tried(name)
            if becomes:
                found.setdefault("narrowing", name)
            elif name in used:
                found.setdefault("rounding", name)
                found.setdefault("rounding 4", name)
        if "aliasing-views" in self.absent and "aliasing-views" in used:
            found["copying"] = "aliasing-views"
        if "zero-tensors" in used and self.lacks("zero-tensors"):
            found["filling"] = "zero-tensors"
        if self.lacks("random-state"):
            found["forgetting"] = "random-state"
        if "repr" in used and self.lacks("repr"):
            found["unshown"] = "repr"
        return {limit: f"{self.device} lacks {name}: {self.why_missing(name)}" for limit, name in found.items()}

    def why_other_dtype(self, failures: Sequence[Dict[str, Any]]) -> Optional[str]:
        """Return why tensors have another dtype, where failures say no more than that."""
        for each in failures:
            is_dtype = each["path"].endswith(".dtype") and each["expected"] in FEATURES
            if not is_dtype or self.tried(each["expected"]) != f"{LessPrecise.__name__}: {BECOMES} {each['observed']}":
                return None
        name = failures[0]["expected"] if failures else ""
        return f"{self.device} lacks {name}: {self.tried(name)}" if name else None

    def why_raising(self, errors: Collection[str]) -> Optional[str]:
        """Return the feature that one of these errors speaks of, or that raises it by itself, or None."""
        for name, words in OF_FEATURE.items():
            named = next(filter(words.search, errors), None)
            if named is not None and self.lacks(name):
                return f"{self.device} lacks {name}: {named}"
        for name in filter(self.tried, UNRECORDED):
            why = self.tried(name)
            told = next((each for each in errors if each == why or (name in NAMED and name in each)), None)
            if told is not None:
                return f"{self.device} lacks {name}: {told}"
        return None

    def why_lacking(self, call: Call) -> Optional[str]:
        """Return what the device lacks for a call, or None where it has all that the call needs."""
        for feature in features_of(call):
            why = self.why_missing(feature)
            if why not in ("", WRONG):
                return f"{self.device} lacks {feature}: {why}"
        return self.why_not_working(call)

    def why_as_before(self, message: str) -> Optional[str]:
        """Return that a message is the one by which an operation was found missing, or None where it is new."""
        return (
            f"as an operation that does not work on {self.device}: {message}"
            if message in self.operations.values()
            else None
        )

    def why_not_working(self, call: Call) -> Optional[str]:
        """Return that the operation or function of a call doesn't work on the device, or None where it does."""
        if ABOUT_ARGUMENTS.search(str(call.error)):
            return None
        key = (str(call.operation), *call.dtypes, *(tuple(each.shape) for each in call.tensors))
        if key not in self.operations:
            self.operations[key] = why_failing(call, self.device, self.wait)
        why = self.operations[key]
        name = resolve_name(call.operation) or call.operation
        kinds = f" in {', '.join(call.dtypes)}" if call.dtypes else ""
        return f"{name} does not work on {self.device}{kinds}: {why}" if why else None


def why_failing(call: Call, device: str, wait: Callable[[], Any]) -> str:
    """Return the error of an operation on plain inputs on the device, or "" if it works for any that the CPU accepts.

    The plain inputs are the values of the call, without graph and strides, and ones of its shapes and of small ones. A
    failure on empty tensors says nothing of the operation; those that are given for results are no sign of that.
    """
    found = ""
    for plain in (values_of, ones_of, *((pair_of, matrix_of) if call.is_uniform else ())):
        arguments = plain_arguments(call, plain, device)
        if arguments is None or attempt(call.operation, arguments, "cpu", lambda: None) is not None:
            continue
        error = attempt(call.operation, arguments, device, wait)
        if error is None or is_out_of_memory(error):
            return ""
        if not found and all(each.numel() for each in inputs_of(call.operation, arguments)):
            found = message_of(error)
    return found


def inputs_of(operation: Any, arguments: Any) -> List[torch.Tensor]:
    """Return the tensors among the arguments of an operation or function that aren't there to be filled alone."""
    args, kwargs = arguments
    declared = operation._schema.arguments if hasattr(operation, "_schema") else ()
    filled = {each.name for each in declared if each.alias_info is not None and each.alias_info.is_write} | {"out"}
    leaves = tree_flatten((args, [each for name, each in kwargs.items() if name not in filled]))[0]
    return [each for each in leaves if isinstance(each, torch.Tensor)]


def plain_arguments(call: Call, plain: Callable[[torch.Tensor], torch.Tensor], device: str) -> Any:
    """Return the arguments of a call with other tensors, or None where these can't be made.

    The name of the device becomes the device, in place of which the CPU can stand.
    """

    def made(each: Any) -> Any:
        if isinstance(each, torch.Tensor):
            return plain(each)
        return torch.device(device) if isinstance(each, str) and each == device else each

    try:
        return tree_map(made, call.arguments)
    except Exception:
        return None


def has_fractions(tensor: torch.Tensor) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def values_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu").contiguous()


def ones_of(tensor: torch.Tensor) -> torch.Tensor:
    return torch.ones(tuple(tensor.shape), dtype=tensor.dtype) if has_fractions(tensor) else values_of(tensor)


def pair_of(tensor: torch.Tensor) -> torch.Tensor:
    return torch.ones(2, dtype=tensor.dtype)


def matrix_of(tensor: torch.Tensor) -> torch.Tensor:
    return torch.ones(2, 2, dtype=tensor.dtype)


def attempt(operation: Any, arguments: Any, device: str, wait: Callable[[], Any]) -> Optional[Exception]:
    """Return the error of an operation with these arguments on a device, or None when there is none."""

    def placed(each: Any) -> Any:
        if isinstance(each, torch.Tensor):
            return each.clone().to(device)
        return torch.device(device) if isinstance(each, torch.device) and each.type != "cpu" else each

    try:
        with torch.no_grad():
            args, kwargs = tree_map(placed, arguments)
            finish(operation(*args, **kwargs), wait)
    except Exception as error:
        error.__traceback__ = None
        return error
    return None
