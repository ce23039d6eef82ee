"""An interpreter that is a fork of one which has already imported torch, or pytest and the suite: it starts at once.

`python()` is the path of a program that is called as an interpreter, with `-m` or `-c`. It has a server fork itself;
the fork takes over the arguments, directory, environment and descriptors of the program, which ends as the fork ends,
also by a signal. When the program is killed, so are the fork and its process group. What an interpreter does before
its first line is left out: tests of that, and of how processes end, take the real one.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import inspect
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Sequence
from functools import cache
from pathlib import Path

SERVERS = {
    "torch": "torch torch._dynamo",
    "pytest": "pytest conformance.pytest_plugin.plugin conformance.render.page.page xml.etree.ElementTree",
}
PROGRAM = """\
#!{python} -IS
from __future__ import annotations

import json, os, signal, socket, sys

{ask}
call = [argument for argument in sys.argv[1:] if argument != "-u"]
places = [".", *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]
own = [name for place in places for name in ("sitecustomize.py", "torch.py") if os.path.exists(place + "/" + name)]
if own or call[0] not in ("-c", "-m"):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
status = ask(sys.argv[0], "torch" if "conformance.worker" in call[1] else "pytest", call, os.getcwd(), (0, 1, 2))
if status < 0:
    if status != -signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


def ask(python: str, kind: str, call: Sequence[str], directory: str, descriptors: Sequence[int]) -> int:
    """Have a server make a fork, and return its exit status, as `subprocess` has it."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(os.path.join(os.path.dirname(python), kind))  # noqa: PTH118, PTH120 - importing pathlib takes long
        socket.send_fds(server, [b"."], descriptors)
        server.sendall(json.dumps([python, call, directory, dict(os.environ)]).encode() + b"\n")
        return int(server.recv(8) or 1)


@cache
def python() -> str:
    """Start the servers, which end with this process, and return the path of the program."""
    if not hasattr(os, "pidfd_open"):  # this is not Linux
        return sys.executable
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place)
    for kind, modules in SERVERS.items():
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(place / kind))
            listening.listen(64)
            own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
            command = [sys.executable, __file__, str(listening.fileno()), *modules.split()]
            server = subprocess.Popen(command, stdin=subprocess.PIPE, env=own, pass_fds=[listening.fileno()])
        atexit.register(server.communicate)
    program = place / "python"
    program.write_text(PROGRAM.format(python=sys.executable, ask=inspect.getsource(ask)))
    program.chmod(0o755)
    return str(program)


def serve(listening: socket.socket) -> socket.socket:
    """Fork for each connection until standard input ends; return in the forks, with the connection."""
    poll = select.poll()
    poll.register(0, 0)
    poll.register(listening, select.POLLIN)
    forks: dict[int, tuple[int, socket.socket]] = {}  # by a descriptor of the process: its number and connection
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == 0:
                os._exit(0)
            if descriptor == listening.fileno():
                connection = listening.accept()[0]
                number = os.fork()
                if number == 0:
                    listening.close()
                    for other in forks:
                        os.close(other)
                    return connection
                os.setpgid(number, number)
                process = os.pidfd_open(number)
                forks[process] = (number, connection)
                poll.register(process, select.POLLIN)
                poll.register(connection, 0)  # tells when it is closed at the other end
            elif descriptor in forks:
                number, connection = forks.pop(descriptor)
                poll.unregister(descriptor)
                poll.unregister(connection)
                os.close(descriptor)
                with connection, contextlib.suppress(OSError):
                    connection.sendall(str(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])).encode())
            else:
                for number, connection in forks.values():
                    if connection.fileno() == descriptor:
                        os.killpg(number, signal.SIGKILL)


def become(connection: socket.socket) -> None:
    """Take over what the program was given, and run what it was called with."""
    with connection:
        descriptors = socket.recv_fds(connection, 1, 3)[1]
        sys.executable, call, directory, variables = json.loads(connection.makefile("rb").readline())
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None  # found before, by another TMPDIR
    option, what, *sys.argv[1:] = call
    sys.argv[0] = option
    sys.path[:0] = ["" if option == "-c" else directory, *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]
    atexit._clear()  # what the server has imported need not end
    if any(name.startswith("COVERAGE_PROCESS") for name in variables):
        importlib.import_module("coverage").process_startup()  # as when an interpreter starts
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    status = 0
    try:
        try:
            if option == "-m":
                runpy.run_module(what, run_name="__main__", alter_sys=True)
            else:
                exec(what, main.__dict__)
        except SystemExit:
            raise
        except BaseException:  # noqa: BLE001 - as an interpreter does; the hook may exit in turn
            status = 1
            sys.excepthook(*sys.exc_info())
    except SystemExit as end:
        status = int(end.code or 0)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # to take down all that was imported takes long


if __name__ == "__main__":
    del sys.path[0]
    gc.disable()
    for module in map(importlib.import_module, sys.argv[2:]):
        for name in (module.__name__, module.__name__.partition(".")[0]):
            sys.modules[name].__doc__ = "PYTEST_DONT_REWRITE"  # else pytest warns that it can't rewrite its assertions
    gc.collect()
    gc.freeze()  # else a collection in a fork writes to, and so copies, every page that it shares
    gc.enable()
    become(serve(socket.socket(fileno=int(sys.argv[1]))))
