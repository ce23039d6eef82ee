"""Puts an error into one line, whatever its own text is or does."""

from __future__ import annotations

LONGEST = 2000  # characters


def give_text(error: BaseException) -> None:
    """Replace the arguments of an error whose text can't be had, as that of a number of 5,000 digits."""
    try:
        str(error)
    except (Exception, GeneratorExit) as other:  # the exceptions of the vocabulary
        error.args = (f"its text can't be had, for that raises {type(other).__name__}",)


def message_line(error: BaseException, longest: int = LONGEST) -> str:
    """Return the type and the text of an error in one line, cut after `longest` characters."""
    try:
        text = str(error)
    except BaseException as other:
        text = f"its text can't be had, for that raises {type(other).__name__}"
    begin = " ".join(text[: 2 * longest].split())
    return f"{type(error).__name__}: {begin if len(begin) <= longest else begin[:longest] + ' …'}"
