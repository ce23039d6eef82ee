"""Lets shells complete the command line, by argcomplete."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from conformance.cli.output import CommandError, put
from conformance.language.files import case_files, shipped_cases
from conformance.language.outline import entries
from conformance.language.rules import RULES_FILE, lines_of_rules

DESCRIPTION = """\
Prints what a shell is to evaluate so that it completes commands, options, and the ids of cases and rules.

  autograd-conformance completion zsh > a-file-that-zsh-reads
  eval "$(autograd-conformance completion bash)"

exit statuses: 0 for done, 2 if argcomplete is missing
"""
SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
LINE = "COMP_LINE"  # where the shell says what has been typed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(options: argparse.Namespace) -> int:
    put(library().shellcode(["autograd-conformance"], shell=options.shell) + "\n")
    return 0


def library() -> Any:
    try:
        import argcomplete  # noqa: PLC0415 - whoever has no use for completion need not have it
    except ImportError:
        message = "completion in shells needs argcomplete, which isn't installed"
        raise CommandError(message, "pip install argcomplete") from None
    return argcomplete


def answer(parser_for: Callable[[str], argparse.ArgumentParser]) -> None:
    """Tell the shell that asks how its line goes on, and exit; each command has a parser with its arguments."""
    command = next(iter(os.environ.get(LINE, "").split()[1:]), "")
    parser = parser_for(command)
    for action in actions_of(parser):
        if action.metavar in IDS:
            action.completer = IDS[str(action.metavar)]  # type: ignore[attr-defined]
    library().autocomplete(parser, exit_method=sys.exit)


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    found = list(parser._actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [inner for each in set(action.choices.values()) for inner in actions_of(each)]
    return found


def cases(**_: object) -> list[str]:
    return [entry.id for entry in entries(case_files([shipped_cases()])) if not entry.is_several]


def rules(**_: object) -> list[str]:
    return list(lines_of_rules((shipped_cases() / RULES_FILE).read_text(encoding="utf-8")))


IDS = {"CASE": cases, "RULE": rules}  # by what an argument is called in the help
