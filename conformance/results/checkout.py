"""Says which state of the suite runs: its commit, and the files of its package."""

import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from conformance import __version__
from conformance.model.case import Case
from conformance.model.report import CaseRecord, SuiteVersion, set_digest

PACKAGE = Path(__file__).parent.parent
SUFFIXES = (".py", ".json", ".txt")


def suite_commit() -> str | None:
    """Return the commit of the checkout that the suite runs from, with + where it has changes; None outside of one."""
    checkout = PACKAGE.parent
    if not (checkout / ".git").exists():
        return None
    try:
        answer = subprocess.run(
            ["git", "-C", str(checkout), "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"],
            capture_output=True, encoding="utf-8", errors="replace", timeout=10, check=True,  # whatever the locale
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def suite_version(cases: Iterable[Case | CaseRecord]) -> SuiteVersion:
    """Return what runs, for the header of a report on `cases`."""
    digest = set_digest((case.id, case.digest) for case in cases)
    return SuiteVersion(version=__version__, commit=suite_commit(), cases=digest)


@cache
def package_state(package: Path = PACKAGE) -> str:
    """Return what tells one state of the package from another: its Python, and the sizes and times of its files."""
    files = sorted(path for path in package.rglob("*") if path.suffix in SUFFIXES)
    stats = [(str(path.relative_to(package)), path.stat()) for path in files]
    return sys.version + repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
