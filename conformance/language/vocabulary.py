"""The names that a case may use, and the first torch release that has each.

`vocabulary.json` lists, for each namespace (`torch`, `nn.functional`, …) and for attributes of objects, the names that
each release added. A case that uses a name is *unsupported* on an older build; on a newer build a missing name is an
error. The parent refuses other names at load, the worker provides no others: data only, on Python 3.8.
"""

from __future__ import annotations

import json
import os
import re

OLDEST = "1.13"
FILE = "conformance/language/vocabulary.json"

with open(os.path.join(os.path.dirname(__file__), "vocabulary.json"), encoding="utf-8") as _file:
    _LISTS = json.load(_file)


def _since(lists: dict[str, list[str]]) -> dict[str, str]:
    return {name: release for release, names in lists.items() for name in names}


NAMESPACES: dict[str, dict[str, str]] = {path: _since(lists) for path, lists in _LISTS["namespaces"].items()}
ATTRIBUTES: dict[str, str] = {**_since(_LISTS["attributes"]), "_version": OLDEST, "_base": OLDEST}
RELEASES = frozenset(
    release for lists in (*_LISTS["namespaces"].values(), _LISTS["attributes"]) for release in lists
)  # that added a name

# The name under which a case finds each namespace without "torch." before it.
ROOTS: dict[str, str] = {
    **{path: path for path in NAMESPACES if "." not in path and path not in ("utils", "ops", "_higher_order_ops")},
    "F": "nn.functional", "init": "nn.init", "parametrize": "nn.utils.parametrize",
    "forward_ad": "autograd.forward_ad", "fwAD": "autograd.forward_ad", "graph": "autograd.graph",
    "higher_order_ops": "_higher_order_ops",
}  # fmt: skip

# Namespaces that are modules of Python, not of torch.
PYTHON_MODULES = frozenset("math copy gc weakref warnings functools collections types".split())

# Functions of torch that use the seeded generator, and those that make tensors on the target's device.
RANDOM = frozenset("rand randn rand_like randn_like normal randint randint_like randperm".split())
FACTORIES = frozenset(
    """tensor as_tensor asarray ones zeros empty full arange range linspace logspace eye empty_strided empty_permuted
    scalar_tensor tril_indices triu_indices bartlett_window blackman_window hamming_window hann_window kaiser_window
    sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor sparse_compressed_tensor
    from_numpy""".split()
)
FREQUENCIES = frozenset({"fftfreq", "rfftfreq"})  # factories in torch.fft
CHECKERS = frozenset({"gradcheck", "gradgradcheck"})  # of torch.autograd
# Classes of nn without parameters of their own to be moved to the target.
CONTAINERS = frozenset("Module Sequential ModuleList ModuleDict ParameterList Parameter Buffer".split())

# Names that a case can use without their namespace, which isn't torch.
MEMBERS: dict[str, str] = {
    "Module": "nn", "Parameter": "nn", "Function": "autograd", "Variable": "autograd",
    "checkpoint": "utils.checkpoint", "deepcopy": "copy", "partial": "functools", "MappingProxyType": "types",
    "once_differentiable": "autograd.function", "gradcheck": "autograd", "gradgradcheck": "autograd",
}  # fmt: skip

PYTHON = frozenset(
    """None True False abs all any bool callable complex dict divmod enumerate filter float frozenset hasattr hash id
    int isinstance issubclass iter len list map max min next object pow print range repr reversed round set slice
    sorted staticmethod classmethod property str sum super tuple type zip""".split()
)
EXCEPTIONS = frozenset(
    """Exception ArithmeticError AssertionError AttributeError IndexError KeyError LookupError NameError
    NotImplementedError OverflowError RecursionError RuntimeError StopIteration TypeError ValueError
    ZeroDivisionError GeneratorExit Warning DeprecationWarning FutureWarning RuntimeWarning UserWarning""".split()
)
# Python's builtins of any release that a case can't name, nor have anything else under their names: where a compiler or
# a script of its own runs the case, a name that isn't set yet would be the builtin. `ord` and the like do no harm.
FOREIGN = frozenset(
    """BaseException BaseExceptionGroup BlockingIOError BrokenPipeError BufferError BytesWarning
    ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError
    EOFError Ellipsis EncodingWarning EnvironmentError ExceptionGroup FileExistsError FileNotFoundError
    FloatingPointError IOError ImportError ImportWarning IndentationError InterruptedError IsADirectoryError
    KeyboardInterrupt MemoryError ModuleNotFoundError NotADirectoryError NotImplemented OSError
    PendingDeprecationWarning PermissionError ProcessLookupError PythonFinalizationError ReferenceError
    ResourceWarning StopAsyncIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError
    UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning
    WindowsError aiter anext breakpoint bytearray bytes compile copyright credits delattr dir eval exec exit
    getattr globals help license locals memoryview open quit setattr vars""".split()
)
# In names that a compiler sets beside a case's, with an id, and deletes itself once the case is over.
OF_COMPILER = re.compile(r"_\d{9,}_c\d")
# Exceptions of torch that a case can expect, beside Python's.
TORCH_EXCEPTIONS = frozenset("CheckpointError GradcheckError LinAlgError OutOfMemoryError AcceleratorError".split())
# The suite's own names: the event log, the target, a round trip through pickle, threads, the compiler, export,
# operators, derivatives, what is in force, modes, tensors that hold others.
SUITE = frozenset(
    """log device dtype pickled in_thread in_threads compiled exported custom_op derivatives global_state in_mode
    wrapped unwrapped""".split()
)

