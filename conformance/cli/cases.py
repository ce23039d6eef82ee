"""Prints the directory of the cases that come with the suite."""

import argparse

from conformance.cli.output import put
from conformance.language.files import shipped_cases

DESCRIPTION = """\
Prints the directory of the cases that come with the suite, to read or to copy them.

exit status: 0
"""


def add_arguments(_: argparse.ArgumentParser) -> None:
    pass


def run(_: argparse.Namespace) -> int:
    put(f"{shipped_cases()}\n")
    return 0
