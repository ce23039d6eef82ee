"""Shows what can't be seen in a text: control characters, those that turn the direction of writing, halves of pairs.

Reports come from strangers, and such characters can rewrite a terminal's lines, show a text in another order than
it has, or make it impossible to encode.
"""

from __future__ import annotations

import re

# Controls; marks, embeddings, overrides and isolates of direction; separators of lines; what has no width (but the
# joiners that scripts and emoji need); annotations; lone surrogates; tags.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str, keep: str = "\n\t") -> str:
    """Return `text` with each character that can't be seen, but those in `keep`, as its code point: `⟨U+202E⟩`."""
    if text.isascii() and text.isprintable():
        return text
    return UNSEEN.sub(lambda found: found[0] if found[0] in keep else f"⟨U+{ord(found[0]):04X}⟩", text)


def line_of(text: str, limit: int = 160) -> str:
    """Return `text` as one line that can be seen whole, cut after `limit` characters of it."""
    begin = text if len(text) <= limit else text[: limit - 1] + "…"
    return visible(begin.replace("\r\n", "\n").replace("\n", "⏎"), keep="")
