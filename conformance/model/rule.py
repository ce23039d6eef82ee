"""Rules: what autograd promises or is seen to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Level = Literal["documented", "observed"]


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One behaviour: `level` is `documented` or `observed`, `since` the first release on which it holds.

    `untested` says why no case looks at it; of any other rule the suite has a case.
    """

    id: str
    text: str
    topic: str
    level: Level
    link: str
    since: str
    untested: str = ""


def level_of(rules: Mapping[str, Rule], cited: tuple[str, ...]) -> Level:
    """Return the level of a case: documented if each rule that it cites is."""
    return "documented" if all(rules[rule].level == "documented" for rule in cited) else "observed"
