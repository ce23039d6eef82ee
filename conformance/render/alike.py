"""Finds the suite's cases that are much alike, and the rules that a case may be about, by the words of its steps."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from conformance.language.files import case_files, shipped_cases
from conformance.language.unconfirmed import check_names
from conformance.model.rule import Rule
from conformance.render.ranking import ranked

ENTRY = re.compile(r"^  - id: *(?P<id>\S+)\n(?P<text>(?:(?!^  - id:).*\n)*)", re.MULTILINE)
RULES = re.compile(r"^    rules: *\[(?P<ids>[^\]]*)\]", re.MULTILINE)
STEPS = re.compile(r"^    (?:steps|given|spellings):.*\Z", re.MULTILINE | re.DOTALL)
DONE = re.compile(r"(?<=\.)[A-Za-z_]\w+|[A-Za-z_]\w+(?=\()")  # what is called, or read of an object
NAMED = re.compile(r"[A-Za-z_]\w+(?=['\"]?:)")
SAID_BY_ALL = frozenset({"tensor", "ones", "value", "type", "match"})
ALIKE = 0.75  # of the weight of the words of two cases, in common
MOST = 3
MOST_WORDS = 8  # by which rules are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A case as its file has it: its id, the rules that it cites, and the words of its steps."""

    id: str
    rules: tuple[str, ...]
    words: frozenset[str]


class Alike:
    """The cases of the suite, compared by how seldom the words are that they have in common."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = list(entries)

    @cached_property
    def weights(self) -> dict[str, float]:
        counts = Counter(word for entry in self.entries for word in entry.words)
        return {word: math.log(len(self.entries) / count) + 0.1 for word, count in counts.items()}

    def weight(self, words: Iterable[str]) -> float:
        return sum(self.weights.get(word, 1.0) for word in words)

    def nearest(self, steps: list[Any], least: float = ALIKE) -> list[Entry]:
        """Return the cases whose steps have most of these words and few others, the nearest first."""
        words = words_in(str(steps))
        found = {
            at: self.weight(words & entry.words) / max(self.weight(words | entry.words), 1e-9)
            for at, entry in enumerate(self.entries)
        }
        best = sorted((at for at in found if found[at] >= least), key=lambda at: -found[at])
        return [self.entries[at] for at in best[:MOST]]

    def rules_for(self, steps: list[Any], alike: list[Entry], rules: Mapping[str, Rule]) -> list[str]:
        """Return rules that a case may be about: those of cases like it, and those that have its words."""
        near = [name for entry in alike or self.nearest(steps, ALIKE / 2) for name in entry.rules if name in rules]
        words = sorted(words_in(str(steps)), key=lambda word: -self.weights.get(word, 1.0))[:MOST_WORDS]
        texts = {name: (name, rule.text) for name, rule in rules.items()}
        return list(dict.fromkeys([*near, *ranked(" ".join(words).replace("_", " "), texts)]))


def words_in(text: str) -> frozenset[str]:
    """Return the words that tell what steps do and check, and not how they call their tensors."""
    checks = {*check_names(), "raises", "warns", "log"}
    return (frozenset(DONE.findall(text)) | (checks & set(NAMED.findall(text)))) - SAID_BY_ALL


@cache
def suite() -> Alike:
    """Return the cases that come with the suite, read as text, which takes a hundredth of the time of loading them."""
    found = []
    for path in case_files([shipped_cases()]):
        for match in ENTRY.finditer(path.read_text(encoding="utf-8")):
            cited, steps = RULES.search(match["text"]), STEPS.search(match["text"])
            ids = tuple(re.findall(r"[\w.-]+", cited["ids"])) if cited else ()
            found.append(Entry(id=match["id"], rules=ids, words=words_in(steps[0] if steps else "")))
    return Alike(found)
