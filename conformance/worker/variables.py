"""Forgets the variables of the environment that nothing needs which a confined process runs.

The kernel shows those that a process was started with as /proc/self/environ, and anything in the process can read them
there, whatever Python has forgotten.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys

NEEDED = re.compile(
    r"PATH|HOME|PWD|LOGNAME|USER|TMPDIR|TZ|LANG|LANGUAGE|LC_\w+|VIRTUAL_ENV|PYTHON\w*|CONFORMANCE_\w+"
    r"|(?:LD|DYLD|OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|DNNL|ONEDNN|ATEN|C10|TORCH|PYTORCH|TORCHINDUCTOR|TORCHDYNAMO)_\w+"
    r"|(?:ASAN|LSAN|TSAN|UBSAN)_OPTIONS|MALLOC_\w+|GLIBC_TUNABLES|COVERAGE_\w+|\w+_VISIBLE_DEVICES"
)
ENV_START, ENV_END = 47, 48  # in /proc/self/stat behind the name of the program, from 0


def forget_variables() -> None:
    """Remove all variables that aren't needed from this process, and from what the kernel shows of it."""
    for name in [each for each in os.environ if not NEEDED.fullmatch(each)]:
        del os.environ[name]
    at_start = vars(sys.modules["posix"]).get("environ", {})  # Python keeps them a second time
    for key in [each for each in at_start if not NEEDED.fullmatch(os.fsdecode(each))]:
        del at_start[key]
    for name, value in os.environ.items():  # a copy elsewhere, as the first is overwritten
        os.environ[name] = value
    with contextlib.suppress(OSError):  # there is no /proc to read them from either
        with open("/proc/self/stat", "rb") as facts, open("/proc/self/environ", "rb") as shown:
            fields = facts.read().rpartition(b") ")[2].split()
            entries = shown.read().split(b"\0")
        begin, end = (int(fields[place]) for place in (ENV_START, ENV_END))
        kept = b"".join(each + b"\0" for each in entries if NEEDED.fullmatch(os.fsdecode(each.partition(b"=")[0])))
        if begin and len(kept) <= end - begin:
            ctypes.memset(begin, 0, end - begin)
            ctypes.memmove(begin, kept, len(kept))
