"""How long a case is expected to take: what it took last, or what is known of its kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import case_of

from conformance.execution.durations import CASE_SECONDS, FILE, LONG_SECONDS, NOTABLE_SECONDS, Durations
from conformance.model.build import Target

CPU = Target(device="cpu", dtype="float32")
PLAIN = case_of("- a = ones(1)\n- expect: {a: 1}\n")
COMPILED = case_of("- 'f = compiled(lambda x: x)'\n- expect: {f(tensor(1.0)): 1.0}\n")


def test_without_a_run_before_the_kind_of_case_counts(tmp_path: Path) -> None:
    durations = Durations(tmp_path)
    assert durations.of(PLAIN, CPU) == CASE_SECONDS
    assert durations.of(COMPILED, CPU) == LONG_SECONDS
    assert durations.total([(PLAIN, CPU), (COMPILED, CPU)]) == CASE_SECONDS + LONG_SECONDS


def test_the_last_run_counts_for_its_target_from_the_next_one_on(tmp_path: Path) -> None:
    durations = Durations(tmp_path)
    durations.note(PLAIN, CPU, 2.5)
    assert durations.of(PLAIN, CPU) == CASE_SECONDS
    durations.write()
    again = Durations(tmp_path)
    assert again.of(PLAIN, CPU) == 2.5
    assert again.of(PLAIN, Target(device="cpu", dtype="float64")) == CASE_SECONDS
    again.note(PLAIN, CPU, NOTABLE_SECONDS / 2)  # it was long, and is no more
    again.write()
    assert Durations(tmp_path).of(PLAIN, CPU) == NOTABLE_SECONDS / 2


def test_what_is_short_is_not_kept_but_for_compiled_cases(tmp_path: Path) -> None:
    durations = Durations(tmp_path)
    durations.note(PLAIN, CPU, NOTABLE_SECONDS / 2)
    durations.write()
    assert not (tmp_path / FILE).exists()
    durations.note(COMPILED, CPU, NOTABLE_SECONDS / 2)
    durations.write()
    assert Durations(tmp_path).of(COMPILED, CPU) == NOTABLE_SECONDS / 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"c[cpu-float32]": "long"}'])
def test_a_file_that_can_not_be_read_counts_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    assert Durations(tmp_path).of(PLAIN, CPU) == CASE_SECONDS


def test_without_a_directory_nothing_is_kept() -> None:
    durations = Durations(None)
    durations.note(PLAIN, CPU, 9.0)
    durations.write()
    assert Durations(None).of(PLAIN, CPU) == CASE_SECONDS