NAMES: dict[str, str] = {
    **{name: since for name, since in NAMESPACES["torch"].items() if name not in ("e", "seed", "set_rng_state")},
    **{name: NAMESPACES[path][name] for name, path in MEMBERS.items()},
    **dict.fromkeys([*ROOTS, *PYTHON, *EXCEPTIONS, *SUITE], OLDEST),
    **{name: NAMESPACES[path].get(name, "2.0") for name, path in ROOTS.items() if path == "func"},
    "compiled": "2.0", "custom_op": "2.4", "exported": "2.6",
}  # fmt: skip
RESERVED = frozenset("torch nn F optim autograd log tensor super type".split())
BASES: frozenset[str] = EXCEPTIONS | frozenset(
    "object Module Sequential ModuleList ModuleDict Function InplaceFunction Tensor Parameter Optimizer".split()
)
DUNDERS = frozenset("__init__ __call__ __enter__ __exit__ __len__ __getitem__ __iter__ __torch_function__".split())

_ELSEWHERE = {
    **dict.fromkeys(
        "is_leaf requires_grad retains_grad grad_fn version value shape".split(),
        "it holds of a tensor: a: {is_leaf: true}, under expect, says so of a",
    ),
    "none": "write null, or None in an expression", "true": "write True", "false": "write False",
    "np": "numpy is not part of the language; nan, inf and math are", "numpy": "x.numpy() is; the module isn't",
    "getattr": "write the attribute", "setattr": "write the attribute", "exec": "case files are data",
    "eval": "case files are data", "open": "case files are data", "compile": "case files are data",
    "load": "case files are data", "save": "case files are data", "delattr": "write del",
    "grad": "write autograd.grad", "pickle": "write pickled(x) for a round trip", "time": "cases don't know the time",
    "threading": "write in_thread(f, …), or in_threads(f, g) for several at once",
}  # fmt: skip


def inner(namespace: str, name: str) -> str | None:
    """Return the path of the namespace `name` inside `namespace`, or None if there is none."""
    path = name if namespace == "torch" else f"{namespace}.{name}"
    return path if path in NAMESPACES and (namespace != "torch" or name in TORCH_NAMESPACES) else None


TORCH_NAMESPACES = frozenset("nn optim autograd func linalg fft special sparse masked nested utils ops".split())


def since(name: str) -> str:
    """Return the first release that has `name`: a bare name, a namespace's (`func.vmap`) or an attribute."""
    path, _, last = name.rpartition(".")
    if path:
        return NAMESPACES[path][last]
    return NAMES[name] if name in NAMES else ATTRIBUTES[name]


def is_saved_tensor(name: str) -> bool:
    """Whether `name` is an attribute under which a node shows a tensor that it saved."""
    return name.startswith(("_saved_", "_raw_saved_"))


def hint_for(name: str) -> str:
    """Return a hint for a name that is often expected but not in the language, or an empty string."""
    return _ELSEWHERE.get(name, "a builtin of Python that is left out on purpose" if name in FOREIGN else "")


def where_missing(name: str, owner: str) -> str:
    """Return the hint for a name that nothing known resembles: where a name of torch goes; `owner` has such names."""
    if name.startswith("_"):
        return "names that begin with _ are left out on purpose"
    return f"it isn't in the vocabulary: what torch has goes into {FILE}, under {owner!r} and its first release"
