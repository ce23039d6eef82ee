"""Attempts to leave a confined process, by any code that may come to run in it; each returns what it has gained.

Called with a directory, the number of another process and a mode, this prints the result of each attempt as JSON: what
it has gained, or the name of the error that it has met.
"""

# mypy: disable-error-code="func-returns-value"
# ruff: noqa: PTH101, PTH102, PTH104, PTH106, PTH108, PTH111, PTH208, PTH211, T201
# System calls are made as directly as Python can; `or "changed"` makes a gain of nothing.

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from conformance.worker import confinement, landlock, seccomp

LIBRARY = ctypes.CDLL(None, use_errno=True)
MACHINE = os.uname().machine
TABLES = (seccomp.ADMINISTRATION, seccomp.INTERFACES, seccomp.PROCESSES, seccomp.SOCKETS, seccomp.FILES)
NUMBERS = seccomp.numbers(int(MACHINE == "aarch64"), *TABLES, seccomp.CHECKED)
SECRET = "what nobody may read"


def call(name: str, *arguments: int | bytes) -> int:
    """Make a system call by its number, as no library would."""
    result = int(LIBRARY.syscall(*(ctypes.c_long(each) if isinstance(each, int) else each
                                   for each in (NUMBERS[name], *arguments))))  # fmt: skip
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result


def read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")[:100] or "nothing"


def shown(variable: str) -> str:
    """Return what the kernel shows of a variable."""
    text = Path("/proc/self/environ").read_text(encoding="utf-8")
    return text[text.index(variable) :][:100]


def mapped(path: str) -> str:
    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        return memory[:100].decode()


def opened(path: str, flags: int) -> int:
    return os.open(path, flags, 0o644)


def linked(place: str) -> str:
    """Read a file through a link that leads out of what may be read."""
    return read(f"/proc/self/cwd/{place}/secret")


def forked(fork: Callable[[], int] = os.fork) -> int:
    child = fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


def cloned(flags: int) -> int:
    return forked(lambda: call("clone", flags, 0, 0, 0, 0))


