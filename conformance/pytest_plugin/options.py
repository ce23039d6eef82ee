"""The options that the suite adds to pytest, and the markers of its items."""

import argparse
from contextlib import suppress

import pytest

from conformance.language.errors import CaseFileError, did_you_mean
from conformance.language.profile import NO_PROFILE, Profile, find_profile, shipped_profiles
from conformance.model.build import DTYPES, IN_TREE
from conformance.model.mode import MODES
from conformance.model.shard import Shard, shard

MOST_SECONDS = 86_400.0  # that a case may have, a day; systems can't wait longer than some weeks
MOST_MEMORY = 1_048_576.0  # GiB of a worker, more than any machine has


def positive(text: str, most: float) -> float:
    with suppress(ValueError):
        if 0 < float(text) <= most:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected a number above 0 and up to {most:.0f}, got {text!r}")


def seconds(text: str) -> float:
    return positive(text, MOST_SECONDS)


def gibibytes(text: str) -> float:
    return positive(text, MOST_MEMORY)


def positive_count(text: str) -> int:
    with suppress(ValueError):
        if int(text) > 0:
            return int(text)
    raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text!r}")


def part(text: str) -> Shard:
    try:
        return shard(text)
    except ValueError as error:  # of whose words argparse shows none
        raise argparse.ArgumentTypeError(str(error)) from None


def mode(text: str) -> str:
    module, colon, name = text.partition(":")
    if text in MODES or (colon and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))):
        return text
    hint = did_you_mean(text, MODES) or f"expected one of {', '.join(MODES)}, or module:name"
    raise argparse.ArgumentTypeError(f"there is no mode {text!r}; {hint}")


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "autograd conformance")
    group.addoption(
        "--python", metavar="PATH",
        help="the interpreter whose torch is tested; it needs nothing but torch (default: this one)",
    )  # fmt: skip
    group.addoption(
        "--profile", metavar="FILE|NAME",
        help="the profile of a device: how it comes to torch, what it lacks by design, how to ask who it is; a file, "
        f"or one of {', '.join(shipped_profiles())}; explicit options count more",
    )  # fmt: skip
    group.addoption(
        "--device", metavar="NAME", action="append", default=[],
        help="a device to run the cases on; repeatable (default: those of cpu, cuda, mps and xpu that this torch has)",
    )  # fmt: skip
    group.addoption(
        "--device-module", metavar="MODULE", action="append", default=[],
        help="a module that the worker imports first, for an out-of-tree device; repeatable",
    )  # fmt: skip
    group.addoption(
        "--require-device", metavar="NAME", action="append", default=[],
        help="fail the run if this device can't be used; repeatable",
    )  # fmt: skip
    group.addoption(
        "--dtype", choices=DTYPES, action="append", default=[],
        help="the default dtype of the cases; repeatable (default: float32)",
    )  # fmt: skip
    group.addoption(
        "--under", metavar="MODE", action="append", default=[], type=mode,
        help="run each case a second time, in a mode that is not to change it, as a further column of the report: "
        f"{', '.join(MODES)}, or module:name of what returns a context manager; repeatable",
    )  # fmt: skip
    group.addoption("--level", choices=("documented", "observed"), help="run only cases whose rules are of this level")
    group.addoption(
        "--quick", action="store_true",
        help="leave out the cases that add least for their time, as the nearest left-out.txt has them",
    )  # fmt: skip
    group.addoption(
        "--pairs", choices=("covering", "all"), default="covering",
        help="which cases to run of those that try ways to differentiate on programs: each way with each feature that "
        "a program has, or with each program (default: covering)",
    )  # fmt: skip
    group.addoption(
        "--shard", metavar="I/N", type=part,
        help="run only the Ith of N parts of the cases; `python -m conformance merge` puts their reports together",
    )  # fmt: skip
    group.addoption(
        "--known-issues", metavar="FILE",
        help="the list of known issues that holds for all cases, or `none` (default: the nearest known-issues.yaml "
        "in or above each case file's directory, and those of the profile)",
    )  # fmt: skip
    group.addoption(
        "--case-timeout", metavar="SECONDS", type=seconds,
        help="kill the worker when a case takes longer than this, or than four times this where it generates code "
        "(default: what the profile says, or 60)",
    )  # fmt: skip
    group.addoption(
        "--workers", metavar="N", type=positive_count,
        help="run cases in at most N worker processes at a time (default: one per core that may be used, at most 4; "
        "1 in each process of pytest-xdist); an accelerator is used by one of them for each card",
    )  # fmt: skip
    group.addoption(
        "--worker-memory", metavar="GIB", type=gibibytes, default=16.0,
        help="let a worker have no more memory than this, on Linux where no accelerator is used; an allocation that "
        "needs more is an error of its case (default: 16)",
    )  # fmt: skip
    group.addoption(
        "--sandbox", choices=("auto", "off", "required"), default="auto",
        help="have the kernel keep cases from files, processes and sockets: as far as it can, if there are such that "
        "don't come with the suite (auto), or always, and run nothing where it can't (required) (default: auto)",
    )  # fmt: skip
    group.addoption(
        "--trust", action="store_true", help="run cases that don't come with the suite also without a sandbox"
    )
    group.addoption(
        "--isolation", choices=("process", "none"), default="process",
        help="none runs the cases inside pytest's own process, for debuggers (default: process)",
    )  # fmt: skip
    group.addoption("--report", metavar="DIRECTORY", help="where reports go (default: reports, in pytest's root)")
    group.addoption(
        "--resume", action="store_true",
        help="take over what the last run has found if it was interrupted or killed, and run the rest; it must have "
        "been called in the same way, on the same build and with the same state of the suite",
    )  # fmt: skip
    group.addoption(
        "--graphs", choices=("spare", "all"), default="spare",
        help="which graphs to record for the page: those that workers have time for, or all (default: spare)",
    )  # fmt: skip
    group.addoption(
        "--page", choices=("always", "full", "never"), default="full",
        help="when to write index.html beside the report; full: if the run came to each case of the report, or there "
        "is no page yet (default: full)",
    )  # fmt: skip


