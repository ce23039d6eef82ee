"""Prints and writes what commands have made, and says why one can't."""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.model.report import Report
from conformance.render.visible import printable, visible, without_commands
from conformance.results.compact import Compact
from conformance.results.store import text_of, write_whole

LONGEST = 2000  # characters of a complaint
SURROGATE = re.compile("[\ud800-\udfff]")


class CommandError(Exception):
    """Why a command can't do what it was asked for, and a hint."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def put(text: str, encoding: str | None = None) -> None:
    """Print `text`, in an encoding of its own or as the terminal takes it."""
    code = encoding or sys.stdout.encoding
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(without_commands(text).encode(code, "backslashreplace"))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_output()
        raise CommandError(f"the output can't be written: {error.strerror}", "is the disk full?") from None


def forget_output() -> None:
    """Let what is still to be printed go nowhere, or Python would try once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """Print a line on standard error; of one as long as a stranger's file can make it the beginning and the end."""
    code = sys.stderr.encoding
    text = text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    sys.stderr.write(printable(text, keep="").encode(code, "backslashreplace").decode(code) + "\n")


def save(path: Path, content: str) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise CommandError(f"{path}: can't be written: {error.strerror}", "-o names another place") from None


def save_named(output: str | Path, report: Report, content: Report | Compact) -> Path:
    """Write a report, or its compact form, below a directory into a file named after its build; return that file."""
    path = Path(output) / visible(f"{report.build.slug}.json", keep="")
    save(path, text_of(content))
    return path


def json_text(content: Mapping[str, Any]) -> str:
    """Return JSON in ASCII; of text only what no other program could read is changed, halves of pairs."""
    whole = SURROGATE.sub(lambda found: visible(found[0]), json.dumps(content, ensure_ascii=False))
    return json.dumps(json.loads(whole), indent=2) + "\n"
