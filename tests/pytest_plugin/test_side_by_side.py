"""Work that several processes share: each piece is done once, by whichever is free, and none is missing afterwards."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from sessions import PAIRS, Session

from conformance.pytest_plugin import case_set, side_by_side
from conformance.pytest_plugin.case_set import CaseSet
from conformance.pytest_plugin.side_by_side import work_side_by_side

CASE = "- a = tensor([2.0], requires_grad=True)\n- expect: {a: {is_leaf: true}}\n"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes aren't copied here")


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 2)
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # pytest-xdist has threads of its own


def note(directory: Path, name: str) -> None:
    """Leave a file that tells who did this piece, which takes a while; raise FileExistsError the second time."""
    with (directory / name).open("x") as file:
        file.write(str(os.getpid()))
    time.sleep(0.02)


def waited(process: int, options: int, wait: Callable[[int, int], tuple[int, int]] = os.waitpid) -> int:
    """Wait for a process, and return its id."""
    return wait(process, options)[0]


def refuse() -> None:
    raise ValueError("no use")


def test_each_piece_is_done_once_by_one_of_two_processes(tmp_path: Path) -> None:
    pieces: list[Callable[[], object]] = [partial(note, tmp_path, str(number)) for number in range(40)]
    work_side_by_side([refuse, *pieces, refuse])
    assert {path.name for path in tmp_path.iterdir()} == set(map(str, range(40)))
    assert len({path.read_text() for path in tmp_path.iterdir()}) == 2


def test_with_one_processor_or_threads_nothing_is_done_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    work_side_by_side([partial(note, tmp_path, name) for name in "ab"])
    monkeypatch.undo()
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 1)
    work_side_by_side([partial(note, tmp_path, name) for name in "ab"])
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_what_nobody_has_begun_and_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.getpid()
    copies: list[int] = []
    monkeypatch.setattr(os, "waitpid", lambda process, options: copies.append(waited(process, options)))

    def interrupted(name: str) -> None:
        note(tmp_path, name)
        if os.getpid() == here:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work_side_by_side([partial(interrupted, str(number)) for number in range(200)])
    assert 1 <= len(list(tmp_path.iterdir())) < 200
    assert len(copies) == 1


def test_files_that_are_read_ahead_are_read_once_and_as_always(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Session(tmp_path)
    paths = [files.cases(name=f"{name}.yaml", **{f"{name}-case": CASE}) for name in ("first", "second", "third")]
    (tmp_path / "bad.yaml").write_text(paths[0].read_text().replace("is_leaf", "is_laef"), encoding="utf-8")
    alone = CaseSet(tmp_path, tmp_path / "one")
    expected = [alone.cases(path) for path in paths]
    monkeypatch.setattr(case_set, "WORTH_A_PROCESS", 0)
    ahead = CaseSet(tmp_path, tmp_path / "other")
    ahead.load_ahead([*paths, tmp_path / "bad.yaml", tmp_path / "missing.yaml"])
    monkeypatch.setattr(case_set, "loaded_from", lambda *_, **__: pytest.fail("read again"))
    assert [ahead.cases(path) for path in paths] == expected


def test_scripts_that_are_written_ahead_are_those_of_each_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Session(tmp_path)
    paths = [files.write("pairs.yaml", PAIRS), files.cases(name="other.yaml", other=CASE)]

    def read(cache: str) -> tuple[CaseSet, list[tuple[str, str]]]:
        read = CaseSet(tmp_path, tmp_path / cache)
        return read, [(case.id, case.digest) for path in paths for case in (*read.cases(path), *read.covered(path))]

    alone, revisions = read("one")
    expected = [alone.script(revision) for revision in revisions]
    monkeypatch.setattr(case_set, "WORTH_A_PROCESS", 0)
    ahead = CaseSet(tmp_path, tmp_path / "other")
    assert len([ahead.cases(path) for path in paths]) == 2
    ahead.write_ahead()
    monkeypatch.setattr("conformance.render.script.script.script_for", lambda _: pytest.fail("written again"))
    monkeypatch.setattr(case_set, "loaded_from", lambda *_, **__: pytest.fail("read again"))
    assert [ahead.script(revision) for revision in revisions] == expected
    assert None not in expected
    monkeypatch.setattr(case_set, "work_side_by_side", lambda _: pytest.fail("nothing is left to do"))
    ahead.write_ahead()
