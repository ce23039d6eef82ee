"""The filter of system calls, interpreted as the kernel does, for both architectures."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from loops import each

from conformance.worker import seccomp
from conformance.worker.seccomp import ALLOW, DENY, MISSING

PID = 4242
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
TABLES = {
    "administration": seccomp.ADMINISTRATION,
    "interfaces": seccomp.INTERFACES,
    "processes": seccomp.PROCESSES,
    "sockets": seccomp.SOCKETS,
    "files": seccomp.FILES,
}
DOORS = ("files", "processes", "sockets")
MACHINES = ("x86_64", "aarch64")


def verdict(machine: str, number: int, *arguments: int, opened: tuple[str, ...] = (), audit: int | None = None) -> int:
    """Return what the filter says to a call."""
    program = seccomp.filter_for(machine, PID, opened)
    words = {0: number, 4: seccomp.ARCHITECTURES[machine][1] if audit is None else audit}
    words |= {16 + 8 * place: argument & 0xFFFFFFFF for place, argument in enumerate([*arguments, *[0] * 6][:6])}
    place = accumulator = 0
    while True:
        code, if_true, if_false, operand = program[place]
        place += 1
        if code == seccomp.RETURN:
            return operand
        if code == seccomp.LOAD:
            accumulator = words[operand]
            continue
        holds = {
            seccomp.EQUAL: accumulator == operand,
            seccomp.AT_LEAST: accumulator >= operand,
            seccomp.ANY_BIT: bool(accumulator & operand),
        }[code]
        place += if_true if holds else if_false


def number_of(machine: str, name: str) -> int:
    return seccomp.numbers(MACHINES.index(machine), *TABLES.values(), seccomp.CHECKED)[name]


@each("machine", MACHINES)
def test_the_kernel_takes_a_program_of_this_length(machine: str) -> None:
    assert len(seccomp.filter_for(machine, PID, ())) < 4096


@each("machine", MACHINES)
def test_each_table_is_denied_and_all_else_is_not(machine: str) -> None:
    column = MACHINES.index(machine)
    denied = set(seccomp.numbers(column, *TABLES.values()).values())
    checked = set(seccomp.numbers(column, seccomp.CHECKED).values())
    assert not denied & checked
    for number in set(range(seccomp.UNKNOWN)) - checked:
        assert verdict(machine, number) == (DENY if number in denied else ALLOW), number


@each("machine", MACHINES)
def test_what_is_left_open_is_not_denied_but_administration_always_is(machine: str) -> None:
    column = MACHINES.index(machine)
    for door in DOORS:
        for name, table in TABLES.items():
            expected = ALLOW if name == door else DENY
            for number in seccomp.numbers(column, table).values():
                assert verdict(machine, number, opened=(door,)) == expected, (door, name, number)
    for name, table in TABLES.items():
        for number in seccomp.numbers(column, table).values():
            assert verdict(machine, number, opened=DOORS) == (DENY if name == "administration" else ALLOW)


@each("machine", MACHINES)
def test_unknown_calls_and_those_of_other_architectures_are_missing(machine: str) -> None:
    for number in (seccomp.UNKNOWN, 1000, 0x40000000, 0x40000000 + 59, 0xFFFFFFFF):
        assert verdict(machine, number) == MISSING
    assert verdict(machine, 1, audit=0x40000003) == MISSING  # i386
    assert verdict(machine, 1, audit=0x40000028) == MISSING  # arm


@each("machine", MACHINES)
def test_what_is_opened_to_read_is_not_truncated(machine: str) -> None:
    openat = number_of(machine, "openat")
    assert verdict(machine, openat, -100, 0, os.O_RDONLY | os.O_CLOEXEC) == ALLOW
    assert verdict(machine, openat, -100, 0, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) == ALLOW  # Landlock decides
    assert verdict(machine, openat, -100, 0, os.O_RDONLY | os.O_TRUNC) == DENY
    assert verdict(machine, openat, -100, 0, os.O_RDONLY | os.O_TRUNC, opened=("files",)) == ALLOW
    assert verdict(machine, number_of(machine, "openat2")) == MISSING


@each("machine", MACHINES)
def test_threads_are_started_and_no_processes(machine: str) -> None:
    clone = number_of(machine, "clone")
    assert verdict(machine, clone, 0x3D0F00) == ALLOW  # as glibc starts a thread
    for flags in (signal.SIGCHLD, 0, 0x4111, 0x10000 | 0x20000, 0x10000 | 0x10000000):
        assert verdict(machine, clone, flags) == DENY
    assert verdict(machine, number_of(machine, "clone3")) == MISSING


@each("machine", MACHINES)
def test_signals_and_limits_are_for_the_process_itself(machine: str) -> None:
    for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        number = number_of(machine, name)
        assert verdict(machine, number, PID, signal.SIGTERM) == ALLOW
        for other in (PID + 1, 1, 0, -1, -PID):
            assert verdict(machine, number, other, signal.SIGKILL) == DENY, (name, other)
    limits = number_of(machine, "prlimit64")
    assert [verdict(machine, limits, pid) for pid in (0, PID, 1)] == [ALLOW, ALLOW, DENY]
    fcntl, ioctl, prctl = (number_of(machine, name) for name in ("fcntl", "ioctl", "prctl"))
    assert [verdict(machine, fcntl, 3, command) for command in (1, 3, 8, 10, 15)] == [ALLOW] * 2 + [DENY] * 3
    assert [verdict(machine, ioctl, 0, command) for command in (0x5401, 0x5412, 0x8901)] == [ALLOW] + [DENY] * 2
    assert [verdict(machine, prctl, option) for option in (15, 38, 1, 0x59616D61)] == [ALLOW] * 2 + [DENY] * 2


@each("machine", MACHINES)
def test_the_numbers_are_those_of_the_kernel(machine: str) -> None:
    header = HEADERS[machine]
    if not header.is_file():
        pytest.skip(f"{header} is not installed")
    lines = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(encoding="utf-8"))
    known = {name: int(number) for name, number in lines}
    own = seccomp.numbers(MACHINES.index(machine), *TABLES.values(), seccomp.CHECKED)
    newest = max(known.values())
    assert {name: number for name, number in own.items() if known.get(name, 10**6) != number and number <= newest} == {}
