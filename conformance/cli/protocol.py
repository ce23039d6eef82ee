"""Speaks the language server protocol, by pygls, about case files and the registry of rules."""

from __future__ import annotations

import asyncio
import re
import threading
from functools import cache, partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import PositionCodec

from conformance import __version__
from conformance.cli.check import checked_text, shipped_entries, standing_twice
from conformance.cli.rules import cases_by_rule
from conformance.language.editing.completion import Offer, meaning, offers, word_at
from conformance.language.errors import CaseFileError, Problem
from conformance.language.files import NOT_CASES, is_shipped, nearest, shipped_cases
from conformance.language.outline import Entry, entries_in
from conformance.language.rules import RULES_FILE, lines_of_rules, rules_in
from conformance.language.yaml import content_of
from conformance.model.rule import Rule

PAUSE = 0.25  # seconds without typing before a text is checked
LIKE_CASES = re.compile(r"^(topic|cases|ops|programs) *:", re.MULTILINE)
TRIGGERS = [".", "{", "["]
TOKEN = re.compile(r"[\w.-]+|[^\w\s]+|$")
KINDS = {
    "rule": types.CompletionItemKind.Reference, "key": types.CompletionItemKind.Property,
    "name": types.CompletionItemKind.Function, "variable": types.CompletionItemKind.Variable,
    "word": types.CompletionItemKind.Value,
}  # fmt: skip
ORDER = ("variable", "key", "word", "rule", "name")  # in which they are offered


@cache
def rules_at(path: Path, _changed: float) -> dict[str, Rule]:
    return rules_in(content_of(path), str(path))


def registries(file: Path) -> list[Path]:
    """Return the files of rules that hold for a file: those of the suite, and the nearest above it."""
    own = nearest(file.absolute().parent, RULES_FILE)
    return [shipped_cases() / RULES_FILE, *([own] if own is not None else [])]


def rules_for(file: Path) -> dict[str, Rule]:
    """Return the rules that a case file can cite, which are read again where a file of them has changed."""
    found: dict[str, Rule] = {}
    for path in registries(file):
        found |= rules_at(path, path.stat().st_mtime)
    return found


def readable_rules(file: Path) -> dict[str, Rule]:
    """Return the same, or the suite's where a file of rules can't be read, which is told of the text by itself."""
    try:
        return rules_for(file)
    except (CaseFileError, OSError):
        return rules_for(shipped_cases() / RULES_FILE)


@cache
def counts() -> dict[str, int]:
    return {rule: len(cases) for rule, cases in cases_by_rule().items()}


@cache
def others() -> list[Entry]:
    return shipped_entries()


def problems_in(file: Path, text: str) -> list[Problem]:
    """Return what `check` would say of a file that had this text; of a file that has no cases, nothing."""
    is_registry = file.name == RULES_FILE
    if not is_registry and (file.name in NOT_CASES or not LIKE_CASES.search(text)):
        return []
    _, problems = checked_text(file, text, rules_for)
    own = [] if is_registry else list(entries_in(text, str(file)))
    is_own = file.exists() and is_shipped(file)
    return sorted({*problems, *standing_twice([*([] if is_own else others()), *own])})


class Text:
    """The text of a document, in which an editor counts characters in its own way."""

    def __init__(self, source: str, codec: PositionCodec) -> None:
        self.source = source
        self.lines = source.split("\n")
        self.codec = codec

    def offset(self, position: types.Position) -> int:
        """Return which character a position is at; one beyond the end of a line or of the text is at that end."""
        if position.line >= len(self.lines):
            return len(self.source)
        line = self.lines[position.line].rstrip("\r")
        before = sum(map(len, self.lines[: position.line])) + position.line
        units = 0
        for number, letter in enumerate(line):
            if units >= position.character:
                return before + number
            units += self.codec.client_num_units(letter)
        return before + len(line)

    def position(self, line: int, column: int) -> types.Position:
        """Return the editor's position of a line and a column that count from 0."""
        last = min(line, len(self.lines) - 1)
        return types.Position(last, self.codec.client_num_units(self.lines[last][:column]))

    def range(self, begin: int, end: int) -> types.Range:
        """Return the editor's range between two characters of one line."""
        line = self.source.count("\n", 0, begin)
        start = begin - (self.source.rfind("\n", 0, begin) + 1)
        return types.Range(self.position(line, start), self.position(line, start + end - begin))

    def word(self, line: int, column: int) -> types.Range:
        """Return the range of the word that begins at a line and a column, which count from 1."""
        own = self.lines[min(line, len(self.lines)) - 1]
        found = TOKEN.search(own, column - 1)
        end = found.end() if found and found.start() == column - 1 else column
        return types.Range(self.position(line - 1, column - 1), self.position(line - 1, end))


