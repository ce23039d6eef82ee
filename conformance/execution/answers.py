"""What a worker may answer, strictly: the torch that it tests may crash, print or lie in the same process."""

import json
import math
import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from conformance.model.outcome import Failure, Unobserved
from conformance.model.status import AT_A_STEP, OF_WORKERS, Status

LONGEST_ANSWER = 2**24  # bytes; one with two thousand failures is half as long
SHOWN = 80  # bytes of a line that is no message
LAST_LINE = 2**31
HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair
ESCAPED_HALF = re.compile(rb"\\ud[89a-f]", re.IGNORECASE)  # or a pair of them
Place = Annotated[int, Meta(ge=0, le=LAST_LINE)]


class NotAnAnswer(Exception):
    """A worker has sent what is no answer.

    `is_own` if it bears the number of the request that the worker runs, and `is_late` if that of one that it has
    answered before. Otherwise nothing says which case has sent it.
    """

    def __init__(self, why: str, *, is_own: bool = False, is_late: bool = False) -> None:
        super().__init__(why)
        self.is_own = is_own
        self.is_late = is_late


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to a request to run a case."""

    status: Status
    seconds: Annotated[float, Meta(ge=0)] = 0.0
    step: Place | None = None
    line: Place | None = None
    traceback: tuple[tuple[int, str], ...] = ()
    reason: str = ""
    stderr: str = ""
    failures: tuple[Failure, ...] = ()
    unobserved: tuple[Unobserved, ...] = ()
    must_restart: str = ""
    has_grown: bool = False
    printed: str = ""


class LookAnswer(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to a request that only looks: with the graph, or what is used of those, that was found."""

    graph: dict[str, Any] | None = None
    uses: tuple[str, ...] = ()


def parse_message(line: bytes) -> dict[str, Any]:
    """Return the JSON object in a line; raise NotAnAnswer where there is none."""
    try:
        message = json.loads(line)  # NaN is a number to it, and a wrong one to what follows
        if ESCAPED_HALF.search(line):
            message = without_halves(message)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise NotAnAnswer(f"sent a line that is not a message: {line[:SHOWN]!r}")
    return message


def without_halves(value: Any) -> Any:
    """Return a value without halves of surrogate pairs, which pytest-xdist can't send: with their code points."""
    if isinstance(value, str):
        return HALF.sub(lambda half: f"⟨U+{ord(half[0]):04X}⟩", value)
    if isinstance(value, list):
        return [without_halves(each) for each in value]
    if isinstance(value, dict):
        return {without_halves(key): without_halves(each) for key, each in value.items()}
    return value


def why_no_answer(message: dict[str, Any], *, looks: bool = False) -> str:
    """Return what is wrong with an answer without its number, or "" where nothing is."""
    try:
        answer = msgspec.convert(message, LookAnswer if looks else Answer)
    except (msgspec.ValidationError, RecursionError) as error:
        return f"sent an answer that is none: {error}"
    lines = [*(line for line, _ in answer.traceback), *(each.line for each in answer.failures)]
    if math.isinf(answer.seconds) or any(abs(line) > LAST_LINE for line in lines):
        return "sent an answer that is none: a number beyond all bounds"
    if answer.status not in OF_WORKERS:
        return f"sent an answer that is none: {answer.status!r}, which only its parent can know"
    if bool(answer.failures) != (answer.status in AT_A_STEP):
        return f"sent an answer that is none: {answer.status!r} with {len(answer.failures)} failures"
    return ""
