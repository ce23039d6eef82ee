"""Writes a case file to begin with."""

import argparse
import os
import re
from pathlib import Path

from conformance.cli.output import CommandError, put, save
from conformance.language.files import PACKAGE, case_files, shipped_cases
from conformance.language.outline import entries
from conformance.language.writing import plain_or_quoted

DESCRIPTION = """\
Writes a case file with one case, which loads and passes as it stands, and says in comments what else can be in it.

  autograd-conformance new hooks/a-hook-of-mine
  autograd-conformance new "In-place operations/a-write-of-mine" -o cases

exit statuses: 0 written; 2 there is such a file or case, or the name is none
"""
ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SCHEMA = PACKAGE / "case.schema.json"
TEMPLATE = """\
# yaml-language-server: $schema={schema}
topic: {topic}
cases:
  - id: {id}
    # What holds, as one sentence that names the API.
    title: A write to a tensor is seen through a detached alias
    # Why autograd behaves so, in a sentence or two.
    why: detach() makes a second tensor on the same memory.
    # `python -m conformance rules WORDS` finds rules; a new one goes into a rules.yaml beside this file.
    rules: [detach.shares-storage]
    # torch: ">=2.1"          where a release lacks what the case is about
    # dtypes: [float32]       where it holds with some only
    # devices: [cpu]          where it can't be said otherwise
    steps:
      # Statements, as in a notebook; torch, nn, F, optim, autograd and functions such as tensor() are there already.
      - a = tensor([1.0, 2.0])
      - b = a.detach()
      - a.add_(1)
      # What holds at this point: for each expression its checks, or its value.
      - expect:
          a: {{version: 1}}
          b: {{value: [2.0, 3.0], shares_storage: a, version: 1, requires_grad: false}}
      # What must raise, with text that the message contains ({{regex: …}} for a pattern).
      - c = a.detach().requires_grad_()
      - do: c.add_(1)
        raises: {{type: RuntimeError, match: a leaf Variable that requires grad is being used in an in-place operation}}
      # What differs from release to release:
      #   - expect: {{y: {{grad_fn: {{torch: {{"<2.1": ReshapeAliasBackward0, ">=2.1": ViewBackward0}}}}}}}}
      #   - when: {{torch: ">=2.1", steps: [h = a.register_post_accumulate_grad_hook(f)]}}
      # Several lines are written below a |:
      #   - |
      #     with no_grad():
      #         d = a * 2
      # An expression as the expected value: quote it where it has a comma or a bracket.
      #   - expect: {{d: {{value: "a * 2"}}}}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="TOPIC/ID", help="what the file is about, and the id of the case")
    parser.add_argument("-o", "--output", metavar="DIRECTORY", type=Path, default=Path(), help="where (default: here)")


def run(options: argparse.Namespace) -> int:
    topic, _, name = options.name.rpartition("/")
    if not topic.strip() or not ID.fullmatch(name):
        hint = "such as hooks/a-hook-of-mine: an id is lower-case words joined by -"
        raise CommandError(f"expected TOPIC/ID, got {options.name!r}", hint)
    stem = "_".join(re.findall("[a-z0-9]+", topic.lower()))
    if not stem:
        raise CommandError(f"the topic {topic!r} has no letters", "the file is named after it")
    path = options.output / f"{stem}.yaml"
    if path.exists():
        raise CommandError(f"{path}: there is such a file", "add the case to it, or give another topic or -o DIRECTORY")
    shipped = next((entry for entry in entries(case_files([shipped_cases()])) if entry.id == name), None)
    if shipped is not None:
        raise CommandError(f"there is a case {name!r}: {shipped.title}", f"it is in {shipped.file}; choose another id")
    save(path, TEMPLATE.format(schema=schema_for(path), topic=plain_or_quoted(topic), id=name))
    put(f"{path}\n\nrun it: python -m conformance run {path}\ncheck it: python -m conformance check {path}\n")
    return 0


def schema_for(path: Path) -> str:
    """Return where the schema is, as an editor finds it from a file: in a checkout by a relative path."""
    place = path.absolute().parent
    is_near = place.is_relative_to(PACKAGE.parent)
    return os.path.relpath(SCHEMA, place) if is_near else str(SCHEMA)