CASE_SECONDS = 60.0


def profile_of(config: pytest.Config) -> Profile:
    """Return the profile that was asked for, an empty one if none was, and fill in the options that it stands for."""
    option = config.option
    try:
        given = option.profile
        profile = NO_PROFILE if given is None else find_profile(given, config.invocation_params.dir)
    except CaseFileError as error:
        raise pytest.UsageError(f"--profile: {error}") from None
    option.device = option.device or ([profile.device] if profile.device else [])
    option.device_module = option.device_module or list(profile.modules)
    option.case_timeout = option.case_timeout or profile.seconds or CASE_SECONDS
    return profile


def refuse_several_interpreters(config: pytest.Config) -> None:
    """Raise a usage error if the command names several: the last would be tested, and the others silently not."""
    given = [str(each) for each in config.invocation_params.args]
    if sum(each == "--python" or each.startswith("--python=") for each in given) > 1:
        raise pytest.UsageError(
            "--python stands there several times, and a run tests one interpreter: run pytest for each of them, "
            "`python -m conformance report` puts their reports side by side; "
            "`python -m conformance try FILE --python PATH --python PATH` runs one file on several"
        )


def add_markers(config: pytest.Config) -> None:
    devices = [name.partition(":")[0] for name in (*IN_TREE, *config.option.device, *config.option.require_device)]
    for name in dict.fromkeys(devices):
        config.addinivalue_line("markers", f"{name}: the case runs on this device")
    for name in DTYPES:
        config.addinivalue_line("markers", f"{name}: the case runs with this default dtype")
    config.addinivalue_line("markers", "documented: PyTorch's documentation promises what the case checks")
    config.addinivalue_line("markers", "observed: the case checks something stable that is not promised")
    config.addinivalue_line("markers", "topic(name): the topic of the case's file")
    config.addinivalue_line("markers", "rule(id): a rule that the case checks")
