"""Runs the cases that come with the suite, or files or directories of one's own, in pytest, from any directory.

Every option of pytest and of the suite can follow, and `--help` is pytest's own. No `conftest.py` is imported.
"""

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from conformance.language.files import holds_case_files, shipped_cases

ITEM = "::"
EXPRESSIONS = ("-k", "-m")  # options with what may be longer than the name of any file


def run(arguments: Sequence[str]) -> int:
    """Run the shipped cases, or those that `arguments` name; reports go below the current directory."""
    import pytest  # noqa: PLC0415 - whoever loads the command line need not have it

    from conformance.pytest_plugin.arguments import PATH_OPTIONS, PLUGIN  # noqa: PLC0415 - it imports pytest
    from conformance.pytest_plugin.invocation import CalledByRun  # noqa: PLC0415 - see above

    here = Path.cwd()
    others = {*PATH_OPTIONS, *EXPRESSIONS}
    words = [found_shipped(word) if option not in others else word for option, word in pairwise(["", *arguments])]
    places = [
        Path(word.partition(ITEM)[0])
        for option, word in pairwise(["", *words])
        if option not in others and not word.startswith("-")
    ]
    named = [place for place in places if holds_case_files(place)]
    cases = shipped_cases()
    is_own = any(not place.absolute().is_relative_to(cases) for place in named)
    has_no_cache = any("no:cacheprovider" in word for word in words)  # which would be the one to know cache_dir
    own = [
        *("-c", os.devnull, "--rootdir", str(here if is_own else cases.parent), "-p", PLUGIN),
        f"--report={here / 'reports'}",
        *([] if has_no_cache else ["-o", f"cache_dir={here / '.pytest_cache'}"]),
        "--noconftest",  # a folder of a stranger contributes its cases alone
        *("-W", "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning"),
    ]
    return int(pytest.main([*own, *words, *([] if named else [str(cases)])], plugins=[CalledByRun(arguments)]))


def found_shipped(word: str) -> str:
    """Return an argument, with the path of a shipped case file that it names as reports do, as `cases/hooks.yaml`."""
    name, *item = word.split(ITEM, 1)
    path = shipped_cases().parent / name
    is_shipped = holds_case_files(Path(name)) and not Path(name).exists() and path.is_file()
    return ITEM.join([str(path), *item]) if is_shipped else word
