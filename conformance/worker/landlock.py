"""Landlock: a process gives up all access to files but reading some, and what else the kernel has rights for."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from typing import Collection, Iterable, Union

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # numbers of system calls, the same on all architectures
VERSION = 1  # the flag of CREATE_RULESET that asks for it
PATH_BENEATH = 1  # the kind of a rule
READ_FILE, READ_DIR = 1 << 2, 1 << 3
CHANGE = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 13 | 1 << 14  # write, remove, make, move, truncate
ALL_OF_FILES = {1: 13, 2: 14, 3: 15, 5: 16}  # how many rights on files there are, by the first version with so many
TCP = 3  # to bind and to connect
ABSTRACT_SOCKETS, SIGNALS = 1, 2  # scopes: those of processes outside
ALL_THREADS = 8


def call(number: int, *arguments: Union[int, ctypes.Array]) -> int:  # type: ignore[type-arg]  # Python 3.8 has none
    """Make a system call; raise OSError where it fails."""
    library = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(library.syscall(ctypes.c_long(number), *given))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def version() -> int:
    """Return the version that the kernel has; raise OSError where it has none."""
    return call(CREATE_RULESET, 0, 0, VERSION)


def restrict(found: int, readable: Iterable[str], own: str, opened: Collection[str], has_threads: bool) -> None:
    """Restrict this thread, and those that it starts, for good, to read `readable` places and change `own` directory.

    `opened` are those of files, processes and sockets that it may use as before. From version 8 on other threads that
    it has are restricted, too. The process must have given up new privileges.
    """
    files = (1 << max(number for first, number in ALL_OF_FILES.items() if first <= found)) - 1
    rights = 0 if "files" in opened else files
    network = TCP if found >= 4 and "sockets" not in opened else 0
    scopes = (ABSTRACT_SOCKETS if "sockets" not in opened else 0) | (SIGNALS if "processes" not in opened else 0)
    scopes = scopes if found >= 6 else 0
    if not rights | network | scopes:
        return
    size = 24 if found >= 6 else 16 if found >= 4 else 8
    attributes = ctypes.create_string_buffer(struct.pack("=QQQ", rights, network, scopes)[:size], size)
    rules = call(CREATE_RULESET, attributes, size, 0)
    try:
        for place in readable if rights else ():
            with contextlib.suppress(OSError):  # there is none, or it can't be read now
                allow(rules, place, READ_FILE, READ_FILE | READ_DIR)
        if rights and own:
            allow(rules, own, 0, (READ_FILE | READ_DIR | CHANGE) & rights)
        call(RESTRICT_SELF, rules, ALL_THREADS if found >= 8 and has_threads else 0)
    finally:
        os.close(rules)


def allow(rules: int, place: str, to_file: int, to_directory: int) -> None:
    """Add to a set of rules what may be done to a file, or to a directory and all in it."""
    descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = to_directory if stat.S_ISDIR(os.fstat(descriptor).st_mode) else to_file
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, descriptor))
        call(ADD_RULE, rules, PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
