"""What is known of a request whose worker has ended without an answer: how it ended, where, and what it had noted."""

import re
import signal
from typing import Any, NamedTuple

from conformance.execution.answers import NotAnAnswer, parse_message, why_no_answer

NOTE = re.compile(rb"(\d{1,9}) (\d{1,9}) (\d{1,9}) (\d{1,9}\.\d{1,9})")
SLOW_SECONDS = 0.1  # a step that took as long is told of a case that was ended


class End(NamedTuple):
    """How a worker ended: its exit status, the end of what it printed, and its notes on the last request."""

    status: int | None
    printed: str
    notes: bytes


def outcome_of_end(
    end: End, number: int, seconds: float, *, limit: float | None = None, why: str = ""
) -> dict[str, Any]:
    """Return the outcome of the request `number`, during which its worker ended after `seconds`.

    With a `limit`, it was killed for no answer within so many seconds; with `why`, for what it did wrong. An answer
    that it had noted counts.
    """
    steps, answer = read_notes(end.notes, number)
    if answer is not None:
        return answer
    status = "crash" if limit is None else "timeout"
    outcome: dict[str, Any] = {"status": status, "seconds": seconds, "stderr": end.printed}
    if steps:
        outcome["step"], outcome["line"], _ = steps[-1]
    if limit is not None:
        outcome["reason"] = f"no answer within {limit:g} s; the worker was killed{times_of(steps, seconds)}"
    elif why:
        outcome["reason"] = f"the worker {why}"
    else:
        outcome["reason"] = f"the worker {describe_end(end.status)}"
        if end.status is not None:
            outcome.update({"exit_status": end.status} if end.status >= 0 else {"signal": signal_name(end.status)})
    return outcome


def read_notes(text: bytes, number: int) -> tuple[list[tuple[int, int, float]], dict[str, Any] | None]:
    """Return the steps that the request `number` had begun, as (step, line, seconds), and its answer if that is there.

    `conformance/worker/notes.py` describes the text. The process that wrote it may have ended in the middle of a line,
    and what it ran may have written there, too: lines that are no notes say nothing.
    """
    steps: list[tuple[int, int, float]] = []
    for line in text.partition(b"\0")[0].split(b"\n")[:-1]:
        if line.startswith(b"{"):
            try:
                answer = parse_message(line)
            except NotAnAnswer:
                continue
            if answer.pop("n", None) != number:
                return [], None
            if why_no_answer(answer):
                continue
            return steps, answer
        note = NOTE.fullmatch(line)
        if note and int(note[1]) == number:
            steps.append((int(note[2]), int(note[3]), float(note[4])))
    return steps, None


def times_of(steps: list[tuple[int, int, float]], seconds: float) -> str:
    """Return how long each step took, of a request that was ended after `seconds`: the last, and the slow ones."""
    if not steps:
        return ""
    begun = [begin for _, _, begin in steps]
    took = [(line, end - begin) for (_, line, begin), end in zip(steps, [*begun[1:], seconds], strict=True)]
    slow = "".join(f", line {line} {time:.1f} s" for line, time in took[:-1] if time >= SLOW_SECONDS)
    return f" in line {took[-1][0]} after {took[-1][1]:.1f} s there" + (f"; before it{slow[1:]}" if slow else "")


def signal_name(status: int) -> str:
    """Return the signal that ended a process with this exit status; "" if it exited by itself."""
    if status >= 0:
        return ""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def describe_end(status: int | None) -> str:
    """Return how a process with this exit status ended, in words; None where nobody knows."""
    if status is None:
        return "was killed"
    return f"exited with status {status}" if status >= 0 else f"was ended by {signal_name(status)}"
