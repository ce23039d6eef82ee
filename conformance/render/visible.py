"""Replaces invisible characters in a text: controls, direction marks, lone surrogates.

Reports and the torch under test come from strangers, and such characters can overwrite a terminal's lines, change the
order in which a text is displayed, or make it impossible to encode.
"""

import re

# Controls; direction marks, embeddings, overrides and isolates; line separators; zero-width characters (but the joiners
# that scripts and emoji need); annotations; lone surrogates; tags.
INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
# What a line of output begins with that CI services take for a command: `::error …::` and `##[error]`.
COMMAND = re.compile(r"^([^\S\n]*)(::(?=[\w-]+[^\n:]*::)|##(?=\[|vso\[))", re.MULTILINE)


def printable(text: str, keep: str = "\n\t") -> str:
    """Return `text` for a terminal or the log of a CI service: visible, and with no line that is a command."""
    return without_commands(visible(text, keep))


def without_commands(text: str) -> str:
    """Return `text` with the marks of commands in brackets: `⟨::⟩error …`."""
    return COMMAND.sub(r"\1⟨\2⟩", text)


def visible(text: str, keep: str = "\n\t") -> str:
    """Return `text` with invisible characters, except those in `keep`, as code points: `⟨U+202E⟩`."""
    if text.isascii() and text.isprintable():
        return text
    return INVISIBLE.sub(lambda found: found[0] if found[0] in keep else f"⟨U+{ord(found[0]):04X}⟩", text)


def line_of(text: str, limit: int = 160) -> str:
    """Return `text` as one line without invisible characters, cut after `limit` characters."""
    begin = text if len(text) <= limit else text[: limit - 1] + "…"
    return visible(begin.replace("\r\n", "\n").replace("\n", "⏎"), keep="")
