"""Rules: what autograd promises or is seen to do."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Level = Literal["documented", "observed"]


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One behaviour that autograd promises, or is seen to have."""

    id: Annotated[str, Meta(description="The rule's id.")]
    text: Annotated[str, Meta(description="The rule in one sentence.")]
    topic: Annotated[str, Meta(description="What it is about.")]
    level: Level
    link: Annotated[str, Meta(description="Where PyTorch says so, or shows it.")]
    since: Annotated[str, Meta(description="The first release on which it holds.")]
    upgrade: Annotated[str, Meta(description="What code may have to change that comes from an earlier release.")] = ""
    untested: Annotated[str, Meta(description="Why the suite has no case for it; of any other rule it has one.")] = ""


def level_of(rules: Mapping[str, Rule], cited: tuple[str, ...]) -> Level:
    """Return the level of a case: documented if each rule that it cites is."""
    return "documented" if all(rules[rule].level == "documented" for rule in cited) else "observed"
