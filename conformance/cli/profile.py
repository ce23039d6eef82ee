"""Drafts the profile of a device by looking at a build."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from conformance.cli.output import CommandError, put, save
from conformance.execution.features import WRONG, looked_at
from conformance.execution.fork_server import Interpreter, Refused
from conformance.execution.workers import Workers
from conformance.language.profile import NO_PROFILE, Profile, load_profile, shipped_profiles
from conformance.model.build import Build
from conformance.render.visible import line_of

DESCRIPTION = """\
Prints a draft of the profile of a device, for `run --profile FILE`: what has to be imported, and which features the
device was found to lack, with the reason. Strike what is a fault and not by design, and add what only you know.

  autograd-conformance profile npu --device-module torch_npu --python ../venv-npu/bin/python -o npu.yaml

The modules and the setup of a device of which the suite has a profile are known.

exit statuses: 0 drafted; 2 there is no such torch or device
"""
CASE_SECONDS = 60.0
LONGEST_REASON = 90  # characters
OTHERS = """\
# synchronize: {module}:synchronize  # a function that waits for the device
# name: {module}:get_device_name  # what gives the name of the hardware, if torch.{device} doesn't
# version: {module}:__version__  # what gives the version, if the distribution doesn't
# not_implemented: ["not implemented for {device}"]  # regular expressions for what your messages say
# seconds: 60  # that a case may take
# known_issues: known-issues.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", metavar="DEVICE", help="such as npu")
    parser.add_argument("--device-module", metavar="MODULE", action="append", default=[], help="what is to be imported")
    parser.add_argument("--setup", metavar="MODULE:FUNCTION", default="", help="what is to be called after that")
    parser.add_argument("--python", metavar="PATH", default=sys.executable, help="the interpreter that has torch")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="where the draft goes (default: it is printed)"
    )


def run(options: argparse.Namespace) -> int:
    shipped = [load_profile(path, path.name) for path in shipped_profiles().values()]
    known = next((profile for profile in shipped if profile.device == options.device), NO_PROFILE)
    modules = tuple(options.device_module) or known.modules
    told = Profile(device=options.device, setup=options.setup or known.setup, synchronize=known.synchronize,
                   hardware=known.hardware, version=known.version, commit=known.commit)  # fmt: skip
    try:
        workers = Workers(Interpreter(options.python, modules, (options.device,), told), CASE_SECONDS)
        try:
            build = workers.handshake()
            why = build.why_absent(options.device)
            if why:
                told_why = f"{options.device} can't be used: {why}"
                raise CommandError(
                    told_why, "--device-module names what brings it to torch, --setup what has to be called"
                )
            text = "".join(lines_of(build, modules, told, known, features_of(build, options.device, workers)))
        finally:
            workers.close()
    except Refused as error:
        raise CommandError(str(error), "--python names the interpreter, --device-module a module that it has") from None
    if options.output is None:
        put(text, "utf-8")
    else:
        save(options.output, text)
    return 0


def features_of(build: Build, name: str, workers: Workers) -> dict[str, str]:
    """Return why a device lacks each feature, or "" where it has it."""
    return looked_at(next(device for device in build.devices if device.type == name), workers).features


def lines_of(
    build: Build, modules: tuple[str, ...], told: Profile, known: Profile, features: dict[str, str]
) -> Iterator[str]:
    """Yield the lines of a draft; `known` is the profile that the suite has of the device, or an empty one."""
    title = " with ".join([f"torch {build.torch}", *build.backend_titles])
    yield f"# Drafted on {line_of(title, 200)}.\n"
    yield f"device: {told.device}\n"
    yield f"import: {json.dumps(list(modules))}\n" if modules else ""
    places = {"setup": told.setup, "synchronize": told.synchronize, "name": told.hardware, "version": told.version,
              "commit": told.commit}  # fmt: skip
    yield from (f"{key}: {place}\n" for key, place in places.items() if place)
    if known.not_implemented:
        yield f"not_implemented: {json.dumps(list(known.not_implemented))}\n"
    absent = {name: why for name, why in features.items() if why and why != WRONG}
    yield "# Strike what is a fault.\n"
    yield "absent:\n" if absent else "absent: []\n"
    yield from (f"  - {name}  # {line_of(why, LONGEST_REASON)}\n" for name, why in absent.items())
    yield from (f"# - {name}  # {WRONG}: a fault, unless by design\n" for name, why in features.items() if why == WRONG)
    if known is NO_PROFILE:
        yield OTHERS.format(module=modules[0] if modules else f"torch.{told.device}", device=told.device)
