"""Tests of the search for the release on which a case turns, and of the command that makes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cli import main as cli
from conformance.releases import environment
from conformance.releases.catalogue import Release
from conformance.releases.environment import NotInstalled
from conformance.releases.trial import Bisected, Unanswerable, Verdict, bisect

CASE = """\
topic: T
cases:
  - id: own
    title: A copy is detached
    why: To test.
    rules: [detach.shares-storage]
    steps:
      - a = tensor([2.0])
      - expect: {a.detach(): {shares_storage: a}}
"""
FAULT = """\
import sys
if "conformance.worker" in " ".join(sys.orig_argv):
    import torch
    torch.Tensor.detach = lambda self: self.clone().data
"""


@given(st.integers(1, 30), st.data())
def test_the_turn_is_found_wherever_it_is(count: int, data: st.DataObject) -> None:
    turn = data.draw(st.integers(1, count))
    skipped = data.draw(st.sets(st.integers(1, count - 1))) if count > 1 else set()
    tried: list[str] = []

    def attempt(release: str) -> Verdict:
        tried.append(release)
        if int(release) in skipped:
            return "skip"
        return "good" if int(release) < turn else "bad"

    releases = [str(number) for number in range(count + 1)]
    found = bisect(releases, ("good", "bad"), attempt)
    assert len(tried) == len(set(tried))
    told = [number for number in range(count + 1) if number not in skipped]
    last, first = max(n for n in told if n < turn), min(n for n in told if n >= turn)
    assert found == Bisected(
        last=str(last), first=str(first), skipped=tuple(str(number) for number in range(last + 1, first))
    )


def test_ends_that_do_not_differ_are_refused() -> None:
    with pytest.raises(Unanswerable, match="2 is good, but was given as bad"):
        bisect(["1", "2"], ("good", "bad"), lambda _: "good")
    with pytest.raises(Unanswerable, match="1 can't be tested, but was given as good"):
        bisect(["1", "2"], ("good", "bad"), lambda release: "skip" if release == "1" else "bad")


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Put environments in the place of real ones: those from 2.4 on have a fault, and 2.5.1 can't be had."""
    (tmp_path / "fault").mkdir()
    (tmp_path / "fault" / "sitecustomize.py").write_text(FAULT)
    made: list[str] = []

    def create(directory: Path, release: Release, python: str) -> Path:
        made.append(release.torch)
        if release.torch == "2.5.1":
            raise NotInstalled(f"no wheel for Python {python}")
        fault = tmp_path / "fault" if release.torch >= "2.4" else tmp_path
        interpreter = directory / f"python-{release.torch}"
        interpreter.write_text(f'#!/bin/sh\nPYTHONPATH={fault} exec {sys.executable} "$@"\n')
        interpreter.chmod(0o755)
        return interpreter

    monkeypatch.setattr(environment, "create", create)
    (tmp_path / "mine.yaml").write_text(CASE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return made


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.main(["bisect", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.slow
def test_the_first_bad_release_is_told_with_the_script(
    environments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, "mine.yaml::own", "--good", "2.1.2", "--bad", "2.7.1")
    assert status == 0
    assert list(environments)[:2] == ["2.1.2", "2.7.1"]
    assert "torch 2.1.2: pass (" in out
    assert "torch 2.7.1: fail (" in out
    assert "the first bad release is 2.4.1; 2.3.1 is the last before it" in out
    script = out[out.index("# One case of") :]
    assert "import torch" in script
    compile(script, "script", "exec")


@pytest.mark.slow
def test_named_the_other_way_round_the_first_good_release_is_told(
    environments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert environments == []
    turned = CASE.replace("shares_storage", "not_shares_storage")
    Path("mine.yaml").write_text(turned, encoding="utf-8")
    status, out, _ = run(capsys, "mine.yaml::own", "--good", "2.7.1", "--bad", "2.2.2", "--environments", "kept")
    assert status == 0
    assert "the first good release is 2.4.1; 2.3.1 is the last before it" in out
    assert Path("kept").is_dir()


@pytest.mark.slow
def test_a_release_that_can_not_be_had_is_passed_over(
    environments: Sequence[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[[Path, Release, str], Path] = vars(environment)["create"]

    def create(directory: Path, release: Release, python: str) -> Path:
        if release.torch == "2.4.1":
            raise NotInstalled("no wheel")
        return real(directory, release, python)

    monkeypatch.setattr(environment, "create", create)
    status, out, _ = run(capsys, "mine.yaml::own", "--good", "2.3.1", "--bad", "2.6.0")
    assert status == 0
    assert "torch 2.5.1: not-run (0 s): no wheel for Python 3.11" in out
    assert "the first bad release is 2.4.1, 2.5.1 or 2.6.0; 2.3.1 is the last before it" in out
    assert "2.5.1" in environments


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine.yaml::owm", "--good", "2.1.2", "--bad", "2.7.1"], "there is no case 'owm' in mine.yaml; did you mean"),
        (["none.yaml::own", "--good", "2.1.2", "--bad", "2.7.1"], "none.yaml: can't be read"),
        (["mine.yaml::own", "--good", "2.1.2", "--bad", "new"], "Invalid version: 'new'"),
        (["mine.yaml::own", "--good", "2.1.2", "--bad", "2.7.1", "--target", "cpu"], "expected a device and a dtype"),
        (["mine.yaml::own", "--good", "2.1.2", "--bad", "2.3.1"], "2.3.1 is good, but was given as bad"),
        (["mine.yaml::own", "--good", "2.1.2", "--bad", "2.1.2"], "2.1.2 and 2.1.2 are one release"),
    ],
)
@pytest.mark.usefixtures("environments")
def test_what_can_not_be_searched_is_said(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert message in err
    assert "hint: " in err
