"""Lets `--python PATH` and others be written with a blank, wherever PATH is.

pytest looks for its configuration near every argument that is an existing path, and does so before it
knows which options take one. A path outside of the checkout would so lead it away from the very
conftest that defines the option. As the one plugin that is active whenever the suite is installed, this
begins such a command again with `--python=PATH`, which can't be mistaken; it does nothing else.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

OPTIONS = ("--python", "--report", "--known-issues")


def joined(arguments: list[str]) -> list[str]:
    """Return `arguments` with each option of ours and the value that follows it made one."""
    result: list[str] = []
    for argument in arguments:
        if result and result[-1] in OPTIONS:
            result[-1] += f"={argument}"
        else:
            result.append(argument)
    return result


def loads_the_plugin(directory: Path) -> bool:
    """Whether the nearest conftest on the way up from `directory` brings in the suite's plugin."""
    for place in (directory, *directory.parents):
        conftest = place / "conftest.py"
        if conftest.is_file():
            return "conformance.pytest_plugin.plugin" in conftest.read_text(encoding="utf-8", errors="replace")
    return False


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin the command again if pytest may have lost its way."""
    given = [str(argument) for argument in early_config.invocation_params.args]
    clear = joined(given)
    if clear == given or not loads_the_plugin(early_config.invocation_params.dir):
        return
    if sys.orig_argv[-len(given) :] != given:
        mended = next(argument for argument in clear if argument not in given)
        raise pytest.UsageError(f"write {mended}: pytest takes a path that stands alone for a place of tests")
    capture = early_config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)  # it has put files in the place of the terminal by now
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1 : -len(given)], *clear])
