"""Failures in a mode that are none: PyTorch says that what they are about doesn't hold in it."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from conformance.language.modes import Exemption
from conformance.model.build import Target
from conformance.model.outcome import Failure, Outcome
from conformance.model.status import AT_A_STEP


def exempted(outcome: Outcome, case: str, target: Target, exemptions: Sequence[Exemption]) -> Outcome:
    """Return an outcome as it counts: unsupported, with the reason, if the mode of its target explains each failure."""
    if outcome.status not in AT_A_STEP:
        return outcome
    found = [
        next((each for each in exemptions if target.mode in each.modes and explains(each, case, failure)), None)
        for failure in outcome.failures
    ]
    first = next(iter(found), None)
    if first is None or None in found:
        return outcome
    return replace(
        outcome, status="unsupported", reason=f"in the mode {target.mode}: {first.why}", failures=(), traceback=()
    )


def explains(exemption: Exemption, case: str, failure: Failure) -> bool:
    text = f"{failure.path}: expected {failure.expected}, observed {failure.observed}"
    return (not exemption.cases or case in exemption.cases) and re.search(exemption.says, text) is not None
