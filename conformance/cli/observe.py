"""Says what each `?` in a case file is."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from conformance.cli.attempt import add_python, observer_of
from conformance.cli.output import CommandError, put
from conformance.cli.progress import following
from conformance.execution.observing import Observer
from conformance.language.errors import CaseFileError
from conformance.language.observed import value_of
from conformance.language.reader import listed_in
from conformance.language.unconfirmed import WORDS, asked, content, node_of, open_values, opened, with_value
from conformance.language.unconfirmed import Path as Place
from conformance.language.yaml import Node, content_of, read_document, read_text

DESCRIPTION = """\
Says what stands in the place of each `?` in a case file, where a `?` may be any expected value, or what `raises` or
`warns` has. It is observed with the torch that is installed, or with that of each interpreter which is named.

  autograd-conformance observe mine.yaml
  autograd-conformance observe mine.yaml --python ../venv-1.13/bin/python --python ../venv-2.13/bin/python

exit statuses: 0 observed; 1 something could not be; 2 the file can't be read, has no `?`, or there is no such torch
"""
Observed = tuple[int, str, str, bool]  # line, place, what was observed or why nothing was, and whether something was


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="a case file in which there is a ?")
    add_python(parser, is_list=True)


def run(options: argparse.Namespace) -> int:
    root = document(options.file)
    if not any(True for _ in unknowns(root)):
        raise CommandError(f"{options.file}: there is no ? in it", "write ? where a value is expected")
    every: list[tuple[str, list[Observed]]] = []
    for python in options.python or [sys.executable]:
        with observer_of(python, trusts=options.trust, near=options.file) as observer:
            try:
                every.append((observer.torch.build.torch, list(observed(root, observer, options.file.name))))
            except CaseFileError as error:
                raise CommandError(str(error), "the rest of the file must be a case file") from None
    put(
        "\n".join([f"torch {', '.join(torch for torch, _ in every)}", *lines_of(every, options.file.name), ""]), "utf-8"
    )
    return 0 if all(fine for _, found in every for *_, fine in found) else 1


def lines_of(every: list[tuple[str, list[Observed]]], file: str) -> Iterator[str]:
    """Yield a line for each place, or one for each torch where they don't show the same."""
    for number, (line, place, first, _) in enumerate(every[0][1]):
        answers = [(torch, found[number][2]) for torch, found in every]
        if all(text == first for _, text in answers):
            yield f"{file}:{line}: {place}: {first}"
        else:
            yield f"{file}:{line}: {place}:"
            yield from (f"  torch {torch}: {text}" for torch, text in answers)


def document(path: Path) -> Node:
    try:
        return read_document(read_text(content_of(path), str(path)), str(path))
    except OSError as error:
        raise CommandError(f"{path}: can't be read: {error.strerror}", "expected a case file") from None
    except CaseFileError as error:
        raise CommandError(str(error), "expected a case file") from None


def unknowns(root: Node) -> Iterator[tuple[Node, Place, Node]]:
    """Yield each `?` that is asked about: the case, its path in that, and its node."""
    for case in listed_in(root, "cases"):
        for path, node in open_values(case):
            if content(node) is None and asked(path) not in WORDS:
                yield case, path, node


def observed(root: Node, observer: Observer, file: str) -> Iterator[Observed]:
    """Yield line, place and observation of each `?`, and whether there is one."""
    before: Node | None = None
    for case, path, node in following(unknowns(root), "observing", lambda each: f"line {each[2].line}"):
        if case is not before:
            before, known = case, case
        what = asked(path)
        if not what:
            raise CommandError(f"{file}:{node.line}: ? can't stand here", "it stands where a value is expected")
        found = observer.observe(known, path, file)
        if what == "raises" and found.exception:  # what follows comes after it
            known = with_value(known, path, node_of(opened(value_of(what, found.text, found.exception)), node))
        place = ".".join(str(step) for step in (path[path.index("expect") + 1 :] if "expect" in path else path[-1:]))
        yield node.line, place, found.text or f"can't be seen: {found.why_not}", not found.why_not
