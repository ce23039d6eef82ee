"""Attempts to leave the case language gain nothing: by the language alone, by the kernel alone, and by both."""

from __future__ import annotations

import ast
import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import escape_files
import pytest
from escapes import CALL, Escape, corpus
from loops import each
from running import RULES
from walls import WALLS, Made, attempt, calls_that_passed, chosen

from conformance.language.errors import CaseFileError
from conformance.language.reader import parse_cases
from conformance.render.script.script import script_for
from conformance.worker import landlock

EVERY = bool(os.environ.get("EVERY_CASE"))
Found = dict[str, dict[str, Made]]


def is_whole() -> bool:
    try:
        return sys.platform == "linux" and landlock.version() > 0
    except OSError:
        return False


needs_kernel = pytest.mark.skipif(not is_whole(), reason="this kernel has no Landlock")


@pytest.fixture(scope="module")
def escapes() -> list[Escape]:
    return chosen(24, seed=1, whole=EVERY)


@pytest.fixture(scope="module")
def found(escapes: list[Escape], tmp_path_factory: pytest.TempPathFactory) -> Found:
    ways = WALLS if is_whole() else ("language", "none")
    return attempt(escapes, ways, tmp_path_factory.mktemp("escapes"))


def gains(made: dict[str, Made]) -> dict[str, Made]:
    return {name: each for name, each in made.items() if each.gained or each.events}


def test_the_corpus_is_large_and_of_many_classes() -> None:
    kinds = [escape.kind for escape in corpus().values()]
    assert len(kinds) > 800
    assert len(set(kinds)) >= 14
    assert {escape.deed for escape in corpus().values()} == {"read", "write", "process", "socket", CALL}


def test_by_the_language_alone_none_gains_anything(found: Found) -> None:
    assert gains(found["language"]) == {}
    assert {made.status.partition(" ")[0] for made in found["language"].values()} <= {
        "refused",
        "error",
        "fail",
        "pass",
    }


@needs_kernel
def test_by_the_kernel_alone_none_gains_anything(found: Found) -> None:
    assert gains(found["kernel"]) == {}


@needs_kernel
def test_by_both_none_gains_anything_and_cases_end_as_by_the_language_alone(found: Found) -> None:
    assert gains(found["both"]) == {}
    alone, both = ({name: made.status for name, made in found[way].items()} for way in ("language", "both"))
    assert both == alone


def test_most_do_gain_where_nothing_stands_in_their_way(escapes: list[Escape], found: Found) -> None:
    """Otherwise that they gain nothing would say nothing; some are of releases or devices that are not here."""
    gained = [bool(found["none"][escape.id].gained) for escape in escapes]
    assert sum(gained) > 0.8 * len(gained)


@needs_kernel
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_strace_sees_no_call_of_a_confined_process_that_it_may_not_make(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    found = attempt(chosen(7, seed=2, whole=EVERY), ["kernel"], tmp_path, trace)
    assert gains(found["kernel"]) == {}
    assert calls_that_passed(trace, tmp_path, json.loads((tmp_path / "readable").read_text())) == []


TRACE = """\
7 socket(AF_INET, SOCK_STREAM, 0) = 3<socket:[1]>
7 seccomp(SECCOMP_SET_MODE_FILTER, 0, {len=9}) = 0
7 openat(AT_FDCWD</>, "/usr/lib/x", O_RDONLY) = 3</usr/lib/x>
7 openat(AT_FDCWD</>, "/etc/passwd", O_RDONLY) = -1 EACCES (Permission denied)
7 clone(child_stack=0x1, flags=CLONE_VM|CLONE_THREAD <unfinished ...>
7 <... clone resumed>, parent_tid=[8]) = 8
"""


PASSED = (
    "8 socket(AF_INET, SOCK_STREAM, 0) = 4<socket:[2]>",
    '7 openat(AT_FDCWD</>, "x", O_RDONLY) = 3</etc/passwd>',
    '7 openat(AT_FDCWD</>, "x", O_WRONLY|O_CREAT, 0644) = 3</usr/lib/x>',
    '7 execve("/bin/true", ["true"]) = 0',
    "7 clone(child_stack=NULL, flags=SIGCHLD) = 9",
    "7 kill(8, SIGKILL) = 0",
)


@each("line", PASSED)
def test_a_call_that_passes_is_seen(tmp_path: Path, line: str) -> None:
    trace = tmp_path / "trace"
    trace.write_text(TRACE)
    assert calls_that_passed(trace, tmp_path, ["/usr/lib"]) == []
    trace.write_text(f"{TRACE}{line}\n")
    assert calls_that_passed(trace, tmp_path, ["/usr/lib"]) == [line]


@each("field", escape_files.FIELDS)
def test_a_file_with_something_harmless_in_the_field_loads(field: str) -> None:
    """Otherwise that it is refused with something else there would say nothing of the field."""
    template, harmless, _ = escape_files.FIELDS[field]
    assert parse_cases(template.replace("@", json.dumps(harmless)), "t.yaml", RULES)


@each("field", escape_files.FIELDS)
def test_what_a_file_says_is_no_code_of_its_stand_alone_script(field: str) -> None:
    template, _, payloads = escape_files.FIELDS[field]
    for name in payloads:
        payload = json.dumps(escape_files.PAYLOADS[name].replace("eval(CODE)", "never_called()"))
        with suppress(CaseFileError):
            for case in parse_cases(template.replace("@", payload), "t.yaml", RULES):
                code = ast.parse(script_for(case).text)
                names = {node.id for node in ast.walk(code) if isinstance(node, ast.Name)}
                assert "never_called" not in names, name
