"""Finds the suite's configuration where an argument has led pytest away from it.

pytest looks for its configuration near every argument that is an existing path, and does so before it knows which
options take one. `--python ../venv/bin/python` or a case file outside of the checkout so hide the configuration that
loads the suite's plugin. Then this begins again, in the same process, with that configuration named. It is active in
every pytest of an environment that has the suite, and in any other case does nothing: it adds no option.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Generator
from pathlib import Path

import pytest

PLUGIN = "conformance.pytest_plugin.plugin"
PATH_OPTIONS = ("--python", "--report", "--known-issues")
CONFIGURATIONS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
SECTION = re.compile(r"^\[(tool[.:])?pytest\b", re.MULTILINE)
CASES = re.compile(r"\A(?=.*^topic:)(?=.*^(cases|programs|ops):)", re.MULTILINE | re.DOTALL)


def is_of_cases(path: Path) -> bool:
    """Whether a path is that of a case file, as its text shows, or of a directory with some."""
    if path.is_dir():
        return any(is_of_cases(child) for child in path.iterdir() if not child.is_dir())
    return path.suffix in (".yaml", ".yml") and path.is_file() and CASES.search(text_of(path)) is not None


def configuration_above(directory: Path) -> Path | None:
    """Return the nearest configuration of pytest, from `directory` upwards, if it loads the suite's plugin."""
    for place in (directory, *directory.parents):
        for path in (place / name for name in CONFIGURATIONS):
            text = text_of(path) if path.is_file() else ""
            if SECTION.search(text):
                return path if PLUGIN in text else None
    return None


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """Prepare to begin again where the configuration was missed; say how to run case files where there is none."""
    result = yield
    plugins, invocation = early_config.pluginmanager, early_config.invocation_params
    if plugins.hasplugin(PLUGIN) or plugins.is_blocked(PLUGIN):
        return result
    given = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *map(str, invocation.args)]
    places = [invocation.dir / argument.partition("::")[0] for argument in given if not argument.startswith("-")]
    files = [path for path in places if path.suffix and is_of_cases(path)]
    configuration = None if early_config.known_args_namespace.inifilename else configuration_above(invocation.dir)
    if configuration is not None:
        has_path = any(argument.partition("=")[0] in PATH_OPTIONS for argument in given)
        if has_path or any(map(is_of_cases, places)):
            plugins.import_plugin(PLUGIN)  # so that its options are none that pytest has never heard of
            plugins.register(Again(configuration))
    elif files:
        command = shlex.join(["python", "-m", "conformance", "run", *map(str, invocation.args)])
        raise pytest.UsageError(f"{files[0]} holds cases that nothing here can collect: run `{command}`")
    return result


class Again:
    """Begins the command again with a configuration that is named."""

    def __init__(self, configuration: Path) -> None:
        self.configuration = configuration

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        capture = config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)  # a debugger reads from the terminal, not from a stand-in
        place = shlex.join(["-c", str(self.configuration), "--rootdir", str(self.configuration.parent)])
        with pytest.MonkeyPatch.context() as patch:  # the report tells the arguments as they were given
            patch.setenv("PYTEST_ADDOPTS", f"{place} {os.environ.get('PYTEST_ADDOPTS', '')}")
            return int(pytest.main(list(map(str, config.invocation_params.args)), config.invocation_params.plugins))
