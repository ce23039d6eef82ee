"""Finds entries of case files that ask the same as another: by the rules, operations, errors and checks of both.

What few entries have tells more than what many have. The text is looked at, not the case: so a draft that doesn't load
can be compared, and thousands of entries in a second.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from conformance.language import vocabulary
from conformance.language.outline import Entry
from conformance.language.schema import load_schema

IDENTIFIER = re.compile(r"[^\W\d]\w*")
CHECK = re.compile(r"\b([a-z_]+): ")
GRADIENTS = "autograd.grad("  # whose last name is that of a check, too
NODE = re.compile(r"\b[A-Z]\w*Backward\d*\b")
BODY = re.compile(r"^ +(steps|given|spellings|parametrize|op):|^ *- \{id:", re.MULTILINE)
WEIGHTS = {"rule": 3.0, "operation": 2.0, "error": 2.0, "node": 1.0, "check": 0.5}
OF_ALL = frozenset("tensor torch ones zeros None True False log expect do".split())  # what says nothing of a case
OF_ERRORS = frozenset({"type"})  # which is a key of raises, and hardly ever a check
PLURALS = {"rule": "rules", "operation": "operations", "error": "errors", "node": "nodes", "check": "checks"}
LEAST = 0.25  # of what both have together, that both must have

Feature = tuple[str, str]  # its kind, a key of WEIGHTS, and its name


@dataclass(frozen=True, slots=True, kw_only=True)
class Similar:
    """An entry that resembles another, how much (1 for all that either has), and in what."""

    entry: Entry
    share: float
    common: tuple[Feature, ...]

    @property
    def why(self) -> str:
        """What both have, in words."""
        by_kind: dict[str, list[str]] = {}
        for kind, name in self.common:
            by_kind.setdefault(kind, []).append(name)
        return "; ".join(f"{PLURALS[kind]}: {', '.join(by_kind[kind])}" for kind in WEIGHTS if kind in by_kind)


@cache
def checks_known() -> frozenset[str]:
    return frozenset(load_schema("case.schema.json")["$defs"]["checks"]["properties"])


def features_of(entry: Entry) -> frozenset[Feature]:
    """Return what an entry does and asks, as far as its text tells."""
    begin = BODY.search(entry.text)
    body = entry.text[begin.start() :] if begin else ""
    checks = {name for name in CHECK.findall(body) if name in checks_known() - OF_ERRORS}
    words = set(IDENTIFIER.findall(body)) - OF_ALL
    errors = words & (vocabulary.EXCEPTIONS | vocabulary.TORCH_EXCEPTIONS)
    others = words - checks_known() - errors
    operations = {word for word in others if word in vocabulary.NAMES or word in vocabulary.ATTRIBUTES}
    operations |= {"autograd.grad"} if GRADIENTS in body else set()
    named = {"rule": entry.rules, "operation": operations, "error": errors, "node": NODE.findall(body), "check": checks}
    return frozenset((kind, name) for kind, names in named.items() for name in names)


def similar_to(entry: Entry, others: Iterable[Entry], most: int) -> list[Similar]:
    """Return the entries that ask most of what another one asks, the most similar first; rules count if it has any."""
    own = features_of(entry)
    known = {other: features_of(other) for other in others if other.id != entry.id}
    if not entry.rules:
        known = {other: frozenset(each for each in found if each[0] != "rule") for other, found in known.items()}
    weights = weights_of([own, *known.values()])
    found = []
    for other, features in known.items():
        common = own & features
        share = weight_of(common, weights) / max(weight_of(own | features, weights), 1e-9)
        if share >= LEAST and any(kind in ("rule", "operation", "error") for kind, _ in common):
            ordered = sorted(common, key=lambda each: (-weights[each], each))
            found.append(Similar(entry=other, share=share, common=tuple(ordered)))
    return sorted(found, key=lambda each: (-each.share, each.entry.id))[:most]


def weight_of(features: frozenset[Feature], weights: Mapping[Feature, float]) -> float:
    """Return what features weigh together, whatever the order is in which a set has them."""
    return math.fsum(weights[each] for each in features)


def weights_of(each_has: list[frozenset[Feature]]) -> Mapping[Feature, float]:
    """Return how much each feature tells: the more, the fewer entries have it."""
    counts = Counter(feature for features in each_has for feature in features)
    return {(kind, name): WEIGHTS[kind] * math.log(1 + len(each_has) / count) for (kind, name), count in counts.items()}
