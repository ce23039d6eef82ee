"""Finds the suite's configuration when pytest, because of its arguments, used another or none.

pytest looks for its configuration file near every argument that is an existing path, before it knows which options
take a path. `--python ../venv/bin/python`, or a case file outside of the checkout, can so hide the configuration that
loads the suite's plugin. pytest is then run again in the same process, with `-c` and that configuration. This module
is loaded by every pytest in an environment that has the suite; otherwise it does nothing, and it adds no options.
"""

import os
import re
import shlex
from collections.abc import Generator
from pathlib import Path

import pytest

PLUGIN = "conformance.pytest_plugin.plugin"
PATH_OPTIONS = ("--python", "--profile", "--report", "--known-issues")
CONFIGURATIONS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
SECTION = re.compile(r"^\[(tool[.:])?pytest\b", re.MULTILINE)
CASES = re.compile(r"\A(?=.*^topic:)(?=.*^(cases|programs|ops):)", re.MULTILINE | re.DOTALL)


def is_of_cases(path: Path) -> bool:
    """Whether the text of a file is that of a case file, or a directory has such a file."""
    if path.is_dir():
        return any(is_of_cases(child) for child in path.iterdir() if not child.is_dir())
    return path.suffix in (".yaml", ".yml") and path.is_file() and CASES.search(read_lenient(path)) is not None


def configuration_above(directory: Path) -> Path | None:
    """Return the nearest configuration of pytest, from `directory` upwards, if it loads the suite's plugin."""
    for place in (directory, *directory.parents):
        for path in (place / name for name in CONFIGURATIONS):
            text = read_lenient(path) if path.is_file() else ""
            if SECTION.search(text):
                return path if PLUGIN in text else None
    return None


def read_lenient(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def is_elsewhere(early_config: pytest.Config) -> bool:
    """Whether the configuration is that of another checkout, in which only the value of an option lies."""
    used, place = early_config.inipath, early_config.invocation_params.dir
    if used is None or early_config.known_args_namespace.inifilename or place.is_relative_to(used.parent):
        return False
    named = [place / name.partition("::")[0] for name in early_config.known_args_namespace.file_or_dir]
    return not any(path.resolve().is_relative_to(used.parent) for path in named)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """Run pytest again if it missed the configuration; without one, say how to run case files."""
    result = yield
    plugins, invocation = early_config.pluginmanager, early_config.invocation_params
    if plugins.is_blocked(PLUGIN) or (plugins.hasplugin(PLUGIN) and not is_elsewhere(early_config)):
        return result
    given = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *map(str, invocation.args)]
    places = [invocation.dir / argument.partition("::")[0] for argument in given if not argument.startswith("-")]
    files = [path for path in places if path.suffix and is_of_cases(path)]
    configuration = None if early_config.known_args_namespace.inifilename else configuration_above(invocation.dir)
    if configuration is not None:
        has_path = any(argument.partition("=")[0] in PATH_OPTIONS for argument in given)
        if has_path or any(map(is_of_cases, places)):
            plugins.import_plugin(PLUGIN)  # else its options would be unknown to this pytest
            plugins.register(Rerun(configuration))
    elif files:
        command = shlex.join(["python", "-m", "conformance", "run", *map(str, invocation.args)])
        raise pytest.UsageError(
            f"{files[0]} holds cases, and no configuration here loads the plugin that collects them: run `{command}`"
        )
    return result


class Rerun:
    """Runs pytest again, with the same arguments and the given configuration."""

    def __init__(self, configuration: Path) -> None:
        self.configuration = configuration

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        capture = config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)  # a debugger must read from the terminal
        options = shlex.join(["-c", str(self.configuration), "--rootdir", str(self.configuration.parent)])
        with pytest.MonkeyPatch.context() as patch:  # not as arguments: the report has those as they were given
            patch.setenv("PYTEST_ADDOPTS", f"{options} {os.environ.get('PYTEST_ADDOPTS', '')}")
            return int(pytest.main(list(map(str, config.invocation_params.args)), config.invocation_params.plugins))
