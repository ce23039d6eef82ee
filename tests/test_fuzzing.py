"""What the fuzzer feeds to the readers: the inputs that it begins with, changes of them, and what it once found."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz_readers import READERS
from shipped import spread

KEPT = Path(__file__).parent / "fuzzed"
MARKS = b"\x00\t\n :,-[]{}\"'#&*!|>%@`\\.0123456789eE\xff\xc3"
CHANGES = 4  # of one input


def changed(content: bytes, numbers: random.Random) -> bytes:
    """Return an input of which some bytes are others, gone, or stand twice."""
    for _ in range(numbers.randint(1, CHANGES)):
        place, length = numbers.randrange(len(content) + 1), numbers.randint(0, 12)
        kept = numbers.choice([b"", content[place : place + length] * 2, bytes([numbers.choice(MARKS)])])
        content = content[:place] + kept + content[place + length :]
    return content


def inputs(name: str) -> Iterator[bytes]:
    _, texts = READERS[name]
    numbers = random.Random(name)
    for content in spread(60, [text.encode() for text in texts()]):
        yield content
        yield from (changed(content, numbers) for _ in range(CHANGES))


@pytest.mark.parametrize("name", READERS)
def test_what_is_read_or_refused_is_so_as_it_should_be(name: str) -> None:
    read, _ = READERS[name]
    count = 0
    for content in (*inputs(name), *(path.read_bytes() for path in sorted(KEPT.glob(f"{name}-*")))):
        try:
            read(content)
        except Exception as error:
            raise AssertionError(content) from error
        count += 1
    assert count >= 50


@pytest.mark.parametrize("name", READERS)
def test_the_inputs_to_begin_with_are_read(name: str) -> None:
    """Else what is guided by them would never come past their beginning."""
    read, texts = READERS[name]
    are_read = [read(text.encode()) for text in texts()]
    assert sum(are_read) > 0.8 * len(are_read)