def started(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout or "nothing"


def connected(place: str) -> str:
    """Reach a server on a socket in the file system."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(f"{place}/server")
    return "connected"


def signalled(pid: int) -> int:
    """Have the kernel signal another process when a pipe can be read."""
    reading, writing = os.pipe()
    LIBRARY.fcntl(reading, 10, int(signal.SIGUSR1))  # F_SETSIG
    if LIBRARY.fcntl(reading, 8, pid) != 0:  # F_SETOWN
        raise OSError(ctypes.get_errno(), "fcntl")
    os.set_blocking(reading, False)
    LIBRARY.fcntl(reading, 4, os.O_NONBLOCK | 0o20000)  # F_SETFL, O_ASYNC
    return os.write(writing, b".")


def attempts(place: str, pid: int) -> dict[str, dict[str, Callable[[], object]]]:
    """Return the attempts by class, on a directory and another process."""
    secret, made, raw = f"{place}/secret", f"{place}/made", os.fsencode(f"{place}/made")
    old = os.fsencode(secret)
    of_family = {"AF_NETLINK": socket.SOCK_RAW, "AF_PACKET": socket.SOCK_RAW, "AF_CAN": socket.SOCK_RAW,
                 "AF_ALG": socket.SOCK_SEQPACKET}  # fmt: skip
    families = ("AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_CAN", "AF_ALG", "AF_TIPC")
    library_getenv = LIBRARY.getenv
    library_getenv.restype = ctypes.c_char_p
    return {
        "variables": {
            "Python's": lambda: os.environ["UNRELATED"],
            "Python's first": lambda: os.fsdecode(vars(sys.modules["posix"])["environ"][b"UNRELATED"]),
            "a library's": lambda: library_getenv(b"UNRELATED").decode(),
            "the kernel's": lambda: shown("UNRELATED"),
        },
        "read": {
            "a file": lambda: read(secret),
            "a file by its number": lambda: os.read(call("openat", -100, old, 0, 0), 99).decode(),
            "a file in memory": lambda: mapped(secret),
            "a file through /proc": lambda: read(f"/proc/self/root/{secret}"),
            "a file through a link": lambda: linked(place),
            "a file by the way of a library's": lambda: read(f"/usr/lib/../..{secret}"),
            "a directory": lambda: ",".join(os.listdir(place)),
            "the users": lambda: read("/etc/passwd"),
            "the machine's name": lambda: read("/etc/hostname"),
            "the home directory": lambda: ",".join(os.listdir(os.path.expanduser("~"))),
            "the root directory": lambda: ",".join(os.listdir("/")),
            "the temporary directory": lambda: ",".join(os.listdir("/tmp")),
            "variables of another process": lambda: read(f"/proc/{pid}/environ"),
            "arguments of another process": lambda: read(f"/proc/{pid}/cmdline"),
            "memory of another process": lambda: os.open(f"/proc/{pid}/mem", os.O_RDONLY),
            "descriptors of another process": lambda: ",".join(os.listdir(f"/proc/{pid}/fd")),
            "a disk": lambda: os.open("/dev/vda", os.O_RDONLY) if Path("/dev/vda").exists() else read(secret),
        },
        "change": {
            "the mode of a file": lambda: os.chmod(secret, 0o777) or "changed",
            "the owner of a file": lambda: os.chown(secret, 12345, 12345) or "changed",
            "the time of a file": lambda: os.utime(secret, (1, 1)) or "changed",
            "attributes of a file": lambda: os.setxattr(secret, "user.attempt", b"x") or "changed",
        },
        "write": {
            "a new file": lambda: Path(made).write_text("x"),
            "a file by its number": lambda: call("openat", -100, raw, os.O_CREAT | os.O_WRONLY, 0o644),
            "a file that is there": lambda: Path(secret).write_text("x"),
            "more of a file": lambda: opened(secret, os.O_WRONLY | os.O_APPEND),
            "a file to read and write": lambda: opened(secret, os.O_RDWR),
            "a file that is emptied": lambda: opened(secret, os.O_RDONLY | os.O_TRUNC),
            "a file without a name": lambda: opened(place, os.O_TMPFILE | os.O_RDWR),
            "a file in the temporary directory": lambda: opened("/tmp/attempt", os.O_CREAT | os.O_WRONLY),
            "a file in shared memory": lambda: opened("/dev/shm/attempt", os.O_CREAT | os.O_RDWR),
            "a directory": lambda: os.mkdir(made) or "made",
            "a link": lambda: os.symlink("/", made) or "made",
            "a hard link": lambda: os.link(secret, made) or "made",
            "a pipe": lambda: os.mkfifo(made) or "made",
            "another name": lambda: os.rename(secret, made) or "renamed",
            "no file": lambda: os.unlink(secret) or "removed",
            "no directory": lambda: os.rmdir(f"{place}/empty") or "removed",
            "a shorter file": lambda: os.truncate(secret, 1) or "truncated",
            "its own module": lambda: opened(str(confinement.__file__), os.O_WRONLY | os.O_APPEND),
            "its own process": lambda: opened("/proc/self/comm", os.O_WRONLY),
            "what openat2() opens": lambda: call("openat2", -100, raw, (os.O_CREAT | os.O_WRONLY).to_bytes(8, "little")
                                                 + (0o644).to_bytes(8, "little") + bytes(8), 24),
        },
        "execute": {
            "a program": lambda: started("/bin/echo", "started"),
            "Python": lambda: started(sys.executable, "-c", "print('started')"),
            "a shell": lambda: started("/bin/sh", "-c", "echo started"),
            "a program by posix_spawn()": lambda: os.posix_spawn("/bin/true", ["true"], {}),
            "a program instead of this": lambda: call("execve", b"/nothing", 0, 0),
            "a program of a descriptor": lambda: call("execveat", os.open("/dev/null", os.O_RDONLY), b"", 0, 0, 0x1000),
        },
        "process": {
            "a fork": forked,
            "a fork by its number": lambda: forked(lambda: call("fork") if "fork" in NUMBERS else os.fork()),
            "a clone": lambda: cloned(int(signal.SIGCHLD)),
            "a clone with a name space": lambda: cloned(0x10000000 | int(signal.SIGCHLD)),
            "a clone by clone3()": lambda: forked(lambda: call("clone3", bytes(64), 64)),
            "another process group": lambda: call("setpgid", 0, pid),
            "to be signalled for no parent": lambda: call("prctl", 1, 0, 0, 0, 0),
            "a descriptor of another process": lambda: call("pidfd_open", pid, 0),
        },
        "socket": {
            **{family: partial(socket.socket, getattr(socket, family), of_family.get(family, socket.SOCK_DGRAM))
               for family in families if hasattr(socket, family)},
            "TCP": lambda: socket.create_connection(("127.0.0.1", 9), 1),
            "a pair": socket.socketpair,
            "a server in the file system": lambda: connected(place),
            "a socket by its number": lambda: call("socket", 2, 1, 0),
            "a queue of messages": lambda: call("msgget", 0, 0o1600),
            "shared memory": lambda: call("shmget", 0, 4096, 0o1600),
            "a queue with a name": lambda: call("mq_open", b"attempt", os.O_CREAT | os.O_RDWR, 0o600, 0),
        },
        "other": {
            "a signal": lambda: os.kill(pid, signal.SIGUSR1) or "signalled",
            "a signal to a thread": lambda: call("tgkill", pid, pid, int(signal.SIGUSR1)) or "signalled",
            "a signal to a task": lambda: call("tkill", pid, int(signal.SIGUSR1)) or "signalled",
            "a signal with a value": lambda: call("rt_sigqueueinfo", pid, int(signal.SIGUSR1), bytes(128)),
            "a signal to all": lambda: os.kill(-1, 0) or "signalled",
            "a signal to its group": lambda: os.kill(-os.getpgid(pid), 0) or "signalled",
            "a signal by a descriptor": lambda: signalled(pid),
            "a trace": lambda: call("ptrace", 16, pid, 0, 0) or "attached",
            "memory": lambda: call("process_vm_readv", pid, 0, 0, 0, 0, 0) or "read",
            "memory to write": lambda: call("process_vm_writev", pid, 0, 0, 0, 0, 0) or "written",
            "limits": lambda: call("prlimit64", pid, resource.RLIMIT_NOFILE, bytes(16), 0) or "changed",
            "its priority": lambda: os.setpriority(os.PRIO_PROCESS, pid, 5) or "changed",
        },
    }  # fmt: skip


def outcome(attempt: Callable[[], object]) -> str:
    try:
        return f"gained {attempt()}"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    except Exception as error:  # noqa: BLE001 - no attempt ends the others
        return type(error).__name__


def still_works(place: str) -> dict[str, str]:
    """Do what a worker needs."""
    told: list[str] = []
    thread = threading.Thread(target=told.append, args=["ran"])
    thread.start()
    thread.join()
    os.ftruncate(int(os.environ["CONFORMANCE_NOTES"]), 0)
    os.pwrite(int(os.environ["CONFORMANCE_NOTES"]), b"noted", 0)
    with tempfile.TemporaryDirectory() as own:
        Path(own, "first").write_text("first")
        Path(own, "first").rename(f"{own}/second")
        Path(own, "second").write_text("second")
        told.append(Path(own, "second").read_text())
    told.append(str(Path(own).exists()))
    import wave  # nothing has imported it

    signal.signal(signal.SIGUSR1, lambda *_: told.append("signalled"))
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.raise_signal(signal.SIGUSR1)
    return {
        "thread and signals": " ".join(told), "module": wave.__name__, "null": str(len(Path("/dev/null").read_bytes())),
        "processors": str(os.cpu_count()), "itself": read("/proc/self/status").split()[0], "place": str(bool(place)),
    }  # fmt: skip


def main() -> None:
    place, pid, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    os.chdir("/")
    chosen = attempts(place, pid)
    if mode == "seccomp":
        landlock.version = lambda: (_ for _ in ()).throw(OSError(errno.ENOSYS, "not there"))
    if mode == "landlock":
        seccomp.restrict = lambda _: "not there"  # type: ignore[assignment]
    told = {} if mode == "none" else confinement.confine((), confinement.readable_places())
    if mode == "none":  # these would stay
        for name in ("a queue of messages", "shared memory", "a queue with a name"):
            del chosen["socket"][name]
    found = {kind: {name: outcome(each) for name, each in group.items()} for kind, group in chosen.items()}
    # No argument is one that the kernel would accept: without a filter none of these does anything.
    refused = seccomp.numbers(int(MACHINE == "aarch64"), *TABLES)
    with_filter = mode not in ("none", "landlock")
    kernel = {name: outcome(partial(call, name, *[-1] * 6)) for name in refused} if with_filter else {}
    print(json.dumps({"told": told, "found": found, "kernel": kernel, "works": still_works(place)}))


if __name__ == "__main__":
    main()
