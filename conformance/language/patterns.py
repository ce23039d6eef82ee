"""Checks regular expressions that messages must match.

They are run by the interpreter under test, on messages of any length: no syntax newer than Python 3.8 is allowed, and
no nested repetition, which can take exponential time.
"""

import re

MAX_PATTERN_LENGTH = 200
ESCAPED = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)  # a character, or one of a set
NEWER = re.compile(r"\(\?>|[*+?}]\+")
REPETITION = re.compile(r"[*+]|\{\d*,\d*\}")
CLOSED = re.compile(r"\([^()]*\)(?=([*+]|\{\d*,\d*\})?)")


def pattern_problem(pattern: str) -> tuple[str, str] | None:
    """Return what is wrong with `pattern` and a hint, or None when it can be used."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        return f"expected at most {MAX_PATTERN_LENGTH} characters, got {len(pattern)}", "match several shorter ones"
    try:
        re.compile(pattern)
    except (re.error, OverflowError) as error:
        return f"expected a regular expression, got one with an error: {error}", ""
    bare = ESCAPED.sub("x", pattern)
    if NEWER.search(bare):
        return "possessive repetitions and atomic groups are newer than Python 3.8", "write it without"
    while True:  # replace groups from the inside out: by x* if something in them is repeated
        group = CLOSED.search(bare)
        if group is None:
            return None
        repeats = bool(REPETITION.search(group[0]))
        if repeats and group[1]:
            return "a repetition inside a repetition can take for ever", "repeat one of the two only"
        bare = bare[: group.start()] + ("x*" if repeats else "x") + bare[group.end() :]
