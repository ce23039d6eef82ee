"""Runs an item in fewer steps than pytest does, where nobody could tell the difference.

A case has no fixtures, prints nothing and logs nothing in pytest's process: its setup and teardown do
nothing, and there is nothing to capture, yet all that costs pytest more than the case itself. When
only pytest's own plugins listen, the three phases are reported without being gone through.
"""

from __future__ import annotations

import pytest
from _pytest.runner import check_interactive_exception

HOOKS = ("pytest_runtest_protocol", "pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown")
OURS = ("_pytest.", "xdist.", "conformance.")
OPTIONS = ("setupshow", "setuponly", "setupplan", "usepdb", "trace")


def nobody_listens(config: pytest.Config) -> bool:
    """Whether nobody but pytest itself wants to know how an item's phases are gone through."""
    if config.option.isolation == "none" or any(getattr(config.option, name, False) for name in OPTIONS):
        return False
    return all(
        implementation.function.__module__.startswith(OURS)
        for name in HOOKS
        for implementation in getattr(config.hook, name).get_hookimpls()
    )


def run_briefly(item: pytest.Item) -> None:
    """Run `item` and report its three phases."""
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    hook.pytest_runtest_logreport(report=passed(item, "setup"))
    call = pytest.CallInfo.from_call(item.runtest, "call", reraise=(pytest.exit.Exception, KeyboardInterrupt))
    report = hook.pytest_runtest_makereport(item=item, call=call)
    hook.pytest_runtest_logreport(report=report)
    if check_interactive_exception(call, report):
        hook.pytest_exception_interact(node=item, call=call, report=report)
    hook.pytest_runtest_logreport(report=passed(item, "teardown"))
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def passed(item: pytest.Item, when: str) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid, location=item.location, keywords={}, outcome="passed", longrepr=None,
        when=when,  # type: ignore[arg-type]
    )  # fmt: skip
