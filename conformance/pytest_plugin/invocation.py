"""How a run was called: by pytest itself, or by `python -m conformance run`, which calls pytest with more arguments."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.language.files import shipped_cases

PYTEST, RUN = "pytest", "python -m conformance run"


class CalledByRun:
    """A plugin that notes the arguments of `python -m conformance run`."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.arguments = list(arguments)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        note_command(config, RUN, self.arguments)


def note_command(config: pytest.Config, command: str = PYTEST, arguments: Sequence[str] | None = None) -> None:
    """Note how a run was called, unless that is known; it is kept among the options, which pytest-xdist passes on."""
    option = config.option
    if not hasattr(option, "called_as"):
        option.called_as = command
        option.given = list(map(str, config.invocation_params.args if arguments is None else arguments))


def address_of(config: pytest.Config, path: Path, name: str) -> str:
    """Return the argument that selects an item of the file at `path`, where the run was called."""
    root = shipped_cases().parent
    if config.option.called_as == RUN and path.is_relative_to(root / "cases"):
        return f"{path.relative_to(root).as_posix()}::{name}"
    return f"{os.path.relpath(path, config.invocation_params.dir).replace(os.sep, '/')}::{name}"
