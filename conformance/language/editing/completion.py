"""Says what can be written at a place of a case file, and what a word there means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from conformance.language.editing import names, parts
from conformance.language.editing.place import Place, place_at
from conformance.language.vocabulary import EXCEPTIONS, TORCH_EXCEPTIONS
from conformance.model.rule import Rule

RULE_ID = re.compile(r"[\w.-]*$")
WORD = re.compile(r"\w*$")
LETTERS = re.compile(r"[\w.-]*")

Kind = Literal["rule", "key", "name", "variable", "word"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Something that can be written in place of the last `length` characters before a place."""

    text: str
    kind: Kind
    length: int
    about: str = ""


def offers(text: str, rules: Mapping[str, Rule], counts: Mapping[str, int]) -> list[Offer]:
    """Return what can be written at the end of `text`, the beginning of a case file; `counts` is of cases by rule."""
    place = place_at(text)
    if parts.named(place) == "rules" and place.is_text:
        length = len(ending(RULE_ID, place.before))
        return [Offer(text=name, kind="rule", length=length, about=of_rule(rules[name], counts)) for name in rules]
    found = list(code(text, place)) if parts.is_code(place) else []
    word = ending(WORD, place.before)
    if place.is_key and place.before.strip() == word:
        found += [
            Offer(text=key, kind="key", length=len(word), about=part.get("description", ""))
            for key, part in parts.keys_at(place).items()
        ]
    if place.is_text and not place.before.endswith(f".{word}"):
        found += [Offer(text=each, kind="word", length=len(word)) for each in values(place)]
    return found


def code(text: str, place: Place) -> Iterator[Offer]:
    """Yield the names that can stand in code."""
    owner, word = names.written(place.before)
    if not owner:
        for name in names.set_before(text):
            yield Offer(text=name, kind="variable", length=len(word), about="a name that the case has set")
    for name, about in (names.members(owner) if owner else names.globals_()).items():
        yield Offer(text=name, kind="name", length=len(word), about=about)


def values(place: Place) -> list[str]:
    """Return the words that a value can be: those of the schema, and exceptions."""
    if parts.named(place) == "type" and not {"raises", "warns"}.isdisjoint(place.path):
        return sorted(EXCEPTIONS | TORCH_EXCEPTIONS)
    return parts.words_at(place)


def ending(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0] if found else ""


def of_rule(rule: Rule, counts: Mapping[str, int]) -> str:
    number = counts.get(rule.id, 0)
    cases = f"{number} case{'s' * (number != 1)} of the suite state{'s' * (number == 1)} it"
    return f"{rule.text}\n\n{rule.level}, since {rule.since}; {cases}\n\n{rule.link}"


def word_at(text: str, offset: int, letters: re.Pattern[str] = LETTERS) -> tuple[int, int]:
    """Return where the word begins and ends that `offset` is in or beside."""
    begin = offset - len(ending(re.compile(letters.pattern + "$"), text[max(0, offset - 200) : offset]))
    found = letters.match(text, begin)
    return begin, found.end() if found else offset


def meaning(text: str, offset: int, rules: Mapping[str, Rule], counts: Mapping[str, int]) -> str:
    """Return what is to be said of the word at `offset`, or nothing."""
    begin, end = word_at(text, offset)
    word = text[begin:end].strip(".-")
    if word in rules:
        return of_rule(rules[word], counts)
    begin, end = word_at(text, offset, re.compile(r"\w*"))
    word = text[begin:end]
    place = place_at(text[:end])
    if not word:
        return ""
    if text[end:].lstrip("\"'").startswith(":"):
        known = parts.keys_at(place)
        return str(known[word].get("description", "")) if word in known and place.before.strip() == word else ""
    return names.meaning(place.before) if parts.is_code(place) else ""
