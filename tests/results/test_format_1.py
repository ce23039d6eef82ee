"""Tests that reports of format 1 are read, and their failures are the same as before."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from samples import CPU, failed, outcome, report

from conformance.model.outcome import Issue, Outcome
from conformance.model.report import Report
from conformance.model.shard import Shard
from conformance.results.fingerprint import Fingerprint, fingerprint
from conformance.results.merge import merge_shards
from conformance.results.store import load_report, text_of


def read_as_format_1(path: Path, made: Report) -> Report:
    path.write_text(json.dumps({**json.loads(text_of(made)), "format": 1}), encoding="utf-8")
    return load_report(path)


def test_fingerprints_are_those_that_the_sentences_gave(tmp_path: Path) -> None:
    known = Issue(status="crash", reason="A bug.")
    expected: dict[str, tuple[Outcome, Fingerprint]] = {
        "a": (failed(), Fingerprint("fail", 2, ("a.grad",))),
        "b": (failed("raises", "nothing", "TypeError: x"), Fingerprint("fail", 2, ("raises: TypeError",))),
        "c": (
            failed("", "no error", "torch.Bad: x", status="error"),
            Fingerprint("error", 2, ("the step: torch.Bad",)),
        ),
        "d": (failed("x", "a value", "NameError: b"), Fingerprint("fail", 2, ("x: NameError",))),
        "e": (failed("x", "'x: 1'", "'y: 1'"), Fingerprint("fail", 2, ("x",))),
        "f": (outcome("crash", reason="the worker was ended by SIGSEGV"), Fingerprint("crash", None, ("SIGSEGV",))),
        "g": (outcome("crash", reason="the worker exited with status 3"), Fingerprint("crash", None, ("status 3",))),
        "h": (outcome("crash", reason="was ended by signal 64"), Fingerprint("crash", None, ("signal 64",))),
        "i": (outcome("known", reason="by SIGABRT", issue=known), Fingerprint("crash", None, ("SIGABRT",))),
        "j": (outcome("timeout", reason="no answer within 60 s, SIGKILL"), Fingerprint("timeout")),
    }
    made = report({(name, CPU): each for name, (each, _) in expected.items()})
    read = read_as_format_1(tmp_path / "x.json", made)
    assert read.format == 2
    assert {each.case: fingerprint(each) for each in read.outcomes} == {
        name: print_ for name, (_, print_) in expected.items()
    }


def test_shards_add_up(tmp_path: Path) -> None:
    parts = []
    for number in (1, 2):
        shard = Shard(number, 2)
        outcomes = {
            (name, CPU): outcome("pass")
            if shard.includes(name)
            else outcome("not-run", reason=f"not in shard {number} of 2")
            for name in "abcdefgh"
        }
        parts.append((f"{number}.json", read_as_format_1(tmp_path / "x.json", report(outcomes))))
    assert [part.header.run.shard for _, part in parts] == [Shard(1, 2), Shard(2, 2)]
    merged = merge_shards(parts).report
    assert {each.status for each in merged.outcomes} == {"pass"}
    assert merged.footer is not None


def test_a_report_of_today_is_not_read_by_its_sentences(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    made = report({("a", CPU): outcome("crash", reason="the worker answered: SIGSEGV")})
    path.write_text(text_of(made), encoding="utf-8")
    assert fingerprint(load_report(path).outcomes[0]).kind == ()
    assert msgspec.structs.asdict(load_report(path).outcomes[0])["signal"] == ""
