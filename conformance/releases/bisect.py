"""Finds the release from which on a case fails, or holds, by running it on releases between two that differ.

A release that can't be installed, or on which the case can't run, tells nothing; then those beside it are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

Verdict = Literal["good", "bad", "untold"]
Try = Callable[[str], Verdict]


class Bisected(msgspec.Struct, frozen=True, kw_only=True):
    """The last release that is as the first one was, those after it that told nothing, and the first that differs."""

    last: str
    untold: tuple[str, ...]
    first: str


class Unanswerable(Exception):
    """The two ends don't differ, so that there is nothing to find between them."""


def bisect(releases: Sequence[str], expected: tuple[Verdict, Verdict], attempt: Try) -> Bisected:
    """Return between which two of `releases`, in their order, the verdict turns from the first expected to the second.

    Each release is tried at most once. Raise Unanswerable where an end is not as expected.
    """
    for release, wanted in zip((releases[0], releases[-1]), expected, strict=True):
        found = attempt(release)
        if found != wanted:
            told = "tells nothing" if found == "untold" else f"is {found}"
            raise Unanswerable(f"{release} {told}, and was said to be {wanted}")
    before, after = 0, len(releases) - 1
    untold: set[int] = set()
    while True:
        open_ones = [place for place in range(before + 1, after) if place not in untold]
        if not open_ones:
            between = tuple(releases[place] for place in range(before + 1, after))
            return Bisected(last=releases[before], untold=between, first=releases[after])
        place = min(open_ones, key=lambda each: abs(2 * each - before - after))
        verdict = attempt(releases[place])
        if verdict == expected[0]:
            before = place
        elif verdict == expected[1]:
            after = place
        else:
            untold.add(place)
