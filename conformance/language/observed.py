"""Turns what was observed, as reports show it, into what a case says of it."""

import json
import re
from typing import Any

from conformance.language import vocabulary
from conformance.language.errors import CaseFileError
from conformance.language.unconfirmed import ENDS, NAMES, check_names, is_reference
from conformance.language.yaml import read_document

MESSAGE = 240  # characters of a message that are taken over
OF_ONE_RUN = re.compile(r" ?(?:Hint:|\(Triggered internally|0x[0-9a-f]{4,}|\S*[/\\]\S+[/\\]\S+)")  # and what follows
NAMED = re.compile(r"(?P<type>\w+): (?P<words>.*)", re.DOTALL)
UNQUOTED = re.compile(r"[^\[\],]+")  # an item of a list, which reports show without quotation marks
NUMBERS = frozenset({"value", "grad", "log"})  # checks of what is computed, as the others are of how


def value_of(what: str, text: str, exception: str = "") -> Any:
    """Return what a case says where `text` was observed, of an error with the type that it is a kind of."""
    if what in ENDS:
        return end_of(text, exception)
    if is_reference(what):
        return None if text == "null" else text.partition(",")[0]
    if check_names().get(what) in NAMES:
        return None if text == "null" else text
    value = flow(text)
    return {"text": value} if type(value) is str and what in ("value", "grad") else value


def flow(text: str) -> Any:
    """Return text as YAML has it, or the text itself where that has nothing."""
    try:
        return read_document(f"value: {text}", "").find("value").plain
    except CaseFileError:
        quoted = UNQUOTED.sub(lambda item: item[0] if is_plain(item[0].strip()) else json.dumps(item[0].strip()), text)
        return flow(quoted) if text.startswith("[") and quoted != text else text


def is_plain(item: str) -> bool:
    """Whether an item of a list is what YAML takes for the same without quotation marks."""
    return not item or item[0] in "\"'" or re.fullmatch(r"[\w.+-]+", item) is not None


def end_of(text: str, exception: str) -> dict[str, Any]:
    """Return the entry of `raises` or `warns` for an error or warning: as much of its message as is of no one run."""
    match = NAMED.match(text)
    words = OF_ONE_RUN.split(match["words"] if match else text)[0].strip()
    if len(words) > MESSAGE:
        sentences = words[:MESSAGE].rpartition(". ")[0]
        words = f"{sentences}." if sentences else words[:MESSAGE].rpartition(" ")[0]
    known = vocabulary.EXCEPTIONS | vocabulary.TORCH_EXCEPTIONS
    return {"type": exception if exception in known else "Exception", "match": words or {"regex": "^$"}}


def has_numbers(what: str, value: Any) -> bool:
    """Whether what is observed has numbers that were computed, which are confirmed by saying where they come from."""
    return what in NUMBERS and holds_number(value)


def holds_number(value: Any) -> bool:
    if type(value) is list:
        return any(map(holds_number, value))
    return type(value) in (int, float) or (type(value) is str and value in ("nan", "inf", "-inf"))
