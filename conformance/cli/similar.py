"""Finds cases that ask the same as those of a file."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from conformance.cli.input import count
from conformance.cli.list import those_in
from conformance.cli.output import CommandError, json_text, put
from conformance.cli.progress import following
from conformance.language.outline import Entry
from conformance.render.similarity import Similar, similar_to

DESCRIPTION = """\
Finds, for each case of a file, the cases of the suite that ask the same, the most similar first: by the rules that they
cite, the operations, errors and nodes that they name, and the checks that they make. What few cases have counts most.
The file need not load.

  autograd-conformance similar mine.yaml
  autograd-conformance similar mine.yaml::my-case --most 3

exit statuses: 0 there are some; 1 there are none; 2 the file can't be read
"""
MOST = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a case file, or one of its cases as FILE::ID")
    parser.add_argument(
        "--most", metavar="N", type=count, default=MOST, help="list N of each case (default: %(default)s)"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")


def run(options: argparse.Namespace) -> int:
    file, _, name = options.file.partition("::")
    own = [entry for entry in those_in(Path(file)) if name in ("", entry.id)]
    if not own:
        raise CommandError(f"{options.file}: there is no such case", "a case begins with - id: …")
    shipped = those_in(None)
    found = [
        (entry, similar_to(entry, shipped, options.most))
        for entry in following(own, "comparing cases", lambda entry: entry.id)
    ]
    if options.format == "json":
        told = [{"id": entry.id, "line": entry.line, "similar": list(map(facts_of, each))} for entry, each in found]
        put(json_text({"cases": told}), "utf-8")
    else:
        put("\n".join(line for entry, each in found for line in lines_of(entry, each)) + "\n", "utf-8")
    return 0 if any(each for _, each in found) else 1


def facts_of(similar: Similar) -> dict[str, object]:
    names = ("id", "title", "file", "line")
    own = {name: getattr(similar.entry, name) for name in names}
    return {**own, "share": round(similar.share, 3), "common": [list(each) for each in similar.common]}


def lines_of(entry: Entry, found: list[Similar]) -> Iterator[str]:
    """Yield the lines that tell of the cases like one."""
    yield f"{entry.file}:{entry.line}: {entry.id}{'' if found else ': no case asks the same'}"
    for each in found:
        yield f"  {each.share:4.0%}  {each.entry.id}  ({each.entry.file}:{each.entry.line})"
        yield f"        {each.entry.title}"
        yield f"        both have {each.why}"
