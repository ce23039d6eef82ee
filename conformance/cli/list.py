"""Lists the cases of the suite, or of files, with their titles."""

import argparse
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from conformance.cli.output import CommandError, json_text, put
from conformance.language.files import case_files, shipped_cases
from conformance.language.outline import Entry, entries
from conformance.render.ranking import ranked

DESCRIPTION = """\
Lists cases with their titles: all of the suite, or those that have some words, check a rule, or are of a topic. An
entry that is written out to several cases, by parametrize or spellings, stands once.

  autograd-conformance list retain grad
  autograd-conformance list --rule detach.shares-storage
  autograd-conformance list --topic hooks --format json
  autograd-conformance list --file mine.yaml

exit statuses: 0 there are some; 1 there are none; 2 a file can't be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="WORDS", nargs="*", help="what to look for, in any order; the best come first")
    parser.add_argument("--topic", metavar="TOPIC", help="those of a topic, or of a part of its name")
    parser.add_argument("--rule", metavar="RULE", help="those that check a rule; * stands for any letters")
    parser.add_argument("--file", metavar="FILE", type=Path, help="those of a file or directory of your own")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")


def run(options: argparse.Namespace) -> int:
    found = [entry for entry in those_in(options.file) if fits(entry, options.topic, options.rule)]
    if options.words:
        texts = {entry: (entry.id, entry.title, " ".join(entry.rules)) for entry in found}
        found = ranked(" ".join(options.words), texts)
    if options.format == "json":
        put(json_text({"cases": [facts_of(entry) for entry in found]}), "utf-8")
    else:
        put("\n".join([*(best_of(found) if options.words else lines_of(found)), ""]), "utf-8")
    return 0 if found else 1


def those_in(place: Path | None) -> list[Entry]:
    """Return the entries at a place, or those of the suite, with the names of their files as reports have them."""
    shipped = shipped_cases()
    try:
        return list(entries(case_files([place])) if place else entries(case_files([shipped]), shipped.parent))
    except OSError as error:
        raise CommandError(f"{error.filename}: can't be read: {error.strerror}", "name files of cases") from None


def fits(entry: Entry, topic: str | None, rule: str | None) -> bool:
    is_of_topic = topic is None or topic.casefold() in entry.topic.casefold()
    return is_of_topic and (rule is None or any(fnmatch(each, rule) for each in entry.rules))


def facts_of(entry: Entry) -> dict[str, object]:
    names = ("id", "title", "topic", "file", "line", "rules", "is_several")
    return {name: getattr(entry, name) for name in names}


def best_of(found: list[Entry]) -> Iterator[str]:
    """Yield a line for each entry, in their order."""
    yield from (f"{entry.id}  ({entry.file}:{entry.line})\n    {entry.title}" for entry in found)
    if not found:
        yield "no case has these words; try others, or fewer"


def lines_of(found: list[Entry]) -> Iterator[str]:
    """Yield a line for each entry, below the file that it is in."""
    file = ""
    for entry in found:
        if entry.file != file:
            yield f"{entry.file}: {entry.topic}"
            file = entry.file
        several = "  (several cases)" if entry.is_several else ""
        yield f"  {entry.id}{several}\n      {entry.title}"
    if not found:
        yield "no case fits"
