"""A forked interpreter ends as a real one does, and takes over what it was given."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from forks import python
from loops import each

CODES = {
    "pass": 0,
    "import sys; sys.exit(7)": 7,
    "raise ValueError": 1,
    "import os; os._exit(3)": 3,
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": -signal.SIGSEGV,
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": -signal.SIGKILL,
    "import sys\nsys.excepthook = lambda *error: sys.exit(5)\nraise ValueError": 5,
}


@each("code, status", list(CODES.items()))
def test_it_ends_as_the_real_one(code: str, status: int) -> None:
    ended = [
        subprocess.run([path, "-c", code], check=False, capture_output=True) for path in (python(), sys.executable)
    ]
    assert [each.returncode for each in ended] == [status, status]


def test_it_has_the_arguments_the_directory_the_variables_and_the_streams(tmp_path: Path) -> None:
    code = (
        "import os, sys; print(sys.argv, os.getcwd(), os.environ['MINE'], sys.path[:2], input()); sys.stderr.write('!')"
    )
    told = [
        subprocess.run(
            [path, "-c", code, "a", "b"], cwd=tmp_path, env={**os.environ, "MINE": "1", "PYTHONPATH": "/nowhere"},
            input="line", check=True, capture_output=True, text=True,
        )
        for path in (python(), sys.executable)
    ]  # fmt: skip
    assert told[0].stdout == told[1].stdout != ""
    assert told[0].stderr == told[1].stderr == "!"


def test_it_is_killed_with_the_program() -> None:
    if python() == sys.executable:
        pytest.skip("there are no forks here")
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with subprocess.Popen([python(), "-c", code], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert int(program.stdout.readline()) != program.pid
        program.kill()
        assert program.stdout.read() == ""  # ends when the fork does, which has the other end too


def test_what_only_a_real_start_does_is_done_by_a_real_one(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('here')\n")
    done = subprocess.run(
        [python(), "-c", "pass"], env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True, capture_output=True
    )
    assert done.stdout == b"here\n"
