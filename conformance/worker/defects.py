"""Distinguishes errors raised by the suite itself from those of torch or a case: they must not count as failures."""

from __future__ import annotations

import os
import traceback
from typing import Any, Dict

from conformance.worker import (
    checks,
    factories,
    functions,
    layout,
    limited,
    namespace,
    operation,
    probing,
    reference,
    refusals,
    sandbox,
    storage,
    values,
    watched,
)
from conformance.worker.failures import MESSAGE, TORCH, portable_message

OWN = os.path.dirname(__file__) + os.sep
# Modules whose functions a case calls: errors that they raise below code of the case are the case's.
OFFERED = frozenset(module.__file__ for module in (factories, functions, namespace, refusals, sandbox, watched))
# Modules whose modes stand between who calls torch and torch: an error that passes through them is not theirs.
BETWEEN = frozenset(module.__file__ for module in (layout, limited, probing))
# Functions that only read properties of tensors, like the lambdas of the checks: their errors are torch's.
LOOKS = frozenset(
    function.__code__
    for function in (
        values.elements, values.on_cpu, values.flipped, values.is_node, values.name_of_node, checks.shape_of,
        checks.dtype_of, checks.device_of, checks.grad_of, checks.base_of, storage.shares_storage,
        storage.have_one_address, storage.are_aliases, storage.storage_pointer, reference.wide,
        reference.wide_with_grad, reference.wide_alike, reference.wide_module, operation.placed,
    )
)  # fmt: skip


def is_of_the_suite(error: BaseException, file: str) -> bool:
    """Whether `error` is a defect of the suite: the innermost frame of the suite, torch or the case `file` decides."""
    if isinstance(error, values.Unobservable):
        return False
    own = in_case = False
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename in (file, sandbox.EXPRESSION):
            own, in_case = False, True
        elif code.co_filename.startswith(OWN) and code.co_filename not in BETWEEN:
            looks = code in LOOKS or (code.co_name == "<lambda>" and code.co_filename == checks.__file__)
            own = not looks and not (in_case and code.co_filename in OFFERED)
        elif code.co_filename.startswith(TORCH):
            own = False
        trace = trace.tb_next
    return own and not (in_case and isinstance(error, (RecursionError, MemoryError)))  # the case may have caused these


def internal_error(error: BaseException) -> Dict[str, Any]:
    """Return the result of a step during which the suite failed."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    error.__traceback__ = None  # its frames keep tensors alive
    text = portable_message("".join(lines))
    reason = f"the suite itself raised {type(error).__name__}: {error}"
    return {"status": "internal-error", "reason": portable_message(reason)[:MESSAGE], "stderr": text[-MESSAGE:]}
