"""Ranks texts by the words that somebody looks for, as they would be typed: in any form, joined or apart."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

WORD = re.compile(r"[a-z0-9]+")
ENDINGS = ("ations", "ation", "ings", "ing", "ed", "es", "s", "e")
SHORTEST = 3  # letters that an ending leaves of a word
SAID_BY_ALL = frozenset(
    "a an and are as at be by can do does for from in is it its not of on or that the to vs with".split()
)
# What people say, and what PyTorch's documentation calls it.
ALSO = {
    "freeze": "requires",
    "frozen": "requires",
    "stop": "detach",
    "leak": "freed",
    "memory": "freed",
    "custom": "function",
}

Key = TypeVar("Key")


def stem(word: str) -> str:
    ending = next((each for each in ENDINGS if word.endswith(each) and len(word) - len(each) >= SHORTEST), "")
    return word.removesuffix(ending)


def stems(text: str) -> list[str]:
    """Return the stems of the words of a text, and those of each two neighbours written as one."""
    words = WORD.findall(text.lower())
    return [stem(word) for word in words] + [stem(one + other) for one, other in pairwise(words)]


def ranked(words: str, texts: Mapping[Key, Sequence[str]]) -> list[Key]:
    """Return the keys of the texts that have words that are looked for, the best first.

    A key has several texts, of which the first tell most: a word counts for the first in which it is found. More of the
    words count for more than how they are found; words that everything has count only where there are no others.
    """
    said = WORD.findall(words.lower())
    telling = [at for at, word in enumerate(said) if word not in SAID_BY_ALL] or range(len(said))
    wanted = [
        (stem(said[at]), {stem(said[at - 1] + said[at]) if at else "", stem(ALSO.get(said[at], ""))} - {""})
        for at in telling
    ]
    found = {key: score(wanted, [stems(text) for text in own]) for key, own in texts.items()}
    best = sorted((key for key in found if found[key][0]), key=lambda key: found[key], reverse=True)
    most = found[best[0]][0] if best else 0
    return [key for key in best if found[key][0] * 2 >= most]


def score(wanted: Iterable[tuple[str, set[str]]], texts: Sequence[list[str]]) -> tuple[int, float]:
    """Return how many of the wanted words, or of what stands for each, texts have, and how much these tell."""
    count, weight = 0, 0.0
    for word, others in wanted:
        ways = {word, *others}
        places = [
            place + (0.0 if ways.intersection(own) else 0.5)
            for place, own in enumerate(texts)
            if ways.intersection(own) or any(is_alike(word, each) for each in own)
        ]
        if places:
            count += 1
            weight += 1 / (1 + min(places))
    return count, weight - 0.001 * sum(map(len, texts))


def is_alike(one: str, other: str) -> bool:
    """Whether one of two words begins with the other."""
    return min(len(one), len(other)) > SHORTEST and (one.startswith(other) or other.startswith(one))
