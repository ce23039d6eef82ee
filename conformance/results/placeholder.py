"""The report of a build that could not be had, so that it has a column that says why."""

import platform
from collections.abc import Mapping, Sequence

from conformance.model.build import Build, Device, Target
from conformance.model.case import Case
from conformance.model.outcome import Outcome
from conformance.model.report import FORMAT, Header, PlanEntry, Report, Run, case_record, cited_rules, footer_of, now
from conformance.model.rule import Rule
from conformance.results.checkout import suite_version

NOT_FOUND = 4  # pytest's exit status for a run that can't begin


def placeholder_report(cases: Sequence[Case], rules: Mapping[str, Rule], torch: str, why: str) -> Report:
    """Return a report of the release `torch` in which none of `cases` ran, for the reason that `why` gives."""
    target = str(Target(device="cpu", dtype="float32"))
    outcomes = tuple(Outcome(case=case.id, target=target, status="not-run", reason=why) for case in cases)
    return Report(
        format=FORMAT,
        header=Header(
            suite=suite_version(cases), run=Run(started=now(), arguments=()), build=placeholder_build(torch, why)
        ),
        rules=cited_rules(rules, cases),
        cases=tuple(case_record(case, rules) for case in cases),
        plan=tuple(PlanEntry(case=case.id, target=target) for case in cases),
        outcomes=outcomes,
        footer=footer_of(outcomes, NOT_FOUND, now()),
    )  # fmt: skip


def placeholder_build(torch: str, why: str) -> Build:
    """Return all that is known of a build that nobody has: its version, and where it was looked for."""
    cpu = Device(type="cpu", name="", count=0, driver=None, absent=why, unknown=False)
    return Build(
        torch=torch, git="unknown", debug=False, cuda=None, hip=None, config="", path="",
        python=platform.python_version(), implementation=platform.python_implementation(), executable="",
        system=f"{platform.system()}-{platform.machine()}".lower(), platform=platform.platform(), devices=(cpu,),
    )  # fmt: skip
