"""Holds every file in `bad_cases` against the exact text of the error that it must lead to.

Each `x.yaml` makes one mistake, or several, and `x.txt` beside it holds what a person who made it is told.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from conformance.language import yaml as document
from conformance.language.errors import CaseFileError
from conformance.language.reader import parse_cases
from conformance.language.yaml import read_text
from conformance.model.rule import Rule

DIRECTORY = Path(__file__).parent / "bad_cases"
FILES = sorted(DIRECTORY.glob("*.yaml"))
RULE = Rule(id="a.b", text="A rule.", topic="Rules", level="documented", link="https://example.org", since="1.13")

MALICE = """\
topic: Malice
cases:
  - id: malice
    title: Nothing of this is executed
    why: Case files are data
    rules: [a.b]
    torch: 'open("made", "w")'
    source: '{open("made", "w")}'
    steps:
      - __import__("os").system("touch made")
      - open("made", "w")
      - exec('open("made", "w")')
      - eval('open("made", "w")')
      - import os; os.system("touch made")
      - 'b = f"{open(''made'', ''w'')}"'
      - 'f = lambda x=open("made", "w"): x'
      - 'b = [open(name, "w") for name in ["made"]]'
      - |
        @open
        def made(x=open("made", "w")):
            pass
      - |
        class Made(open("made", "w"), metaclass=open("made", "w")):
            made = open("made", "w")
      - ().__class__.__base__.__subclasses__()[0].__init__.__globals__["open"]("made", "w")
      - torch.save(1, "made")
      - torch.os.system("touch made")
      - tensor([1.0]).numpy().tofile("made")
      - print("made", file=open("made", "w"))
      - do: open("made", "w")
        raises: {type: 'open("made", "w")', match: 'open("made", "w")', torch: 'open("made", "w")'}
      - expect:
          open("made", "w"): {is: 'open("made", "w")', value: '__import__("os").system("touch made")'}
          '(made := open("made", "w"))': {grad: {torch: {'open("made", "w")': 1}}}
"""
TAGGED = (
    '!!python/object/apply:os.system ["touch made"]',
    '!!python/object/new:os.system ["touch made"]',
    "!!python/name:os.system x",
    '!!python/object/apply:builtins.open ["made", "w"]',
    "!!python/module:antigravity x",
)

LISTENER = """\
import sys
from language.test_bad_cases import FILES, MALICE, error_of

contents = [(path.read_bytes(), path.name) for path in FILES] + [(MALICE.encode(), "malice.yaml")]
for content, name in contents:
    error_of(content, name)
heard = set()
listening = True
# Python looks for the source of a syntax error under the name that it was compiled with.
harmless = {("open", "<step>"), ("open", "<unknown>")}


def listen(event, arguments):
    if listening and event != "compile" and (event, *arguments[:1]) not in harmless:
        heard.add(event)


sys.addaudithook(listen)
for content, name in contents:
    error_of(content, name)
listening = False
print(*sorted(heard))
"""


def error_of(content: bytes, name: str) -> str:
    try:
        parse_cases(read_text(content, name), name, {RULE.id: RULE})
    except CaseFileError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_bad_case_file_is_refused_in_these_words(path: Path) -> None:
    expected = path.with_suffix(".txt").read_text(encoding="utf-8")
    if "can't be read as YAML" in expected and document.Loader is yaml.SafeLoader:
        pytest.skip("the recorded words are libyaml's, which this PyYAML was built without")
    assert error_of(path.read_bytes(), path.name) + "\n" == expected


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_each_line_of_an_error_begins_with_a_place_inside_the_file(path: Path) -> None:
    lines = path.read_bytes().split(b"\n")
    for problem in path.with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        name, line, column, message = problem.split(":", 3)
        assert name == path.name
        assert 1 <= int(line) <= len(lines)
        assert 1 <= int(column) <= len(lines[int(line) - 1]) + 1
        assert message.startswith(" ")
        assert message.strip()


def test_there_are_at_least_fifty_mistakes() -> None:
    assert len(FILES) >= 50


def test_each_mistake_has_its_words_and_no_words_are_left_over() -> None:
    assert {path.stem for path in DIRECTORY.glob("*.txt")} == {path.stem for path in FILES}


def test_no_trick_makes_reading_a_case_do_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert error_of(MALICE.encode(), "malice.yaml")
    for tagged in TAGGED:
        text = MALICE.replace("Case files are data", tagged)
        assert "is not part of the case language" in error_of(text.encode(), "tagged.yaml")
    for path in FILES:
        assert error_of(path.read_bytes(), path.name)
    assert list(tmp_path.iterdir()) == []
    assert "antigravity" not in sys.modules


def test_every_step_of_the_malicious_case_is_refused_by_itself() -> None:
    refused = {int(line.split(":")[1]) for line in error_of(MALICE.encode(), "malice.yaml").splitlines()}
    lines = MALICE.splitlines()
    first = lines.index("    steps:") + 1
    steps = [number for number, line in enumerate(lines, start=1) if number > first and line.startswith("      - ")]
    for begin, end in zip(steps, [*steps[1:], len(lines) + 1], strict=True):
        assert any(begin <= line < end for line in refused), lines[begin - 1]


def test_reading_case_files_opens_runs_and_imports_nothing(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", LISTENER], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": f"{DIRECTORY.parent}:{DIRECTORY.parent.parent}"},
    )  # fmt: skip
    assert answer.stderr == ""
    assert answer.stdout == "\n"
