"""What cases expect otherwise on one release than on another, for the page: by pairs of their alternatives."""

from collections.abc import Callable
from itertools import combinations

from conformance.model.case import Case
from conformance.model.report import CaseRecord
from conformance.render.expected import expectation, lacking
from conformance.render.page.matrix import Matrix, variants_of
from conformance.results.diff import Expectation

Expected = dict[str, dict[str, Expectation | None]]


def expected_of(matrix: Matrix, case_of: Callable[[CaseRecord], Case | None]) -> Expected:
    """Return by number of a case and two of its alternatives, as in `0/1`, what changes from the one to the other.

    Alternatives have the numbers that `variants_of` gives them. A case that the suite has in another revision, or not
    at all, is left out, and so is an alternative of builds that can't run the case.
    """
    expected: Expected = {}
    for name, (places, held) in variants_of(matrix).items():
        case = case_of(matrix.cases[int(name)]) if len(places) > 1 else None
        if case is None:
            continue
        releases: dict[int, str] = {}
        for place, report in zip(held, matrix.reports, strict=True):
            if place not in releases and not lacking(case, report.build.torch):
                releases[place] = report.build.torch
        expected[name] = {
            f"{one}/{other}": expectation(case, releases[one], releases[other])
            for one, other in combinations(sorted(releases), 2)
        }
    return expected
