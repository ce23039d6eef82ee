"""The statuses of outcomes: one table for everything that lists or colours them.

A new status is a name in `Status` and a row in `TABLE`; README's copy of the table and the published schemas follow.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Status = Literal[
    "pass", "fail", "error", "crash", "timeout", "flaky", "known", "fixed", "unsupported", "not-run", "internal-error"
]  # fmt: skip
STATUSES: tuple[Status, ...] = get_args(Status)  # in the order in which counts and legends name them

# What a status means for torch; comparisons of reports treat statuses of one verdict alike.
Verdict = Literal["held", "outdated", "broken", "unsteady", "expected", "lacking", "not-run", "defect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRow:
    """The properties of a status.

    `severity` is the sort key, worst first; `role` is a class of the page's style; `badge` is a colour of shields.io,
    or empty if the status doesn't affect it.
    """

    sign: str
    verdict: Verdict
    pytest: Literal["passed", "failed", "error", "xfailed", "skipped"]
    severity: int
    role: Literal["good", "red", "dark", "pink", "blue", "grey", "blank", "yellow"]
    badge: str = ""
    headline: str = ""  # the first line below a failing item
    explanation: str
    ends_worker: bool = False

    @property
    def is_red(self) -> bool:
        return self.pytest in ("failed", "error")

    @property
    def is_wrong(self) -> bool:
        """Whether something is wrong, expected or not."""
        return self.is_red or self.pytest == "xfailed"

    @property
    def is_run(self) -> bool:
        return self.pytest != "skipped"

    @property
    def tells_of_torch(self) -> bool:
        return self.verdict not in ("not-run", "defect")


TABLE: dict[Status, StatusRow] = {
    "pass": StatusRow(
        sign="✓", verdict="held", pytest="passed", severity=0, role="good", badge="brightgreen",
        explanation="all expectations held",
    ),
    "fail": StatusRow(
        sign="✗", verdict="broken", pytest="failed", severity=6, role="red", badge="red",
        headline="an expectation does not hold",
        explanation="an expectation did not hold, or an expected error did not come",
    ),
    "error": StatusRow(
        sign="!", verdict="broken", pytest="failed", severity=7, role="red", badge="red",
        headline="a step raised what nothing expects",
        explanation="a step raised what nothing expects",
    ),
    "crash": StatusRow(
        sign="†", verdict="broken", pytest="failed", severity=9, role="dark", badge="red",
        headline="the worker died",
        explanation="the worker died", ends_worker=True,
    ),
    "timeout": StatusRow(
        sign="∞", verdict="broken", pytest="failed", severity=8, role="dark", badge="red",
        headline="the case did not end in time",
        explanation="the case did not end within --case-timeout (four times that if code is generated), and was killed",
        ends_worker=True,
    ),
    "flaky": StatusRow(
        sign="±", verdict="unsteady", pytest="failed", severity=5, role="red", badge="orange",
        headline="it went wrong among other cases, and did not when run once more alone",
        explanation="went wrong among other cases, and ended otherwise when run once more, alone in a fresh worker",
    ),
    "known": StatusRow(
        sign="≈", verdict="expected", pytest="xfailed", severity=3, role="pink",
        headline="it fails as a known issue says",
        explanation="failed in the way that a known issue describes",
    ),
    "fixed": StatusRow(
        sign="↑", verdict="outdated", pytest="failed", severity=4, role="blue", badge="red",
        headline="a known issue does not fail any more",
        explanation="a known issue that does not fail any more; its entry is to be edited",
    ),
    "unsupported": StatusRow(
        sign="–",  # noqa: RUF001 - a dash for cases that can't run
        verdict="lacking", pytest="skipped", severity=1, role="grey",
        explanation="this torch or device lacks the feature, operation or dtype; the reason is given",
    ),
    "not-run": StatusRow(
        sign="○", verdict="not-run", pytest="skipped", severity=2, role="blank", badge="yellow",
        explanation="the device is missing, or the case was deselected or not reached; the reason is given",
    ),
    "internal-error": StatusRow(
        sign="?", verdict="defect", pytest="error", severity=10, role="yellow", badge="purple",
        headline="a defect of the suite, which says nothing of torch; please report it",
        explanation="the suite itself failed, which says nothing of torch; the run exits with status 3",
    ),
}  # fmt: skip

RED = frozenset(status for status, row in TABLE.items() if row.is_red)
BROKEN = frozenset(status for status, row in TABLE.items() if row.verdict == "broken")  # failures of torch
AT_A_STEP = frozenset(status for status in BROKEN if not TABLE[status].ends_worker)  # failures with a line
OF_WORKERS = frozenset(  # what a worker says itself; the parent says the others
    status
    for status, row in TABLE.items()
    if row.verdict in ("held", "broken", "lacking", "defect") and not row.ends_worker
)
WORST_FIRST = sorted(STATUSES, key=lambda status: -TABLE[status].severity)
