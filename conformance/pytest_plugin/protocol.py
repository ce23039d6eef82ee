"""A shortened runtest protocol, used when no plugin but pytest's own hooks into the phases of an item.

A case has no fixtures, and prints and logs nothing in pytest's process. Its setup, teardown and capturing have no
effect but take longer than the case itself, so these phases are reported without being run, and only where somebody
besides the terminal looks at them.
"""

import pytest
from _pytest.runner import check_interactive_exception

from conformance.pytest_plugin.distributed import is_worker

HOOKS = ("pytest_runtest_protocol", "pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown")
# hypothesis's plugin does nothing to items that aren't functions.
OURS = ("_pytest.", "xdist.", "conformance.", "_hypothesis_pytestplugin")
OF_CALLS = (*(f"_pytest.{name}" for name in ("cacheprovider", "logging", "main", "terminal")), "conformance.")
OPTIONS = ("setupshow", "setuponly", "setupplan", "usepdb", "trace")


def is_shortened(config: pytest.Config) -> bool:
    """Whether no option and no plugin of others needs the phases of an item to be run."""
    if config.option.isolation == "none" or any(getattr(config.option, name, False) for name in OPTIONS):
        return False
    return all(
        implementation.function.__module__.startswith(OURS)
        for name in HOOKS
        for implementation in getattr(config.hook, name).get_hookimpls()
    )


def needs_phases(config: pytest.Config) -> bool:
    """Whether anything looks at the reports of setup and teardown, which the controller of pytest-xdist may."""
    return is_worker(config) or not all(
        implementation.function.__module__.startswith(OF_CALLS)
        for implementation in config.hook.pytest_runtest_logreport.get_hookimpls()
    )


def run_shortened(item: pytest.Item, *, has_phases: bool) -> None:
    """Run the call phase of `item` and report it, and with `has_phases` the other two."""
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    if has_phases:
        hook.pytest_runtest_logreport(report=phase_report(item, "setup"))
    call = pytest.CallInfo.from_call(item.runtest, "call", reraise=(pytest.exit.Exception, KeyboardInterrupt))
    report = hook.pytest_runtest_makereport(item=item, call=call)
    hook.pytest_runtest_logreport(report=report)
    if check_interactive_exception(call, report):
        hook.pytest_exception_interact(node=item, call=call, report=report)
    if has_phases:
        hook.pytest_runtest_logreport(report=phase_report(item, "teardown"))
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def phase_report(item: pytest.Item, when: str) -> pytest.TestReport:
    """Return the report of a phase that passed."""
    return pytest.TestReport(
        nodeid=item.nodeid, location=item.location, keywords={}, outcome="passed", longrepr=None,
        when=when,  # type: ignore[arg-type]
    )  # fmt: skip
