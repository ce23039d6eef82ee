"""Tells what the suite itself raised from what torch or a case did: a defect of the suite is no build's."""

from __future__ import annotations

import os
import traceback
from typing import Any, Dict

from conformance.worker import checks, factories, functions, namespace, reference, sandbox, values
from conformance.worker.failures import MESSAGE, TORCH, everywhere_alike

OWN = os.path.dirname(__file__) + os.sep
# Modules whose functions a case calls: below a case, what they raise is what the case asked for.
OFFERED = frozenset(module.__file__ for module in (factories, functions, namespace, sandbox))
# Functions that do nothing but ask torch, as do the lambdas of the checks: what comes out of them is torch's.
LOOKS = frozenset(
    function.__code__
    for function in (
        values.elements, values.is_node, values.name_of_node, checks.shape_of, checks.dtype_of, checks.device_of,
        checks.grad_of, checks.base_of, checks.shares_storage, checks.storage_pointer, reference.wide,
        reference.wide_with_grad, reference.wide_module,
    )
)  # fmt: skip


def is_of_the_suite(error: BaseException, file: str) -> bool:
    """Whether the innermost code that is the suite's, torch's or the case's, which is from `file`, is the suite's."""
    own = in_case = False
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename in (file, sandbox.EXPRESSION):
            own, in_case = False, True
        elif code.co_filename.startswith(OWN):
            looks = code in LOOKS or (code.co_name == "<lambda>" and code.co_filename == checks.__file__)
            own = not looks and not (in_case and code.co_filename in OFFERED)
        elif code.co_filename.startswith(TORCH):
            own = False
        trace = trace.tb_next
    return own and not (in_case and isinstance(error, (RecursionError, MemoryError)))  # the case may have used all up


def internal_error(error: BaseException) -> Dict[str, Any]:
    """Return the problem of a step at which the suite failed."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    error.__traceback__ = None  # it holds the frames, and they the tensors
    text = everywhere_alike("".join(lines)).replace(OWN, "conformance/worker/")
    reason = f"the suite itself raised {type(error).__name__}: {error}"
    return {"status": "internal-error", "reason": everywhere_alike(reason)[:MESSAGE], "stderr": text[-MESSAGE:]}
