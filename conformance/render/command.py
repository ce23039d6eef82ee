"""The shell command that runs one case again, in the way in which its run was called."""

import shlex
from collections.abc import Iterable, Sequence

from conformance.model.build import Build
from conformance.model.report import Run

# Options of a run, each with a value, that decide how a case is run and what its outcome counts as.
REPEATED = (
    "-c", "--rootdir", "-p", "--python", "--profile", "--device", "--device-module", "--require-device", "--dtype",
    "--under", "--known-issues", "--case-timeout", "--worker-memory", "--sandbox", "--isolation",
)  # fmt: skip
WITHOUT_VALUE = ("--trust",)


def command_words(command: str, arguments: Iterable[str]) -> list[str]:
    """Return a command with those of the arguments of a run that have to be repeated, as they were given."""
    words = command.split()
    is_value = False
    for argument in arguments:
        option, equals, _ = argument.partition("=")
        if is_value or option in REPEATED or argument in WITHOUT_VALUE:
            words.append(argument)
        is_value = not is_value and option in REPEATED and not equals
    return words


def command_of(run: Run, build: Build) -> str:
    """Return the command that runs a case of a report, but for the case itself.

    Where a report doesn't say how its run was called, its back-ends are named.
    """
    return shlex.join(command_words(run.command, run.arguments or options_for(build)))


def options_for(build: Build) -> Sequence[str]:
    return [
        word
        for each in build.backends
        for word in ("--device", each.device, *(word for name in each.modules for word in ("--device-module", name)))
    ]
