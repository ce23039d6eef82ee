"""How much memory a run needs for each case, in pytest's process."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from pathlib import Path

import pytest
from sessions import Session

from conformance.pytest_plugin.case_set import CaseSet
from conformance.pytest_plugin.packed import opened

STEPS = """\
- a = tensor([{number}.0, 2.0], requires_grad=True)
- b = a.exp() * {number}
- expect: {{b: {{is_leaf: false, requires_grad: true, version: 0, grad_fn: MulBackward0, shape: [2]}}}}
- c = b.detach()
- expect: {{c: {{is_leaf: true, requires_grad: false, shares_storage: b, value: b}}}}
- b.sum().backward()
- expect:
    a: {{is_leaf: true, version: 0, grad: a.exp() * {number}, value: [{number}.0, 2.0]}}
    c: {{version: 0, shape: [2], dtype: target, device: target}}
"""
PEAK = """\
def pytest_unconfigure():
    with open("/proc/self/status") as status:
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    with open("peak", "w") as file:
        file.write(peak)
"""
PER_FILE = 150
MOST_KEPT = 1_500  # bytes for each case; parsed, one of these takes some 15,000
MOST = 14_000  # bytes; pytest's items and reports take some 4,000 of them, and the page as many for a while


def write_cases(session: Session, count: int) -> list[Path]:
    numbers = range(count)
    return [
        session.cases(
            f"cases-{at}.yaml",
            **{f"c{number}": STEPS.format(number=number % 3) for number in numbers[at : at + PER_FILE]},
        )
        for at in range(0, count, PER_FILE)
    ]


def test_what_is_kept_of_a_case_is_a_fraction_of_what_is_read(tmp_path: Path) -> None:
    first, *others = write_cases(Session(tmp_path), 2 * PER_FILE)
    for cache in (None, tmp_path / "cache"):
        for _ in range(2):
            case_set = CaseSet(tmp_path, cache)
            case_set.cases(first)  # and what is read for the first of all
            gc.collect()
            tracemalloc.start()
            try:
                case_set.cases(others[0])
                case_set.encoded_steps(others[0].name, "2.13.0")
                opened.cache_clear()  # of which there are a few, however many cases there are
                gc.collect()
                kept, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert kept / PER_FILE < MOST_KEPT


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the most memory of a process is read from /proc")
def test_a_run_needs_little_memory_for_each_case(tmp_path: Path) -> None:
    peaks = []
    counts = (2 * PER_FILE, 12 * PER_FILE)
    for count in counts:
        session = Session(tmp_path / str(count), real=True)
        session.write("conftest.py", PEAK)
        write_cases(session, count)
        for _ in range(2):  # the second run reads what the first one has kept, and has its graphs
            done = session.run("--workers", "2")
            assert list(done.statuses.values()) == ["pass"] * count, done.output[-2000:]
        peaks.append(int((session.directory / "peak").read_text()) * 1024)
    assert (peaks[1] - peaks[0]) / (counts[1] - counts[0]) < MOST
