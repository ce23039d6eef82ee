"""A torch that lies in its worker's answers costs the case that did so, with a clear text, and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sessions import Session

from conformance.execution.answers import NotAnAnswer, parse_message, why_no_answer

FINE: list[dict[str, Any]] = [
    {"status": "pass"},
    {"status": "pass", "seconds": 0.5, "unobserved": [{"line": 3, "path": "a", "reason": "r"}]},
    {"status": "fail", "failures": [{"line": 1, "path": "", "expected": "e", "observed": "\ud800"}], "step": 0},
    {"status": "error", "failures": [{"line": 1, "path": "", "expected": "", "observed": ""}], "traceback": [[1, "f"]]},
    {"status": "unsupported", "reason": "r", "step": 0, "line": 4, "must_restart": "why"},
    {"status": "internal-error", "reason": "r", "stderr": "s"},
    {"status": "pass", "has_grown": True},
]  # fmt: skip
WRONG: list[dict[str, Any]] = [
    {},
    {"status": "splendid"},
    {"status": "crash"},
    {"status": "known"},
    {"status": ["pass"]},
    {"status": "pass", "verdict": "splendid"},
    {"status": "pass", "case": "another"},
    {"status": "pass", "seconds": -1.0},
    {"status": "pass", "seconds": float("nan")},
    {"status": "pass", "seconds": float("inf")},
    {"status": "pass", "seconds": "1"},
    {"status": "unsupported", "line": 10**40},
    {"status": "unsupported", "reason": 7},
    {"status": "pass", "graph": {}},
    {"status": "pass", "failures": FINE[2]["failures"]},
    {"status": "fail", "failures": []},
    {"status": "error", "failures": [{"line": 10**40, "path": "", "expected": "e", "observed": "o"}]},
    {"status": "error", "failures": FINE[3]["failures"], "traceback": [[10**40, "f"]]},
    {"status": "pass", "must_restart": True},
    {"status": "pass", "has_grown": 2**31},
]


@pytest.mark.parametrize("message", FINE)
def test_what_a_worker_says_is_an_answer(message: dict[str, Any]) -> None:
    assert why_no_answer(parse_message(json.dumps(message).encode())) == ""


def test_halves_of_surrogate_pairs_are_told_by_their_code_points() -> None:
    said = {"status": "fail", "printed": "a\ud800b", "failures": [{"path": "\U0001f600", "\udfff": ["\udc00"]}]}
    told = parse_message(json.dumps(said).encode())
    assert told["printed"] == "a⟨U+D800⟩b"
    assert told["failures"] == [{"path": "\U0001f600", "⟨U+DFFF⟩": ["⟨U+DC00⟩"]}]


@pytest.mark.parametrize("message", WRONG)
def test_what_no_worker_says_is_none(message: dict[str, Any]) -> None:
    assert why_no_answer(parse_message(json.dumps(message).encode())).startswith("sent an answer that is none: ")


def test_what_was_found_by_looking_belongs_to_an_answer_about_that() -> None:
    assert why_no_answer({"status": "pass", "graph": {"tensors": []}}, looks=True) == ""
    assert why_no_answer({"status": "pass", "graph": 7}, looks=True)


@pytest.mark.parametrize("line", [b"", b"7", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000])
def test_a_line_that_is_no_object_is_no_message(line: bytes) -> None:
    with pytest.raises(NotAnAnswer, match="sent a line that is not a message"):
        parse_message(line)


# Planted as a back-end: torch.mul(a, 1000 + n) has the nth lie told in place of the next answer.
LIAR = """\
import json, os, threading, time, torch

WRITE, MULTIPLY = os.write, torch.mul
chosen = None


def changed(**facts):
    return lambda answer: [json.dumps({**answer, **facts})]


def without_status(answer):
    del answer["status"]
    return [json.dumps(answer)]


def endless(answer):
    while True:
        yield "x" * 2**20


def long(answer):
    yield "x" * 200 * 2**20


def late(answer):
    threading.Timer(0.3, lambda: WRITE(ANSWERS, b"a thread speaks after its case\\n")).start()
    yield json.dumps(answer)


LIES = [
    changed(status="splendid"), changed(status=7), changed(seconds=-1.0), changed(seconds=float("nan")),
    changed(verdict="fine"), without_status, changed(n=3), changed(n=10**9), changed(n=True), changed(n=None),
    lambda answer: ["[" * 100_000], lambda answer: ['{"n": %d, "status": ' % answer["n"] + "[" * 100_000],
    lambda answer: [json.dumps(answer) + "\\n" + json.dumps(answer)], endless, long, late,
]


def write(descriptor, content):
    global chosen, ANSWERS
    if chosen is None or b'"n": ' not in bytes(content):
        return WRITE(descriptor, content)
    lie, chosen, ANSWERS = LIES[chosen], None, descriptor
    for text in lie(json.loads(bytes(content))):
        left = memoryview(text.encode())
        while left:
            left = left[WRITE(descriptor, left):]
    WRITE(descriptor, b"\\n")
    return len(content)


def multiply(a, b):
    global chosen
    if isinstance(b, int) and b >= 1000:
        chosen = b - 1000
    return MULTIPLY(a, b)


os.write, torch.mul = write, multiply
"""
GOOD = "- a = tensor([2.0])\n- b = a + 1\n- expect: {b: [3.0]}\n"


def lie(number: int) -> str:
    return f"- a = tensor([0.0])\n- b = torch.mul(a, {1000 + number})\n- expect: {{b: [0.0]}}\n"


@pytest.mark.slow
def test_each_lie_is_told_of_its_case_and_the_run_goes_on(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.write("liar.py", LIAR)
    cases = {}
    for number in range(16):
        cases.update({f"lie_{number}": lie(number), f"good_{number}": GOOD})
    session.cases(before=GOOD, **cases, after=GOOD)
    result = session.run("--device-module", "liar", "--workers", "1", "--case-timeout", "5")
    assert result.status == 1, result.output
    expected = dict.fromkeys((name.replace("_", "-") for name in ["before", *cases, "after"]), "pass")
    expected.update({f"lie-{number}": "crash" for number in range(15)})
    assert result.statuses == expected
    reasons = {case: outcome["reason"] for case, outcome in result.outcomes.items() if outcome["status"] == "crash"}
    assert "splendid" in reasons["lie-0"]
    assert ">= 0" in reasons["lie-2"]
    assert "verdict" in reasons["lie-4"]
    assert "missing required field `status`" in reasons["lie-5"]
    assert "nobody asked for" in reasons["lie-7"]
    assert reasons["lie-12"] == "the worker sent a second answer"
    assert all("MiB without the end of a line: …b'xxx" in reasons[case] for case in ("lie-13", "lie-14"))
