"""Drafts what a test has written, and confirms it, with a worker that starts at once."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import forks
import pytest

from conformance.cli.main import main
from conformance.language.yaml import read_document


def drafted(place: Path, source: str, name: str = "source.py", *options: str) -> list[dict[str, Any]]:
    """Return the cases of the draft of a source, which is written to `draft.yaml` beside it."""
    file, _, function = name.partition("::")
    (place / file).write_text(textwrap.dedent(source).lstrip("\n"), encoding="utf-8")
    named = f"{place / file}::{function}" if function else str(place / file)
    status = main(["draft", named, "-o", str(place / "draft.yaml"), "--python", forks.python(), *options])
    text = (place / "draft.yaml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = read_document(text, "draft.yaml").plain["cases"] if status == 0 else []
    return found


def confirmed(place: Path, *answers: str) -> int:
    """Answer the questions about `draft.yaml`, and return the exit status."""
    (place / "answers.txt").write_text("".join(f"{answer}\n" for answer in answers), encoding="utf-8")
    given = ["--answers", str(place / "answers.txt"), "--python", forks.python()]
    return main(["confirm", str(place / "draft.yaml"), *given])


def steps_of(place: Path, source: str, name: str = "source.py", *options: str) -> list[Any]:
    """Return the steps of the only case of a draft, with what is unconfirmed as it stands."""
    (case,) = drafted(place, source, name, *options)
    steps: list[Any] = bare(case["steps"])
    return steps


def bare(value: Any) -> Any:
    """Return part of a draft with what was observed in the place of `{unconfirmed: …}`."""
    if isinstance(value, dict):
        return bare(value["unconfirmed"]) if value.keys() == {"unconfirmed"} else {k: bare(v) for k, v in value.items()}
    return [bare(each) for each in value] if isinstance(value, list) else value


def comments(place: Path) -> str:
    lines = (place / "draft.yaml").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.lstrip().startswith("#"))


def told(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    return out + err
