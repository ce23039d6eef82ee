"""Settings of the tests: reproducible hypothesis examples, and the option that rewrites the recorded error messages."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("conformance", derandomize=True, deadline=None, database=None)
settings.load_profile("conformance")


@pytest.fixture(autouse=True)
def measured_by_others(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tests that run much of the suite start processes that don't measure it: it would double their time."""
    if request.node.get_closest_marker("unmeasured"):
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-snippets", action="store_true", help="write what is told of the mistakes in tests/language/bad_cases"
    )
