"""Reads the order of the book: parts, their chapters, and the topics of the rules that stand in each."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from conformance.model.rule import Rule

CHAPTERS_FILE = Path(__file__).parent.parent / "chapters.yaml"


class ChaptersError(Exception):
    """A file of chapters that can't be read, or that doesn't fit the rules."""


class Chapter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of the book: its file name, title, a sentence about it, its topics, and rules that come first in them."""

    name: str
    title: str
    says: str
    topics: tuple[str, ...]
    first: tuple[str, ...] = ()

    def rules_of(self, topic: str, rules: Iterable[Rule]) -> list[Rule]:
        """Return the rules of a topic in the order in which they are read."""
        places = {name: place for place, name in enumerate(self.first)}
        own = (rule for rule in rules if rule.topic == topic)
        return sorted(own, key=lambda rule: (places.get(rule.id, len(places)), rule.level))


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Chapters that belong together."""

    title: str
    chapters: tuple[Chapter, ...]


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole book."""

    parts: tuple[Part, ...]

    @property
    def chapters(self) -> list[Chapter]:
        return [chapter for part in self.parts for chapter in part.chapters]


def load_order(path: Path = CHAPTERS_FILE) -> Order:
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=Order)
    except msgspec.DecodeError as error:
        raise ChaptersError(
            f"{path}: {error}; expected parts with chapters, each with name, title, says, topics"
        ) from None


def checked_order(path: Path, rules: Sequence[Rule]) -> Order:
    """Return the order in a file; raise ChaptersError where it doesn't fit the rules."""
    order = load_order(path)
    wrong = misplaced(order, rules)
    if wrong:
        raise ChaptersError("".join(f"\n{path}: {problem}" for problem in wrong).lstrip())
    return order


def misplaced(order: Order, rules: Sequence[Rule]) -> list[str]:
    """Return what is wrong with an order: topics in no chapter or in several, names that no rule of a chapter has."""
    placed = [topic for chapter in order.chapters for topic in chapter.topics]
    topics = dict.fromkeys(rule.topic for rule in rules)
    return [
        *(f"topic {topic!r} stands in no chapter" for topic in topics if topic not in placed),
        *(f"topic {topic!r} stands in several chapters" for topic in topics if placed.count(topic) > 1),
        *(f"no rule has the topic {topic!r}" for topic in placed if topic not in topics),
        *(
            f"chapter {chapter.name!r} has no rule {name!r}"
            for chapter in order.chapters
            for name in chapter.first
            if name not in {rule.id for rule in rules if rule.topic in chapter.topics}
        ),
    ]
