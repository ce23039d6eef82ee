"""Reads the order of the book: parts, their chapters, and the topics of the rules that stand in each."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from conformance.model.rule import Rule

CHAPTERS_FILE = Path(__file__).parent.parent / "chapters.yaml"


class Chapter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of the book: its file name, its title, a sentence about it, and its topics in order."""

    name: str
    title: str
    says: str
    topics: tuple[str, ...]


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
    return msgspec.yaml.decode(path.read_bytes(), type=Order)


def misplaced(order: Order, rules: Sequence[Rule]) -> list[str]:
    """Return what is wrong with an order: topics that stand in no chapter or in several, or that no rule has."""
    placed = [topic for chapter in order.chapters for topic in chapter.topics]
    topics = dict.fromkeys(rule.topic for rule in rules)
    return [
        *(f"topic {topic!r} stands in no chapter" for topic in topics if topic not in placed),
        *(f"topic {topic!r} stands in several chapters" for topic in topics if placed.count(topic) > 1),
        *(f"no rule has the topic {topic!r}" for topic in placed if topic not in topics),
    ]
