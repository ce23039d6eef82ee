"""Holds every snippet of `bad_cases` against the exact text of the error that it must lead to."""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from loops import each

from conformance.language import yaml as document
from language.snippets import AREAS, FRAME, MISTAKES, SECTION, error_of, mistakes_of, text_of

# What can't stand in a text file for people, or would fill it.
PLAIN = FRAME.format(steps="")
UNPRINTABLE = {
    "bell-character": (PLAIN.replace("A reason", "A \a reason").encode(),
        "5:12: can't be read as YAML: the character U+0007 can't stand in it"),
    "nul-byte": (PLAIN.replace("A reason", "A \0 reason").encode(),
        "5:12: can't be read as YAML: the character U+0000 can't stand in it"),
    "not-utf-8": (PLAIN.replace("A reason", "Grüße").encode("latin-1"), "5:12: expected UTF-8 text, got the byte 0xfc"),
    "utf-16": (PLAIN.encode("utf-16"), "1:1: expected UTF-8 text, got the byte 0xff"),
    "huge-integer": (FRAME.format(steps=f"      - expect: {{a: {{version: {'9' * 5000}}}}}\n").encode(),
        "9:31: a number of 5000 digits is too long"),
    "too-long-a-step": (FRAME.format(steps=f"      - b = {'+' * 12_000}a\n").encode(),
        "9:9: expected at most 10000 characters, got 12005"),
}  # fmt: skip
CONTENTS = {mistake.file: mistake.content for mistake in MISTAKES}
CONTENTS |= {f"{name}.yaml": content for name, (content, _) in UNPRINTABLE.items()}

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
from language.test_bad_cases import CONTENTS, MALICE, error_of

contents = {**CONTENTS, "malice.yaml": MALICE.encode()}
for name, content in contents.items():
    error_of(content, name)
heard = set()
listening = True
# Python looks for the source of a syntax error under the name that it was compiled with.
harmless = {("open", "<step>"), ("open", "<unknown>")}


def listen(event, arguments):
    if listening and event != "compile" and (event, *arguments[:1]) not in harmless:
        heard.add(event)


sys.addaudithook(listen)
for name, content in contents.items():
    error_of(content, name)
listening = False
print(*sorted(heard))
"""


@pytest.mark.parametrize("area", AREAS, ids=[area.stem for area in AREAS])
def test_a_mistake_is_told_in_these_words(area: Path, request: pytest.FixtureRequest) -> None:
    told = {mistake.name: mistake.told() for mistake in mistakes_of(area)}
    if document.Loader is yaml.SafeLoader:  # the recorded words of libyaml, which this PyYAML was built without
        told |= {m.name: m.words for m in mistakes_of(area) if "can't be read as YAML" in m.words}
    new, old = text_of(area, told), area.read_text(encoding="utf-8")
    if request.config.getoption("update_snippets"):
        area.write_text(new, encoding="utf-8")
        return
    difference = difflib.unified_diff(old.splitlines(), new.splitlines(), str(area), "what is told now", "", "", 12, "")
    assert old == new, "\n".join(difference)


@each("name", UNPRINTABLE)
def test_a_mistake_that_can_not_be_printed_is_told_in_these_words(name: str) -> None:
    content, words = UNPRINTABLE[name]
    if "can't be read as YAML" in words and document.Loader is yaml.SafeLoader:
        pytest.skip("the recorded words are libyaml's, which this PyYAML was built without")
    assert error_of(content, f"{name}.yaml") == f"{name}.yaml:{words}"


@each("name", CONTENTS)
def test_each_line_of_an_error_begins_with_a_place_inside_the_file(name: str) -> None:
    lines = CONTENTS[name].split(b"\n")
    problems = error_of(CONTENTS[name], name).splitlines()
    assert problems
    for problem in problems:
        file, line, column, message = problem.split(":", 3)
        assert file == name
        assert 1 <= int(line) <= len(lines)
        assert 1 <= int(column) <= len(lines[int(line) - 1]) + 1
        assert message.startswith(" ")
        assert message.strip()


def test_every_mistake_is_read_and_no_two_have_one_name() -> None:
    assert len(CONTENTS) == len(MISTAKES) + len(UNPRINTABLE) >= 190
    for area in AREAS:
        text = area.read_text(encoding="utf-8")
        assert text.count("\n## ") == text.count("\n```text\n") == len(SECTION.findall(text)), area


def test_an_update_writes_what_is_told_and_nothing_else(tmp_path: Path) -> None:
    text = AREAS[0].read_text(encoding="utf-8")
    area = tmp_path / AREAS[0].name
    area.write_text(text.replace("expected", "wanted"), encoding="utf-8")
    assert area.read_text(encoding="utf-8") != text
    assert text_of(area, {mistake.name: mistake.told() for mistake in mistakes_of(area)}) == text


def test_no_trick_makes_reading_a_case_do_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert error_of(MALICE.encode(), "malice.yaml")
    for tagged in TAGGED:
        text = MALICE.replace("Case files are data", tagged)
        assert "is not part of the case language" in error_of(text.encode(), "tagged.yaml")
    for name, content in CONTENTS.items():
        assert error_of(content, name)
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
        env={"PYTHONPATH": str(Path(__file__).parent.parent)},
    )  # fmt: skip
    assert answer.stderr == ""
    assert answer.stdout == "\n"
