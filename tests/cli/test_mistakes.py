"""What a user may get wrong: each command tells of each unfit input in an error and a hint, without a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from loops import each

from cli.own_case import CASE
from conformance.cli import check
from conformance.cli import main as cli

LONG = "x" * 5000
NOT_FILES = ["missing", "void", "file.yaml/below", "loop", "binary", LONG, "\udcff", "/dev/null", "pipe", "/dev/zero"]
OF_CASES = ["check FILE", "try FILE", "observe FILE", "confirm FILE", "history FILE", "coverage FILE", "similar FILE"]
OF_CASES += ["show FILE::own-case", "explain FILE::own-case", "mutate FILE::own-case", "try FILE::own-case"]
OF_CASES += ["bisect FILE::own-case --good 2.3.1 --bad 2.6.0", "rules leaf --rules FILE"]
OF_REPORTS = ["report FILE", "merge FILE", "summary FILE", "badge FILE", "known-issues FILE", "compact -o out FILE"]
OF_REPORTS += ["nights -o out FILE", "diff FILE FILE", "upgrade FILE FILE", "upgrade FILE -o out"]
OF_OTHERS = ["report FILE --renames FILE", "known-issues FILE --known-issues FILE", "draft FILE::missing"]
PYTHONS = ["missing", "file.yaml", "void", "/bin/true", ""]
WITH_PYTHON = ["try file.yaml --python", "observe asking.yaml --python", "profile cpu --python"]
SILLY = [
    "show nope", "show ::", "show detached-alias-zeroed-after-sigmoid --torch x",
    "explain file.yaml::nope", "mutate file.yaml::", "confirm file.yaml --answers loop",
    "bisect file.yaml::nope --good 2.3.1 --bad 2.6.0", "bisect file.yaml::own-case --good x --bad y",
    "bisect file.yaml::own-case --good 2.6.0 --bad 2.6.0",
    "bisect file.yaml::own-case --good 2.3.1 --bad 2.6.0 --target x",
    "new a", "new ../b", "new a/B", "new a/b -o file.yaml/below", f"new a/b -o {LONG}",
    "rules", "report file.yaml --nights missing",
]  # fmt: skip
SAYING_LITTLE = {"check binary", "check loop", "similar binary", "check /dev/null", "similar /dev/null", "similar void"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("file.yaml").write_text(CASE, encoding="utf-8")
    Path("asking.yaml").write_text(CASE.replace("true", "?"), encoding="utf-8")
    Path("binary").write_bytes(bytes(range(256)))
    Path("void").mkdir()
    Path("loop").symlink_to("loop")
    os.mkfifo("pipe")
    return tmp_path


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command that can't do what it was asked says on standard error."""
    assert cli.main(words) == 2
    told = capsys.readouterr().err
    assert "U+000A" not in told
    *_, hint = told.splitlines()
    error = next(line for line in told.splitlines() if not line.startswith(" "))
    assert error.startswith("error: ")
    assert len(error) > len("error: ")
    assert hint.startswith("hint: ")
    assert len(hint) > len("hint: ")
    return told


@each("number, command", list(enumerate([*OF_REPORTS, *OF_OTHERS, *OF_CASES])))
@pytest.mark.usefixtures("place")
def test_each_command_refuses_what_can_not_be_read(
    number: int, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (NOT_FILES * 2)[number % len(NOT_FILES) :][:3]:  # each of them with some of the commands
        if f"{command.partition(' ')[0]} {name}" not in SAYING_LITTLE:
            refused([word.replace("FILE", name) for word in command.split()], capsys)


@each("command", WITH_PYTHON)
@pytest.mark.usefixtures("place")
def test_each_command_refuses_an_interpreter_without_torch(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for python in PYTHONS:
        refused([*command.split(), python], capsys)


@each("command", SILLY)
@pytest.mark.usefixtures("place")
def test_what_is_named_and_does_not_exist_is_told(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(command.split(), capsys)


@pytest.mark.usefixtures("place")
def test_what_check_says_of_a_file_is_no_error_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "binary"]) == 1
    assert "expected UTF-8 text, got the byte 0x80" in capsys.readouterr().out


def test_an_interruption_is_told_in_a_word(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "run", interrupted)
    assert cli.main(["check", str(place)]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.usefixtures("place")
def test_memory_that_does_not_suffice_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def large(_: object) -> int:
        raise MemoryError

    monkeypatch.setattr(check, "run", large)
    assert cli.main(["check", "file.yaml"]) == 2
    assert capsys.readouterr().err == "error: out of memory\n"


@pytest.mark.usefixtures("place")
def test_an_error_of_the_system_without_a_file_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: object) -> int:
        raise OSError("out of descriptors")

    monkeypatch.setattr(check, "run", full)
    assert "error: out of descriptors\n" in refused(["check", "file.yaml"], capsys)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads any file")
def test_a_file_that_may_not_be_read_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "file.yaml").chmod(0)
    for command in ("check", "observe", "badge"):
        assert "Permission denied" in refused([command, "file.yaml"], capsys)
