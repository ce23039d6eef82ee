"""Formats the causes of what is red for a terminal, a line for each with its smallest case."""

from collections.abc import Sequence

from conformance.model.report import Cause
from conformance.render.text import shortened
from conformance.render.visible import line_of

MOST = 10
LONGEST = 100  # characters of a title
FEW = 3  # red outcomes that can be looked at one by one


def cause_lines(causes: Sequence[Cause]) -> list[str]:
    """Return the lines of the causes of what is red; none where there is nothing to group."""
    red = [cause for cause in causes if cause.is_red]
    if sum(cause.count for cause in red) <= FEW and all(cause.count == 1 for cause in red):
        return []
    shown = [(cause, line_of(shortened(cause.title, LONGEST))) for cause in red[:MOST]]
    digits, width = len(f"{red[0].count:,}"), max(len(title) for _, title in shown)
    lines = [
        f"  {cause.count:{digits},}  {title:{width}}  {line_of(f'{cause.case}[{cause.target}]')}"
        for cause, title in shown
    ]
    left = red[MOST:]
    more = [f"  and {len(left):,} more, of {sum(cause.count for cause in left):,} outcomes"] if left else []
    return ["red by cause, with the smallest case of each", *lines, *more]
