"""What a run of pytest tests: its cases, the lists of known issues, and the targets."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from conformance.execution.fork_server import Refused
from conformance.execution.scheduler import Scheduler, Settings
from conformance.language.files import is_shipped, shipped_exemptions
from conformance.language.profile import Profile
from conformance.model.build import Build, Target
from conformance.model.case import ListedCase
from conformance.model.outcome import Outcome
from conformance.pytest_plugin.case_set import CaseSet
from conformance.pytest_plugin.distributed import worker_number
from conformance.pytest_plugin.invocation import address_of
from conformance.pytest_plugin.issue_lists import IssueLists
from conformance.render.command import command_words
from conformance.results.exempt import exempted
from conformance.results.resume import Resumed

DEFAULT_DTYPE = "float32"
NO_LIST = "none"  # the value of --known-issues for no list


def cache_directory(config: pytest.Config) -> Path | None:
    """Return the suite's directory in pytest's cache, or None without a cache, as in a checkout that is read-only."""
    cache = getattr(config, "cache", None)
    if cache is None:
        return None
    try:
        directory: Path = cache.mkdir("conformance")
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None


class ConformanceSession:
    """The cases of one run, and the scheduler that runs them."""

    def __init__(self, config: pytest.Config, profile: Profile) -> None:
        self.config = config
        directory = cache_directory(config)
        self.scheduler = Scheduler(settings_of(config, profile, directory))
        self.case_set = CaseSet(config.rootpath, directory)
        given = config.option.known_issues
        own = None if given in (None, NO_LIST) else (config.invocation_params.dir / given).resolve()
        self.issues = IssueLists(self.case_set, own, is_none=given == NO_LIST, profile=profile)
        self.resumed: Resumed | None = None  # with --resume, what an interrupted run has found
        self.left_to_pairs = 0  # the number of covered cases that aren't run, for want of `--pairs all`
        self.refused = False  # whether the torch or a device that was asked for is missing

    @property
    def build(self) -> Build:
        return self.scheduler.build

    def command(self, path: Path, name: str) -> str:
        """Return the shell command that runs an item of the file at `path` alone, as the run was called."""
        option = self.config.option
        return shlex.join([*command_words(option.called_as, option.given), address_of(self.config, path, name)])

    def judged(self, case: ListedCase, path: Path, target: Target, outcome: Outcome) -> Outcome:
        """Apply the known issues for a case in the file at `path` to its outcome, and what is known of its mode."""
        outcome = self.issues.of(path.parent).judge(case.id, target, self.build, outcome)
        return exempted(outcome, case.id, target, shipped_exemptions()) if target.mode else outcome

    def steps_of(self, first: ListedCase) -> Sequence[str]:
        """Return the steps of the cases of which one is the first, as the worker gets them."""
        return self.case_set.encoded_steps(first.file, self.build.torch, covered=first.is_covered)

    def confine_for(self, path: Path) -> None:
        """Have workers confined if a case file doesn't come with the suite; raise Refused where that can't be."""
        if is_shipped(path):
            return
        sandbox = self.scheduler.confine()
        if sandbox is not None and sandbox.lacks and not self.config.option.trust:
            raise Refused(f"{sandbox.line}; {path.name} doesn't come with the suite: read it, and use --trust")

    def found_before(self, case: str, target: str) -> Outcome | None:
        """Return the outcome that an interrupted run has found, with --resume."""
        return self.resumed.outcomes.get((case, target)) if self.resumed is not None else None

    def targets(self) -> Iterator[Target]:
        option = self.config.option
        build = self.build
        devices = option.device or [*build.present_in_tree, *option.require_device]
        unknown = [build.why_absent(name) for name in devices if build.is_unknown(name)]
        if unknown:
            raise Refused("; ".join(unknown))
        for mode in dict.fromkeys(option.under):
            self.scheduler.require_mode(mode)
        for device in dict.fromkeys(devices):
            for dtype in dict.fromkeys(option.dtype or [DEFAULT_DTYPE]):
                for mode in ("", *dict.fromkeys(option.under)):
                    yield Target(device=device, dtype=dtype, mode=mode)

    def lost_devices(self) -> list[str]:
        """Return a line for each device of --require-device that can't be used."""
        if not self.scheduler.knows_build:
            return []
        required = dict.fromkeys(self.config.option.require_device)
        return [f"{name}: {self.build.why_absent(name)}" for name in required if self.build.why_absent(name)]


@cache
def marks_of(topic: str, rules: tuple[str, ...], level: str, target: Target) -> tuple[pytest.Mark, ...]:
    """Return the markers of an item, by which `-m` selects it."""
    names = (level, target.device.partition(":")[0], target.dtype)
    return (
        *(getattr(pytest.mark, name).mark for name in names),
        pytest.mark.topic(name=topic).mark,
        *(pytest.mark.rule(id=rule).mark for rule in rules),
    )


def settings_of(config: pytest.Config, profile: Profile, cache_directory: Path | None) -> Settings:
    """Return the scheduler's settings from the options of a run."""
    option = config.option
    return Settings(
        python=option.python or sys.executable,
        devices=(*option.device, *option.require_device),
        modules=tuple(option.device_module),
        profile=profile,
        seconds=option.case_timeout,
        memory=int(option.worker_memory * 2**30),
        workers=option.workers,
        graphs=option.graphs,
        sandbox=option.sandbox,
        in_process=option.isolation == "none",
        debugged=option.usepdb or option.trace,
        number=worker_number(config),
        cache=cache_directory,
    )
