"""Finds the release from which on a case fails, or passes, by running it on releases between two that differ.

A release that can't be installed, or on which the case can't be run, is skipped, and its neighbours are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

Verdict = Literal["good", "bad", "skip"]


class Bisected(msgspec.Struct, frozen=True, kw_only=True):
    """The last release that is as the first one was, those after it that were skipped, and the first that differs."""

    last: str
    skipped: tuple[str, ...]
    first: str


class Unanswerable(Exception):
    """One of the two ends is not as it was given, so there is no change to search for between them."""


def bisect(releases: Sequence[str], expected: tuple[Verdict, Verdict], attempt: Callable[[str], Verdict]) -> Bisected:
    """Return between which two of the ordered `releases` the verdict changes from the first expected to the second.

    Each release is tried at most once. Raise Unanswerable where an end is not as expected.
    """
    for release, wanted in zip((releases[0], releases[-1]), expected, strict=True):
        found = attempt(release)
        if found != wanted:
            observed = "can't be tested" if found == "skip" else f"is {found}"
            raise Unanswerable(f"{release} {observed}, but was given as {wanted}")
    before, after = 0, len(releases) - 1
    skipped: set[int] = set()
    while True:
        untried = [index for index in range(before + 1, after) if index not in skipped]
        if not untried:
            between = tuple(releases[index] for index in range(before + 1, after))
            return Bisected(last=releases[before], skipped=between, first=releases[after])
        middle = min(untried, key=lambda index: abs(2 * index - before - after))
        verdict = attempt(releases[middle])
        if verdict == expected[0]:
            before = middle
        elif verdict == expected[1]:
            after = middle
        else:
            skipped.add(middle)
