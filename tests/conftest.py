"""Makes every run of the tests try the same examples, with no limit on the time of one."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("conformance", derandomize=True, deadline=None, database=None)
settings.load_profile("conformance")
