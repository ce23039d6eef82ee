"""Evaluates conditions on torch, which are PEP 440 specifiers, and whether alternatives are exhaustive and disjoint.

A build's local part (`+cpu`, `+git1a2b3c`) is dropped. A development, alpha or release-candidate build counts as the
release that it leads to, unless the bound itself names such a build.
"""

import functools
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from conformance.language import vocabulary

AHEAD = 5  # how many minor releases after the newest known one a condition may name: about a year's
NEWEST = max(Version(release) for release in vocabulary.RELEASES)
FIRST = (*Version(vocabulary.OLDEST).release, 0)
LAST = f"{NEWEST.major}.{NEWEST.minor + AHEAD}"
OPERATORS = (">=", "<=", ">", "<", "==", "!=")
LONGEST_CONDITION = 1000  # characters; a case can have several conditions, which are joined
MOST_ALTERNATIVES = 100  # each is held against the bounds of all others
EXPECTED = 'a condition on torch such as ">=2.1", "<2.13" or ">=2.1,<2.4"'


@functools.cache
def specifier_of(text: str) -> SpecifierSet:
    """Return the condition that `text` states; raise ValueError when it states none."""
    if len(text) > LONGEST_CONDITION:
        raise ValueError(f"expected at most {LONGEST_CONDITION} characters in a condition on torch, got {len(text)}")
    condition = SpecifierSet()
    with suppress(InvalidSpecifier):
        condition = SpecifierSet(text)
    if not condition or any(part.operator not in OPERATORS or "*" in part.version for part in condition):
        raise ValueError(f"expected {EXPECTED}, got {text!r}")
    return condition


@functools.cache
def holds(text: str, torch: str) -> bool:
    """Return whether the condition `text` holds for the torch version `torch`."""
    version = version_of(torch)
    release = Version(version.base_version)
    public = Version(version.public)
    return all(
        part.contains(public if Version(part.version).is_prerelease else release, prereleases=True)
        for part in specifier_of(text)
    )


def version_of(torch: str) -> Version:
    """Return the version of a build; if it isn't valid under PEP 440, the numbers that it begins with.

    Raise ValueError when it begins with none.
    """
    try:
        return Version(torch)
    except ValueError:  # it is none, or a number has thousands of digits
        begin = re.match(r"\d{1,9}\.\d{1,9}(\.\d{1,9})?(?!\d)", torch)
        if begin is None:
            raise ValueError(f"expected a version such as 2.13.0, got {torch!r}") from None
        return Version(begin[0])


def gaps_and_overlaps(conditions: Sequence[str | None], within: str | None = None) -> str:
    """Return a message about a release for which not exactly one of `conditions` holds, or "" when there is none.

    Only releases for which `within` holds count; None holds for every release. It is enough to look at the releases at
    and next to each bound.
    """
    if len(conditions) > MOST_ALTERNATIVES:
        return f"expected at most {MOST_ALTERNATIVES} alternatives, got {len(conditions)}"
    for release in releases_at_bounds([*conditions, within]):
        if within is not None and not holds(within, release):
            continue
        count = sum(condition is None or holds(condition, release) for condition in conditions)
        if count != 1:
            return f"torch {release} has {'no alternative' if count == 0 else f'{count} alternatives'}"
    return ""


def possible(conditions: Sequence[str]) -> bool:
    """Whether all of `conditions` hold for some release from the oldest supported one to `LAST`."""
    within = [*conditions, f"<={LAST}"]
    return any(all(holds(condition, release) for condition in within) for release in releases_at_bounds(within))


def releases_at_bounds(conditions: Iterable[str | None]) -> list[str]:
    """Return the releases at and next to each bound of the conditions, and the first and a last one."""
    releases = {FIRST, (9999, 0, 0)}
    for condition in conditions:
        for part in specifier_of(condition) if condition else ():
            major, minor, patch = (*Version(part.version).release, 0, 0)[:3]
            releases |= {(major, minor, patch), (major, minor, patch + 1)}
            if patch:
                releases.add((major, minor, patch - 1))
            elif minor:
                releases.add((major, minor - 1, 9999))
            else:
                releases.add((major - 1, 9999, 9999))
    return [".".join(map(str, release)) for release in sorted(releases) if release >= FIRST]


def gap(conditions: Sequence[str | None], within: str | None = None) -> str:
    """Return a release on which `within` holds and none of the conditions does, or "" when there is none."""
    every = [within, f"<={LAST}"]
    return next(
        (
            release
            for release in releases_at_bounds([*conditions, *every])
            if all(each is None or holds(each, release) for each in every)
            and not any(condition is None or holds(condition, release) for condition in conditions)
        ),
        "",
    )
