"""How a run was called: by pytest itself, or by `python -m conformance run`, which calls pytest with more arguments.

What was called and with what is kept among the options; processes of pytest-xdist get it from the controller.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.language.files import shipped_cases

KEY = "conformance_called"  # in the mapping `workerinput`, which pytest-xdist sends at the start
RESUME = "--resume"
PYTEST, RUN = "pytest", "python -m conformance run"


class CalledByRun:
    """A plugin that notes the arguments of `python -m conformance run`."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.arguments = list(arguments)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        note_command(config, RUN, self.arguments)


def note_command(config: pytest.Config, command: str = PYTEST, arguments: Sequence[str] | None = None) -> None:
    """Note how a run was called, unless that is known."""
    option = config.option
    if not hasattr(option, "called_as"):
        given = list(map(str, config.invocation_params.args if arguments is None else arguments))
        given = [argument for argument in given if argument != RESUME]  # the run is the one that it resumes
        option.called_as, option.given = getattr(config, "workerinput", {}).get(KEY, (command, given))


def tell_command(node: Any) -> None:
    """Tell a process of pytest-xdist, before it starts, how the run was called."""
    node.workerinput[KEY] = node.config.option.called_as, node.config.option.given


def address_of(config: pytest.Config, path: Path, name: str) -> str:
    """Return the argument that selects an item of the file at `path`, where the run was called."""
    root = shipped_cases().parent
    if config.option.called_as == RUN and path.is_relative_to(root / "cases"):
        return f"{path.relative_to(root).as_posix()}::{name}"
    return f"{os.path.relpath(path, config.invocation_params.dir).replace(os.sep, '/')}::{name}"
