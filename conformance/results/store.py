"""The file of a report: JSON with a line for each entry, read with suspicion.

`load_report` accepts what the schema accepts, as long as it holds together: each pair of the plan names a case, and
each outcome is of a pair of the plan.
"""

import errno
import itertools
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from conformance.model.graph import EncodedGraphs
from conformance.model.report import FORMAT, Pair, Report
from conformance.results.causes import causes_of
from conformance.results.compact import Compact, CompactError, report_of
from conformance.results.format_1 import with_facts

LONGEST_REPORT = 2**28  # bytes; a report of all cases on five devices has a tenth
END = b"\n]\n}\n"  # what follows the last outcome of a report without a footer


def text_of(report: Report | Compact) -> str:
    """Return a report as its file holds it, with the causes of what is red and unsupported if it is finished."""
    if isinstance(report, Report):
        report = with_causes(report)
    return "".join(pieces_of(fields_of(report))) + "\n}\n"


def text_of_record(record: msgspec.Struct) -> str:
    """Return any other record as its file holds it."""
    return "".join(pieces_of(fields_of(record))) + "\n}\n"


def text_of_head(report: Report) -> Iterator[str]:
    """Yield, piece by piece, what precedes the first outcome in the text of a report."""
    fields = fields_of(report)
    before = itertools.takewhile(lambda name: name != "outcomes", fields)
    yield from pieces_of({name: fields[name] for name in before})
    yield ',\n"outcomes": ['


def text_of_end(report: Report) -> Iterator[str]:
    """Yield, piece by piece, what follows the outcomes in the text of a report."""
    fields = itertools.dropwhile(lambda field: field[0] != "outcomes", fields_of(with_causes(report)).items())
    yield from pieces_of({name: value for name, value in fields if name != "outcomes"}, ",\n")
    yield "\n}\n"


def with_causes(report: Report) -> Report:
    """Return a report with the causes that follow from its outcomes; of a run that goes on they aren't known."""
    return replace(report, causes=causes_of(report) if report.footer is not None else ())


def pieces_of(fields: Mapping[str, Any], begin: str = "{\n") -> Iterator[str]:
    """Yield the text of fields, piece by piece: a large report is never a text as a whole."""
    for name, value in fields.items():
        yield f'{begin}"{name}": '
        yield from dump(value)
        begin = ",\n"


