"""What is made of a red outcome and of what came of the case when it was run once more, alone.

A case shares its worker with others. What they leave behind, in memory or in a cache of torch, or chance alone, may
make a case fail that does not fail alone. Then it says something of the build, but not what the case is about.
"""

from msgspec.structs import replace

from conformance.model.outcome import NO_TIME, Outcome, Retry
from conformance.model.status import TABLE


def retried(first: Outcome, alone: Outcome) -> Outcome:
    """Return a red outcome with what came of its case `alone`: as it was where that says the same, else flaky.

    Where the suite could not run it alone, that says nothing.
    """
    if not TABLE[alone.status].tells_of_torch:
        return first
    is_steady = TABLE[first.status].verdict == TABLE[alone.status].verdict
    return replace(
        first,
        status=first.status if is_steady else "flaky",
        retry=Retry(status=first.status, alone=replace(alone, case="", target="", seconds=NO_TIME)),
    )