def diagnostic(problem: Problem, file: Path, text: Text) -> types.Diagnostic:
    """Return a problem as an editor shows it; one of another file stands at the beginning and names its place."""
    is_own = problem.file == str(file)
    place = f"{problem.file}:{problem.line}:{problem.column}:"
    return types.Diagnostic(
        range=text.word(problem.line, problem.column) if is_own else text.word(1, 1),
        message=str(problem).removeprefix(place).strip() if is_own else str(problem),
        severity=types.DiagnosticSeverity.Error,
        source="autograd-conformance",
    )


def item(offer: Offer, text: Text, offset: int) -> types.CompletionItem:
    return types.CompletionItem(
        label=offer.text,
        kind=KINDS[offer.kind],
        documentation=offer.about or None,
        sort_text=f"{ORDER.index(offer.kind)} {offer.text}",
        text_edit=types.TextEdit(range=text.range(offset - offer.length, offset), new_text=offer.text),
    )


class Documents:
    """The documents that an editor has open, and the checks of them."""

    def __init__(self, server: LanguageServer) -> None:
        self.server = server
        self.turn = asyncio.Lock()  # one at a time; each is of the newest text

    def text(self, uri: str) -> Text:
        """Return the text of a document, or none where it is not open and its file is gone."""
        workspace = self.server.workspace
        try:
            source = workspace.get_text_document(uri).source
        except (OSError, UnicodeDecodeError):
            source = ""
        return Text(source, workspace.position_codec)

    def version(self, uri: str) -> int | None:
        return self.server.workspace.get_text_document(uri).version

    async def check(self, uri: str) -> None:
        """Publish what is to be said of a document, unless it is changed or closed before that."""
        version = self.version(uri)
        await asyncio.sleep(PAUSE)
        async with self.turn:
            if self.version(uri) != version:
                return
            file, text = file_of(uri), self.text(uri)
            problems = await beside(partial(problems_in, file, text.source))
        if self.version(uri) == version:
            self.publish(uri, [diagnostic(each, file, text) for each in problems])

    def publish(self, uri: str, found: list[types.Diagnostic]) -> None:
        params = types.PublishDiagnosticsParams(uri=uri, diagnostics=found)
        self.server.text_document_publish_diagnostics(params)


async def beside(work: Any) -> Any:
    """Return what `work` returns, done in a thread that no exit waits for: some files take a minute."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def finish(result: Any, error: BaseException | None) -> None:
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def do() -> None:
        result, failure = None, None
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            failure = error
        loop.call_soon_threadsafe(finish, result, failure)

    threading.Thread(target=do, daemon=True).start()
    return await done


def file_of(uri: str) -> Path:
    return Path(to_fs_path(uri) or "untitled.yaml")


def server() -> LanguageServer:
    """Return the server, which begins when it is started."""
    result = LanguageServer("autograd-conformance", __version__)
    documents = Documents(result)

    @result.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await documents.check(params.text_document.uri)

    @result.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        await documents.check(params.text_document.uri)

    @result.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        documents.publish(params.text_document.uri, [])

    @result.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=TRIGGERS))
    def completed(params: types.CompletionParams) -> types.CompletionList:
        uri = params.text_document.uri
        text = documents.text(uri)
        offset = text.offset(params.position)
        found = offers(text.source[:offset], readable_rules(file_of(uri)), counts())
        return types.CompletionList(is_incomplete=False, items=[item(each, text, offset) for each in found])

    @result.feature(types.TEXT_DOCUMENT_HOVER)
    def hovered(params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        text = documents.text(uri)
        said = meaning(text.source, text.offset(params.position), readable_rules(file_of(uri)), counts())
        return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, said)) if said else None

    @result.feature(types.TEXT_DOCUMENT_DEFINITION)
    def defined(params: types.DefinitionParams) -> types.Location | None:
        uri = params.text_document.uri
        text = documents.text(uri)
        begin, end = word_at(text.source, text.offset(params.position))
        return definition(text.source[begin:end].strip(".-"), file_of(uri))

    return result


def definition(rule: str, file: Path) -> types.Location | None:
    """Return where a rule stands, of the files of rules that hold for a case file in the nearest."""
    for path in reversed(registries(file)):
        line = lines_of_rules(path.read_text(encoding="utf-8", errors="replace")).get(rule)
        if line is not None:
            place = types.Position(line - 1, 0)
            return types.Location(from_fs_path(str(path)) or "", types.Range(place, place))
    return None
