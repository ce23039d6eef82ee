"""Has the kernel confine a process, before it runs the steps of cases, to what these need.

Whatever such a process comes to execute, it can then read the files of Python, torch and the system's libraries, start
threads, and use the descriptors that it has and a temporary directory. It can't read or change other files, start
programs or processes, make sockets, signal or trace other processes, or administer the machine. What the driver or the
compiler of a device needs of files, processes and sockets is left open where it is asked for.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib  # noqa: F401 - it reads the configuration of a library when it is imported
import os
import re
import resource
import struct
import sys
import sysconfig
import tempfile
from typing import Any, Collection, Dict, Iterator, List, Optional, Sequence

from conformance.worker import landlock, seccomp
from conformance.worker.variables import forget_variables

KINDS = ("files", "processes", "sockets")  # what can be left open
OF_SYSTEM = (
    *("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64", "/lib", "/lib32", "/lib64"),
    *("/nix/store", "/gnu/store", "/usr/share/zoneinfo", "/etc/localtime", "/etc/ld.so.cache"),
    *("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems", "/proc/sys/vm"),
    *("/sys/devices/system", "/sys/kernel/mm", "/sys/fs/cgroup"),
)
OWN = "/proc/self"
PR_SET_NO_NEW_PRIVS = 38
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPABILITIES_3 = 0x20080522
READ_ANY_FILE = 1 << 2  # CAP_DAC_READ_SEARCH: root may read the files of other users, as far as Landlock goes


# As functions of C and C++ tell of it, with its number; words alone may be an operation's own.
REFUSED = re.compile(
    r"\bfork\(\) failed|(\[Errno (1|13)\]|\bfilesystem error:).*( not permitted|Permission denied)|"
    r"( not permitted|Permission denied) \((1|13)\)"
)
held: List[str] = []  # by what this process is confined


def why_refused(error: BaseException) -> Optional[str]:
    """Return what a confined process was refused, if that is what an error says: torch is not at fault."""
    is_refused = isinstance(error, PermissionError) or REFUSED.search(str(error))
    return f"the sandbox ({', '.join(held)}) forbids it: {error}" if held and is_refused else None


def confine(opened: Collection[str], readable: Collection[str]) -> Dict[str, Any]:
    """Confine this process for good, and return by what it `holds`, what is left `opened`, and what the kernel `lacks`.

    `readable` are the places that it may read besides its own in /proc.
    """
    holds: List[str] = []
    lacks: List[str] = []
    if sys.platform != "linux":
        return {"holds": holds, "opened": sorted(opened), "lacks": [f"none is known for {sys.platform}"]}
    library = ctypes.CDLL(None, use_errno=True)
    own = "" if "files" in opened else own_directory()
    os.environ.setdefault("LOGNAME", f"user-{os.getuid()}")  # else it is looked up in a file by torch's compiler
    if "processes" not in opened:  # else torch's compiler starts some when it is imported
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    if not opened:
        drop_capabilities()
        forget_variables()
    if library.prctl(PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))) != 0:
        return {"holds": holds, "opened": sorted(opened), "lacks": ["this kernel lets no process give up privileges"]}
    if set(opened) != set(KINDS):
        try:
            found = landlock.version()
            others = len(os.listdir("/proc/self/task")) - 1
            os.open(OWN, os.O_PATH | os.O_CLOEXEC)  # kept open: the kernel may otherwise forget it, and the rule for it
            landlock.restrict(found, [*readable, OWN], own, opened, others > 0)
            if others and found < 8:
                lacks.append(f"Landlock {found} does not hold for {others} threads that were there before")
            holds.append(f"Landlock {found}")
        except OSError as error:
            lacks.append(f"no Landlock ({error.strerror}): files are open")
    why_not = seccomp.restrict(opened)
    if why_not is None:
        holds.append("seccomp")
    else:
        lacks.append(why_not)
    held[:] = holds
    return {"holds": holds, "opened": sorted(opened), "lacks": lacks}


def confine_to(stated: Optional[Sequence[str]], uses_others: bool, readable: Collection[str]) -> Dict[str, Any]:
    """Confine this process to what its devices need: the CPU nothing, others what is `stated`, or else everything."""
    if stated is not None or not uses_others:
        return confine(stated or (), readable)
    found = confine(KINDS, readable)
    found["is_assumed"] = True
    return found


def own_directory() -> str:
    """Make a temporary directory, below that of this process, and have Python and torch's compiler use it."""
    with contextlib.suppress(OSError):  # none can be made: then there is none
        tempfile.tempdir = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="worker-")
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.tempdir)
        return tempfile.tempdir
    return ""


def drop_capabilities() -> None:
    """Give up what root may do and others may not, but for reading files."""
    number = CAPSET.get(os.uname().machine)
    if number is None or not os.path.exists(OWN):
        return
    with open(f"{OWN}/status", encoding="ascii", errors="replace") as lines:
        permitted = next((int(line.split()[1], 16) for line in lines if line.startswith("CapPrm:")), 0)
    kept = permitted & READ_ANY_FILE
    header = ctypes.create_string_buffer(struct.pack("=Ii", CAPABILITIES_3, 0))
    sets = ctypes.create_string_buffer(struct.pack("=6I", kept, kept, 0, 0, 0, 0))
    with contextlib.suppress(OSError):
        landlock.call(number, header, sets)


def limit(kind: int, most: int) -> None:
    """Limit a resource of this process for good."""
    with contextlib.suppress(OSError, ValueError):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def readable_places() -> List[str]:
    """Return the files and directories that torch and Python may still read: code, libraries, facts of the machine.

    Those that are the home directory, or that it lies in, are left out.
    """
    found = {os.path.realpath(place) for place in (*OF_SYSTEM, *places_of_python()) if place}
    home = os.path.realpath(os.path.expanduser("~"))
    narrow = {place for place in found if not f"{home}/".startswith(place.rstrip("/") + "/")}
    return sorted(place for place in narrow if not has_parent(place, narrow))


def has_parent(place: str, places: Collection[str]) -> bool:
    while place != os.path.dirname(place):
        place = os.path.dirname(place)
        if place in places:
            return True
    return False


def places_of_python() -> Iterator[str]:
    """Yield where Python finds modules, and the libraries that these load; some are links to elsewhere."""
    paths = sysconfig.get_paths()
    searched = [*sys.path, *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))]
    yield from searched
    for place in dict.fromkeys(searched):
        yield from linked_from(place)
    for name, module in list(sys.modules.items()):
        if "." not in name:
            yield from getattr(module, "__path__", ())  # also of a package that an import hook has found
    for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix):
        yield from (f"{prefix}/lib", f"{prefix}/lib64")
    yield getattr(sys, "pycache_prefix", None) or ""
    yield from os.environ.get("LD_LIBRARY_PATH", "").split(":")
    yield from {os.path.dirname(library) for library in mapped_files() if ".so" in os.path.basename(library)}


def linked_from(place: str) -> Iterator[str]:
    """Yield where the modules and packages in a directory are that are links, or have a link as their first file."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            first = os.path.join(entry.path, "__init__.py")
            if entry.is_symlink():
                yield entry.path
            elif entry.is_dir() and os.path.islink(first):
                yield os.path.dirname(os.path.realpath(first))


def mapped_files() -> Iterator[str]:
    with contextlib.suppress(OSError), open(f"{OWN}/maps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith("/"):
                yield fields[5].rstrip("\n")
