"""The command line: `python -m conformance`, also installed as `autograd-conformance`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance import __version__
from conformance.suite import SUFFIXES, shipped_cases

DESCRIPTION = """\
Tells whether autograd on a PyTorch build behaves as it should.

  run [PYTEST OPTIONS]   run the cases that come with the suite, from any directory;
                         every option of pytest and of the suite can follow:
                           python -m conformance run --python ../venv-2.6/bin/python
                           python -m conformance run --device cuda -k retain -x
                           python -m conformance run --help
  cases                  print the directory of the cases
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["run"]:
        return run(given[1:])
    parser = argparse.ArgumentParser(
        prog="python -m conformance", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"autograd-conformance {__version__}")
    parser.add_argument("command", choices=("run", "cases"), help="what to do")
    parser.parse_args(given)
    sys.stdout.write(f"{shipped_cases()}\n")
    return 0


def run(arguments: Sequence[str]) -> int:
    """Run the shipped cases, or those that `arguments` name, in pytest; reports go below the current directory."""
    here = Path.cwd()
    named = any(argument.partition("::")[0].endswith(SUFFIXES) for argument in arguments)
    cases = shipped_cases()
    own = [
        *("-c", os.devnull, "--rootdir", str(here if named else cases.parent)),
        *("-p", "conformance.plugin", "--report", str(here / "reports"), "-o", f"cache_dir={here / '.pytest_cache'}"),
        *("-W", "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning"),
    ]
    return int(pytest.main([*own, *arguments, *([] if named else [str(cases)])]))
