"""The command line: `python -m conformance`, also installed as `autograd-conformance`."""

import argparse
import keyword
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from conformance import __version__
from conformance.cli.output import CommandError, complain, forget_output, put

COMMANDS = {  # each is a module beside this one, which is imported when it is asked for
    "run": "run the cases in pytest; everything that follows goes to pytest",
    "cases": "print the directory of the cases",
    "rules": "find rules of autograd's behaviour by words",
    "list": "list cases by words, topic, rule or file",
    "new": "write a case file to begin with",
    "check": "say all that can be said of case files without torch",
    "similar": "find cases that ask the same as those of a file",
    "try": "run case files on several torch, and draft the bounds where they differ",
    "mutate": "say whether each expectation of a case can fail, and which faults it notices",
    "explain": "say step by step what a case's tensors are and why",
    "show": "print a case as plain torch, with its rules",
    "draft": "draft cases of a snippet, a notebook or a test",
    "confirm": "ask about each value that a draft has observed",
    "observe": "say what each ? in a case file is",
    "report": "make an HTML page of reports",
    "compact": "write reports in a form that is small enough to keep",
    "nights": "keep which case had which status in the last nights",
    "merge": "put the reports of shards together",
    "diff": "compare two reports; exit 1 when something got worse",
    "upgrade": "print or write guides for those who upgrade torch",
    "summary": "print Markdown for the page of a CI job",
    "profile": "draft the profile of a device",
    "history": "print what changed from release to release, as the cases hold it",
    "known-issues": "draft entries of known issues for what is red in reports",
    "coverage": "say which of torch's formulas for derivatives no case uses",
    "bisect": "find the first release on which a case fails",
    "placeholder": "write the report of a release that could not be installed",
    "language-server": "tell an editor of case files what is wrong and what can be written",
    "completion": "print what lets a shell complete the command line",
    "badge": "print the JSON of a shields.io badge",
}
INTERRUPTED = 130  # what shells make of a process that was interrupted
LONGEST_NAME = 200
SHELL_ASKS = "_ARGCOMPLETE"  # is set where a shell asks how a line goes on
DESCRIPTION = """\
Tells whether autograd on a PyTorch build behaves as it should, and what changed between two builds.

A run writes a JSON report; the other commands read such reports. `COMMAND --help` explains each.
"""
EPILOG = """\
from a run to a page and a gate:
  autograd-conformance run --python ../venv-2.13/bin/python
  autograd-conformance report reports/
  autograd-conformance diff last-night.json reports/torch-2.13.0*.json

exit statuses: those of pytest for `run`; 0 for done, 1 for `diff` when something got worse, 2 for an error
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    open_closed()
    try:
        try:
            return perform(list(sys.argv[1:] if arguments is None else arguments))
        finally:
            put("")  # what argparse has printed
    except CommandError as error:
        first, *others = str(error).rstrip().split("\n")
        for line in (f"error: {first}", *(f"  {other}" for other in others), f"hint: {error.hint}"):
            complain(line)
    except BrokenPipeError:  # whoever read the output has seen enough
        forget_output()
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except OSError as error:  # of a name that can't be one, say; what can be foreseen has a hint of its own
        complain(f"error: {named(error)}{error.strerror or error}")
        complain("hint: is that the file which was meant?")
    except MemoryError:
        complain("error: out of memory")
    return 2


def open_closed() -> None:
    """Open what was closed of the standard streams (`<&-`, `>&-`), for which Python has None.

    There is nothing to read then, a complaint goes nowhere, and output can't be written, which is an error.
    """
    for name, mode, access in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode, encoding="utf-8"))


def named(error: OSError) -> str:
    """Return the beginning of a message, with the file that an error is about, cut where it is longer than any name."""
    if not isinstance(error.filename, (str, bytes)):
        return ""
    name = os.fsdecode(error.filename)
    return f"{name[:LONGEST_NAME]}{'…' * (len(name) > LONGEST_NAME)}: "


def perform(given: list[str]) -> int:
    if SHELL_ASKS in os.environ:
        import_module("conformance.cli.completion").answer(lambda name: parser(name, module_for(name)))
    name = given[0] if given else ""
    module = module_for(name)
    if module is not None and name == "run":  # pytest reads the rest, and `--help` is its own
        return int(module.run(given[1:]))
    options = parser(name, module).parse_args(given)
    return int(options.run(options))


def module_for(command: str) -> ModuleType | None:
    return import_module(f"conformance.cli.{module_of(command)}") if command in COMMANDS else None


def module_of(command: str) -> str:
    """Return the name of the module of a command, which may not be a word of Python."""
    return command.replace("-", "_") + "_" * keyword.iskeyword(command)


def parser(chosen: str = "", module: ModuleType | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands; what the `chosen` one takes is as its module says."""
    layout = argparse.RawDescriptionHelpFormatter
    result = argparse.ArgumentParser(
        prog="autograd-conformance", description=DESCRIPTION, epilog=EPILOG, formatter_class=layout
    )
    result.add_argument("--version", action="version", version=f"autograd-conformance {__version__}")
    commands = result.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, formatter_class=layout)
        if module is not None and name == chosen:
            command.description = module.DESCRIPTION
            command.set_defaults(run=module.run)
            module.add_arguments(command)
    return result
