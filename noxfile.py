"""The matrix of releases: `nox` runs the suite on each release, in one environment after the other.

    nox                         all releases, then the page
    nox -t 2.6.0                one of them, or several
    nox -- --device cuda        with options for pytest
    nox -s publish              make the reports of the matrix, and of back-ends, the published ones
    nox -t xla                  a back-end from outside of PyTorch that runs on the CPU: xla, jax or vulkan

`conformance/releases/releases.json` lists the releases. A matrix that was interrupted continues where it stopped: a
release is run again only if the suite has changed since. A release that can't be installed gets a placeholder report.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import time
from pathlib import Path

import nox
from nox.command import CommandFailed

try:
    from conformance.releases.catalogue import Release, load_releases
    from conformance.render.text import count_words
    from conformance.results.store import ReportError, load_report, write_whole
except ModuleNotFoundError as error:  # such as a nox that pipx has installed
    sys.exit(f"error: {sys.executable} has no {error.name}\nhint: pip install -e '.[dev]' && python -m nox")

MATRIX = Path("reports/matrix")
OF_BACK_ENDS = Path("reports/back-ends")
PUBLISHED = Path("reports/published")
PROGRESS = MATRIX / "progress"  # for each release, the state of the suite and the path of its report
RELEASES = load_releases()
# What installs the device of a profile on a machine without an accelerator; vulkan needs Mesa's drivers besides.
BACK_ENDS = {
    "xla": ["torch==2.9.0", "torch_xla==2.9.0", "numpy", "setuptools"],
    "jax": ["torch==2.9.0", "torchax==0.0.13", "jax[cpu]==0.10.2", "numpy", "setuptools"],
    "vulkan": ["torch==2.13.0", "torchvulkan==0.2.1", "numpy"],
}

nox.needs_version = ">=2024.4"
nox.options.sessions = ["torch", "page"]
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session(python=RELEASES.python)
@nox.parametrize("release", [nox.param(each, id=each.torch, tags=[each.torch]) for each in RELEASES.releases])
def torch(session: nox.Session, release: Release) -> None:
    """Run the suite on a release of torch, in an environment of its own."""
    state = suite_state(release, session.posargs)
    note = PROGRESS / release.torch
    report = finished_report(note, state)
    started = time.monotonic()
    if report is None:
        report = run(session, release)
        write_whole(note, f"{state}\n{report}\n")
        shutil.rmtree(session.virtualenv.location)  # an environment takes up to several gigabytes
    log_result(session, release, report, time.monotonic() - started)


def run(session: nox.Session, release: Release) -> Path:
    """Install a release, run the suite on it, and return the report."""
    log = MATRIX / f"torch-{release.torch}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    before = time.time_ns()
    with log.open("w") as output:
        try:
            session.install(*release.requirements, silent=False, stdout=output)
        except CommandFailed:
            output.flush()
            command = (sys.executable, "-m", "conformance", "placeholder", release.torch, "--log", str(log))
            session.run(*command, "-o", str(MATRIX), external=True, stdout=output)
        else:
            python = shutil.which("python", path=session.bin)
            command = (sys.executable, "-m", "pytest", "-q", "--pairs", "all", "--graphs", "all", "--page", "never")
            command += ("--python", str(python), "--report", str(MATRIX))
            session.run(*command, *session.posargs, external=True, stdout=output, success_codes=[0, 1])
    new = [path for path in MATRIX.glob(f"torch-{release.torch}*.json") if path.stat().st_mtime_ns >= before]
    if not new:
        session.error(f"torch {release.torch}: no report; see {log}")
    return new[0]


@nox.session(python=RELEASES.python)
@nox.parametrize("profile", [nox.param(each, id=each, tags=[each]) for each in BACK_ENDS])
def back_end(session: nox.Session, profile: str) -> None:
    """Run the suite on a back-end, with the CPU as its hardware."""
    session.install(*BACK_ENDS[profile])
    command = (sys.executable, "-m", "pytest", "-q", "--profile", profile, "--require-device", profile)
    command += ("--python", str(shutil.which("python", path=session.bin)), "--report", str(OF_BACK_ENDS))
    hardware = {"PJRT_DEVICE": "CPU", "JAX_PLATFORMS": "cpu"}
    session.run(*command, *session.posargs, external=True, env=hardware)


def suite_state(release: Release, arguments: list[str]) -> str:
    """Return a digest of the suite's files and of how it is run."""
    digest = hashlib.sha256(repr((release, arguments, RELEASES.python)).encode())
    for place in ("conformance", "cases"):
        for path in sorted(Path(place).rglob("*")):
            if path.suffix in (".py", ".json", ".yaml"):
                digest.update(f"{path}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def finished_report(note: Path, state: str) -> Path | None:
    """Return the finished report that `note` names for this state of the suite, or None."""
    try:
        known, name = note.read_text().splitlines()
        path = Path(name)
        return path if known == state and load_report(path).footer is not None else None
    except (OSError, ValueError, ReportError):
        return None


def log_result(session: nox.Session, release: Release, path: Path, seconds: float) -> None:
    """Print the counts of a release; the session fails if the run did."""
    report = load_report(path)
    counts = "; ".join(f"{target} {count_words(found)}" for target, found in report.counts().items())
    place = [each.torch for each in RELEASES.releases].index(release.torch) + 1
    line = f"torch {release.torch} ({place} of {len(RELEASES.releases)}, {seconds:.0f} s): {counts}"
    if report.footer is not None and report.footer.exit_status == 1:
        session.error(f"{line}; see {MATRIX / f'torch-{release.torch}.log'}")
    session.log(line)


@nox.session(venv_backend="none")
def page(session: nox.Session) -> None:
    """Make the page of all reports of the matrix."""
    session.run(sys.executable, "-m", "conformance", "report", "-o", str(MATRIX / "index.html"), str(MATRIX))


@nox.session(venv_backend="none")
def publish(session: nox.Session) -> None:
    """Write the reports of the matrix and of back-ends, in compact form, and their page to the published reports."""
    places = [str(each) for each in (MATRIX, OF_BACK_ENDS) if each.is_dir()]
    session.run(sys.executable, "-m", "conformance", "compact", "-o", str(PUBLISHED), *places)
    page = str(PUBLISHED / "index.html")
    session.run(sys.executable, "-m", "conformance", "report", "--without-machines", "-o", page, *places)
    if len(list(PUBLISHED.glob("*.json"))) > 1:
        guides = str(PUBLISHED / "upgrading")
        session.run(sys.executable, "-m", "conformance", "upgrade", "-o", guides, str(PUBLISHED))
