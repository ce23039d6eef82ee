"""What cases went through in the last nights, for the page: those of each column that did not pass in all of them."""

from collections.abc import Iterable
from typing import Any

from conformance.render.page.matrix import Matrix
from conformance.results.nights import Nights


def over_time(matrix: Matrix, kept: Iterable[Nights]) -> dict[str, Any]:
    """Return by column its nights, and by dtype and case the statuses that did not stay pass, with how many nights."""
    numbers = {case.id: str(number) for number, case in enumerate(matrix.cases)}
    found: dict[str, Any] = {}
    for nights in kept:
        stretches = nights.stretches()
        for place, column in enumerate(matrix.columns):
            if not nights.is_of(matrix.reports[column.report]):
                continue
            dtypes = {target: dtype for dtype, target in column.targets.items()}
            told: dict[str, dict[str, Any]] = {dtype: {} for dtype in column.targets}
            for (case, target), own in stretches.items():
                if case in numbers and target in dtypes and [status for status, _ in own] != ["pass"]:
                    told[dtypes[target]][numbers[case]] = own
            found[str(place)] = {"nights": [(night.started, night.torch) for night in nights.nights], "cases": told}
    return found
