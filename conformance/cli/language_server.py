"""Serves editors over the language server protocol."""

import argparse
import os
import signal
import sys
from importlib import import_module

from conformance.cli.output import CommandError

DESCRIPTION = """\
Tells an editor of case files, over standard input and output, what `check` says of the text as it is typed, what can
be written at a place, and what a word there means. Editors start it by themselves: docs/editors.md shows how.

  autograd-conformance language-server
"""
MISSING = "the language server needs pygls, which isn't installed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stdio", action="store_true", help="is how it speaks in any case; some editors say so")


def run(options: argparse.Namespace) -> int:  # noqa: ARG001 - as all commands
    try:
        protocol = import_module("conformance.cli.protocol")
    except ImportError:
        raise CommandError(MISSING, "pip install 'autograd-conformance[editors]', or pip install pygls") from None
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is to be saved, and a thread that reads can't be waited for
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as output:  # which pygls closes at the end
        protocol.server().start_io(sys.stdin.buffer, output)
    return 0
