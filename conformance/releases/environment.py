"""Makes virtual environments with a release of torch and without this suite, with uv if it is installed, or pip."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conformance.releases.catalogue import Release, reason_in


class NotInstalled(Exception):
    """An environment can't be made; the message is the installer's."""


@contextmanager
def borrowed(release: Release, python: str, kept: Path | None) -> Iterator[Path]:
    """Give the interpreter of an environment with a release; raise NotInstalled.

    It stays below `kept`, for the next time, or else it goes at the end: some take gigabytes.
    """
    with tempfile.TemporaryDirectory(prefix="autograd-conformance-") as temporary:
        directory = (kept or Path(temporary)).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        yield create(directory, release, python)


def create(directory: Path, release: Release, python: str) -> Path:
    """Return the interpreter of a new environment with `release` below `directory`; raise NotInstalled.

    `python` is the version of the interpreter. An environment that exists is used as it is.
    """
    root = directory / f"torch-{release.torch}"
    interpreter = root / "bin" / "python"
    finished = root / "installed"  # written last: without it the environment is incomplete, and is made again
    if finished.is_file():
        return interpreter
    shutil.rmtree(root, ignore_errors=True)
    uv = shutil.which("uv")
    if uv is not None:
        install([uv, "venv", "--python", python, str(root)])
        install([uv, "pip", "install", "--python", str(interpreter), *release.requirements])
    else:
        install([find_python(python), "-m", "venv", str(root)])
        install([str(interpreter), "-m", "pip", "install", *release.requirements])
    finished.touch()
    return interpreter


def find_python(version: str) -> str:
    """Return an interpreter of this version."""
    if version == ".".join(map(str, sys.version_info[:2])):
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is None:
        raise NotInstalled(f"python{version} is not installed; uv would download it")
    return found


def install(command: Sequence[str]) -> None:
    """Run a command of an installer; raise NotInstalled when it fails."""
    try:
        done = subprocess.run(
            command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
        )
    except OSError as error:
        raise NotInstalled(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise NotInstalled(reason_in(done.stdout))
