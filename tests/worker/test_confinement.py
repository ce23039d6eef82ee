"""What confines a worker: whatever code comes to run in it, it has no effect outside.

The checks of the case language are not used here: the attempts are code in a process that has confined itself.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from conformance.worker import confinement, landlock, seccomp

ATTEMPTS = Path(__file__).parent / "attempts.py"
SECRET = "what nobody may read"


def has_landlock() -> bool:
    try:
        return landlock.version() > 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine not in seccomp.ARCHITECTURES, reason="there is no filter for it"
)
with_landlock = pytest.mark.skipif(not has_landlock(), reason="this kernel has no Landlock")


@pytest.fixture(scope="module")
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """Another process of this user, which says if it is signalled."""
    program = "import signal, sys; signal.signal(10, lambda *_: print('signalled', flush=True)); print(1, flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{program}\nwhile sys.stdin.readline(): pass"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def state_of(place: Path) -> list[tuple[Any, ...]]:
    """Return all that an attempt could change of what is in a directory."""
    found = []
    for path in sorted(place.rglob("*")):
        facts = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        attributes = os.listxattr(path)
        found.append((path.name, facts.st_mode, facts.st_uid, facts.st_mtime, facts.st_nlink, content, attributes))
    return found


@cache
def tried(mode: str, directory: Path, pid: int) -> dict[str, Any]:
    """Make all attempts in a process that is confined in this way, and return what it prints, and what has changed."""
    place = directory / mode
    place.mkdir()
    (place / "secret").write_text(SECRET)
    (place / "empty").mkdir()
    with socket.socket(socket.AF_UNIX) as server, (directory / f"{mode}.notes").open("w+") as notes:
        server.bind(str(place / "server"))
        server.listen()
        before = state_of(place)
        done = subprocess.run(
            [sys.executable, str(ATTEMPTS), str(place), str(pid), mode], cwd=directory, check=True, timeout=100,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(directory), "UNRELATED": SECRET,
                 "CONFORMANCE_NOTES": str(notes.fileno())},
            capture_output=True, pass_fds=[notes.fileno()],
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout)
        found["changed"] = state_of(place) != before
        found["noted"] = notes.read()
    for left in (Path("/tmp/attempt"), Path("/dev/shm/attempt")):  # what the attempts have as names
        found["changed"] |= left.exists()
        left.unlink(missing_ok=True)
    shutil.rmtree(place)
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("confined")


def gains(found: dict[str, Any], *kinds: str) -> dict[str, str]:
    """Return the attempts of these classes that have gained something."""
    return {
        f"{kind}: {name}": result
        for kind in kinds or found["found"]
        for name, result in found["found"][kind].items()
        if result.startswith("gained")
    }


@with_landlock
def test_no_attempt_gains_anything_in_a_confined_process(place: Path, victim: subprocess.Popen[bytes]) -> None:
    found = tried("both", place, victim.pid)
    assert found["told"] == {"holds": [f"Landlock {landlock.version()}", "seccomp"], "opened": [], "lacks": []}
    assert sum(map(len, found["found"].values())) > 70
    assert gains(found) == {}
    assert SECRET not in json.dumps(found)
    assert not found["changed"]
    assert victim.poll() is None


def test_without_landlock_only_files_are_open(place: Path, victim: subprocess.Popen[bytes]) -> None:
    found = tried("seccomp", place, victim.pid)
    assert (found["told"]["holds"], found["told"]["lacks"]) == (
        ["seccomp"],
        ["no Landlock (not there): files are open"],
    )
    assert gains(found, *(found["found"].keys() - {"read", "write"})) == {}
    assert victim.poll() is None


@with_landlock
def test_without_a_filter_no_file_is_read_or_written_or_executed(place: Path, victim: subprocess.Popen[bytes]) -> None:
    found = tried("landlock", place, victim.pid)
    assert found["told"]["lacks"] == ["not there"]
    assert gains(found, "read", "write", "execute") == {}
    assert victim.poll() is None


def test_the_attempts_do_gain_where_nothing_confines_them(place: Path, victim: subprocess.Popen[bytes]) -> None:
    """Otherwise that they gain nothing would say nothing; some need rights or devices that are not everywhere."""
    found = tried("none", place, victim.pid)
    gained = gains(found)
    for kind, least in (
        ("variables", 4),
        ("read", 10),
        ("write", 9),
        ("change", 2),
        ("execute", 4),
        ("process", 4),
        ("socket", 6),
    ):
        assert len([name for name in gained if name.startswith(f"{kind}: ")]) >= least, (kind, found["found"][kind])
    assert found["changed"]
    assert "other: a signal" in gained


@with_landlock
def test_no_call_of_the_tables_reaches_the_kernel(place: Path, victim: subprocess.Popen[bytes]) -> None:
    found = tried("both", place, victim.pid)
    assert len(found["kernel"]) > 100
    assert {name: result for name, result in found["kernel"].items() if result != "EPERM"} == {}


@pytest.mark.parametrize("mode", [pytest.param("both", marks=with_landlock), "seccomp"])
def test_what_a_worker_needs_still_works(mode: str, place: Path, victim: subprocess.Popen[bytes]) -> None:
    found = tried(mode, place, victim.pid)
    assert found["works"] == {
        "thread and signals": "ran second False signalled signalled", "module": "wave", "null": "0",
        "processors": str(os.cpu_count()), "itself": "Name:", "place": "True",
    }  # fmt: skip
    assert found["noted"] == "noted"


def run(program: str) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60,
            env={**os.environ, "TMPDIR": scratch},
        )  # fmt: skip
    return done.stdout.strip()


def test_limits_hold_for_good() -> None:
    program = (
        "import resource; from conformance.worker import confinement, main; main.limit_files()\n"
        "main.limit_memory(2**30); confinement.confine((), confinement.readable_places())\n"
        "import mmap\n"
        "def tried(f):\n"
        "    try: return f() and 'gained'\n"
        "    except (OSError, MemoryError, ValueError) as error: return type(error).__name__\n"
        "print(tried(lambda: bytearray(2**30)), tried(lambda: mmap.mmap(-1, 2**31)), *[\n"
        "    tried(lambda: resource.setrlimit(kind, (2**40, 2**40)) or 1)\n"
        "    for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS, resource.RLIMIT_CORE, resource.RLIMIT_FSIZE)],\n"
        "    open('/proc/self/oom_score_adj').read().strip(), len(bytearray(2**26)))\n"
    )
    assert run(program) == "MemoryError OSError ValueError ValueError ValueError ValueError 1000 67108864"


@pytest.mark.parametrize("opened", [("files",), ("processes",), ("sockets",), ("files", "processes", "sockets")])
def test_what_is_left_open_works_and_the_rest_does_not(opened: tuple[str, ...]) -> None:
    program = (
        f"import os, socket, tempfile; from conformance.worker import confinement\n"
        f"told = confinement.confine({opened!r}, confinement.readable_places())\n"
        "def tried(f):\n"
        "    try: return f() is not None\n"
        "    except OSError: return False\n"
        "def forked():\n"
        "    child = os.fork()\n"
        "    if child == 0: os._exit(0)\n"
        "    return os.waitpid(child, 0)\n"
        "print([kind for kind, f in dict(files=lambda: os.listdir('/'), processes=forked,\n"
        "    sockets=lambda: socket.socket().bind(('127.0.0.1', 0)) or 1).items() if tried(f)], told['opened'])\n"
    )
    assert run(program) == f"{list(opened)} {list(opened)}"


def test_what_the_kernel_refuses_is_no_fault_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    refused, other = RuntimeError("fork() failed"), RuntimeError("the fork failed")
    assert confinement.why_refused(refused) is None
    monkeypatch.setattr(confinement, "held", ["seccomp"])
    assert confinement.why_refused(refused) == "the sandbox (seccomp) forbids it: fork() failed"
    assert confinement.why_refused(PermissionError(1, "Operation not permitted")) is not None
    for text in (
        "unable to open file </x>: Permission denied (13)",
        "InductorError: [Errno 1] Operation not permitted",
        "filesystem error: cannot create directories: Permission denied [/x]",
    ):
        assert confinement.why_refused(RuntimeError(text)) is not None
    assert confinement.why_refused(other) is None
    assert confinement.why_refused(RuntimeError("gradient of mul: Permission denied")) is None


def test_devices_other_than_the_cpu_have_what_is_stated_or_else_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "confine", lambda opened, _: {"opened": sorted(opened), "lacks": []})
    assert confinement.confine_to(None, False, [])["opened"] == []
    assert confinement.confine_to(["sockets"], True, []) == {"opened": ["sockets"], "lacks": []}
    assumed = confinement.confine_to(None, True, [])
    assert assumed == {"opened": ["files", "processes", "sockets"], "lacks": [], "is_assumed": True}


def test_the_home_directory_is_not_read_because_python_looks_for_modules_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "modules").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path.parent), str(tmp_path / "modules"), "/"])
    places = confinement.readable_places()
    assert str((tmp_path / "modules").resolve()) in places
    assert not {"/", str(tmp_path.resolve()), str(tmp_path.parent.resolve())} & set(places)


def test_packages_that_are_links_are_read_where_they_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("store/first", "store/second", "site/second"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "store/second/__init__.py").touch()
    (tmp_path / "site/first").symlink_to(tmp_path / "store/first")
    (tmp_path / "site/second/__init__.py").symlink_to(tmp_path / "store/second/__init__.py")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    places = confinement.readable_places()
    assert {str((tmp_path / name).resolve()) for name in ("store/first", "store/second", "site")} <= set(places)


def test_no_limit_is_raised() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    confinement.limit(resource.RLIMIT_NOFILE + 1000, 1)  # there is none: nothing happens
    assert resource.getrlimit(resource.RLIMIT_STACK) == (soft, hard)
