"""The language server over its protocol: in a thread of the test, and once as editors start it."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from loops import each

from cli.own_case import CASE
from conformance.cli import main as cli
from conformance.cli import protocol
from conformance.language.files import shipped_cases
from conformance.language.outline import entries_in


class Editor:
    """Speaks as an editor does: sends requests, and reads what comes up to the answer or a notification."""

    def __init__(self, reads: IO[bytes], writes: IO[bytes], root: Path) -> None:
        self.reads, self.writes, self.root = reads, writes, root
        self.number = 0
        self.told: list[Any] = []  # the notifications that have come
        self.server = self.ask("initialize", processId=None, rootUri=root.as_uri(), capabilities={})
        self.tell("initialized")

    def send(self, message: dict[str, Any]) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.writes.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
        self.writes.flush()

    def read(self) -> Any:
        size = 0
        while line := self.reads.readline().strip():
            name, _, value = line.partition(b":")
            size = int(value) if name == b"Content-Length" else size
        return json.loads(self.reads.read(size))

    def ask(self, method: str, **params: Any) -> Any:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while (message := self.read()).get("id") != self.number:
            self.told.append(message)
        assert "error" not in message, message
        return message["result"]

    def tell(self, method: str, **params: Any) -> None:
        self.send({"method": method, "params": params})

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def open(self, name: str, text: str) -> None:
        document = {"uri": self.uri(name), "languageId": "yaml", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)

    def change(self, name: str, version: int, text: str) -> None:
        document = {"uri": self.uri(name), "version": version}
        self.tell("textDocument/didChange", textDocument=document, contentChanges=[{"text": text}])

    def at(self, what: str, name: str, line: int, character: int) -> Any:
        place = {"line": line, "character": character}
        return self.ask(f"textDocument/{what}", textDocument={"uri": self.uri(name)}, position=place)

    def problems(self) -> list[Any]:
        """Return the diagnostics that come next."""
        while not self.told or self.told[-1]["method"] != "textDocument/publishDiagnostics":
            self.told.append(self.read())
        found: list[Any] = self.told.pop()["params"]["diagnostics"]
        return found


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Editor]:
    monkeypatch.setattr(protocol, "PAUSE", 0.0)
    monkeypatch.setattr(protocol, "others", list)
    (inner, to_server), (from_server, outer) = os.pipe(), os.pipe()
    with (
        os.fdopen(inner, "rb") as stdin, os.fdopen(outer, "wb") as stdout,
        os.fdopen(to_server, "wb") as writes, os.fdopen(from_server, "rb") as reads,
    ):  # fmt: skip
        thread = threading.Thread(target=protocol.server().start_io, args=(stdin, stdout))
        thread.start()
        found = Editor(reads, writes, tmp_path)
        yield found
        found.ask("shutdown")
        found.tell("exit")
        thread.join(30)
        assert not thread.is_alive()


def labels(found: Any) -> set[str]:
    return {item["label"] for item in found["items"]}


def test_diagnostics_are_those_of_check_for_the_text_that_is_not_saved(
    editor: Editor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = CASE.replace("is_leaf: true", "is_leef: 😀").replace("rules: [", "rules: [no.such-rule, ")
    assert wrong.count("is_leef") == wrong.count("no.such-rule") == 1
    editor.open("own.yaml", CASE)
    assert editor.problems() == []
    editor.change("own.yaml", 2, wrong)
    found = editor.problems()
    (tmp_path / "own.yaml").write_text(wrong, encoding="utf-8")
    assert cli.main(["check", str(tmp_path / "own.yaml"), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)["problems"]
    assert len(told) == 2
    for own, said in zip(told, found, strict=True):
        assert said["range"]["start"] == {"line": own["line"] - 1, "character": own["column"] - 1}
        hint = f" ({own['hint']})" if own["hint"] else ""
        assert said["message"] == f"{own['path']}: {own['message']}{hint}"
    editor.change("own.yaml", 3, CASE)
    assert editor.problems() == []


def test_of_texts_that_follow_at_once_the_last_is_told(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "PAUSE", 0.3)
    editor.open("own.yaml", "topic: [")
    editor.change("own.yaml", 2, "topic: {")
    editor.change("own.yaml", 3, CASE)
    assert editor.problems() == []
    assert editor.at("hover", "own.yaml", 0, 1)["contents"]["value"] == "What the file's cases are about."
    assert not [message for message in editor.told if message["method"] == "textDocument/publishDiagnostics"]


def test_what_was_found_in_an_older_text_is_not_told(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, changed = threading.Event(), threading.Event()
    plain = protocol.problems_in

    def slow(file: Path, text: str) -> Any:
        if text.startswith("topic: ["):
            begun.set()
            changed.wait(30)
        return plain(file, text)

    monkeypatch.setattr(protocol, "problems_in", slow)
    editor.open("own.yaml", "topic: [")
    assert begun.wait(30)
    editor.change("own.yaml", 2, CASE)
    assert editor.at("hover", "own.yaml", 0, 1)  # so the change has come
    changed.set()
    assert editor.problems() == []


def test_what_is_closed_has_no_diagnostics(editor: Editor) -> None:
    editor.open("own.yaml", "topic: [")
    assert len(editor.problems()) == 1
    editor.tell("textDocument/didClose", textDocument={"uri": editor.uri("own.yaml")})
    assert editor.problems() == []


def test_a_registry_is_checked_too_and_a_broken_one_is_told_of_its_cases(editor: Editor, tmp_path: Path) -> None:
    editor.open("rules.yaml", "rules: [{id: one.two}]")
    assert "the key 'text' is missing" in str(editor.problems())
    (tmp_path / "rules.yaml").write_text("rules: 3\n", encoding="utf-8")
    editor.open("own.yaml", CASE)
    (found,) = editor.problems()
    assert found["message"].startswith(f"{tmp_path / 'rules.yaml'}:1:8: rules: expected a list")
    assert found["range"]["start"] == {"line": 0, "character": 0}
    editor.change("own.yaml", 2, f"{CASE}    rules: [")
    last = editor.at("completion", "own.yaml", CASE.count("\n"), 12)
    assert "detach.shares-storage" in labels(last)


def test_an_id_of_the_suite_is_told(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "others", lambda: list(entries_in(CASE, "cases/detach.yaml")))
    editor.open("own.yaml", CASE)
    assert "stands twice (first in cases/detach.yaml:3)" in str(editor.problems())


@each("name, text", [("compose.yaml", "services: {web: [}"), ("known-issues.yaml", "topic: ["), ("empty.yaml", "")])
def test_files_of_other_kinds_are_left_alone(name: str, text: str) -> None:
    assert protocol.problems_in(Path("/nowhere") / name, text) == []


def test_completion_takes_the_place_of_the_word_as_the_editor_counts_characters(editor: Editor) -> None:
    text = f"{CASE}  - id: two\n    steps:\n      - y = 1\n      - z = ('😀', torch.ex"
    editor.open("own.yaml", text)
    line = text.count("\n")
    found = editor.at("completion", "own.yaml", line, 27)
    assert {"exp", "linalg"} <= labels(found)
    edit = next(item for item in found["items"] if item["label"] == "exp")["textEdit"]
    assert edit["range"] == {"start": {"line": line, "character": 25}, "end": {"line": line, "character": 27}}
    assert editor.server["capabilities"]["completionProvider"]["triggerCharacters"] == [".", "{", "["]


def test_a_rule_leads_to_its_line_in_the_registry(editor: Editor, tmp_path: Path) -> None:
    text = "topic: A\ncases:\n  - id: a\n    rules: [detach.shares-storage, own.rule, no.rule]\n"
    rule = "{id: own.rule, text: It is., topic: A, level: observed, link: 'https://a.b/c', since: '1.13'}"
    (tmp_path / "rules.yaml").write_text(f"rules:\n  - {rule}\n", encoding="utf-8")
    editor.open("own.yaml", text)
    registry = shipped_cases() / "rules.yaml"
    found = editor.at("definition", "own.yaml", 3, 15)
    assert found["uri"] == registry.as_uri()
    line = registry.read_text(encoding="utf-8").split("\n")[found["range"]["start"]["line"]]
    assert line == "  - id: detach.shares-storage"
    own = editor.at("definition", "own.yaml", 3, 40)
    assert (own["uri"], own["range"]["start"]["line"]) == (editor.uri("rules.yaml"), 1)
    assert editor.at("definition", "own.yaml", 3, 50) is None
    assert "of the suite state" in editor.at("hover", "own.yaml", 3, 15)["contents"]["value"]
    assert editor.at("hover", "own.yaml", 3, 40)["contents"]["value"].startswith("It is.\n\nobserved, since 1.13; 0 ")


def test_places_that_are_not_there_and_files_that_are_gone_are_answered(editor: Editor, tmp_path: Path) -> None:
    editor.open("own.yaml", "topic: A\r\nca")
    assert len(editor.problems()) == 1
    assert labels(editor.at("completion", "own.yaml", 99, 99)) == {"cases", "programs", "ops"}
    assert labels(editor.at("completion", "own.yaml", 1, 99)) == {"cases", "programs", "ops"}
    assert editor.at("hover", "own.yaml", 99, 0) is None
    assert editor.at("hover", "own.yaml", 0, 99) is None
    assert labels(editor.at("completion", "gone.yaml", 0, 0)) >= {"topic", "cases"}
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    assert editor.at("hover", "binary.yaml", 0, 0) is None
    editor.open("own.yaml", "topic: \ud800\x00\ncases: 1\n")
    assert "surrogate" in str(editor.problems())


def test_what_fails_in_a_check_is_told_as_an_error_of_the_server(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("gone")

    monkeypatch.setattr(protocol, "problems_in", fails)
    editor.open("own.yaml", CASE)
    while editor.read()["method"] != "window/showMessage":
        pass
    monkeypatch.undo()
    assert editor.at("hover", "own.yaml", 0, 1)


def test_editors_start_it_as_a_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "conformance", "language-server", "--stdio"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        editor = Editor(process.stdout, process.stdin, tmp_path)
        assert editor.server["serverInfo"]["name"] == "autograd-conformance"
        editor.open("own.yaml", "topic: [")
        assert len(editor.problems()) == 1
        editor.ask("shutdown")
        editor.tell("exit")
        assert process.wait(30) == 0
        assert b"Traceback" not in process.stderr.read()


def test_without_pygls_the_command_says_how_to_have_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] in ("pygls", "lsprotocol"):
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.delitem(sys.modules, "conformance.cli.protocol")
    monkeypatch.setattr(builtins, "__import__", without)
    assert cli.main(["language-server"]) == 2
    told = capsys.readouterr().err
    assert "the language server needs pygls, which isn't installed" in told
    assert "pip install 'autograd-conformance[editors]'" in told
