"""Says which state of the suite runs, where it runs from a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path


def suite_commit() -> str | None:
    """Return the commit of the checkout that the suite runs from, with + where it has changes; None outside of one."""
    checkout = Path(__file__).parent.parent
    if not (checkout / ".git").exists():
        return None
    try:
        answer = subprocess.run(
            ["git", "-C", str(checkout), "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"],
            capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None