def fields_of(record: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a record by name, without those that are empty and need not be there."""
    values, fields = msgspec.structs.asdict(record), msgspec.structs.fields(record)
    return {field.name: values[field.name] for field in fields if field.required or values[field.name]}


def dump(value: Any) -> Iterator[str]:
    """Yield JSON with one line for each entry of a list or mapping, so that reports can be compared by line."""
    if isinstance(value, msgspec.Struct):
        value = fields_of(value)
    if isinstance(value, EncodedGraphs) and value:
        yield from listed("{}", (f"{encoded(case)}: {text}" for case, text in value.texts.items()))
    elif isinstance(value, Mapping) and value:
        yield from listed("{}", (f"{encoded(key)}: {encoded(item)}" for key, item in value.items()))
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        yield from listed("[]", map(encoded, value))
    else:
        yield encoded(value)


def listed(brackets: str, lines: Iterable[str]) -> Iterator[str]:
    begin = f"{brackets[0]}\n"
    for line in lines:
        yield begin + line
        begin = ",\n"
    yield f"\n{brackets[1]}"


def encoded(value: Any) -> str:
    """Return JSON in one line."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # halves of surrogate pairs, which only their escapes can be written as
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def write_whole(path: Path, content: str | Iterable[bytes], *, is_durable: bool = False) -> None:
    """Write a file that is never seen half-written: under another name first, then in its place.

    One that `is_durable` is on the disk when this returns, and not in the system's memory alone. What is there and is
    no file, such as a device or a pipe, stays: root would put a file in its place, and in that of /dev/stdout.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    is_stream = path.is_symlink() and os.readlink(path).startswith("/proc/")  # noqa: PTH115 - a text is what is asked for
    if is_stream or (path.exists() and not path.is_file() and not path.is_dir()):
        raise OSError(errno.EINVAL, "what is there is no file")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")  # numbers of other hosts recur
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            for chunk in [content.encode()] if isinstance(content, str) else content:
                write_all(descriptor, chunk)
            if is_durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(unfinished, path)  # noqa: PTH105 - tests let it fail
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    if is_durable:
        synchronize(path.parent)


def write_all(descriptor: int, content: bytes, place: int | None = None) -> None:
    """Write all of a text, at a place if that is given: a disk that is nearly full takes a part of it."""
    left = memoryview(content)
    while left:
        written = os.write(descriptor, left) if place is None else os.pwrite(descriptor, left, place)
        if not written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left, place = left[written:], place if place is None else place + written


def synchronize(directory: Path) -> None:
    """Have the names in a directory on the disk; where that can't be done they are there some seconds later."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class ReportError(Exception):
    """A file that is no report, or that this version can't read."""


def load_report(path: Path) -> Report:
    """Return the report at `path`, without its causes; raise ReportError with the reason when it is none."""
    return report_in(bytes_of(path), path)


def bytes_of(path: Path) -> bytes:
    """Return what is in a file, if it is a file and not too large for a report."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe that nobody writes to would block
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ReportError(f"{path}: can't be read: it is no file")
            content = file.read(LONGEST_REPORT + 1)
    except OSError as error:
        raise ReportError(f"{path}: can't be read: {error.strerror}") from None
    if len(content) > LONGEST_REPORT:
        raise ReportError(f"{path}: can't be read: it has more than {LONGEST_REPORT >> 20} MiB, the most of a report")
    return content


def report_in(text: bytes, path: Path) -> Report:
    """Return the report in the text of the file at `path`."""
    try:
        report, number = msgspec.json.decode(text, type=Report), FORMAT
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        report, number = examined(text, path)
    problem = problem_within(report)
    if problem:
        raise ReportError(f"{path}: {problem}")
    report = replace(report, causes=())  # they follow from the outcomes, and a file may say anything
    return with_facts(report) if number == 1 else report


def salvaged(path: Path) -> Report:
    """Return the report in a file that was cut off among its outcomes, up to the last that is whole."""
    text = bytes_of(path)
    for _ in range(2):  # the line that was cut off, and one before it if that was
        text = text[: max(text.rfind(b"\n"), 0)].rstrip(b",\n")
        with suppress(ReportError):
            return report_in(text + END, path)
    raise ReportError(f"{path}: there is no outcome in it")


def examined(text: bytes, path: Path) -> tuple[Report, int]:
    """Return a report that isn't written as today's are, and the number of its format; say what is wrong with it."""
    try:
        content = json.loads(text.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"{path}: can't be read as a report: {error}; is it cut off?") from None
    if not isinstance(content, dict) or "format" not in content:
        raise ReportError(f"{path}: not a report: no format number")
    number = content["format"]
    if type(number) is not int or number not in (1, FORMAT):
        raise ReportError(f"{path}: format {number!r}, expected {FORMAT}, or 1, which came before it")
    content["format"] = FORMAT
    is_compact = "compact" in content
    try:
        report = report_of(msgspec.convert(content, Compact)) if is_compact else msgspec.convert(content, Report)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        place = re.sub(r"^(`key` in )?[`$.]+|`$", "", place) or "the report"
        raise ReportError(f"{path}: {place}: {message}") from None
    except CompactError as error:
        raise ReportError(f"{path}: {error}") from None
    except (RecursionError, OverflowError) as error:
        raise ReportError(f"{path}: can't be read as a report: {error}") from None
    except UnicodeEncodeError as error:  # half of a pair, where something else than any text belongs
        raise ReportError(f"{path}: the report: {error.object!r} where it doesn't belong") from None
    return report, number


def refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number in JSON")


def problem_within(report: Report) -> str:
    """Say in words what of a report doesn't fit together; "" where all does."""
    cases = [case.id for case in report.cases]
    known = set(cases)
    pairs = report.pairs
    planned = set(pairs)
    done = [outcome.pair for outcome in report.outcomes]
    listings: dict[str, Sequence[str | Pair]] = {"cases": cases, "plan": pairs, "outcomes": done}
    for what, listed in listings.items():
        seen: set[str | Pair] = set()
        for index, entry in enumerate(listed):
            if entry in seen:
                return f"{what}[{index}]: {name_of(entry)} stands twice"
            seen.add(entry)
    for index, (case, _) in enumerate(pairs):
        if case not in known:
            return f"plan[{index}]: no case {case!r} among the cases"
    for index, pair in enumerate(done):
        if pair not in planned:
            return f"outcomes[{index}]: {name_of(pair)} is not in the plan"
    for index, outcome in enumerate(report.outcomes):
        if math.isinf(outcome.seconds):
            return f"outcomes[{index}].seconds: expected a number, got infinity"
        if outcome.run > len(report.header.partial_runs):
            return f"outcomes[{index}].run: no run {outcome.run} among the partial runs"
    for index, record in enumerate(report.cases):
        for rule in record.rules:
            if rule not in report.rules:
                return f"cases[{index}]: no rule {rule!r} among the rules"
    return ""


def name_of(entry: str | Pair) -> str:
    return entry if isinstance(entry, str) else f"{entry[0]}[{entry[1]}]"
