"""Runs the cases that come with the suite, or files or directories of one's own, in pytest, from any directory.

Every option of pytest and of the suite can follow, and `--help` is pytest's own.
"""

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from conformance.language.files import holds_case_files, shipped_cases


def run(arguments: Sequence[str]) -> int:
    """Run the shipped cases, or those that `arguments` name; reports go below the current directory."""
    import pytest  # noqa: PLC0415 - whoever loads the command line need not have it

    from conformance.pytest_plugin.arguments import PATH_OPTIONS, PLUGIN  # noqa: PLC0415 - it imports pytest

    here = Path.cwd()
    places = [word for option, word in pairwise(["", *arguments]) if option not in PATH_OPTIONS]
    named = any(holds_case_files(Path(word.partition("::")[0])) for word in places)
    cases = shipped_cases()
    own = [
        *("-c", os.devnull, "--rootdir", str(here if named else cases.parent), "-p", PLUGIN),
        *(f"--report={here / 'reports'}", "-o", f"cache_dir={here / '.pytest_cache'}"),
        *("-W", "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning"),
    ]
    return int(pytest.main([*own, *arguments, *([] if named else [str(cases)])]))
